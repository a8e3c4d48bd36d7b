"""Dumps that are killed, fail, or lose their disk's power at every step; a reader finds a whole.

A scenario is what is there before a dump. The dump is then taken once for each of its steps:
killed there by SIGKILL, also in the middle of each write; told there that the disk is full; and
followed by every loss of power that `Disk` knows. Afterwards a reader has to find the old or the
new checkpoint, and the next dump has to succeed and leave nothing else. While it runs, the lock has
to be held; and a reader is overtaken by a whole dump at each file that it opens.
"""

import errno
import fcntl
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from unittest.mock import patch

from forebay import _files

from forebay_models.faults import operations as op
from forebay_models.faults.checkpoints import LOCK, NONE, dump, expect, nothing_left, repair
from forebay_models.faults.crew import Crew, Wrong, crew
from forebay_models.faults.disk import Disk, Image, put
from forebay_models.faults.hands import PATIENCE
from forebay_models.faults.operations import Recorder, Step, Watch, nothing_synced, watched
from forebay_models.mutants.files import planted_in_files

SCENARIOS: Final = ("first", "over", "after half", "after rename")
"""No checkpoint yet; an old one; one whose replacement was killed in the middle, or at its end."""

_NEW: Final = 3
_NEXT: Final = 4


@dataclass(frozen=True)
class _Scene:
    """What is there before the dump.

    Attributes:
        name: of the scenario.
        path: of a directory like it, or nothing.
        disk: the same, with what of it was not synced.
        numbers: what a reader may find; the oldest is that of the last dump that returned.
        steps: of the dump.
    """

    name: str
    path: Path
    disk: Disk
    numbers: frozenset[int]
    steps: Sequence[Step]

    def renamed(self) -> int:
        """Return the number of the step by which the new checkpoint is found."""
        kinds = [step.kind for step in self.steps]
        return kinds.index(op.RENAME) if op.RENAME in kinds else len(kinds)

    def before(self, number: int) -> str:
        """Return where a dump is before a step."""
        if number == len(self.steps):
            return f"scenario {self.name}, when the dump has returned"
        return f"scenario {self.name}, before step {number} of the dump, {self.steps[number]}"


class _Killed(BaseException):
    """In the place of a kill, for what only has to look as if somebody was killed."""


class _Stop(Watch):
    """Ends a dump before a step as a kill does: nothing is done from then on."""

    def __init__(self, disk: Disk, last: Callable[[Step], bool]) -> None:
        self._disk = disk
        self._last = last
        self._dead = False

    def before(self, number: int, step: Step) -> None:
        if self._dead:
            raise _Killed

    def after(self, step: Step) -> None:
        self._disk.take(step)
        self._dead = self._dead or self._last(step)


class _Kill(Watch):
    """Kills this process before a step, or in the middle of a write."""

    def __init__(self, number: int, half: bool) -> None:
        self._number = number
        self._half = half

    def before(self, number: int, step: Step) -> None:
        if number == self._number:
            if self._half:
                os.pwrite(step.descriptor, step.data[: len(step.data) // 2], step.offset)
            os.kill(os.getpid(), signal.SIGKILL)


class _Fail(Watch):
    """Lets a step fail as on a full disk."""

    def __init__(self, number: int) -> None:
        self._number = number

    def before(self, number: int, step: Step) -> None:
        if number == self._number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Locked(Watch):
    """Looks before each step whether another dump could begin."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def before(self, number: int, step: Step) -> None:
        if step.kind == op.MAKE_PLACE:
            return
        descriptor = os.open(self._path / LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        finally:
            os.close(descriptor)
        raise Wrong(f"before step {number}, {step}, another dump could begin")


def _dump_and_die(line: Connection, path: str, number: int, half: bool, fault: str) -> None:
    """Dump in a process of its own, which is dead in the end wherever it was to be killed."""
    with planted_in_files(fault), watched(path, _Kill(number, half)):
        dump(Path(path), _NEW)
    os.kill(os.getpid(), signal.SIGKILL)


class Dumps:
    """The faults of dumps.

    Args:
        method: how processes are started that are killed.
        seed: of the losses of power that are drawn.
        most: losses of power after each step at most.
        fault: the planted fault, or nothing.
        tell: is told how far it has come.
        scenarios: their names.
    """

    def __init__(
        self,
        *,
        method: str,
        seed: int,
        most: int,
        fault: str,
        tell: Callable[[str], None],
        scenarios: Sequence[str] = SCENARIOS,
    ) -> None:
        self._method = method
        self._choice = random.Random(seed)
        self._most = most
        self._fault = fault
        self._tell = tell
        self._scenarios = scenarios
        self._began = time.monotonic()
        self._tried = 0
        self.did: Counter[str] = Counter()
        self.every_loss = True

    def run(self) -> None:
        """Take every scenario through all of it.

        Raises:
            Wrong: something is lost, mixed or left; the message says where.
        """
        with (
            tempfile.TemporaryDirectory(prefix="forebay-") as folder,
            planted_in_files(self._fault),
            crew(("forebay", __name__), PATIENCE) as members,
        ):
            self._folder = Path(folder)
            for name in self._scenarios:
                scene = self._scene(name)
                for do in (self._losses, self._failures, self._readers):
                    do(scene)
                self._kills(scene, members)

    def _scene(self, name: str) -> _Scene:
        """Make what a scenario begins with, and find out about the steps of the dump."""
        path, disk = self._fresh(), Disk()
        numbers = {NONE}
        if name != "first":
            recorder = Recorder()
            with watched(str(path), recorder):
                dump(path, 1)
            for step in recorder.steps:
                disk.take(step)
            numbers = {1}
        if name in ("after half", "after rename"):
            last = op.RENAME if name == "after rename" else op.SYNC
            try:
                with watched(str(path), _Stop(disk, lambda step: step.kind == last)):
                    dump(path, 2)
            except _Killed:
                pass
            numbers |= {2} if name == "after rename" else set()
        recorder = Recorder()
        with self._copy(path) as copy:
            with watched(str(copy), recorder):
                dump(copy, _NEW)
            with self._at(f"scenario {name}, when nothing has happened"):
                expect(copy, {_NEW})
                nothing_left(copy)
            with self._at(f"scenario {name}"), watched(str(copy), _Locked(copy)):
                dump(copy, _NEXT)
        return _Scene(name, path, disk, frozenset(numbers), recorder.steps)

    def _kills(self, scene: _Scene, members: Crew) -> None:
        """Kill the dump before each step, in the middle of each write, and when it has returned."""
        for number in range(len(scene.steps) + 1):
            halves = number < len(scene.steps) and scene.steps[number].kind == op.WRITE
            for half in (False, True) if halves else (False,):
                with self._copy(scene.path) as path:
                    where = f"killed in {scene.before(number)}{', half done' if half else ''}"
                    with self._at(where):
                        self._kill(members, path, number, half)
                        expect(path, self._allowed(scene, number))
                        repair(path, _NEXT)
                self._count("kills", where)

    def _kill(self, members: Crew, path: Path, number: int, half: bool) -> None:
        member = members.start(
            "dump", self._method, _dump_and_die, str(path), number, half, self._fault
        )
        member.process.join(PATIENCE)
        members.members.remove(member)
        code = member.process.exitcode
        if code is None:
            member.kill()
            raise Wrong("the dump does not end")
        member.close()
        if code != -signal.SIGKILL:
            raise Wrong(f"the dump has ended with {code} instead")

    def _failures(self, scene: _Scene) -> None:
        """Let each step fail once."""
        renamed = scene.renamed()
        created = next(n for n, step in enumerate(scene.steps) if step.kind == op.CREATE)
        for number in range(len(scene.steps)):
            where = f"the disk is full in {scene.before(number)}"
            with self._copy(scene.path) as path, self._at(where):
                try:
                    with watched(str(path), _Fail(number)):
                        dump(path, _NEW)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise Wrong(f"it fails with {error!r} instead") from error
                else:
                    raise Wrong("it returns as if nothing had failed")
                expect(path, self._allowed(scene, number))
                if scene.name != "first" and created <= number < renamed:
                    nothing_left(path)
                with nothing_synced():
                    repair(path, _NEXT)
            self._count("failures", where)

    def _losses(self, scene: _Scene) -> None:
        """Let the machine lose power before each step, and when the dump has returned."""
        disk = scene.disk.copy()
        tried: set[tuple[Image, bool]] = set()
        for number in range(len(scene.steps) + 1):
            where = f"power is lost in {scene.before(number)}"
            images, every = disk.after_loss(self._most, self._choice)
            self.every_loss = self.every_loss and every
            for image in images:
                returned = number == len(scene.steps)
                if (image, returned) in tried:
                    continue
                tried.add((image, returned))
                path = self._fresh()
                put(image, path)
                with self._at(where), nothing_synced():
                    expect(path, {_NEW} if returned else {*scene.numbers, _NEW})
                    repair(path, _NEXT)
                shutil.rmtree(path)
                self._count("losses of power", where)
            if number < len(scene.steps):
                disk.take(scene.steps[number])

    def _readers(self, scene: _Scene) -> None:
        """Let a reader be overtaken by a whole dump before each file that it opens."""
        honest = _files.open_to_read
        number, reached = 0, scene.numbers != {NONE}
        while reached:
            with self._copy(scene.path) as path:
                opened, reached = 0, False

                def open_to_read(file: str, path: Path = path, at: int = number) -> int:
                    nonlocal opened, reached
                    opened += 1
                    if opened == at + 1 and not reached:
                        reached = True
                        with patch.object(_files, "open_to_read", honest), nothing_synced():
                            dump(path, _NEW)
                    return honest(file)

                where = f"overtaken in scenario {scene.name} before it opens file {number}"
                with self._at(where), patch.object(_files, "open_to_read", open_to_read):
                    expect(path, {*scene.numbers, _NEW})
            if reached:
                self._count("readers overtaken", where)
            number += 1

    def _allowed(self, scene: _Scene, number: int) -> set[int]:
        """Return what may be found when a dump has ended before a step and nothing is lost."""
        return {_NEW} if number > scene.renamed() else {max(scene.numbers)}

    @contextmanager
    def _at(self, where: str) -> Iterator[None]:
        try:
            yield
        except Wrong as error:
            raise Wrong(f"{where}: {error}") from error

    def _fresh(self) -> Path:
        self._tried += 1
        return self._folder / str(self._tried)

    @contextmanager
    def _copy(self, path: Path) -> Iterator[Path]:
        """Give a copy of what a scenario begins with, and remove it."""
        copy = self._fresh()
        if path.exists():
            shutil.copytree(path, copy)
        try:
            yield copy
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _count(self, what: str, where: str) -> None:
        self.did[what] += 1
        if self.did.total() % 20 == 0:
            self._tell(f"{self.did.total():,} faults, {where}")
