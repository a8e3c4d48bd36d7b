"""How calls exclude each other, sleep and wake: the only place that knows of locks and clocks.

Everything above is written against the small protocol `Monitor`, so that threads, processes and a
deterministic scheduler can drive the very same code.

Waits are level-triggered. A caller reads `sequence()`, looks at the conditions inside the critical
section, leaves it and then calls `wait(seen, deadline)`, which sleeps only while the sequence is
still the one that was read. Whoever changes something changes the sequence afterwards, so a change
that the caller did not see is a change of the sequence that it does see, and no wake-up is lost.

`wake` takes no lock at all: each sleeper brings a lock of its own, which `wake` releases, and the
steps in between are single operations of a deque. So `wake` may run in a signal handler or in a
finaliser, whatever the interrupted thread was doing, in `wait` and in `wake` included. (A
`threading.Condition` cannot do that: its lock may be held by the very thread that was interrupted.)
"""

import itertools
import threading
import time
from collections import deque
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Protocol, runtime_checkable

NAP = 1.0
"""Seconds that a sleeper sleeps at most before it looks again.

No wake-up is lost on the way described above, but an exception from a signal handler may end a
thread between its change and its wake; a nap bounds what that costs the others."""


class Monitor(Protocol):
    """One critical section for one buffer, and the waiting around it."""

    def enter(self) -> None:
        """Enter the critical section, waiting for whoever is inside; it cannot be nested."""

    def leave(self) -> None:
        """Leave the critical section."""

    def sequence(self) -> int:
        """Return a number that differs after every `wake`; read it before the conditions."""

    def wait(self, seen: int, deadline: float | None) -> None:
        """Sleep outside the critical section.

        Returns once `sequence()` differs from `seen`, or the clock passes `deadline`, or now and
        then for no reason.
        """

    def wake(self) -> None:
        """Change the sequence and wake every sleeper; takes no lock, cheap without sleepers."""

    def clock(self) -> float:
        """Return monotonic time in seconds."""

    def point(self, label: str) -> None:
        """Mark a labelled place outside the critical section, for tests and schedulers."""


class ThreadMonitor:
    """The monitor of a buffer whose callers are threads of one process."""

    def __init__(self, nap: float = NAP) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._sequence = 0
        self._sleepers: deque[threading.Lock] = deque()
        self._nap = nap

    def enter(self) -> None:
        self._lock.acquire()

    def leave(self) -> None:
        self._lock.release()

    def sequence(self) -> int:
        return self._sequence

    def wait(self, seen: int, deadline: float | None) -> None:
        timeout = self._nap if deadline is None else min(self._nap, deadline - self.clock())
        if timeout <= 0.0:
            return
        bell = self._bell()
        bell.acquire()
        self._sleepers.append(bell)
        rung = False
        try:
            if self._sequence == seen:
                rung = bell.acquire(timeout=timeout)
        finally:
            if not rung:
                self._forget(bell)

    def wake(self) -> None:
        # Numbers come from one counter, so no two wakes ever store the same one: a sleeper's
        # number cannot come back. Only sleepers that are there now are rung, so that a woken one
        # which sleeps again cannot keep this loop going.
        self._sequence = next(self._numbers)
        for _ in range(len(self._sleepers)):
            try:
                bell = self._sleepers.popleft()
            except IndexError:
                return
            bell.release()

    def clock(self) -> float:
        return time.monotonic()

    def point(self, label: str) -> None:
        pass

    def section(self) -> AbstractContextManager[object]:
        """Return the critical section as a context manager.

        That is the lock itself: no signal handler can run between taking a lock that is written in
        C and entering its `with` block, nor between the block and the release. A subclass with its
        own `enter` or `leave` gets these called instead.
        """
        own = type(self)
        if own.enter is ThreadMonitor.enter and own.leave is ThreadMonitor.leave:
            return self._lock
        return Section(self)

    def _bell(self) -> threading.Lock:
        return threading.Lock()

    def _forget(self, bell: threading.Lock) -> None:
        with suppress(ValueError):
            self._sleepers.remove(bell)


class Section:
    """The critical section of any monitor as a context manager."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def __enter__(self) -> None:
        self._monitor.enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._monitor.leave()


@runtime_checkable
class OwnSection(Protocol):
    """A monitor that gives its critical section in a form that is safer than `Section`."""

    def section(self) -> AbstractContextManager[object]:
        """Return the critical section as a context manager."""


def section_of(monitor: Monitor) -> AbstractContextManager[object]:
    """Return the critical section of a monitor, in the form that is safest for its kind."""
    if isinstance(monitor, OwnSection):
        return monitor.section()
    return Section(monitor)
