"""All threads of one example, one for each actor.

Everything here is done by the driver: start a call, let a thread go on, wake all sleepers for no
reason; each time it waits until the thread stands still again. What a thread does to the others
meanwhile, such as waking them, has happened when it stands still. Calls that belong to no actor,
such as closing the buffer, the driver makes itself.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from forebay_models.stepping.board import (
    PATIENCE,
    Board,
    Calls,
    Ended,
    Parked,
    Released,
    Stop,
    Stuck,
)
from forebay_models.stepping.monitor import DOZING, ROUSED, LostWakeup, SteppedMonitor
from forebay_models.stepping.worker import Hands, Worker

T = TypeVar("T")


class Crew:
    """The threads of some actors around one monitor.

    Args:
        names: the actors.
        patience: seconds within which a thread has to come to a stop.
        hands: lends the threads; without it they are the crew's own and end with it.
    """

    def __init__(
        self, names: Iterable[str], patience: float = PATIENCE, hands: Hands | None = None
    ) -> None:
        self.board = Board(patience)
        self.monitor = SteppedMonitor(self.board)
        self._hands = hands
        self._workers: dict[str, Worker] = {}
        self._dead: list[Worker] = []
        for name in names:
            self.join(name)

    def join(self, name: str) -> None:
        """Give an actor a thread, which it must not have."""
        worker = Worker() if self._hands is None else self._hands.lend()
        worker.sit(self.board, name)
        self._workers[name] = worker

    def bury(self, name: str) -> int:
        """Never move an actor's thread again; returns the thread's number.

        It stays where it is. When the crew ends, an exception takes it out of its call.
        """
        worker = self._workers.pop(name)
        self._dead.append(worker)
        return worker.number

    def idle(self, name: str) -> bool:
        """Tell whether a thread is in no call."""
        return self._workers[name].idle

    def where(self, name: str) -> Stop:
        """Return where a thread stands, once it stands still."""
        return self.monitor.settle(self._workers[name].seat)

    def start(self, name: str, call: Calls, stops: frozenset[str] = frozenset()) -> Stop:
        """Make a call in a thread and return its first stop."""
        self._workers[name].start(call, stops)
        return self.where(name)

    def go_on(
        self,
        name: str,
        stops: frozenset[str] | None = None,
        injected: Mapping[str, BaseException] | None = None,
    ) -> Stop:
        """Let a parked thread go on and return its next stop; see `Board.release`."""
        self.board.release(self._workers[name].seat, stops, injected)
        return self.where(name)

    def looks_outside(self, name: str) -> None:
        """Note that a thread's call is past its critical sections; after a sleep it will stop."""
        seat = self._workers[name].seat
        seat.outside = True
        seat.stops = (seat.stops - {DOZING}) | {ROUSED}

    def lie_down(self, name: str) -> Stop:
        """Let a thread that stands just before its sleep fall asleep; others stay where they are.

        It will not stop there again.
        """
        stop = self.where(name)
        if stop != Parked(DOZING):
            return stop
        return self.go_on(name, self._workers[name].seat.stops - {DOZING})

    def rouse(self, name: str, ahead: float = 0.0) -> Stop:
        """Wake a thread for no reason, with its clock put forward; returns its stop.

        Args:
            name: the thread.
            ahead: seconds; if there are any, its sleep has to end by itself within them.
        """
        self.lie_down(name)
        seat = self._workers[name].seat
        seat.ahead += ahead
        if ahead and (seat.deadline is None or seat.deadline > self.monitor.time_of(seat)):
            raise LostWakeup(
                f"lost wake-up: {name}'s deadline has passed, but it would sleep until "
                f"{seat.deadline}"
            )
        self.monitor.rouse(seat)
        return self.where(name)

    def runs(self, name: str, call: Callable[[], T]) -> T:
        """Return what a call returns that runs to its end at once, or raise what it raises."""
        results: list[T] = []
        stop = self.start(name, lambda: results.append(call()))
        if not isinstance(stop, Ended):
            raise AssertionError(f"{name} should have run to its end, but it is {stop}")
        if stop.error is not None:
            raise stop.error
        return results[0]

    def end(self) -> tuple[list[Ended], list[str]]:
        """Drive nobody any more; returns how the last calls ended, and whose threads do not end."""
        for worker in self._dead:
            if isinstance(worker.seat.stop, Parked):
                worker.seat.injected[worker.seat.stop.label] = Released()
        self.monitor.release_all()
        left = [name for name, worker in self._workers.items() if not self._dismiss(worker)]
        left += [f"dead {it.seat.name}" for it in self._dead if not self._dismiss(it)]
        stops = [worker.seat.stop for worker in self._workers.values()]
        return [stop for stop in stops if isinstance(stop, Ended)], left

    def _dismiss(self, worker: Worker) -> bool:
        """Let a thread go; tells whether it has come to the end of its call."""
        if self._hands is None:
            return worker.end()
        try:
            self.board.wait_for(worker.seat, lambda stop: isinstance(stop, Ended))
        except Stuck:
            worker.let_go()
            return False
        self._hands.take_back(worker)
        return True
