"""What the specification's state does not hold, though callers rely on it: records and counters.

The models do not number records, so that their graphs stay small. Here each record has a number,
and the account says which record is in which slot, and with which numbers each hold was drawn. The
counters of `BufferStats` follow from the steps alone.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Phase, Verdict
from forebay_spec.state import State, filling_of, sampleable

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
    **dict.fromkeys(UNSERVED.values(), 0),
    **{f"{name}{suffix}": 0 for name in _COUNTED for suffix in ("", "_batches")},
}
KEPT: Final = 20_000
"""For how many states it is kept what they imply."""


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

    def book(
        self, before: State, label: Label, manner: str, after: State, seen: Observation
    ) -> list[str]:
        """Enter a step from one state to another; returns what is wrong with what was seen."""
        if label.name == "Publish":
            return self._publish(before, str(label.args[0]), seen)
        if label.name in ("Ready", "Deliver", "Return"):
            return self._hand_out(before, label, after, seen)
        if label.name == "Recover":
            self._recover(before, str(label.args[0]))
            return []
        if label.name == "Empty":
            self._count("dropped", sum(slot.phase == Phase.LIVE for slot in before.slots))
        if len(after.holds) > len(before.holds):
            self._drawn.append(tuple(self._record_in.get(s, 0) for s in after.holds[-1].slots))
        if len(after.tickets) > len(before.tickets):
            self._counts["blocked_calls"] += 1
        verdict = seen.verdict
        if verdict is not None and verdict in UNSERVED and manner != INTERRUPTED:
            self._counts[UNSERVED[verdict]] += 1
        return []

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
        gone = counts["spent"] + counts["dropped"]
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
        if label.name == "Ready":
            return wrong
        del self._drawn[position]
        self._count("delivered" if label.name == "Deliver" else "returned", len(hold.slots))
        if label.name == "Deliver":
            left = Phase.LIVE, Phase.FREE
            self._count(
                "spent",
                sum((before.slots[s].phase, after.slots[s].phase) == left for s in hold.slots),
            )
        return wrong

    def _recover(self, before: State, name: str) -> None:
        self._counts["recoveries"] += 1
        for hold, drawn in zip(before.holds, tuple(self._drawn), strict=True):
            if hold.owner == name:
                self._drawn.remove(drawn)
                self._count("returned", len(hold.slots))

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
        "waiting_writers": sum(ticket.kind == "write" for ticket in state.tickets),
        "waiting_readers": sum(ticket.kind != "write" for ticket in state.tickets),
    }


def _differs(what: str, seen: tuple[int, ...] | None, expected: tuple[int, ...]) -> list[str]:
    return [] if seen == expected else [f"{what} should be {expected} but is {seen}"]
