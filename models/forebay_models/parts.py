"""Runs the parts of a long command: those that keep one core busy at the same time as others.

Most campaigns do one thing at a time, so that on two cores one of them would idle. Such parts run
in processes of their own, as many at once as there are cores; a part that uses several cores itself
runs alone, in this process. What they find comes back in the order of the parts, whoever ends
first. A part that fails, or whose process dies, could not run: it is told with the reason and does
not take the others with it.

Nothing is left behind. A worker is the first of a process group, and is told to end when the block
ends; it has time to take down what it has started before its whole group is killed. It also ends by
itself when this process is gone.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType, TracebackType
from typing import Final, NamedTuple, NoReturn

from forebay_models.outcome import Outcome, could_not_run
from forebay_models.progress import SECONDS_BETWEEN_LOOKS, Observer

LOOK: Final = 0.5
"""Seconds of a wait; one without an end would sleep through a signal that came just before it."""
ENDING: Final = 15.0
"""Seconds in which a worker that was told to end takes down what it has started."""
MOST: Final = 4
"""So many workers at most: the parts are few, and a machine may allow less than it has cores."""
TERMINATED: Final = 128 + signal.SIGTERM
_SIGNAL_WHEN_PARENT_ENDS: Final = 1  # PR_SET_PDEATHSIG of prctl(2)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a command.

    Attributes:
        name: what its outcome is called if it fails.
        run: does it, and is called with `observer=`; it can be pickled unless it runs alone.
        alone: whether it uses several cores itself.
    """

    name: str
    run: Callable[..., Sequence[Outcome] | Outcome]
    alone: bool = False


class Told(NamedTuple):
    """A worker has told its observer something."""

    method: str
    arguments: tuple[object, ...]


class Ended(NamedTuple):
    """A worker has ended its part."""

    outcomes: list[Outcome]


class Workers:
    """Processes that take parts, and that do not outlive the block."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._idle: list[_Worker] = []
        self._busy: dict[Connection[object, object], _Worker] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        workers = [*self._idle, *self._busy.values()]
        try:
            for worker in workers:
                worker.tell_to_end()
            until = time.monotonic() + ENDING
            for worker in workers:
                worker.await_end(until)
        finally:
            for worker in workers:
                worker.kill()

    @property
    def busy(self) -> int:
        """How many parts are being done."""
        return len(self._busy)

    def give(self, number: int, part: Part) -> None:
        """Let a worker do a part."""
        worker = self._idle.pop() if self._idle else _Worker()
        self._busy[worker.end] = worker
        worker.give(number, part)

    def look(self) -> list[tuple[int, list[Outcome]]]:
        """Wait a moment for what the workers say; return the parts that have ended."""
        done = []
        for end in wait(list(self._busy), LOOK):
            assert isinstance(end, Connection)
            worker = self._busy[end]
            try:
                message = end.recv()
            except (EOFError, OSError):
                del self._busy[end]
                worker.await_end(time.monotonic() + ENDING)  # else it tells of the kill alone
                worker.kill()
                done.append((worker.number, [self._died(worker)]))
                continue
            if isinstance(message, Ended):
                self._idle.append(self._busy.pop(end))
                done.append((worker.number, message.outcomes))
            elif isinstance(message, Told):
                worker.note(message)
                getattr(self._observer, message.method)(*message.arguments)
        return done

    def _died(self, worker: "_Worker") -> Outcome:
        code = worker.process.exitcode
        outcome = failed(worker.part, f"its process ended without a word, with exit code {code}")
        for name in worker.begun:
            self._observer.ends(name, outcome)
        return outcome


@dataclass(eq=False)
class _Worker:
    """A process that does one part after the other."""

    process: SpawnProcess = field(init=False)
    end: "Connection[object, object]" = field(init=False)
    number: int = -1
    part: Part = field(init=False)
    begun: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.end, there = context.Pipe()
        self.process = context.Process(target=work, args=(there,))
        self.process.start()
        # Then its end closes with the process, which is how its death is noticed.
        there.close()

    def give(self, number: int, part: Part) -> None:
        self.number, self.part = number, part
        self.begun.clear()
        with suppress(BrokenPipeError):  # whoever reads will notice that it is dead
            self.end.send(part)

    def note(self, told: Told) -> None:
        """Keep which checks have begun and not ended."""
        if told.method == "begins":
            self.begun.add(str(told.arguments[0]))
        elif told.method == "ends":
            self.begun.discard(str(told.arguments[0]))

    def tell_to_end(self) -> None:
        self.end.close()  # whatever it still has to say must not wait for a reader
        self.process.terminate()

    def await_end(self, until: float) -> None:
        wait([self.process.sentinel], max(0.0, until - time.monotonic()))

    def kill(self) -> None:
        """Kill what is left of the worker and of what it has started."""
        assert self.process.pid is not None
        # Before it is joined: until then nobody else can have its number.
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.end.close()


class Relay:
    """An observer that passes on to another process what it is told."""

    def __init__(self, told: "Connection[object, object]") -> None:
        self._told = told
        self._lock = threading.Lock()
        self._said = 0.0

    def expects(self, count: int) -> None:
        self._tell("expects", count)

    def begins(self, name: str) -> None:
        self._tell("begins", name)

    def says(self, name: str, text: str) -> None:
        if time.monotonic() > self._said + SECONDS_BETWEEN_LOOKS:
            self._said = time.monotonic()
            self._tell("says", name, text)

    def ends(self, name: str, outcome: Outcome) -> None:
        self._tell("ends", name, outcome)

    def _tell(self, method: str, *arguments: object) -> None:
        with self._lock:
            self._told.send(Told(method, arguments))


def work(asked: "Connection[object, object]") -> None:
    """Do one part after the other; runs in a process of its own, until it is told to end."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, _leave)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_WHEN_PARENT_ENDS, signal.SIGTERM)
    observer = Relay(asked)
    try:
        while True:
            try:
                part = asked.recv()
            except EOFError:
                return
            assert isinstance(part, Part)
            asked.send(Ended(attempted(part, observer)))
    finally:
        if _told_to_end.is_set():
            # A process that was being started when the signal came is known to nobody.
            os.killpg(os.getpid(), signal.SIGKILL)


_told_to_end = threading.Event()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    _told_to_end.set()
    raise SystemExit(TERMINATED)


def run_parts(parts: Sequence[Part], observer: Observer) -> list[Outcome]:
    """Run the parts and return their outcomes in the order of the parts."""
    found = {number: attempted(part, observer) for number, part in enumerate(parts) if part.alone}
    left = deque((number, part) for number, part in enumerate(parts) if not part.alone)
    most = min(MOST, cores())
    with Workers(observer) as workers:
        while left or workers.busy:
            while left and workers.busy < most:
                workers.give(*left.popleft())
            found.update(workers.look())
    return [outcome for number in range(len(parts)) for outcome in found[number]]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def attempted(part: Part, observer: Observer) -> list[Outcome]:
    """Do a part, here, and return its outcomes; an error in it makes it one that could not run."""
    try:
        outcomes = part.run(observer=observer)
    except Exception:
        return [failed(part, traceback.format_exc())]
    return [outcomes] if isinstance(outcomes, Outcome) else list(outcomes)


def failed(part: Part, why: str) -> Outcome:
    """Return the outcome of a part that did not come to its end."""
    return could_not_run(part.name, why)
