"""Where every driven thread is, and the handing over between it and whoever drives it.

A test of threads that hopes for the right moment proves little and fails now and then. Here a
thread runs only while the driver waits for it, and it runs to a stop that has a name: parked at a
labelled point, asleep in the monitor, or at the end of its call. Then every run with the same
choices is the same run, and each step is one critical section of the library.

Handing over is what a step costs most, so it is done with two plain locks for each thread: `gate`,
at which the thread waits for the driver, and `news`, at which the driver waits for the thread. Both
are kept locked; to unlock one is to let whoever waits there pass once. What is told lies in the
seat, and was put there before the lock was opened.

Every wait of the driver is bounded: a thread that comes to no stop is reported, with its stack.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from forebay._threads import thread_number

PATIENCE: Final = 20.0
"""Seconds within which a thread has to come to a stop; it needs some microseconds."""

Calls = Callable[[], object]


@dataclass(frozen=True)
class Parked:
    """The thread stands at a labelled point."""

    label: str

    def __str__(self) -> str:
        return f'parked at "{self.label}"'


@dataclass(frozen=True)
class Asleep:
    """The thread sleeps until the monitor's sequence differs from `seen`."""

    seen: int

    def __str__(self) -> str:
        return "asleep"


@dataclass(frozen=True)
class Ended:
    """The thread is in no call; the last one returned `value` or raised `error`."""

    value: object = None
    error: BaseException | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"out of its call with {type(self.error).__name__}: {self.error}"
        return "out of its call, without an error"


Stop = Parked | Asleep | Ended


class Stuck(AssertionError):
    """A thread came to no stop in time."""


class Released(BaseException):
    """Ends the wait of a thread that nobody drives any more."""


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Seat:
    """What the driver and one thread tell each other.

    Attributes:
        name: the actor's name.
        stop: where the thread stands; None while it runs.
        stops: the labels at which it parks, as long as nothing else is said.
        injected: exceptions that it raises at these labels, each once.
        ahead: seconds that its clock is ahead of everybody's.
        gate: what it waits for while it is parked.
        news: what the driver waits for; opened whenever `stop` has changed.
        seen: the sequence that it wants to differ while it is asleep.
        bell: what it waits for while it is asleep.
        bell_sequence: the monitor's sequence when it went to sleep.
        deadline: the time on its clock at which its sleep ends by itself, or None for never.
        looked: whether it has been in a critical section since it last read the sequence.
        outside: whether what its call waits for is outside of critical sections by now.
        thread: the identity by which the interpreter knows the thread's stack.
    """

    name: str
    stop: Stop | None = field(default_factory=Ended)
    stops: frozenset[str] = frozenset()
    injected: dict[str, BaseException] = field(default_factory=dict)
    ahead: float = 0.0
    gate: threading.Lock = field(default_factory=_locked)
    news: threading.Lock = field(default_factory=_locked)
    seen: int = 0
    bell: "threading.Lock | None" = None
    deadline: float | None = None
    looked: bool = False
    outside: bool = False
    bell_sequence: int = 0
    thread: int = 0


class Board:
    """The seats of all driven threads.

    Args:
        patience: seconds within which a thread has to come to a stop.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.released = False
        self.patience = patience
        self._seats: dict[int, Seat] = {}

    def register(self, seat: Seat, number: int) -> None:
        """Give the thread of that number a seat; threads without one are not driven."""
        self._seats[number] = seat

    def seat(self) -> Seat | None:
        """Return the seat of the current thread, if it has one."""
        return self._seats.get(thread_number())

    def seats(self) -> list[Seat]:
        """Return all seats."""
        return list(self._seats.values())

    def name_of(self, thread: int) -> str:
        """Return the name of the thread with that number."""
        seat = self._seats.get(thread)
        return f"?{thread}" if seat is None else seat.name

    def arrive(self, seat: Seat, stop: Stop | None) -> None:
        """Say where the seat's thread stands; called by that thread."""
        seat.stop = stop
        # Nobody else opens it. If the driver passes between these two, it passes after the stop
        # was written, and looks at it.
        if seat.news.locked():
            seat.news.release()

    def pass_point(self, seat: Seat, label: str) -> None:
        """Park at a label if the driver wants that, and raise what it has put there."""
        if label in seat.stops and not self.released:
            self.arrive(seat, Parked(label))
            seat.gate.acquire()
        error = seat.injected.pop(label, None)
        if error is not None:
            raise error

    def release(
        self,
        seat: Seat,
        stops: frozenset[str] | None = None,
        injected: Mapping[str, BaseException] | None = None,
    ) -> None:
        """Let a parked thread go on, perhaps with other stops or with exceptions on its way."""
        if not isinstance(seat.stop, Parked):
            raise AssertionError(f"{seat.name} is not parked but {seat.stop}")
        if stops is not None:
            seat.stops = stops
        if injected:
            seat.injected.update(injected)
        seat.stop = None
        seat.gate.release()

    def wait_for(self, seat: Seat, settled: Callable[[Stop], bool]) -> Stop:
        """Wait until a thread stands still; `settled` tells of a stop whether it will last.

        Raises:
            Stuck: it did not in time.
        """
        until = 0.0
        while True:
            stop = seat.stop
            if stop is not None and settled(stop):
                return stop
            now = time.monotonic()
            until = until or now + self.patience
            if now >= until or not seat.news.acquire(timeout=until - now):
                break
        was = seat.stop
        if was is not None and settled(was):
            return was
        raise Stuck(
            f"{seat.name} came to no stop within {self.patience:g} s; it is "
            f"{'running' if was is None else was}\n{self._stack_of(seat)}"
        )

    def release_all(self) -> None:
        """Park nobody from now on, and let everybody go who is parked, or about to be."""
        self.released = True
        for seat in self._seats.values():
            if isinstance(seat.stop, Parked):
                seat.stop = None
            if seat.gate.locked():
                seat.gate.release()

    def _stack_of(self, seat: Seat) -> str:
        frame = sys._current_frames().get(seat.thread)
        return "" if frame is None else "".join(traceback.format_stack(frame))
