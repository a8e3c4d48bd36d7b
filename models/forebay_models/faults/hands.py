"""A process of a scenario: it gets a buffer, takes the calls that it is told to, and reports.

It ends when it is told to, when its parent is gone, or when it is killed.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final, NoReturn
from unittest.mock import patch

import forebay._shared_peers
from forebay import BlockingReplayBuffer, Lease, Producer
from forebay._base import Batch
from forebay._process_monitor import ProcessMonitor

from forebay_models.adapters.records import batch_of, numbers_in
from forebay_models.campaign.quiet import quiet_library
from forebay_models.faults.points import Point, Reached, Stops, install
from forebay_models.faults.program import ERRORS, OK, RAISED, Did, Op
from forebay_models.mutants.shared import planted_in_shared

PATIENCE: Final = 20.0
"""Seconds after which whoever is silent is stuck."""

_TIMEOUT: Final = 4 * PATIENCE
"""Of all calls, in seconds: so long that nobody is helped by it."""

LOOK: Final = "look"
"""The kind of call that looks for the dead and does nothing else."""

_LOOK_AT_PARENT: Final = 1.0


@dataclass(frozen=True)
class Task:
    """What a process is told to do next.

    Attributes:
        ops: its calls.
        numbers: of the records that it writes, in order.
        armed: whether points are counted.
        stop: the point where to stop and be killed, if it comes there.
        look: look for the dead first.
    """

    ops: tuple[Op, ...] = ()
    numbers: tuple[int, ...] = ()
    armed: bool = False
    stop: Point | None = None
    look: bool = False


@dataclass(frozen=True)
class Given:
    """A buffer for a process, and how patiently it waits there.

    Attributes:
        buffer: the buffer.
        nap: seconds that a sleeper sleeps at most before it looks again.
        pause: seconds between two looks for the dead.
    """

    buffer: BlockingReplayBuffer
    nap: float
    pause: float


@dataclass(frozen=True)
class Ready:
    """A process says that it has started."""


@dataclass(frozen=True)
class Asleep:
    """A process says that it is about to sleep."""


@dataclass(frozen=True)
class Done:
    """A process has done its task; the points that it came to, if they were counted."""

    reached: tuple[Reached, ...]


def act(line: Connection, fault: str, given: Given | None) -> None:
    """Do what comes over the line."""
    begin_child()
    parent = os.getppid()
    with ExitStack() as stack:
        stack.enter_context(quiet_library())
        stack.enter_context(planted_in_shared(fault))
        actor = None if given is None else _Actor(line, given)
        line.send(Ready())
        while True:
            order = next_order(line, parent)
            if order is None:
                return
            if isinstance(order, Given):
                actor = _Actor(line, order)
            elif isinstance(order, Task):
                assert actor is not None, "a buffer comes first"
                actor.do(order)
            # Nothing here may keep the buffer alive once another one has come.
            del order


def begin_child() -> None:
    """Leave Ctrl-C to the parent, and end at SIGTERM, whatever was inherited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def next_order(line: Connection, parent: int) -> object:
    """Return what comes next over the line; None when there will be nothing any more."""
    while not line.poll(_LOOK_AT_PARENT):
        if os.getppid() != parent:
            return None
    try:
        return line.recv()
    except EOFError:
        return None


class RaisedOnPurpose(Exception):
    """What a transform raises when it is meant to."""


class _Actor:
    """One process at one buffer."""

    def __init__(self, line: Connection, given: Given) -> None:
        self._line = line
        self._buffer = buffer = given.buffer
        self._raises = False
        self._leases: list[Lease[Batch]] = []
        self._producer: Producer | None = None
        core = buffer._core
        assert isinstance(core.monitor, ProcessMonitor)
        core.monitor._nap = given.nap
        self._stops = Stops(self._hold, line.send, lambda: line.send(Asleep()))
        install(core, self._stops)
        buffer.append_transform(self._transform)
        self._pause = given.pause

    def do(self, task: Task) -> None:
        """Do a task and report each call and the end."""
        numbers = iter(task.numbers)
        if task.armed:
            self._stops.arm(task.stop)
        with patch.object(forebay._shared_peers, "LOOK", self._pause):
            if task.look:
                self._stops.begin(LOOK)
                self._look()
            for op in task.ops:
                self._stops.begin(op.kind)
                self._line.send(self._take(op, numbers))
        self._stops.disarm()
        self._line.send(Done(tuple(self._stops.reached)))

    def _look(self) -> None:
        """Look for the dead, as a call does that has to wait and finds that a look is due."""
        core = self._buffer._core
        core.thread_actor()
        with core.section:
            core.peers.recover()

    def _take(self, op: Op, numbers: Iterator[int]) -> Did:
        self._raises = op.raises
        written = tuple(next(numbers) for _ in range(op.sizes[0] if op.kind == "extend" else 0))
        try:
            received = self._call(op, written)
        except RaisedOnPurpose:
            return Did(op, RAISED, ())
        except tuple(ERRORS) as error:
            return Did(op, ERRORS[type(error)], written)
        return Did(op, OK, written or received)

    def _call(self, op: Op, written: tuple[int, ...]) -> tuple[int, ...]:
        buffer, sizes = self._buffer, op.sizes
        match op.kind:
            case "extend":
                buffer.extend(batch_of("tensor", written), timeout=_TIMEOUT)
            case "sample":
                batch = buffer.sample(sizes[0], at_least=sizes[1], timeout=_TIMEOUT)
                return numbers_in("tensor", batch)
            case "lease":
                self._leases.append(buffer.lease(sizes[0], at_least=sizes[1], timeout=_TIMEOUT))
            case "commit":
                lease = self._leases.pop()
                lease.commit()
                return numbers_in("tensor", lease.batch)
            case "release":
                self._leases.pop().release()
            case "observe":
                buffer.wait_until_sampleable(sizes[0], timeout=_TIMEOUT)
            case "register":
                self._producer = buffer.producer()
                self._producer.__enter__()
            case "leave":
                assert self._producer is not None, "there is a producer"
                self._producer.__exit__(None, None, None)
            case "token":
                buffer.cancel_token().set()
            case "empty":
                buffer.empty()
            case "shutdown":
                buffer.shutdown()
        return ()

    def _transform(self, batch: Batch) -> Batch:
        if self._raises:
            raise RaisedOnPurpose
        return batch

    def _hold(self) -> NoReturn:
        """Stay at a point until killed, or until nobody is left who could."""
        parent = os.getppid()
        while next_order(self._line, parent) is not None:
            pass
        os._exit(1)
