"""The monitor of a buffer whose callers are threads of several processes.

It is a few words of shared memory: a robust mutex, a sequence word to sleep at, and a mark that
says that the state needs repair.

**Sleeping** counts on nobody being alive. A sleeper gives the kernel the number that it saw, and
sleeps only while the word still has it, for a nap at most. `wake` is one system call that adds 1 to
the word and wakes everybody. It takes no lock, so it may run in a signal handler. No death comes in
the middle. And the addition is atomic, so several wakers never make the same number. The word has
32 bits: a sleeper would be wrong if exactly 2**32 wakes came between its look and its sleep, which
takes an hour at one in a microsecond, and it would then be late by one nap.

**A dead holder** is reported by the mutex to whoever enters next. That one sets the mark, calls
`recover` inside the section and takes the mark away when it has returned. Should the repairer die,
or be interrupted, or should the repair fail, the mark stays and the next one to enter repairs: so
`recover` may find its own half-made work, and must be able to start over. Nobody hangs meanwhile,
and a repair that always fails is an error for everyone who enters. A holder may also be a thread
that has ended, or a process that has replaced its program.

**Interrupts.** Python runs signal handlers, which may raise, between two of its instructions. So an
answer of the mutex is put into a list by the same step of C that gets it, and an exception anywhere
before the section has begun gives the mutex back, in one step of C again. `section` gives a context
manager whose end is one step of C as well. So an interrupt finds the mutex either held within the
`with` block, or not held. What remains: between the return of `enter`, called by hand, and the
caller's `try` nothing can help, therefore use `section`; and a signal that comes just before a
system call is noticed when that ends, a nap later at most.

**Fork.** A mutex is held by one thread, and a child's only thread is a new one: the child holds
nothing, even if it was forked inside the section, where it must not go on. It cannot free the
mutex under its parent either: what a thread does not hold it cannot unlock.

All processes must be in one namespace of process numbers.
"""

import errno
import os
import time
from collections.abc import Callable, MutableSequence
from contextlib import AbstractContextManager
from itertools import islice, repeat
from operator import call
from typing import Final

from forebay import _native as native
from forebay._errors import PeerLost
from forebay._monitor import NAP
from forebay._shared_block import SharedBlock

SLICE: Final = 0.05
"""Seconds after which a wait for the mutex lets signal handlers run."""

TRIES: Final = 100
"""How often a mutex that is taken is tried again before the wait for it sleeps.

That takes some 15 microseconds, about as long as an action of a small batch; to sleep and to be
woken takes longer."""

MONITOR_BYTES: Final = 128
"""How much of a block a monitor takes."""

_WORDS: Final = native.MUTEX_BYTES
_SEQUENCE, _MARK, _MADE = range(3)
_MAGIC: Final = 0x46624D31
_HELD: Final = (0, errno.EOWNERDEAD)


class ProcessMonitor:
    """A monitor over shared words that `make_monitor` has prepared.

    Args:
        block: the shared memory.
        at: where in the block the monitor's words are, in bytes.
        recover: repairs the state that the section protects, after a death inside; called inside.
        nap: seconds that a sleeper sleeps at most before it looks again.
    """

    def __init__(
        self, block: SharedBlock, at: int, recover: Callable[[], None], nap: float = NAP
    ) -> None:
        self._words = block.cells("I", 3, at + _WORDS)
        if self._words[_MADE] != _MAGIC:
            raise ValueError(f"no monitor has been made at byte {at} of this block")
        self._recover = recover
        self._nap = nap
        self._mutex = block.address(at)
        self._word = block.address(at + _WORDS)
        self._try_lock = native.mutex_call("pthread_mutex_trylock", self._mutex)
        self._unlock = native.mutex_call("pthread_mutex_unlock", self._mutex)
        self._consistent = native.mutex_call("pthread_mutex_consistent", self._mutex)
        self._first = (self._try_lock,)
        self._ring = native.wake_call(self._word)
        self._undo = native.Calls(self._consistent, self._unlock)

    def enter(self) -> None:
        """Enter the critical section, waiting for whoever is inside; it cannot be nested.

        Raises:
            PeerLost: a participant died inside and the state cannot be repaired.
            RuntimeError: this thread is inside already.
        """
        answers: list[int] = []
        try:
            answers.extend(map(call, self._first))
            if answers[-1] != 0:
                if answers[-1] == errno.EBUSY:
                    self._queue_up(answers)
                self._look_into(answers[-1])
            if self._words[_MARK]:
                self._repair()
        except BaseException:
            # No signal handler runs before the mutex is given back: nothing here but C.
            if answers and answers[-1] in _HELD:
                if answers[-1] == errno.EOWNERDEAD:
                    self._words[_MARK] = 1
                answers.extend(self._undo)
            raise

    def _queue_up(self, answers: MutableSequence[int]) -> None:
        tries = map(call, repeat(self._try_lock, TRIES))
        answers.extend(islice(filter(errno.EBUSY.__ne__, tries), 1))  # up to the first other one
        while answers[-1] in (errno.EBUSY, errno.ETIMEDOUT):
            lock = native.lock_within(self._mutex, SLICE)
            answers.extend(map(call, (lock,)))

    def _look_into(self, answer: int) -> None:
        if answer == 0:
            return
        if answer == errno.EOWNERDEAD:
            self._words[_MARK] = 1
            self._consistent()
        elif answer == errno.EDEADLK:
            raise RuntimeError("this thread is inside the critical section already")
        elif answer == errno.ENOTRECOVERABLE:
            raise PeerLost(
                "a participant died inside the critical section, and it was not repaired"
            )
        else:
            raise OSError(answer, f"entering the critical section: {os.strerror(answer)}")

    def _repair(self) -> None:
        try:
            self._recover()
        except Exception as error:
            raise PeerLost(
                "a participant died inside the critical section, and repairing its work failed"
            ) from error
        self._words[_MARK] = 0

    def leave(self) -> None:
        """Leave the critical section.

        Raises:
            RuntimeError: this thread is not inside.
        """
        if self._unlock() != 0:
            raise RuntimeError("this thread is not inside the critical section")

    def section(self) -> AbstractContextManager[object]:
        """Return the critical section as a context manager that interrupts cannot leave ajar.

        It may be entered any number of times, by any thread.
        """
        return _Section(self.enter, native.unlock_at_exit(self._mutex))

    def sequence(self) -> int:
        """Return a number that differs after every `wake`; read it before the conditions."""
        return self._words[_SEQUENCE]

    def wait(self, seen: int, deadline: float | None) -> None:
        """Sleep outside the critical section, as `Monitor.wait` says, for one nap at most."""
        timeout = self._nap if deadline is None else min(self._nap, deadline - self.clock())
        if timeout > 0.0:
            native.sleep_at(self._word, seen, timeout)

    def wake(self) -> None:
        """Change the sequence and wake every sleeper of every process; takes no lock."""
        if self._ring() < 0:
            raise native.failure("waking sleepers")

    def clock(self) -> float:
        """Return monotonic time in seconds, which is the same for all processes."""
        return time.clock_gettime(time.CLOCK_MONOTONIC)

    def point(self, label: str) -> None:
        """Do nothing; places are for tests and schedulers."""


class _Section:
    """The critical section as a context manager.

    A `with` statement looks both methods up as slots of the type, and calls what is in them: for
    `__exit__` a function of C, so that no signal handler runs between the block and the release.
    """

    __slots__ = ("__enter__", "__exit__")

    def __init__(self, enter: Callable[[], None], leave: Callable[..., None]) -> None:
        self.__enter__ = enter
        self.__exit__ = leave


def make_monitor(block: SharedBlock, at: int) -> None:
    """Prepare the words of a monitor in fresh shared memory; once, before it travels."""
    words = block.cells("I", 3, at + _WORDS)
    native.make_mutex(block.address(at))
    words[_MADE] = _MAGIC
