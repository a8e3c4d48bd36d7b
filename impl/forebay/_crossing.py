"""What captures and restores have in common: to ask for the boundary, to wait, to let go.

There is one capture or restore at a time; who comes second waits. Such a call has no ticket, since
it takes nothing that others wait for; while it waits it counts as an observer, so that whoever
changes something wakes it. Every step is one critical section, after which all that wait are woken:
the boundary may be what held them off.

The boundary is the actor's that asked for it until `let_go`, which does nothing if it is not. So a
call that is ended by an exception anywhere lets go in a `finally`, whatever it had got to.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from forebay._actions import Actions, inside_action
from forebay._batches import HoldState
from forebay._boundary import Boundary
from forebay._calls import Call
from forebay._core import SETTLING, Core
from forebay._stages import Stage
from forebay._threads import participant_of
from forebay._tickets import Kind
from forebay._trace import NO_TRACE

T = TypeVar("T")


class Crossing:
    """One capture or restore.

    Args:
        core: the buffer's.

    Raises:
        RuntimeError: the caller interrupts an action of its own thread, or the buffer is a copy
            in a forked child.
        NotImplementedError: the buffer is traced.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ledger = core.ledger
        self._boundary = Boundary(core.ledger)
        if inside_action():
            raise RuntimeError(
                "a buffer can be neither saved nor restored in a handler that interrupts one of "
                "its calls; set a flag there and do it in the program"
            )
        if core.ledger.trace is not NO_TRACE:
            raise NotImplementedError(
                "a buffer with a trace can be neither saved nor restored: traces do not tell of "
                "it; make the buffer without trace="
            )
        core.demand_outside()
        core.reclaim()
        self._call = Call(Kind.PLAIN, core.thread_actor(), 0, 0, life=core.peers.life)

    def let_go(self) -> None:
        """Give the boundary up, if it is this call's, whatever interrupts."""
        call = self._call
        if call.life != self._core.peers.life:
            return
        for _ in range(SETTLING):
            with suppress(BaseException):
                self._core.settle(call)
                self._step(self._end)
                return

    def _ask(self, stage: Stage) -> bool:
        """CaptureAsk, RestoreAsk, if nobody else has the boundary; inside the section.

        Raises:
            RuntimeError: the caller is in the middle of another call of the buffer.
        """
        batches, actor = self._ledger.batches, self._call.actor
        mine = [batches.view(row) for row in batches.rows_of(participant_of(actor))]
        for batch in mine:
            leased = batch.kind is Kind.LEASE and batch.state is HoldState.READY
            if batch.owner == actor and not leased:
                raise self.nested()
        if self._boundary.actor == actor:
            raise self.nested()
        if self._boundary.actor is not None:
            return False
        self._boundary.ask(actor, stage)
        return True

    def nested(self) -> RuntimeError:
        """Return the error of a call inside another one."""
        return RuntimeError(
            "a buffer can be neither saved nor restored inside one of its own calls, such as by a "
            "transform: the batch on its way would wait for itself"
        )

    def _is_mine(self) -> bool:
        """Tell whether the boundary is this call's; inside the section."""
        return self._boundary.actor == self._call.actor

    def _end(self) -> None:
        """Let go of the boundary, as of one that has failed; inside the section."""
        if self._is_mine():
            self._boundary.end()

    def _step(self, step: Callable[[], T]) -> T:
        """Take a step inside the section and wake those whom it may concern."""
        result, others = Actions.look(self._core, lambda: (step(), self._core.anybody_waits()))
        self._core.hand_on(others)
        return result

    def _wait_for(self, step: Callable[[], bool], deadline: float | None = None) -> bool:
        """Take a step as soon as it says that it could be taken; False if that is too late."""
        monitor, call = self._core.monitor, self._call
        while True:
            self._core.demand_own(call)
            seen = monitor.sequence()
            self._core.reclaim()
            if Actions.look(self._core, lambda: self._attempt(step)):
                self._core.monitor.wake()
                return True
            if deadline is not None and monitor.clock() >= deadline:
                return False
            monitor.wait(seen, deadline)

    def _attempt(self, step: Callable[[], bool]) -> bool:
        """Take a step if it can be taken; else the call counts as an observer from now on.

        It counts before it looks: a Ready that it does not see needs no section, and has to see it.
        """
        peers, watch = self._core.peers, self._ledger.attendance.watch
        watch(self._call, 1)
        done = step() or (peers.due() and peers.recover() and step())
        if done:
            watch(self._call, 0)
        return done
