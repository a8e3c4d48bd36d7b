"""One thread for each actor: it makes the calls that the driver hands it, one after the other.

An actor is a thread for its whole life, since the library knows actors by their thread: a lease
that was drawn in one call counts against the next call of the same thread. What it has never seen
is another buffer, so a thread may play an actor of one example after the other: `Hands` lends the
threads, which cost more to start than a short example.
"""

import queue
import threading
from collections.abc import Mapping
from types import TracebackType

from forebay._threads import thread_number

from forebay_models.stepping.board import Board, Calls, Ended, Seat

JOINING = 20.0
"""Seconds within which a thread has to end once it is told to."""


class Worker:
    """A thread that makes calls; it has a seat on one board at a time."""

    def __init__(self) -> None:
        self.seat = Seat("")
        self._board = Board()
        self._number = 0
        self._calls: queue.SimpleQueue[Calls | None] = queue.SimpleQueue()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._begun.wait()

    def sit(self, board: Board, name: str) -> None:
        """Take a seat on a board, as the actor of that name; the thread must be in no call."""
        ident = self._thread.ident
        assert self.idle, f"{self.seat.name} is in a call"
        assert ident is not None, "the thread has begun"
        self._thread.name = f"stepped-{name}"
        self._board, self.seat = board, Seat(name, thread=ident)
        board.register(self.seat, self._number)

    @property
    def number(self) -> int:
        """The number by which the library knows the thread."""
        return self._number

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
        if not self.idle:
            raise AssertionError(f"{seat.name} is in a call, {seat.stop}")
        seat.stops = stops
        seat.injected = dict(injected or {})
        seat.ahead = 0.0
        seat.outside = False
        seat.stop = None
        self._calls.put(call)

    def let_go(self) -> None:
        """Let the thread end when it is out of its call, and do not wait for that."""
        self._calls.put(None)

    def end(self) -> bool:
        """Let the thread end when it is out of its call; tells whether it did so in time."""
        self.let_go()
        self._thread.join(JOINING)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._number = thread_number()
        self._begun.set()
        while (call := self._calls.get()) is not None:
            stop = _outcome(call)
            del call
            self._board.arrive(self.seat, stop)
            del stop


class Hands:
    """Threads that are lent to one crew after the other, and end with the block."""

    def __init__(self) -> None:
        self._free: list[Worker] = []

    def __enter__(self) -> "Hands":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._free:
            self._free.pop().end()

    def lend(self) -> Worker:
        """Return a thread that nobody has."""
        return self._free.pop() if self._free else Worker()

    def take_back(self, worker: Worker) -> None:
        """Keep a thread, which is in no call, for the next crew."""
        self._free.append(worker)


def _outcome(call: Calls) -> Ended:
    try:
        return Ended(value=call())
    except BaseException as error:
        return Ended(error=error)
