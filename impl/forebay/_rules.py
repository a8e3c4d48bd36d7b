"""What a call gets: the state of the ledger, put to the kernel.

The kernel decides; this module only works out what it is asked: who is at the head, who would have
to give way, whose leases are in the way. The costly questions are put only when the cheap ones end
in waiting.
"""

from collections.abc import Callable
from typing import NamedTuple

from forebay_spec.kernel import (
    Closing,
    Verdict,
    close_to,
    mutual_wait,
    never_fits,
    reader_verdict,
    writer_gives_way,
    writer_verdict,
)

from forebay import _layout as at
from forebay._calls import TICKET, Call
from forebay._layout import NONE
from forebay._ledger import Ledger
from forebay._rows import are_blocked
from forebay._stages import held_off
from forebay._stores import tally
from forebay._threads import participant_of
from forebay._tickets import NO_QUEUE, Kind


class Mutual(NamedTuple):
    """A mutual wait: the victim's ticket number, and what the heads wait for (0 for nobody).

    There is no victim, 0, while a batch that was drawn ahead can be recalled instead.
    """

    victim: int
    n: int
    m: int


class Rules:
    """The decisions about calls; to be asked inside the critical section."""

    def __init__(
        self, ledger: Ledger, clock: Callable[[], float], anybody_dead: Callable[[], bool]
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._anybody_dead = anybody_dead

    def verdict(self, call: Call) -> Verdict:
        """Decide about a call; one without a ticket is judged as if it stood at the list's end."""
        verdict = self.at_once(call)
        if verdict is not Verdict.WAIT:
            return verdict
        return self._decide(call, victim=self.is_victim(call), expired=self.is_expired(call))

    def at_once(self, call: Call) -> Verdict:
        """Decide about a call as it stands, whoever might have to give way and however late it is.

        `WAIT` means that it would have to wait, or end.
        """
        return self._decide(call, victim=False, expired=False)

    def observed(self, call: Call) -> Verdict:
        """Decide about an observer, who looks for what a reader at the head would find."""
        ledger = self._ledger
        return reader_verdict(
            self.closing_for_readers(),
            self.is_flagged(call),
            True,
            self.is_queued(call),
            call.m,
            ledger.sampleable,
            ledger.filling,
            self.is_held_off(call),
            False,
            self.is_expired(call),
        )

    def closing_for_readers(self) -> Closing:
        """Return how far the buffer is closed: to readers, draining too once producers are gone."""
        ledger = self._ledger
        deserted = ledger.attendance.deserted()
        return close_to(ledger.closing, Closing.DRAINING) if deserted else ledger.closing

    def is_head(self, call: Call) -> bool:
        """Tell whether no older call of the same kind waits."""
        return self._ledger.queue.head(call.kind) == call.places[TICKET]

    def is_flagged(self, call: Call) -> bool:
        """Tell whether a call's token, event or task has cancelled it."""
        return call.stopped or self._ledger.flagged(call.token)

    def is_queued(self, call: Call) -> bool:
        """Tell whether a call has a queue to take from; `call.oldest` is what it would take."""
        call.oldest = NONE
        if call.queue == NO_QUEUE:
            return False
        queue = self._ledger.batches.queue(call.queue)
        if queue:
            call.oldest = queue[0]
        return bool(queue)

    def may_refill(self, call: Call, depth: int) -> bool:
        """Tell whether a process may draw a batch ahead, of which it has `depth` at most."""
        ledger = self._ledger
        return (
            not ledger.cells[at.READERS]
            and ledger.closing is not Closing.STOPPED
            and not self.is_held_off(call)
            and call.n <= ledger.sampleable
            and len(ledger.batches.prefetched(call.actor)) < depth
        )

    def is_held_off(self, call: Call) -> bool:
        """Tell whether a capture or a restore keeps a call from being served."""
        if not self._ledger.cells[at.STAGE]:
            return False
        process = participant_of(call.actor)
        return held_off(self._ledger.layout, process, reads=call.kind is not Kind.WRITE)

    def waits_for_itself(self, call: Call) -> bool:
        """Tell whether it is a capture or a restore of its own actor that holds a call off."""
        mine: bool = self._ledger.cells[at.BOUNDARY_ACTOR] == call.actor
        return mine and self.is_held_off(call)

    def is_expired(self, call: Call) -> bool:
        """Tell whether a call's deadline has passed."""
        return call.deadline is not None and self._clock() >= call.deadline

    def is_victim(self, call: Call) -> bool:
        """Tell whether a call has to give way: to a mutual wait, or to its own thread's leases."""
        if self.never_fits(call):
            return True
        arriving = call.places[TICKET] == NONE
        mutual = self.mutual(call if arriving else None)
        if mutual is None or mutual.victim != self._number(call):
            return False
        call.heads = (mutual.n, mutual.m)
        return True

    def never_fits(self, call: Call) -> bool:
        """Tell whether a call can never be served beside the leases of its own thread."""
        ledger = self._ledger
        if not ledger.cells[at.LEASES]:
            return False
        slots, own = ledger.blocked_by_leases(call.actor)
        blocked = len(slots)
        if call.kind is not Kind.WRITE:
            phase, uses, pins = ledger.phase[slots], ledger.uses[slots], ledger.pins[slots]
            blocked = tally(are_blocked(phase, uses, ledger.uses_per_record, pins, own))
        call.blocked = blocked
        return never_fits(call.m, ledger.capacity, blocked)

    def mutual(self, arriving: Call | None = None) -> Mutual | None:
        """Return the mutual wait of the waiting calls and one that arrives, if there is one."""
        ledger, queue = self._ledger, self._ledger.queue
        writer, reader = queue.head(Kind.WRITE), queue.head(Kind.PLAIN)
        n = m = writer_number = reader_number = 0
        if writer != NONE:
            n, writer_number = queue.least(writer), queue.number(writer)
        if reader != NONE:
            m, reader_number = queue.least(reader), queue.number(reader)
        if arriving is not None and arriving.kind is Kind.WRITE and not n:
            n, writer_number = arriving.m, self._number(arriving)
        if arriving is not None and arriving.kind is not Kind.WRITE and not m:
            m, reader_number = arriving.m, self._number(arriving)
        leaving = any(row != NONE and ledger.flagged(queue.token(row)) for row in (writer, reader))

        def holds(busy: int) -> bool:
            return mutual_wait(
                ledger.closing,
                n,
                ledger.room,
                m,
                ledger.sampleable,
                ledger.filling,
                busy,
                leaving,
                ledger.cells[at.STAGE] != 0,
            )

        if not holds(0):
            return None
        ahead = ledger.cells[at.PREFETCHED] > 0
        if ahead:
            owners = ledger.batches.owners()
            leaving = any(ticket.queue in owners for ticket in queue.views())
        waiting = queue.actors()
        if arriving is not None:
            waiting.add(arriving.actor)
        if not holds(ledger.batches.busy(waiting)) or self._anybody_dead():
            return None
        if ahead and ledger.batches.settled():
            return Mutual(0, n, m)
        gives_way = writer_gives_way(n, m, writer_number, reader_number)
        return Mutual(writer_number if gives_way else reader_number, n, m)

    def _number(self, call: Call) -> int:
        """Return a call's ticket number, or the one that it would get now."""
        row = call.places[TICKET]
        if row == NONE:
            return int(self._ledger.cells[at.NEXT_TICKET])
        return self._ledger.queue.number(row)

    def _decide(self, call: Call, *, victim: bool, expired: bool) -> Verdict:
        ledger = self._ledger
        held_off = self.is_held_off(call)
        if call.kind is Kind.WRITE:
            return writer_verdict(
                ledger.closing,
                self.is_flagged(call),
                self.is_head(call),
                call.n,
                ledger.room,
                held_off,
                victim,
                expired,
            )
        return reader_verdict(
            self.closing_for_readers(),
            self.is_flagged(call),
            self.is_head(call),
            self.is_queued(call),
            call.m,
            ledger.sampleable,
            ledger.filling,
            held_off,
            victim,
            expired,
        )
