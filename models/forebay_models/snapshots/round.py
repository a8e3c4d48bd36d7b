"""One round: writers and readers go on at full speed while snapshots are taken, then all stop.

Every wait is bounded. The snapshots are taken by a thread of their own, so that a capture that
hangs is noticed; whoever is left in the end is killed.
"""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from forebay._checkpoint import read_checkpoint

from forebay_models.device.prompt import aside
from forebay_models.snapshots.setting import Buffer, Reader, Setting
from forebay_models.snapshots.work import STOP, Board, Log, read, told, work, write

PATIENCE: Final = 60.0
"""Seconds for whatever has to end; a busy machine needs many."""

BETWEEN: Final = 0.05
"""Seconds after which a snapshot is taken though nothing was done since the last one."""

DUMP: Final = 25
"""One snapshot of so many is dumped."""

_EMPTY: Final = 10
_ALL_NEW: Final = 5
_PRELOAD: Final = ["forebay_models.snapshots.work"]


class Failed(Exception):
    """A round that did not go as it should; the text says how."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot, and how far each worker certainly was before and at most was after it.

    Attributes:
        state: as `state_dict` gives it.
        path: where it is, if it was dumped.
        before: the board before it was taken.
        after: the board after it was taken.
    """

    state: dict[str, Any]
    path: str
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass
class Evidence:
    """What a round has given: its snapshots, and what each reader had, by its place."""

    snapshots: list[Snapshot] = field(default_factory=list)
    logs: dict[int, Log] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class Round:
    """One round.

    Args:
        setting: of the buffer and who uses it.
        count: how many snapshots to take.
        directory: where those are dumped that are dumped.
        seed: of the buffer.
    """

    def __init__(self, setting: Setting, count: int, directory: str, seed: int) -> None:
        self._setting = setting
        self._count = count
        self._directory = directory
        self._buffer = setting.make(seed)
        self._jobs: dict[int, int | Reader] = dict(
            enumerate((*setting.writers, *setting.readers), STOP + 1)
        )
        self._context = multiprocessing.get_context("forkserver")
        self._board: Board = self._context.RawArray("q", len(self._jobs) + 1)
        self._processes: dict[int, tuple[BaseProcess, Connection]] = {}
        self._threads: list[threading.Thread] = []
        self._errors: list[str] = []
        self._evidence = Evidence()

    def run(self) -> Evidence:
        """Run it and return what it has given.

        Raises:
            Failed: something has raised, hangs, or was killed.
        """
        try:
            for place, job in self._jobs.items():
                if self._buffer.shared and not (isinstance(job, Reader) and job.inside):
                    self._start_process(place, job)
                else:
                    self._start(f"worker {place}", lambda place=place: self._labour(place))  # type: ignore[misc]  # a default that binds
            taker = self._start("who takes the snapshots", self._take_all)
            taker.join(PATIENCE)
            if taker.is_alive():
                raise Failed(self._hang("a capture hangs"))
            self._board[STOP] = 1
            self._await_all()
        finally:
            self._end()
        if self._errors:
            raise Failed("; ".join(self._errors))
        return self._evidence

    def _start(self, name: str, target: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                target()
            except Exception as error:
                self._errors.append(f"{name}: {type(error).__name__}: {error}")
                self._board[STOP] = 1

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _start_process(self, place: int, job: int | Reader) -> None:
        multiprocessing.set_forkserver_preload(_PRELOAD)
        here, there = self._context.Pipe()
        arguments = (there, self._buffer, self._board, place, job)
        process = self._context.Process(target=work, args=arguments, daemon=True)
        self._processes[place] = process, here
        process.start()
        there.close()

    def _labour(self, place: int) -> None:
        job = self._jobs[place]
        with aside(self._buffer.storage):
            if isinstance(job, int):
                write(self._buffer, self._board, place, job)
            else:
                self._keep(place, *read(self._buffer, self._board, place, job))

    def _keep(self, place: int, log: Log, wrong: list[str]) -> None:
        self._evidence.logs[place] = log
        self._evidence.wrong += wrong

    def _take_all(self) -> None:
        for number in range(self._count):
            self._await_news(self._setting.overwrites and number % _ALL_NEW == _ALL_NEW - 1)
            if self._board[STOP]:
                return
            if self._setting.empties and number % _EMPTY == _EMPTY - 1:
                self._buffer.empty()
            before = tuple(self._board)
            path = ""
            if number % DUMP == DUMP - 1:
                path = str(Path(tempfile.mkdtemp(dir=self._directory)))
                self._buffer.dumps(path, allow_pickle=False)
                state = read_checkpoint(path)
            else:
                state = self._buffer.state_dict()
            after = tuple(self._board)
            self._evidence.snapshots.append(Snapshot(state, path, before, after))

    def _await_news(self, all_new: bool) -> None:
        """Wait, but not for long, until somebody has done something since the last snapshot.

        If `all_new`, so much that a buffer which overwrites can have nothing of before.
        """
        snapshots = self._evidence.snapshots
        give_up = time.monotonic() + (BETWEEN if snapshots and not all_new else PATIENCE)
        last = snapshots[-1].after if snapshots else tuple(self._board)
        enough = self._setting.capacity if all_new else 0
        while time.monotonic() < give_up:
            now = tuple(self._board)
            if now != last and self._setting.surely_written(last, now) >= enough:
                return
            if self._board[STOP]:
                return
            time.sleep(0.0001)

    def _await_all(self) -> None:
        give_up = time.monotonic() + PATIENCE
        for place, (process, here) in self._processes.items():
            try:
                left = max(0.0, give_up - time.monotonic())
                self._keep(place, *told(here, left, self._jobs[place]))
            except TimeoutError:
                raise Failed(self._hang(f"the process of worker {place} hangs")) from None
            except EOFError:
                process.join(PATIENCE)
                died = f"the process of worker {place} has ended with {process.exitcode}"
                raise Failed(died) from None
        for thread in self._threads:
            thread.join(max(0.0, give_up - time.monotonic()))
            if thread.is_alive():
                raise Failed(self._hang(f"{thread.name} hangs"))

    def _hang(self, what: str) -> str:
        """Return what hangs and what the buffer says of itself, if it says anything."""
        said: list[str] = []
        asking = threading.Thread(target=lambda: said.append(_said(self._buffer)), daemon=True)
        asking.start()
        asking.join(5.0)
        return "\n".join([what, *(said or ["the buffer does not answer"])])

    def _end(self) -> None:
        self._board[STOP] = 1
        for process, here in self._processes.values():
            with suppress(AttributeError):  # it was never started
                process.kill()
                process.join()
            here.close()
        closing = threading.Thread(
            target=lambda: self._buffer.shutdown(immediate=True), daemon=True
        )
        closing.start()
        closing.join(PATIENCE)


def _said(buffer: Buffer) -> str:
    return buffer.describe()
