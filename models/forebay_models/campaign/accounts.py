"""What the specification's state does not hold, though callers rely on it: records and counters.

The models do not number records, so that their graphs stay small. Here each record has a number,
and the account says which record is in which slot, and with which numbers each hold was drawn. The
counters of `BufferStats` follow from the steps alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Phase, Verdict
from forebay_spec.state import State, filling_of, is_settled, is_stale, sampleable

from forebay_models.adapters.adapter import INTERRUPTED, Observation

UNSERVED: Final[Mapping[Verdict, str]] = {
    Verdict.SHUT_DOWN: "refusals",
    Verdict.MUTUAL_WAIT: "refusals",
    Verdict.CANCELLED: "cancellations",
    Verdict.TIMEOUT: "timeouts",
}
"""The counter of each outcome of a call that was not served, by the names of `BufferStats`."""

_COUNTED: Final = ("admitted", "delivered", "returned", "spent", "dropped")
_ZEROS: Final[Mapping[str, int]] = {
    "blocked_calls": 0,
    "recoveries": 0,
    "draws": 0,
    **dict.fromkeys(UNSERVED.values(), 0),
    **{f"{name}{suffix}": 0 for name in _COUNTED for suffix in ("", "_batches")},
}
KEPT: Final = 20_000
"""For how many states it is kept what they imply."""


class _Saved(NamedTuple):
    """What a snapshot has: the record in each slot, those of the queue, the counters, and how many
    records were lost by then."""

    record_in: dict[int, int]
    queue: list[tuple[int, ...]]
    counts: Counter[str]
    lost: int


class Accounts:
    """The records and counters of one run.

    Args:
        bounds: the constants of the run.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._record_in: dict[int, int] = {}
        self._drawn: list[tuple[int, ...]] = []
        self._counts: Counter[str] = Counter()
        self._lost = 0
        self._saved = _Saved({}, [], Counter(), 0)

    def book(
        self, before: State, label: Label, manner: str, after: State, seen: Observation
    ) -> list[str]:
        """Enter a step from one state to another; returns what is wrong with what was seen."""
        name = label.name
        if name == "Publish":
            return self._publish(before, str(label.args[0]), seen)
        if name in ("Ready", "Fail", "Deliver", "Return"):
            return self._hand_out(before, label, after, seen)
        wrong: list[str] = []
        if len(after.holds) > len(before.holds) and name != "Restore":
            slots = after.holds[-1].slots
            self._drawn.append(tuple(self._record_in.get(slot, 0) for slot in slots))
            self._counts["draws"] += not self._bounds.fifo
        elif seen.records is not None and name in ("Ask", "Draw"):
            wrong = self._take(before, after, seen)
        elif name in ("Recall", "Empty", "Recover"):
            self._end(before, label, after)
        elif name in ("Capture", "CaptureDone", "Load", "Restore"):
            wrong = self._cross(before, name, after, seen)
        if len(after.tickets) > len(before.tickets):
            self._counts["blocked_calls"] += 1
        verdict = seen.verdict
        if verdict is not None and verdict in UNSERVED and manner != INTERRUPTED:
            self._counts[UNSERVED[verdict]] += 1
        return wrong

    def check(self, state: State, counts: Mapping[str, int]) -> list[str]:
        """Return where a buffer's counters differ from what a state and the steps so far imply."""
        expected = {**_ZEROS, **self._counts, **_implied(self._bounds, state)}
        wrong = []
        if not expected.items() <= counts.items():
            wrong = [
                f"{name} should be {number} but is {counts.get(name)}"
                for name, number in sorted(expected.items())
                if counts.get(name) != number
            ]
        inside = sum(slot.phase == Phase.LIVE for slot in state.slots)
        gone = counts["spent"] + counts["dropped"] + self._lost
        if counts["admitted"] != gone + inside:
            wrong.append(f"{counts['admitted']} admitted, but {gone} gone and {inside} there")
        return wrong

    def _publish(self, before: State, name: str, seen: Observation) -> list[str]:
        slots = filling_of(before, name)
        records = seen.records or ()
        self._record_in.update(zip(slots, records, strict=True))
        self._count("admitted", len(slots))
        return _differs("the index of the written batch", seen.slots, slots)

    def _hand_out(self, before: State, label: Label, after: State, seen: Observation) -> list[str]:
        position = label.args[0]
        assert isinstance(position, int)
        hold = before.holds[position]
        wrong: list[str] = []
        if seen.records is not None:
            wrong += _differs("the records of the batch", seen.records, self._drawn[position])
            wrong += _differs("the index of the batch", seen.slots, hold.slots)
        elif label.name == "Deliver" or (label.name == "Ready" and hold.kind == "lease"):
            wrong.append("the reader got no records")
        if len(after.holds) == len(before.holds):
            return wrong
        del self._drawn[position]
        self._count("delivered" if label.name == "Deliver" else "returned", len(hold.slots))
        if label.name == "Deliver":
            self._count("spent", _freed(before, after, hold.slots))
        return wrong

    def _take(self, before: State, after: State, seen: Observation) -> list[str]:
        """Look at the lease on a batch that was ready when it was taken."""
        pairs = enumerate(zip(before.holds, after.holds, strict=True))
        position = next(h for h, (old, new) in pairs if old.owner != new.owner or old != new)
        return [
            *_differs("the records of the batch", seen.records, self._drawn[position]),
            *_differs("the index of the batch", seen.slots, after.holds[position].slots),
        ]

    def _end(self, before: State, label: Label, after: State) -> None:
        """Enter a step that ends holds that nobody was given."""
        ended = _ended(before, label)
        gone = [hold for h, hold in enumerate(before.holds) if h in ended]
        self._drawn = [drawn for h, drawn in enumerate(self._drawn) if h not in ended]
        if label.name == "Empty":
            self._count("dropped", sum(slot.phase == Phase.LIVE for slot in before.slots))
            return
        for hold in gone:
            self._count("returned", len(hold.slots))
        if label.name == "Recover":
            self._counts["recoveries"] += 1
            self._count("spent", _freed(before, after, before.boundary.slots))

    def _cross(self, before: State, name: str, after: State, seen: Observation) -> list[str]:
        """Enter a step of a capture or a restore."""
        if name == "Capture":
            self._save(before, after)
        elif name == "CaptureDone":
            self._count("spent", _freed(before, after, before.boundary.slots[:1]))
            if seen.records is not None:
                saved = tuple(self._saved.record_in[slot] for slot in seen.slots or ())
                return _differs("the records of the capture", seen.records, saved)
        elif name == "Load":
            self._drawn = []
            self._lost += sum(slot.phase == Phase.LIVE for slot in before.slots)
        else:
            self._record_in = dict(self._saved.record_in)
            self._drawn = list(self._saved.queue)
            self._counts = Counter(self._saved.counts)
            self._lost = self._saved.lost
        return []

    def _save(self, before: State, after: State) -> None:
        """Keep what the snapshot of a Capture has: what it gives back counts as returned."""
        kept, counts = [], self._counts
        queue = [slots for slots, _ in after.saved.queue] if after.saved else []
        self._counts = Counter(counts)
        for hold, drawn in zip(before.holds, self._drawn, strict=True):
            if hold.kind == "prefetched" and hold.state == "ready" and hold.slots in queue:
                queue.remove(hold.slots)
                kept.append(drawn)
            else:
                self._count("returned", len(hold.slots))
        self._saved = _Saved(dict(self._record_in), kept, self._counts, self._lost)
        self._counts = counts

    def _count(self, name: str, records: int) -> None:
        if records:
            self._counts[name] += records
            self._counts[f"{name}_batches"] += 1


@lru_cache(maxsize=KEPT)
def _implied(bounds: Bounds, state: State) -> Mapping[str, int]:
    """Return what a state alone says about the counters."""
    available = len(sampleable(bounds, state))
    return {
        "capacity": bounds.capacity,
        "sampleable": available,
        "size": available,
        "len": available,
        "free": len(state.free),
        "filling": sum(len(slots) for _, slots in state.filling),
        "pinned": sum(slot.pins > 0 for slot in state.slots),
        "prefetched": sum(
            hold.kind == "prefetched" and not is_stale(state, hold) for hold in state.holds
        ),
        "waiting_writers": sum(ticket.kind == "write" for ticket in state.tickets),
        "waiting_readers": sum(ticket.kind != "write" for ticket in state.tickets),
    }


def _ended(before: State, label: Label) -> set[int]:
    """Return the positions of the holds that end with a Recall, an Empty or a Recover."""
    holds = list(enumerate(before.holds))
    if label.name == "Recover":
        return {h for h, hold in holds if hold.owner == label.args[0]}
    settled = {h for h, hold in holds if is_settled(hold)}
    return {max(settled)} if label.name == "Recall" else settled


def _freed(before: State, after: State, slots: Iterable[int]) -> int:
    """Count the slots that have had a live record and are free."""
    left = Phase.LIVE, Phase.FREE
    return sum((before.slots[slot].phase, after.slots[slot].phase) == left for slot in slots)


def _differs(what: str, seen: tuple[int, ...] | None, expected: tuple[int, ...]) -> list[str]:
    return [] if seen == expected else [f"{what} should be {expected} but is {seen}"]
