"""The actions, one critical section each, and the wake-ups that they hand on.

`arrive` and `ask` are a call's first sections, `look_again` the one each time that it wakes,
`publish`, `abandon`, `deliver` and `give_back` the last. Whatever may concern others wakes all of
them, and nobody is woken while nobody waits. `set_cancel` is a single store, so it needs no
section; neither do `ready` and `fail_hold`, unless they take pins away.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Final, TypeVar

from forebay_spec.kernel import Closing, Verdict

from forebay import _layout as at
from forebay._batches import HoldState
from forebay._calls import BATCH, Call
from forebay._layout import NONE
from forebay._ledger import Ledger
from forebay._monitor import Monitor, section_of
from forebay._outcomes import calls_limit, error_for, held_limit
from forebay._peers import NoPeers, Peers
from forebay._rules import Rules
from forebay._threads import actor_of
from forebay._tickets import Kind

T = TypeVar("T")


def inside_action() -> bool:
    """Tell whether the caller interrupts an action of its own thread, as a signal handler may.

    It must not enter the section then: the interrupted action may be inside. Only this module
    enters the section, so a frame of it on the stack is what tells.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == inside_action.__code__.co_filename:
            return True
        frame = frame.f_back
    return False


_COUNTERS: Final = {
    Verdict.SHUT_DOWN: at.REFUSALS,
    Verdict.MUTUAL_WAIT: at.REFUSALS,
    Verdict.CANCELLED: at.CANCELLATIONS,
    Verdict.TIMEOUT: at.TIMEOUTS,
}


class Actions:
    """What can happen to a ledger, each time as one step."""

    def __init__(self, ledger: Ledger, monitor: Monitor, peers: Peers | None = None) -> None:
        self.ledger = ledger
        self.peers: Peers = peers or NoPeers()
        self.use(monitor)

    def use(self, monitor: Monitor) -> None:
        """Wait with this monitor from now on; before the first call."""
        self.monitor = monitor
        self.section = section_of(monitor)
        self.rules = Rules(self.ledger, monitor.clock, self.peers.anybody_dead)

    @property
    def failure(self) -> BaseException | None:
        """The error that the buffer has failed with, if it has."""
        return self.peers.failure()

    def actor(self, number: int) -> int:
        """Return the actor for a thread or a task of this process, which takes part from now on.

        Raises:
            LimitReached: as many processes as there may be take part already.
        """
        if not self.peers.enlisted:
            with self.section:
                self.peers.enlist()
        return actor_of(self.peers.participant(), number)

    def arrive(self, call: Call) -> Verdict:
        """Arrive: a writer is admitted, lines up, or is told why not."""
        return self._first(call)

    def ask(self, call: Call) -> Verdict:
        """Ask: a reader draws, lines up, or is told why not."""
        return self._first(call)

    def look_again(self, call: Call) -> Verdict:
        """Admit, Draw, Expire, Cancel or Refuse a waiting call, or Recall, or leave it waiting."""
        with self.section:
            call.verdict = verdict = self._decide(call)
            if verdict is Verdict.WAIT:
                others = self._recall()
            else:
                if verdict is Verdict.SERVE:
                    if call.oldest == NONE and not self.ledger.batches.has_room():
                        raise calls_limit(self.ledger)  # a restored queue has come between
                    self._serve(call)
                else:
                    self.ledger.leave(call, self._counter(call, verdict))
                others = self.anybody_waits()
        self.hand_on(others)
        return verdict

    def publish(self, call: Call) -> bool:
        """Publish: the batch becomes visible, as a whole; False if the call fills nothing."""
        return self._end(call, self.ledger.publish)

    def abandon(self, call: Call) -> bool:
        """Abandon: the slots of a batch are free again; False if the call fills nothing."""
        return self._end(call, self.ledger.abandon)

    def ready(self, call: Call) -> None:
        """Ready: the batch is gathered and transformed."""
        with self._gathering(call):
            self.ledger.ready(call)
            others = self._anybody_hopes()
        self.hand_on(others)

    def fail_hold(self, call: Call) -> None:
        """Fail: the batch could not be gathered or transformed, or its call was interrupted.

        A lease that is ready is returned as it is. The number is looked at last: while it is still
        the call's, so was the state.
        """
        batches = self.ledger.batches
        with self._gathering(call):
            if batches.state(call.places[BATCH]) is HoldState.GATHERING and self.has_batch(call):
                self.ledger.fail(call)
            others = self._anybody_hopes()
        self.hand_on(others)

    def refill(self, call: Call, depth: Callable[[], int]) -> bool:
        """Refill: a batch is drawn ahead, for a queue that has fewer than `depth`; or False."""
        with self.section:
            if not self.rules.may_refill(call, depth()) or self._is_full(call):
                return False
            self.ledger.draw(call)
        return True

    def settle_ahead(self, call: Call, failed: bool) -> None:
        """Ready, Fail: a batch that was drawn ahead is gathered, whoever has it by now.

        Nothing happens if nobody has. A stale one ends.
        """
        ledger = self.ledger
        with self.section:
            if not self.has_batch(call):
                return
            row = call.places[BATCH]
            if ledger.batches.kind(row) is Kind.PREFETCHED and ledger.batches.is_stale(row):
                ledger.give_back(call)
            elif ledger.batches.state(row) is HoldState.GATHERING:
                (ledger.fail if failed else ledger.ready)(call)
            others = self.anybody_waits()
        self.hand_on(others)

    def flush(self, call: Call, force: bool = False) -> bool:
        """Return: a prefetched batch that is settled is given up; False if it is not.

        With `force` one that gathers fails first; for a queue whose handle is gone.
        """
        ledger = self.ledger
        with self.section:
            row = call.places[BATCH]
            if not self.has_batch(call) or ledger.batches.kind(row) is not Kind.PREFETCHED:
                return False
            if ledger.batches.state(row) is HoldState.GATHERING:
                if not force:
                    return False
                ledger.fail(call)
            ledger.give_back(call)
            others = self.anybody_waits()
        self.hand_on(others)
        return True

    def deliver(self, call: Call) -> bool:
        """Deliver: the batch is the caller's for good; False if the hold had ended before."""
        return self._end(call, self._deliver)

    def give_back(self, call: Call) -> bool:
        """Return: the records can be sampled again; False if the hold had ended before."""
        return self._end(call, self.ledger.give_back)

    def withdraw(self, call: Call) -> None:
        """Take away the ticket of a call that ended with an exception while it waited."""
        with self.section:
            self.ledger.leave(call)
            others = self.anybody_waits()
        self.hand_on(others)

    def set_cancel(self, token: int) -> None:
        """SetCancel: one store and a wake, safe in a signal handler."""
        self.ledger.set_flag(token)
        self.monitor.wake()

    def close(self, mode: Closing, failure: BaseException | None = None) -> None:
        """Close: to draining or stopped; with a failure, all calls raise it from now on."""
        keep = None if failure is None else self.peers.note(failure)
        with self.section:
            self.ledger.close(mode, keep() if keep is not None else 0)
            others = self.anybody_waits()
        self.hand_on(others)

    def empty(self) -> None:
        """Empty: all records go."""
        with self.section:
            self.ledger.empty()
            others = self.anybody_waits()
        self.hand_on(others)

    def stop(self, call: Call) -> None:
        """Cancel one call, whose task was cancelled; like SetCancel, for a call without a token."""
        with self.section:
            call.stopped = True
            self.ledger.mark_stopped(call)
            others = self.anybody_waits()
        self.hand_on(others)

    def check_open(self, call: Call) -> None:
        """Raise what a write of nothing raises: it may be refused, but it needs no room."""
        with self.section:
            verdict = self.rules.at_once(call)
            if verdict is not Verdict.SHUT_DOWN and verdict is not Verdict.CANCELLED:
                return
            self.ledger.count(self._counter(call, verdict))
        raise self.error(call, verdict)

    def would_serve(self, call: Call) -> bool:
        """Tell whether a call would be served at once, and count the question."""
        with self.section:
            self.ledger.count(at.ADVISORY_CALLS)
            if self.rules.at_once(call) is Verdict.SERVE:
                return True
            recovered = self.peers.due() and self.peers.recover()
            return recovered and self.rules.at_once(call) is Verdict.SERVE

    def watch(self, call: Call) -> Verdict:
        """Look on without a ticket; the call counts as an observer from now on."""
        with self.section:
            self.ledger.attendance.watch(call, 1)
            call.verdict = verdict = self.rules.observed(call)
            if verdict is Verdict.WAIT and self.peers.due() and self.peers.recover():
                call.verdict = verdict = self.rules.observed(call)
        return verdict

    def stop_watching(self, call: Call) -> None:
        """Stop counting an observer."""
        with self.section:
            self.ledger.attendance.watch(call, 0)

    def new_token(self) -> int | None:
        """Take a row for a cancel token, or return None when all are taken."""
        with self.section:
            row = self.ledger.tokens.new(self.peers.participant())
            if row is None and self.peers.recover():
                row = self.ledger.tokens.new(self.peers.participant())
            return row

    def register_producer(self, places: list[int]) -> None:
        """Count one registered producer of this process more."""
        with self.section:
            self.ledger.attendance.register(self.peers.participant(), places)

    def unregister_producer(self, places: list[int], failed: bool) -> None:
        """Count one registered producer of this process fewer; readers may have to be told."""
        with self.section:
            if not places[0]:
                return
            self.ledger.attendance.unregister(self.peers.participant(), places, failed)
            others = self.anybody_waits()
        self.hand_on(others)

    def look(self, take: Callable[[], T]) -> T:
        """Return what `take` reads of the ledger, at one moment."""
        with self.section:
            taken = take()
        return taken  # noqa: RET504  # an interrupt of a return inside the block could keep the lock

    def error(self, call: Call, verdict: Verdict) -> Exception:
        """Return the error that a call ends with."""
        return error_for(call, verdict, self.ledger, self.failure)

    def anybody_waits(self) -> bool:
        """Tell whether a wake-up would reach anybody; to be asked inside the section."""
        cells = self.ledger.cells
        return cells[at.WRITERS] + cells[at.READERS] + cells[at.OBSERVERS] > 0

    def _gathering(self, call: Call) -> AbstractContextManager[object]:
        """Return the section, if others may change what gathers or wait for its pins."""
        return self.section if call.taken or self.ledger.overwrites else nullcontext()

    def _anybody_hopes(self) -> bool:
        """Tell whether anybody waits for a batch to be gathered: a capture, or an overwriter."""
        return self.ledger.cells[at.OBSERVERS] > 0 or (
            self.ledger.overwrites and self.anybody_waits()
        )

    def hand_on(self, others: bool) -> None:
        """Wake those who wait, if there are any; all of them, since several may go on."""
        if others:
            self.monitor.wake()

    def _first(self, call: Call) -> Verdict:
        with self.section:
            call.verdict = verdict = self._decide(call)
            if verdict is Verdict.SERVE:
                if call.oldest == NONE:
                    self._check_calls()
                self._serve(call)
                return verdict
            if verdict is not Verdict.WAIT:
                self.ledger.refuse(call, self._counter(call, verdict))
                return verdict
            self._check_calls()
            self.ledger.join(call)
            # Its arrival may be what makes others wait for ever; the victim has to look again.
            stuck = self.rules.mutual() is not None
        self.hand_on(stuck)
        return verdict

    def _decide(self, call: Call) -> Verdict:
        """Decide about a call; if it is not served, the dead are looked for when it is time.

        All calls look where records are overwritten or have an owner: it may be that none waits.
        """
        verdict = self.rules.verdict(call)
        look = self.ledger.overwrites or self.ledger.cells[at.OWNER] or verdict is not Verdict.SERVE
        if look and self.peers.due() and self.peers.recover():
            return self.rules.verdict(call)
        return verdict

    def _serve(self, call: Call) -> None:
        """Admit a writer, or let a reader draw or take."""
        if call.oldest != NONE:
            self.ledger.take(call)
            return
        if self.ledger.pool_is_full(call.n):
            self._check_held(call)
        if call.kind is Kind.WRITE:
            self.ledger.admit(call)
        else:
            self.ledger.draw(call)

    def _recall(self) -> bool:
        """Recall: the youngest settled batch that was drawn ahead is given up, if all wait."""
        ledger = self.ledger
        if not ledger.cells[at.PREFETCHED] or self.rules.mutual() is None:
            return False
        settled = ledger.batches.settled()
        if settled:
            ledger.give_back(ledger.call_of(settled[-1]))
        return bool(settled)

    def _deliver(self, call: Call) -> None:
        self.ledger.deliver(call, self.monitor.clock())

    def has_batch(self, call: Call) -> bool:
        """Tell whether a call has a batch, which no restore has made void."""
        return call.life == self.peers.life and self.ledger.holds_batch(call)

    def _end(self, call: Call, end: Callable[[Call], None]) -> bool:
        """Take the last action of a call that has a batch; False if it has none."""
        with self.section:
            if not self.has_batch(call):
                return False
            end(call)
            others = self.anybody_waits()
        self.hand_on(others)
        return True

    def _counter(self, call: Call, verdict: Verdict) -> int:
        """Return which counter an outcome belongs to."""
        if call.advisory and verdict is Verdict.TIMEOUT:
            return at.ADVISORY_CALLS
        return _COUNTERS[verdict]

    def _check_calls(self) -> None:
        """Make sure that there is a row for one call more, as a ticket now and as a batch later."""
        while self.ledger.calls_are_full():
            if not self.peers.recover():
                raise calls_limit(self.ledger)

    def _is_full(self, call: Call) -> bool:
        """Tell whether the tables have no room for a batch that is drawn ahead."""
        ledger = self.ledger
        return ledger.calls_are_full() or ledger.pool_is_full(call.n + ledger.reserve)

    def _check_held(self, call: Call) -> None:
        """Make sure that the pool takes the batch that a call gets."""
        while self.ledger.pool_lacks_room(call):
            if not self.peers.recover():
                raise held_limit(self.ledger)
