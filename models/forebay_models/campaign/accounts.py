"""What the specification's state does not hold, though callers rely on it: records and counters.

The models do not number records, so that their graphs stay small. Here each record has a number,
and the account says which record is in which slot, and with which numbers each hold was drawn, and
in which epoch. The counters of `BufferStats` follow from the steps alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Phase, Verdict
from forebay_spec.overwriting_steps import evicted_slots, rows_wanted
from forebay_spec.state import State, evictable, filling_of, is_settled, is_stale, sampleable

from forebay_models.adapters.adapter import INTERRUPTED, Observation
from forebay_models.campaign.epochs import Drawn, Epochs

UNSERVED: Final[Mapping[Verdict, str]] = {
    Verdict.SHUT_DOWN: "refusals",
    Verdict.MUTUAL_WAIT: "refusals",
    Verdict.CANCELLED: "cancellations",
    Verdict.TIMEOUT: "timeouts",
}
"""The counter of each outcome of a call that was not served, by the names of `BufferStats`."""

_COUNTED: Final = ("admitted", "delivered", "returned", "spent", "dropped", "evicted")
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
    """What a snapshot has: the record in each slot, those of the queue, the counters, how many
    records were lost by then, and what was left of the epoch."""

    record_in: dict[int, int]
    queue: list[Drawn]
    counts: Counter[str]
    lost: int
    epochs: Epochs


class Accounts:
    """The records and counters of one run.

    Args:
        bounds: the constants of the run.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._record_in: dict[int, int] = {}
        self._drawn: list[Drawn] = []
        self._epochs = Epochs(bounds)
        self._counts: Counter[str] = Counter()
        self._lost = 0
        self._saved = _Saved({}, [], Counter(), 0, Epochs(bounds))

    def book(
        self, before: State, label: Label, manner: str, after: State, seen: Observation
    ) -> list[str]:
        """Enter a step from one state to another; returns what is wrong with what was seen."""
        wrong = self._enter(before, label, after, seen)
        if len(after.tickets) > len(before.tickets):
            self._counts["blocked_calls"] += 1
        verdict = seen.verdict
        if verdict is not None and verdict in UNSERVED and manner != INTERRUPTED:
            self._counts[UNSERVED[verdict]] += 1
        return wrong + self._epochs.differs(frozenset(self._records(after.left)))

    def _enter(self, before: State, label: Label, after: State, seen: Observation) -> list[str]:
        """Enter what a step does to records and batches."""
        name = label.name
        if name == "Publish":
            return self._publish(before, str(label.args[0]), seen)
        if name in ("Ready", "Fail", "Deliver", "Return"):
            return self._hand_out(before, label, after, seen)
        wrong: list[str] = []
        if len(after.holds) > len(before.holds) and name != "Restore":
            wrong = self._draw(before, label, after)
        elif name in ("Arrive", "Admit"):
            evicted = evicted_slots(before, after)
            self._count("evicted", len(evicted))
            self._epochs.lose(self._records(evicted))
        elif seen.records is not None and name in ("Ask", "Draw"):
            wrong = self._take(before, after, seen)
        elif name in ("Recall", "Empty", "Recover"):
            self._end(before, label, after)
        elif name in ("Capture", "CaptureDone", "Load", "Restore"):
            wrong = self._cross(before, label, after, seen)
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
        gone = counts["spent"] + counts["dropped"] + counts["evicted"] + self._lost
        if counts["admitted"] != gone + inside:
            wrong.append(f"{counts['admitted']} admitted, but {gone} gone and {inside} there")
        return wrong

    def _publish(self, before: State, name: str, seen: Observation) -> list[str]:
        slots = filling_of(before, name)
        records = seen.records or ()
        self._record_in.update(zip(slots, records, strict=True))
        self._epochs.write(records)
        self._count("admitted", len(slots))
        return _differs("the index of the written batch", seen.slots, slots)

    def _draw(self, before: State, label: Label, after: State) -> list[str]:
        records = self._records(after.holds[-1].slots)
        there = self._records(sampleable(self._bounds, before))
        drawn, wrong = self._epochs.draw(records, rows_wanted(self._bounds, before, label), there)
        self._drawn.append(drawn)
        self._counts["draws"] += not self._bounds.fifo
        return wrong

    def _hand_out(self, before: State, label: Label, after: State, seen: Observation) -> list[str]:
        position = label.args[0]
        assert isinstance(position, int)
        hold = before.holds[position]
        wrong: list[str] = []
        if seen.records is not None:
            drawn = self._drawn[position].records
            wrong += _differs("the records of the batch", seen.records, drawn)
            wrong += _differs("the index of the batch", seen.slots, hold.slots)
        elif label.name == "Deliver" or (label.name == "Ready" and hold.kind == "lease"):
            wrong.append("the reader got no records")
        if len(after.holds) == len(before.holds):
            return wrong
        gone = self._drawn.pop(position)
        if label.name == "Deliver":
            self._count("delivered", len(hold.slots))
            self._count("spent", _freed(before, after, hold.slots))
        else:
            self._give_back(gone, after)
        return wrong

    def _take(self, before: State, after: State, seen: Observation) -> list[str]:
        """Look at the lease on a batch that was ready when it was taken."""
        pairs = enumerate(zip(before.holds, after.holds, strict=True))
        position = next(h for h, (old, new) in pairs if old.owner != new.owner or old != new)
        return [
            *_differs("the records of the batch", seen.records, self._drawn[position].records),
            *_differs("the index of the batch", seen.slots, after.holds[position].slots),
        ]

    def _end(self, before: State, label: Label, after: State) -> None:
        """Enter a step that ends holds that nobody was given."""
        ended = _ended(before, label)
        gone = [drawn for h, drawn in enumerate(self._drawn) if h in ended]
        self._drawn = [drawn for h, drawn in enumerate(self._drawn) if h not in ended]
        if label.name == "Empty":
            self._count("dropped", sum(slot.phase == Phase.LIVE for slot in before.slots))
            self._epochs.lose(self._record_in.values())
            return
        for drawn in gone:
            self._give_back(drawn, after)
        if label.name == "Recover":
            self._counts["recoveries"] += 1
            self._count("spent", _freed(before, after, before.boundary.slots))

    def _cross(self, before: State, label: Label, after: State, seen: Observation) -> list[str]:
        """Enter a step of a capture or a restore."""
        name = label.name
        if name == "Capture":
            self._save(before, self._bounds.process(str(label.args[0])))
        elif name == "CaptureDone":
            self._count("spent", _freed(before, after, before.boundary.slots[:1]))
            if seen.records is not None:
                saved = tuple(self._saved.record_in[slot] for slot in seen.slots or ())
                return _differs("the records of the capture", seen.records, saved)
        elif name == "Load":
            self._drawn = []
            self._lost += sum(slot.phase == Phase.LIVE for slot in before.slots)
            self._epochs.lose(self._record_in.values())
        else:
            self._record_in = dict(self._saved.record_in)
            self._drawn = list(self._saved.queue)
            self._counts = Counter(self._saved.counts)
            self._lost = self._saved.lost
            self._epochs = self._saved.epochs.copy()
        return []

    def _save(self, before: State, process: str) -> None:
        """Keep what the snapshot of a process has: what it gives back counts as returned."""
        kept, counts, epochs = [], self._counts, self._epochs
        self._counts, self._epochs = Counter(counts), epochs.copy()
        for hold, drawn in zip(before.holds, self._drawn, strict=True):
            if (hold.owner, hold.kind, hold.state) == (process, "prefetched", "ready"):
                kept.append(drawn)
            else:
                self._give_back(drawn, before)
        records = dict(self._record_in)
        self._saved = _Saved(records, kept, self._counts, self._lost, self._epochs)
        self._counts, self._epochs = counts, epochs

    def _give_back(self, drawn: Drawn, after: State) -> None:
        live = [number for number, slot in enumerate(after.slots) if slot.phase == Phase.LIVE]
        self._epochs.give_back(drawn, self._records(live))
        self._count("returned", len(drawn.records))

    def _records(self, slots: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers of the records in some slots."""
        return tuple(self._record_in.get(slot, 0) for slot in slots)

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
        "evictable": len(evictable(state)) if bounds.overwriting else 0,
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
