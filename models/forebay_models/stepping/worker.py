"""One thread for each actor: it makes the calls that the driver hands it, one after the other.

An actor is a thread for its whole life, since the library knows actors by their thread: a lease
that was drawn in one call counts against the next call of the same thread.
"""

import queue
import threading
from collections.abc import Mapping

from forebay_models.stepping.board import Board, Calls, Ended, Seat

JOINING = 20.0
"""Seconds within which a thread has to end once it is told to."""


class Worker:
    """A thread with a seat on the board.

    Args:
        board: where it says where it stands.
        name: the actor's name.
    """

    def __init__(self, board: Board, name: str) -> None:
        self.seat = Seat(name)
        self._board = board
        self._calls: queue.SimpleQueue[Calls | None] = queue.SimpleQueue()
        self._seated = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"stepped-{name}", daemon=True)
        self._thread.start()
        self._seated.wait()

    @property
    def idle(self) -> bool:
        """Whether the thread is in no call."""
        return isinstance(self.seat.stop, Ended)

    def start(
        self,
        call: Calls,
        stops: frozenset[str] = frozenset(),
        injected: Mapping[str, BaseException] | None = None,
    ) -> None:
        """Make a call in the thread, which parks at these stops and raises what is injected."""
        seat = self.seat
        with self._board.changed:
            if not self.idle:
                raise AssertionError(f"{seat.name} is in a call, {seat.stop}")
            seat.stops = stops
            seat.injected = dict(injected or {})
            seat.ahead = 0.0
            seat.stop = None
        self._calls.put(call)

    def end(self) -> bool:
        """Let the thread end when it is out of its call; tells whether it did so in time."""
        self._calls.put(None)
        self._thread.join(JOINING)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._board.register(self.seat)
        self._seated.set()
        while (call := self._calls.get()) is not None:
            stop = _outcome(call)
            del call
            self._board.arrive(self.seat, stop)
            del stop


def _outcome(call: Calls) -> Ended:
    try:
        return Ended(value=call())
    except BaseException as error:
        return Ended(error=error)
