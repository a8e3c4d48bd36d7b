"""Faults planted in what heals a shared buffer after a death.

Each entry is a small, believable mistake; tests show which kill finds it. A fault has to be planted
in every process of a buffer, and before the buffer is made.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np
from forebay import _layout as at
from forebay import _native as native
from forebay._attendance import Attendance
from forebay._calls import Call
from forebay._journal import Journal
from forebay._layout import JOURNALED
from forebay._shared_peers import SharedPeers
from forebay._stores import Store
from forebay._tickets import Tickets


class SharedMutant(NamedTuple):
    """A fault: what is wrong, and a context manager that plants it."""

    sentence: str
    plant: Callable[[], AbstractContextManager[object]]


SHARED_MUTANTS: Final[dict[str, SharedMutant]] = {}


@contextmanager
def planted_in_shared(fault: str) -> Iterator[None]:
    """Plant the fault of that name for the length of the block; nothing without a name."""
    with SHARED_MUTANTS[fault].plant() if fault else nullcontext():
        yield


def _mutant(name: str, owner: object, attribute: str, sentence: str, replacement: object) -> None:
    """Register a fault that replaces an attribute of a class or module."""
    assert hasattr(owner, attribute), f"{owner} has no {attribute}"
    SHARED_MUTANTS[name] = SharedMutant(
        sentence, lambda: patch.object(owner, attribute, replacement)
    )


_commit = Journal.commit
_reclaim = SharedPeers._reclaim
_recover = SharedPeers.recover
_repair = SharedPeers.repair
_remove = Attendance.remove


def _mark_late(self: Journal, stores: list[Store]) -> None:
    carry_out = self.carry_out

    def reordered(step: list[Store]) -> None:
        mark, *changes, no_mark = step
        carry_out([*changes, mark, no_mark])

    self.carry_out = reordered
    try:
        _commit(self, stores)
    finally:
        self.carry_out = carry_out


def _redo_slots_only(self: SharedPeers) -> None:
    journal, layout = self._journal, self._ledger.layout
    start, end = (journal._place(view) for view in (layout.phase, layout.free))
    places = np.arange(len(layout.block))
    for _, index, value in journal.unfinished():
        if start <= places[index].min(initial=end) < end:
            layout.block[index] = value
    self._ledger.cells[JOURNALED] = 0
    _repair(self)


def _unmark_first(self: Journal) -> None:
    self.carry_out([(self._scalars, JOURNALED, 0), *self.unfinished()])


def _reclaim_with(action: str, instead: Callable[[Any, Call], None]) -> Callable[..., None]:
    """Return a reclaim that takes another action than it should for what the dead had."""

    def reclaim(self: SharedPeers, participant: int) -> None:
        ledger = self._ledger
        with patch.object(ledger, action, lambda call: instead(ledger, call)):
            _reclaim(self, participant)

    return reclaim


class _Silent:
    """A monitor that wakes nobody."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock

    def wake(self) -> None: ...


def _silently(do: Callable[[SharedPeers], object]) -> Callable[[SharedPeers], object]:
    def silent(self: SharedPeers) -> object:
        silenced = _Silent(self._monitor().clock)
        with patch.object(self, "_monitor", lambda: silenced):
            return do(self)

    return silent


def _forget_observers(self: Attendance, participant: int) -> list[Store]:
    stores = _remove(self, participant)
    return [store for store in stores if store[1] != at.OBSERVERS]


def _forget_producers(self: Attendance, participant: int) -> list[Store]:
    stores = _remove(self, participant)
    return [store for store in stores if store[1] not in (at.PRODUCERS, at.LOST_PRODUCERS)]


def _no_rows(self: Tickets, participant: int) -> list[int]:
    return []


_mutant("mutex_not_robust", native, "_ROBUST", "the mutex does not tell of its holder's death", 0)
_mutant(
    "mark_after_stores",
    Journal,
    "commit",
    "the journal is marked only after the ledger has begun to change",
    _mark_late,
)
_mutant(
    "redo_of_slots_only",
    SharedPeers,
    "repair",
    "a finished step lacks the lists and counts that go with the slots",
    _redo_slots_only,
)
_mutant(
    "redo_unmarks_first",
    Journal,
    "redo",
    "who finishes a step says so before it is finished",
    _unmark_first,
)
_mutant(
    "ticket_of_the_dead_stays", Tickets, "rows_of", "the dead stand in the queue for ever", _no_rows
)
_mutant(
    "observer_of_the_dead_counted",
    Attendance,
    "remove",
    "a dead observer is still counted",
    _forget_observers,
)
_mutant(
    "producer_of_the_dead_counted",
    Attendance,
    "remove",
    "a dead registered producer is still counted, so that readers are never told",
    _forget_producers,
)
_mutant(
    "dead_hold_delivered",
    SharedPeers,
    "_reclaim",
    "what a dead reader held counts as delivered",
    _reclaim_with("give_back", lambda ledger, call: ledger.deliver(call, 0.0)),
)
_mutant(
    "dead_write_published",
    SharedPeers,
    "_reclaim",
    "what a dead writer was filling becomes visible",
    _reclaim_with("abandon", lambda ledger, call: ledger.publish(call)),
)
_mutant(
    "recovery_wakes_nobody",
    SharedPeers,
    "recover",
    "what the dead had is given back, and nobody is woken",
    _silently(_recover),
)
