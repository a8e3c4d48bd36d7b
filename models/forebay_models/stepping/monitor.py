"""The library's own monitor, with a driver's hand on it.

Lock, sequence, sleeping and waking are those of `ThreadMonitor`; what is added is that driven
threads stop at labelled points, that the driver knows for certain who sleeps, that each thread's
clock can be put forward, and that somebody may look on at the end of each critical section.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from forebay._monitor import ThreadMonitor

from forebay_models.stepping.board import Asleep, Board, Released, Seat, Stop, Stuck

DOZING: Final = "dozing"
"""The label between a call's decision to wait and its sleep, where a wake-up is easily lost."""

ROUSED: Final = "roused"
"""The label behind a sleep, for calls that have none of their own there."""

NAP: Final = 3600.0
"""Seconds; so long that no nap ever hides a lost wake-up."""


class LostWakeup(AssertionError):
    """Somebody sleeps on though what it waits for has come."""


class SteppedMonitor(ThreadMonitor):
    """A monitor for the threads of one board.

    Args:
        board: the seats of the driven threads.
    """

    def __init__(self, board: Board) -> None:
        super().__init__(nap=NAP)
        self._board = board
        self._bells = self._sleepers = _Sleepers(self._falls_asleep)
        self._time = 0.0
        self.at_leave: Callable[[], None] | None = None

    def enter(self) -> None:
        # The driver makes calls too, and must not wait for ever for a thread that is stuck inside.
        if not self._lock.acquire(timeout=self._board.patience):
            raise Stuck("the critical section is not free; whoever is inside does not leave")

    def leave(self) -> None:
        if self.at_leave is not None:
            self.at_leave()
        super().leave()
        seat = self._board.seat()
        if seat is not None:
            seat.looked = True

    def sequence(self) -> int:
        seat = self._board.seat()
        if seat is not None:
            seat.looked = False
        return super().sequence()

    def wait(self, seen: int, deadline: float | None) -> None:
        seat = self._board.seat()
        if seat is None:
            raise Stuck("a call of the driver itself would have to wait")
        if not seat.looked and not seat.outside:
            raise LostWakeup(
                f"lost wake-up: {seat.name} has read the sequence after it looked at the conditions"
            )
        seat.deadline = deadline
        self._board.pass_point(seat, DOZING)
        if self._board.released:
            raise Released
        seat.seen = seen
        super().wait(seen, deadline)
        if isinstance(seat.stop, Asleep):
            seat.stop = None
        seat.bell = None
        if self._board.released:
            raise Released
        if ROUSED in seat.stops:
            self._board.pass_point(seat, ROUSED)

    def clock(self) -> float:
        seat = self._board.seat()
        return self._time if seat is None else self.time_of(seat)

    def time_of(self, seat: Seat) -> float:
        """Return the time on a thread's clock."""
        return self._time + seat.ahead

    def point(self, label: str) -> None:
        seat = self._board.seat()
        if seat is not None:
            self._board.pass_point(seat, label)

    def settle(self, seat: Seat) -> Stop:
        """Wait until a thread stands still, and return where.

        Raises:
            LostWakeup: it sleeps though the sequence has moved and its bell was not rung.
            Stuck: it did not come to a stop in time.
        """
        stop = seat.stop
        if stop is not None and not isinstance(stop, Asleep):
            return stop
        stop = self._board.wait_for(seat, lambda stop: self._lasts(seat, stop))
        if isinstance(stop, Asleep) and stop.seen != self.sequence():
            raise LostWakeup(
                f"lost wake-up: {seat.name} sleeps on, although something has changed since it "
                f"fell asleep (the sequence is {self.sequence()}, it has seen {stop.seen})"
            )
        return stop

    def rouse(self, sleeper: Seat | None = None) -> None:
        """Wake one sleeper, or every one, for no reason: the sequence stays as it is."""
        for seat in self._board.seats() if sleeper is None else (sleeper,):
            bell = seat.bell
            if bell is not None and self._bells.take(bell):
                seat.stop = None
                bell.release()

    def release_all(self) -> None:
        """Drive nobody any more; calls that wait end with `Released`, the others go on."""
        self._board.release_all()
        self.rouse()

    def _falls_asleep(self, bell: threading.Lock) -> None:
        """Note that the current thread has put up its bell: from here on, a ring reaches it."""
        seat = self._board.seat()
        if seat is None:
            return
        seat.bell, seat.bell_sequence = bell, self._sequence
        self._board.arrive(seat, Asleep(seat.seen))
        if self._board.released and self._bells.take(bell):
            bell.release()

    def _lasts(self, seat: Seat, stop: Stop) -> bool:
        """Tell whether a thread will stay where it is, be it rightly or not."""
        if not isinstance(stop, Asleep) or stop.seen == self.sequence():
            return True
        # The sequence has moved on. Who saw that before sleeping comes back by itself; whose bell
        # is still up after whoever moved the sequence has come to a stop, was forgotten.
        return seat.bell_sequence == stop.seen and seat.bell in self._sleepers


class _Sleepers(deque[threading.Lock]):
    """The bells of the sleepers, telling of each one that is put up."""

    def __init__(self, told: Callable[[threading.Lock], None]) -> None:
        super().__init__()
        self._told = told

    def append(self, bell: threading.Lock) -> None:
        super().append(bell)
        self._told(bell)

    def take(self, bell: threading.Lock) -> bool:
        """Take a bell down, whose taker alone may ring it; False if it was down already."""
        try:
            self.remove(bell)
        except ValueError:
            return False
        return True
