"""Threads that gather batches ahead, and are gone when nobody needs them.

A thread is made when there is something to do for it, up to a limit, and ends when it is told to.
Nothing here takes a lock that a signal handler or a finaliser could find taken: jobs go through a
`SimpleQueue`, and a thread that is about to start takes its seat in a dictionary in one step. A
pool knows nothing of the buffer whose jobs it runs, so that it keeps none alive.
"""

import atexit
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Protocol
from weakref import WeakSet

AT_EXIT: Final = 5.0
"""Seconds that the end of the program waits for jobs that are being done."""

Job = Callable[[], None]


class Executor(Protocol):
    """What runs the jobs of a buffer."""

    def submit(self, job: Job) -> None:
        """Have a job done soon, or at once."""

    def rest(self) -> None:
        """Let threads end once nothing is left to do; jobs may come later all the same."""


class GatherPool:
    """A few threads that do one job after the other.

    Args:
        threads: how many there are at most.
    """

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._seats = range(threads)
        self._threads: dict[int, threading.Thread] = {}
        _pools.add(self)

    def submit(self, job: Job) -> None:
        """Have a job done by a thread, or here if no thread can be started for it."""
        self._jobs.put(job)
        seat = next((seat for seat in self._seats if seat not in self._threads), None)
        if seat is None:
            return
        thread = threading.Thread(
            target=self._work, args=(seat,), name="forebay-prefetch", daemon=True
        )
        try:
            if self._threads.setdefault(seat, thread) is thread:
                thread.start()
        except BaseException as error:
            if thread.ident is None:  # it has not begun
                self._leave(seat, thread)
            if not isinstance(error, RuntimeError):
                raise
            self._work_here()

    def rest(self) -> None:
        """Let threads end once nothing is left to do; safe in signal handlers and finalisers."""
        for _ in self._seats:
            self._jobs.put(None)

    def threads(self) -> list[threading.Thread]:
        """Return the threads that there are."""
        return list(self._threads.values())

    def _work(self, seat: int) -> None:
        me = threading.current_thread()
        while True:
            job = self._jobs.get()
            if job is not None:
                job()
                del job  # whatever it knows may go while this thread has nothing to do
                continue
            self._leave(seat, me)
            if self._threads:  # the others are to end too, and they do what is there
                self._jobs.put(None)
                return
            # A job that came before the seat was free has found none: it is for this thread.
            if self._jobs.empty() or self._threads.setdefault(seat, me) is not me:
                return

    def _leave(self, seat: int, thread: threading.Thread) -> None:
        if self._threads.get(seat) is thread:
            del self._threads[seat]

    def _work_here(self) -> None:
        """Do what is there, unless somebody else does."""
        while True:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            if job is not None:
                job()

    def _end(self, deadline: float) -> None:
        """Do nothing more, and wait for what is being done."""
        while True:
            try:
                self._jobs.get_nowait()
            except Empty:
                break
        self.rest()
        for thread in self.threads():
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))


_pools: "WeakSet[GatherPool]" = WeakSet()


def _end_all() -> None:
    """End all pools, so that no thread is inside a library of C while the interpreter goes."""
    deadline = time.monotonic() + AT_EXIT
    for pool in list(_pools):
        pool._end(deadline)


atexit.register(_end_all)
