"""Children that report where they are, and that are gone when the test is.

A child gets a `Line` to its test. It says what it has reached, and the test waits for that; nobody
sleeps to wait for somebody else. Whether a child really sleeps in the kernel is read from `/proc`.
"""

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Concatenate, ParamSpec

import pytest
from forebay._layout import PARTICIPANT_FIELDS
from forebay._participants import Participants
from forebay._process_monitor import MONITOR_BYTES, ProcessMonitor, make_monitor
from forebay._shared_block import SharedBlock

P = ParamSpec("P")
PATIENCE = 60.0
"""Seconds after which a test gives up; reaching them is a failure."""
METHODS = ["fork", pytest.param("spawn", marks=pytest.mark.slow), "forkserver"]
FORKS = ["fork", "forkserver"]
"""The quick ways, inherited and pickled, where it only matters that the processes are others.

How a handle comes to a spawned one is tested in `test_shared_block.py`, `test_shared_buffer.py`,
`test_shared_corners.py` and `test_shared_handles.py`; each loads everything anew, for seconds.
"""
LIMIT = 16
_TABLE = MONITOR_BYTES
_CELLS = _TABLE + 8 * PARTICIPANT_FIELDS * LIMIT
_COUNT = 8
REPAIRS, COUNTER, TURN, CHANGED, BUSY = range(5)
"""What the tests keep in shared cells."""


class Shared:
    """A monitor, a table of participants and a few cells over one block, as a buffer has them."""

    def __init__(self, block: SharedBlock, nap: float = 1.0) -> None:
        self.block = block
        self.nap = nap
        self.cells = block.cells("q", _COUNT, _CELLS)
        self.participants = Participants(block.cells("q", PARTICIPANT_FIELDS * LIMIT, _TABLE))
        self.monitor = ProcessMonitor(block, 0, self.recover, nap)

    def recover(self) -> None:
        self.cells[REPAIRS] += 1

    def __reduce__(self) -> tuple[type["Shared"], tuple[SharedBlock, float]]:
        return Shared, (self.block, self.nap)


def make(nap: float = 1.0) -> Shared:
    """Return fresh shared state."""
    block = SharedBlock(_CELLS + 8 * _COUNT)
    make_monitor(block, 0)
    return Shared(block, nap)


Line = Connection


@dataclass
class Child:
    """A child process and the line to it."""

    process: BaseProcess
    line: Connection

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def says(self) -> object:
        """Return what the child says next."""
        if not self.line.poll(PATIENCE):
            pytest.fail("the child says nothing")
        try:
            return self.line.recv()
        except EOFError:
            pytest.fail(f"the child has ended with {self.end()}")

    def end(self) -> int:
        """Wait for the end of the child and return its exit code."""
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, "the child does not end"
        return self.process.exitcode

    def kill(self) -> None:
        """Kill the child and wait until it is dead."""
        self.process.kill()
        assert self.end() == -signal.SIGKILL

    def await_sleep(self) -> None:
        """Wait until the child sleeps in the kernel, having said that it is about to."""
        until(lambda: state_of(self.pid) == "S")

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)


def state_of(process: int) -> str:
    """Return the letter of a process's state."""
    text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return text.rpartition(")")[2].split()[0]


def until(condition: Callable[[], bool]) -> None:
    """Look at a state that cannot be waited for until it is there; fail after a long time."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "this does not become true"
        time.sleep(0.001)


def context(method: str) -> BaseContext:
    """Return the way to start children; the server of forks has the library loaded already."""
    if method == "forkserver":
        multiprocessing.set_forkserver_preload(["forebay", "tests.processes.remote"])
    return multiprocessing.get_context(method)


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Have every attempt of this process to open a file fail, for want of descriptors."""
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Family:
    """Starts children."""

    def __init__(self, method: str) -> None:
        self._context = context(method)
        self.children: list[Child] = []

    def start(
        self, work: Callable[Concatenate[Line, P], None], *args: P.args, **kwargs: P.kwargs
    ) -> Child:
        """Start a child that does this work."""
        mine, its = self._context.Pipe()
        process = self._context.Process(target=work, args=(its, *args), kwargs=kwargs)  # type: ignore[attr-defined]  # each context has its own
        child = Child(process, mine)
        try:
            process.start()
            self.children.append(child)
        finally:
            its.close()
        return child


@contextmanager
def family(method: str = "forkserver") -> Iterator[Family]:
    """Give a family whose members are all dead afterwards."""
    members = Family(method)
    try:
        yield members
    finally:
        for child in members.children:
            child.process.kill()
        for child in members.children:
            child.process.join(PATIENCE)
            child.line.close()
        assert all(child.process.exitcode is not None for child in members.children)
        for child in members.children:
            child.process.close()
