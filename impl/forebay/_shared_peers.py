"""The participants of a shared buffer, and what becomes of what the dead leave behind.

Whoever waits looks for the dead now and then, by the time since anybody looked last, and so does
every call where records are overwritten, since it may be that none ever waits there. Whoever is
about to tell a call that it waits in vain, or that a table is full, looks at once. What a dead
participant has is given back by the same actions that it would have taken itself: a ticket leaves,
filling slots are abandoned, held batches are returned. Each is a step of its own, so a finder may
die in the middle and the next one goes on.

The records of some buffers are in memory that goes with one participant, the owner. When that is
dead, the first thing that is done is to close the buffer for good.
"""

import os
from collections.abc import Callable
from typing import Final
from weakref import ref

import numpy as np
import numpy.typing as npt
from forebay_spec.kernel import Closing

from forebay import _layout as at
from forebay._boundary import Boundary
from forebay._calls import Call
from forebay._errors import LimitReached
from forebay._failure import FAILURE_BYTES, failure_bytes, read_failure
from forebay._journal import Journal
from forebay._layout import NONE
from forebay._ledger import Ledger
from forebay._monitor import Monitor
from forebay._participants import Participants
from forebay._peers import OWNER_ENDED
from forebay._stages import Stage
from forebay._threads import participant_of
from forebay._tickets import Kind

_LOADER_DIED: Final = failure_bytes(
    RuntimeError(
        "a participant died in the middle of a restore: the records of before are gone, and those "
        "of the checkpoint are not there; make a new buffer and load the checkpoint into that"
    ),
    FAILURE_BYTES,
)
_OWNER_ENDED: Final = failure_bytes(RuntimeError(OWNER_ENDED), FAILURE_BYTES)
LOOK: Final = 0.5
"""Seconds between two looks for the dead."""


class SharedPeers:
    """This process among the participants of a shared buffer.

    Args:
        ledger: the shared ledger.
        journal: the journal of that ledger.
        participants: the table of participants.
        area: where the cause of a failure is kept.
        monitor: gives the monitor of this process, once it is made.
    """

    shared = True

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        participants: Participants,
        area: npt.NDArray[np.uint8],
        monitor: Callable[[], Monitor],
    ) -> None:
        self.life = 0
        self._row: int | None = None
        self._ledger = ledger
        self._boundary = Boundary(ledger)
        self._journal = journal
        self._participants = participants
        self._area = area
        self._monitor = monitor
        _all.add(ref(self, _all.discard))

    @property
    def enlisted(self) -> bool:
        """Whether this process has a row."""
        return self._row is not None

    def enlist(self) -> None:
        """Take a row for this process, unless it has one, maybe by a handle that is gone.

        Raises:
            LimitReached: as many processes as there may be take part already.
        """
        if self._row is None:
            self._row = self._participants.own()
        if self._row is not None:
            return
        try:
            self._row = self._participants.register()
        except LimitReached:
            if not self.recover():
                raise
            self._row = self._participants.register()

    def own(self) -> None:
        """Say that this process has the memory of all records, which goes when it ends."""
        self.enlist()
        cells = self._ledger.cells
        self._ledger.layout.commit([(cells, at.OWNER, self.participant() + 1)])

    def participant(self) -> int:
        """Return the row of this process."""
        assert self._row is not None, "enlist comes first"
        return self._row

    def anybody_dead(self) -> bool:
        """Tell whether somebody has died who has something, and nobody has reclaimed it yet."""
        return any(map(self._has_something, self._participants.dead()))

    def due(self) -> bool:
        """Tell whether it is time to look for the dead: now and then, and if the owner is dead."""
        late = self._now() - self._ledger.cells[at.LAST_LOOK] >= LOOK * 1e9
        owner = self._ledger.cells[at.OWNER] - 1
        if late or owner in (NONE, self._row):
            return late
        return not self._participants.living(owner)

    def recover(self) -> bool:
        """Recover: reclaim what the dead have left; False if nobody is dead."""
        self._ledger.cells[at.LAST_LOOK] = self._now()
        dead = self._participants.dead()
        for row in dead:
            self._reclaim(row)
        if dead:
            self._monitor().wake()
        return bool(dead)

    def repair(self) -> None:
        """Make the ledger whole after a participant has died inside the critical section.

        The death is counted here, once however often the repair has to start over. Who it was is
        not known, and a process of many threads counts as alive for a while after its mutex is
        free; so the next dead participant that is reclaimed is taken to be the one.
        """
        self._journal.redo()
        cells, commit = self._ledger.cells, self._ledger.layout.commit
        if not cells[at.REPAIRING]:
            recoveries, unclaimed = cells[at.RECOVERIES] + 1, cells[at.UNCLAIMED] + 1
            counting = [(cells, at.RECOVERIES, recoveries), (cells, at.UNCLAIMED, unclaimed)]
            commit([*counting, (cells, at.REPAIRING, 1)])
        self.recover()
        cells[at.REPAIRING] = 0
        self._monitor().wake()

    def note(self, error: BaseException) -> Callable[[], int]:
        """Return what writes the cause of a failure into shared memory; see `Peers.note`."""
        data = failure_bytes(error, len(self._area))

        def keep() -> int:
            if self._ledger.cells[at.FAILURE]:
                return 0
            self._area[: len(data)] = np.frombuffer(data, np.uint8)
            return len(data)

        return keep

    def failure(self) -> BaseException | None:
        """Return the cause of a failure, if there is one."""
        length = self._ledger.cells[at.FAILURE]
        return read_failure(self._area[:length].tobytes()) if length else None

    def elsewhere(self, actor: int) -> int | None:
        """Return the number of the process of an actor that is not of this process, else None."""
        row = participant_of(actor)
        return None if row == self._row else self._participants.process(row)

    def forget(self) -> None:
        """Be nobody yet: this process was just forked off one that takes part."""
        self._row = None
        self.life += 1

    def keep_tokens(self) -> None:
        """Keep the rows of all tokens of this process, which a child is about to know."""
        if self._row is not None:
            for row in self._ledger.tokens.rows_of(self._row).tolist():
                self._ledger.tokens.keep(row)

    def _reclaim(self, participant: int) -> None:
        """Give back all that a dead participant has, and its row in the end."""
        ledger, cells, layout = self._ledger, self._ledger.cells, self._ledger.layout
        tickets = ledger.queue.rows_of(participant)
        batches = ledger.batches.rows_of(participant)
        counted = layout.counted_base + participant
        if not cells[counted]:
            unclaimed, recoveries = cells[at.UNCLAIMED], cells[at.RECOVERIES] + 1
            if unclaimed:
                layout.commit([(cells, at.UNCLAIMED, unclaimed - 1), (cells, counted, 1)])
            elif self._has_something(participant):
                layout.commit([(cells, at.RECOVERIES, recoveries), (cells, counted, 1)])
        if self._owns(participant):
            self._fail_without_owner()
        for row in tickets:
            ticket = ledger.queue.view(row)
            places = [row, NONE, 0, 0]
            ledger.leave(Call(ticket.kind, ticket.actor, ticket.n, ticket.m, places=places))
        for row in batches:
            call = ledger.call_of(row)
            (ledger.abandon if call.kind is Kind.WRITE else ledger.give_back)(call)
        if self._boundary.is_of(participant):
            self._end_boundary()
        for row in ledger.tokens.rows_of(participant).tolist():
            ledger.tokens.free(row)
        place = layout.participant_base + self._participants.place(participant)
        gone = ledger.attendance.remove(participant)
        if self._owns(participant):
            gone.append((cells, at.OWNER, 0))
        layout.commit([*gone, (cells, counted, 0), (cells, place, 0)])

    def _owns(self, participant: int) -> bool:
        """Tell whether a participant has the memory of the records."""
        return self._ledger.cells[at.OWNER] == participant + 1

    def _fail_without_owner(self) -> None:
        """Close: no call can use the records any more; one of a stopped buffer would not anyway."""
        ledger = self._ledger
        if ledger.closing is not Closing.STOPPED:
            self._area[: len(_OWNER_ENDED)] = np.frombuffer(_OWNER_ENDED, np.uint8)
            ledger.close(Closing.STOPPED, len(_OWNER_ENDED))

    def _end_boundary(self) -> None:
        """Let go of what a capture had still to copy; a restore cut short stops the buffer."""
        failure = 0
        if self._boundary.stage is Stage.LOADING and not self._ledger.cells[at.FAILURE]:
            failure = len(_LOADER_DIED)
            self._area[:failure] = np.frombuffer(_LOADER_DIED, np.uint8)
        self._boundary.end(failure)

    def _has_something(self, participant: int) -> bool:
        """Tell whether a participant has anything: a ticket, a batch, an observer, the records."""
        ledger = self._ledger
        return bool(
            ledger.queue.rows_of(participant)
            or ledger.batches.rows_of(participant)
            or any(ledger.attendance.of(participant))
            or self._boundary.is_of(participant)
            or self._owns(participant)
        )

    def _now(self) -> int:
        return int(self._monitor().clock() * 1e9)


_all: "set[ref[SharedPeers]]" = set()
"""No WeakSet, since other threads make buffers while one forks: a set is copied in one step."""


def _everybody() -> list[SharedPeers]:
    return [peers for reference in tuple(_all) if (peers := reference()) is not None]


def _before_fork() -> None:
    for peers in _everybody():
        peers.keep_tokens()


def _in_forked_child() -> None:
    for peers in _everybody():
        peers.forget()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(before=_before_fork, after_in_child=_in_forked_child)
