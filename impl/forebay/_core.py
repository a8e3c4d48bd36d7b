"""The calls of many threads: actions, and the waiting between them.

An uncontended write is two critical sections, `arrive` and `publish`, with the copy in between and
outside; an uncontended read is `ask` and `deliver`, with the gather in between. A call that has to
wait gets a ticket in its first section and looks again each time that it is woken.

A call that ends with an exception, of whatever kind and wherever, is settled: its ticket leaves,
its slots are given back, and the wake-up that it may have been meant to hand on is handed on.
"""

import _thread
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar

from forebay_spec.kernel import Closing, Verdict

from forebay._actions import Actions, inside_action
from forebay._calls import TICKET, WATCHING, Call
from forebay._describe import describe
from forebay._layout import NONE, STAGE
from forebay._ledger import Ledger
from forebay._monitor import Monitor
from forebay._outcomes import wanted
from forebay._peers import Peers
from forebay._stores import Ints
from forebay._threads import thread_number
from forebay._tickets import Kind

T = TypeVar("T")

POLL: Final = 0.05
"""Seconds between two looks at a foreign event, which cannot wake those who wait for it."""

SETTLING: Final = 100
"""How often settling is tried when one interrupt follows the other."""

_logger = logging.getLogger("forebay")


class Ahead(Protocol[T]):
    """Batches that are drawn and gathered before somebody asks for them."""

    def obtain(self, call: Call, gather: Callable[[], T]) -> T:
        """Return the batch of a call that was served, by `gather` if it was not drawn ahead."""


class Core(Actions):
    """Whole calls; what is copied and gathered is their callers' business.

    Args:
        ledger: the state.
        monitor: the critical section, the waiting and the clock.
        stall_warning: seconds after which a waiting call is reported once, or None for never.
        peers: who else takes part; nobody unless given.

    Attributes:
        forked: this is a forked child's copy, whose calls are refused.
        gathering: the threads, after the life of their process, that gather a batch ahead now and
            must not call the buffer.
        awaiting: the threads whose event loops have to end a call, by the call's actor.
    """

    forked = False

    def __init__(
        self,
        ledger: Ledger,
        monitor: Monitor,
        stall_warning: float | None = None,
        peers: Peers | None = None,
    ) -> None:
        super().__init__(ledger, monitor, peers)
        self._stall_warning = stall_warning
        self._left: deque[Callable[[Core], object]] = deque()
        self.gathering: set[tuple[int, int]] = set()
        self.awaiting: dict[int, int] = {}
        self._task_actors = itertools.count(-1, -1)

    def fill(self, call: Call, copy: Callable[[Ints], None]) -> None:
        """Wait for admission and copy the batch into its slots; `publish` is left to be done.

        Raises:
            AdmissionTimeout, Cancelled, ShutDown, MutualWait, PeerLost: see the outcome table.
            LimitReached: too many calls are under way.
        """
        try:
            self._await(call, "arriving")
            self.monitor.point("admitted")
            copy(call.slots)
            self.monitor.point("copied")
            self.demand_own(call)
        except BaseException:
            self.settle(call)
            raise

    def write(self, call: Call, copy: Callable[[Ints], None]) -> None:
        """Write one batch; afterwards `call.slots` says where it is. Raises what `fill` raises."""
        try:
            self.fill(call, copy)
            self.publish(call)
        except BaseException:
            self.settle(call)
            raise

    def gather(self, call: Call, gather: Callable[[Ints], T], ahead: Ahead[T] | None = None) -> T:
        """Wait for records, draw or take and gather them; `deliver` is left to be done.

        A call that can take from a queue fills it up again, and what it takes comes from there.

        Raises:
            SampleTimeout, Cancelled, ShutDown, MutualWait, PeerLost: see the outcome table.
            LimitReached: too many calls are under way, or too many records are held.
        """
        try:
            self._await(call, "asking")
            self.monitor.point("drawn")
            if ahead is None:
                batch = self._gather_own(call, gather)
            else:
                batch = ahead.obtain(call, partial(self._gather_own, call, gather))
            self.monitor.point("gathered")
        except BaseException:
            self.settle(call)
            raise
        return batch

    def _gather_own(self, call: Call, gather: Callable[[Ints], T]) -> T:
        """Gather a batch that the call has drawn itself."""
        batch = gather(call.slots)
        self.demand_own(call)
        self.ready(call)
        return batch

    def read(self, call: Call, gather: Callable[[Ints], T], ahead: Ahead[T] | None = None) -> T:
        """Read one batch; `call.slots` says where it was. Raises what `gather` raises."""
        try:
            batch = self.gather(call, gather, ahead)
            self.deliver(call)
        except BaseException:
            self.settle(call)
            raise
        return batch

    def settle(self, call: Call) -> None:
        """Give back whatever a call still has; afterwards it has nothing.

        An exception on the way makes it start again: the one that ended the call is already on its
        way to the caller, and what was settled before is not settled twice. A forked child that
        comes out of its parent's call has nothing to settle.
        """
        if call.life != self.peers.life:
            return
        for _ in range(SETTLING):
            with suppress(BaseException):
                if call.places[WATCHING]:
                    self.stop_watching(call)
                if call.places[TICKET] != NONE:
                    self.withdraw(call)
                if not self.has_batch(call):
                    return
                if call.kind is Kind.WRITE:
                    self.monitor.point("abandoning")
                    self.abandon(call)
                else:
                    self.fail_hold(call)
                    self.monitor.point("returning")
                    self.give_back(call)
                return

    def observe(self, call: Call) -> bool:
        """Wait, without a ticket, until a reader at the head would find enough records.

        Returns False when the deadline passes first.

        Raises:
            Cancelled, ShutDown, PeerLost: as for a reader.
        """
        try:
            verdict = self._look_on(call)
        except BaseException:
            self.settle(call)
            raise
        if verdict is Verdict.SERVE or verdict is Verdict.TIMEOUT:
            return verdict is Verdict.SERVE
        raise self.error(call, verdict)

    def would_serve(self, call: Call) -> bool:
        """Tell whether a call would be served at once, after what finalisers have left is done."""
        self.reclaim()
        return super().would_serve(call)

    def check(self, call: Call) -> None:
        """Raise what a write of nothing raises: Cancelled, ShutDown or PeerLost."""
        self.reclaim()
        self._poll(call)
        self.check_open(call)

    def close(self, mode: Closing, failure: BaseException | None = None) -> None:
        """Close, in a signal handler too: what cannot be done at once is left to the next call.

        Nobody can tell the difference, since every call does what was left before it begins, and
        those that sleep are woken.
        """
        if inside_action():
            if self.peers.shared:  # others see it even if this process ends right here
                self.ledger.ask_to_close(mode)
            self.leave_to_others(lambda core: Actions.close(core, mode, failure))
        else:
            super().close(mode, failure)

    def stop(self, call: Call) -> None:
        """Cancel one call, in a finaliser too, which leaves it to the next call."""
        if inside_action():
            self.leave_to_others(lambda core: Actions.stop(core, call))
        else:
            super().stop(call)

    def look(self, take: Callable[[], T]) -> T:
        """Return what `take` reads of the ledger: in the section, unless this thread is in it.

        A handler that interrupted an action of its own thread finds the ledger between two commits.
        """
        return take() if inside_action() else super().look(take)

    def orphan(self, call: Call) -> None:
        """Leave a batch that nobody can end any more to whoever comes next; for finalisers."""
        if call.kind is Kind.WRITE:
            self.leave_to_others(lambda core: core.abandon(call))
        else:
            self.leave_to_others(lambda core: core.give_back(call))

    def desert(self, places: list[int], life: int, failed: bool) -> None:
        """Leave a registered producer that is gone to whoever comes next; for finalisers."""

        def unregister(core: Core) -> None:
            if life == core.peers.life:  # else it was this process's parent's
                core.unregister_producer(places, failed)

        self.leave_to_others(unregister)

    def leave_to_others(self, work: "Callable[[Core], object]") -> None:
        """Leave an action to whoever comes next; for finalisers and signal handlers.

        They may run in a thread that is inside the critical section, so they cannot enter it. Every
        call looks for such work before it begins, and those that sleep here are woken. Those who
        wait in other processes cannot do it, and this one may never call again: so a shared buffer
        gets a thread for it. The action must do nothing when it is done a second time. It is given
        the core, so that what is left keeps no buffer alive.
        """
        self._left.append(work)
        self.monitor.wake()
        if self.peers.shared:
            with suppress(RuntimeError):  # the process ends, and so do its batches
                _thread.start_new_thread(self.reclaim, ())

    def reclaim(self) -> None:
        """Do what finalisers and signal handlers have left to be done."""
        if not self._left or inside_action():
            return
        while self._left:
            with suppress(IndexError, ValueError):
                work = self._left[0]
                work(self)
                self._left.remove(work)

    def demand_outside(self) -> None:
        """Raise in a thread that gathers a batch ahead, which must not call the buffer.

        Raises:
            RuntimeError: the calling thread is one.
        """
        if self.gathering and (self.peers.life, threading.get_ident()) in self.gathering:
            raise RuntimeError(
                "a batch is being gathered ahead, and what gathers it must not call its buffer: no "
                "transform of a buffer with prefetch can write to, sample or capture that buffer"
            )

    def thread_actor(self) -> int:
        """Return the actor for the calling thread."""
        return self.actor(thread_number())

    def task_actor(self) -> int:
        """Return a new actor for a call that belongs to no thread; those of threads are >= 0."""
        return self.actor(next(self._task_actors))

    def _await(self, call: Call, label: str) -> None:
        """Bring a call from its arrival to where it is served, or raise."""
        self.ledger.trace.relieve()
        self.monitor.point(label)
        self.demand_own(call)
        seen = self.monitor.sequence()
        self.reclaim()
        self._poll(call)
        verdict = self.arrive(call) if call.kind is Kind.WRITE else self.ask(call)
        while verdict is Verdict.WAIT:
            self._sleep(call, seen)
            self.monitor.point("woken")
            seen = self.monitor.sequence()
            self.reclaim()
            self._poll(call)
            verdict = self.look_again(call)
        if verdict is not Verdict.SERVE:
            raise self.error(call, verdict)

    def _look_on(self, call: Call) -> Verdict:
        """Bring an observer to where it has its answer."""
        try:
            verdict = Verdict.WAIT
            while verdict is Verdict.WAIT:
                seen = self.monitor.sequence()
                self.reclaim()
                self._poll(call)
                verdict = self.watch(call)
                if verdict is Verdict.WAIT:
                    self._sleep(call, seen)
            self.stop_watching(call)
        except BaseException:
            self.settle(call)
            raise
        return verdict

    def _sleep(self, call: Call, seen: int) -> None:
        """Sleep until something has changed or is due, and report a call that waits too long.

        Raises:
            RuntimeError: it would wait for a capture or a restore that it is called by.
        """
        if self.ledger.cells[STAGE] and self.look(lambda: self.rules.waits_for_itself(call)):
            raise RuntimeError(
                "a buffer that is being saved or restored was called by what that calls, such as "
                "the state_dict or load_state_dict of a transform: each would wait for the other"
            )
        self.monitor.wait(seen, self._until(call))
        stall = self._stall_time(call)
        if stall is not None and self.monitor.clock() >= stall:
            call.warned = True
            _logger.warning(
                "%s has waited for %.1f s\n%s",
                wanted(call),
                self.monitor.clock() - call.since,
                describe(self),
            )

    def _until(self, call: Call) -> float | None:
        """Return when a call has to look again though nothing has changed."""
        times = [time for time in (call.deadline, self._stall_time(call)) if time is not None]
        if call.event is not None:
            times.append(self.monitor.clock() + POLL)
        return min(times, default=None)

    def _stall_time(self, call: Call) -> float | None:
        """Return when a call will have to be reported as stalled."""
        if call.warned or self._stall_warning is None:
            return None
        return call.since + self._stall_warning

    def demand_own(self, call: Call) -> None:
        """Raise in a process that was forked in the middle of a call, which is its parent's."""
        if call.life != self.peers.life:
            raise RuntimeError(
                "this process was forked in the middle of a call, which belongs to its parent"
            )

    def _poll(self, call: Call) -> None:
        """Look at the call's foreign event; outside the section, since it is foreign code."""
        if call.event is not None and call.event.is_set():
            call.stopped = True
