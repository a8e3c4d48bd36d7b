"""Processes that use one buffer as fast as they can, and write down what they do.

The notes lie in shared memory, so that they outlive whoever is killed. A batch is noted before it
is written and before it is delivered, and again afterwards: so of a call that a kill has cut short
it is known which records it was about, and the ledger says whether it took place.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final, NamedTuple
from unittest.mock import patch

import forebay._shared_peers
import numpy as np
from forebay import AdmissionTimeout, BlockingReplayBuffer, MutualWait, SampleTimeout
from forebay._base import Batch
from forebay._process_monitor import ProcessMonitor
from forebay._shared_block import SharedBlock
from forebay._stores import Ints

from forebay_models.adapters.records import batch_of, numbers_in
from forebay_models.campaign.quiet import quiet_library
from forebay_models.faults.hands import Given, RaisedOnPurpose, begin_child
from forebay_models.mutants.shared import planted_in_shared

ROOM: Final = 1 << 16
"""How many notes a process can make."""

_STOP, _COUNT, _DONE, _NOTES = 0, 1, 2, 8
_ABOUT, _ENDED, _DROPPED = 0, 1, 2
_WRITE, _READ = 0, 4
_SHIFT: Final = 40
_LATE: Final = (AdmissionTimeout, SampleTimeout, MutualWait)


class Notes:
    """What one process after the other has noted in one piece of shared memory."""

    def __init__(self, cells: Ints) -> None:
        self._cells = cells

    def clear(self) -> None:
        """Forget everything, for the next process."""
        self._cells[:] = 0

    @property
    def made(self) -> int:
        """How many notes there are."""
        return int(self._cells[_COUNT])

    @property
    def done(self) -> int:
        """How many calls have been served."""
        return int(self._cells[_DONE])

    def stop(self) -> None:
        """Ask the process to come to an end."""
        self._cells[_STOP] = 1

    @property
    def over(self) -> bool:
        """Whether the process has to come to an end."""
        return bool(self._cells[_STOP]) or self.made > ROOM - 64

    def about(self, what: int, numbers: tuple[int, ...]) -> None:
        """Note what a call is about to do, all at once."""
        start = _NOTES + self.made
        self._cells[start : start + len(numbers)] = [
            (what | _ABOUT) << _SHIFT | number for number in numbers
        ]
        self._cells[_COUNT] += len(numbers)

    def ended(self, what: int, took_place: bool) -> None:
        """Note how it ended."""
        self._cells[_NOTES + self.made] = (what | (_ENDED if took_place else _DROPPED)) << _SHIFT
        self._cells[_COUNT] += 1
        self._cells[_DONE] += took_place

    def read(self) -> "Account":
        """Return what the process has done."""
        account = Account([], [], [], [])
        pending: dict[int, list[int]] = {_WRITE: [], _READ: []}
        for note in self._cells[_NOTES : _NOTES + self.made].tolist():
            what, number = note >> _SHIFT, note & ((1 << _SHIFT) - 1)
            kind, stage = what & _READ, what & (_ENDED | _DROPPED)
            if stage == _ABOUT:
                pending[kind].append(number)
                continue
            if stage == _ENDED:
                (account.written if kind == _WRITE else account.received).append(
                    tuple(pending[kind])
                )
            pending[kind] = []
        for kind, open_ones in ((_WRITE, account.writing), (_READ, account.receiving)):
            if pending[kind]:
                open_ones.append(tuple(pending[kind]))
        return account


class Account(NamedTuple):
    """Batches: those written and received, and those that were about to be when the end came."""

    written: list[tuple[int, ...]]
    received: list[tuple[int, ...]]
    writing: list[tuple[int, ...]]
    receiving: list[tuple[int, ...]]

    def add(self, other: "Account") -> None:
        """Add what another process has done."""
        for mine, others in zip(self, other, strict=True):
            mine.extend(others)


def notes_in(block: SharedBlock, place: int) -> Notes:
    """Return the notes with that number in a block."""
    return Notes(block.array(np.int64, (ROOM + _NOTES,), 8 * (ROOM + _NOTES) * place))


def block_for(places: int) -> SharedBlock:
    """Return memory for so many notes."""
    return SharedBlock(8 * (ROOM + _NOTES) * places)


@dataclass(frozen=True)
class Job:
    """What a process needs in order to work.

    Attributes:
        given: the buffer.
        block: the memory for notes.
        place: which of them are its own.
        number: tells its records from those of all others.
    """

    given: Given
    block: SharedBlock
    place: int
    number: int


def labour(line: Connection, fault: str, job: Job) -> None:
    """Work until told to stop, or killed, or until the parent is gone."""
    begin_child()
    parent = os.getppid()
    with (
        quiet_library(),
        planted_in_shared(fault),
        patch.object(forebay._shared_peers, "LOOK", job.given.pause),
    ):
        _Worker(job, parent).run()


class _Worker:
    def __init__(self, job: Job, parent: int) -> None:
        self._parent = parent
        self._buffer: BlockingReplayBuffer = job.given.buffer
        self._notes = notes_in(job.block, job.place)
        self._choice = random.Random(job.number)
        self._numbers: Iterator[int] = iter(range(job.number * 10**5 + 1, (job.number + 1) * 10**5))
        self._raises = False
        core = self._buffer._core
        assert isinstance(core.monitor, ProcessMonitor)
        core.monitor._nap = job.given.nap
        self._buffer.append_transform(self._note)

    def run(self) -> None:
        """Take one call after the other."""
        calls = (self._write, self._write, self._write, self._sample, self._sample, self._sample)
        rare = (self._lease, self._lease, self._observe, self._fail)
        while not self._notes.over and os.getppid() == self._parent:
            self._choice.choice(calls if self._choice.random() < 0.8 else rare)()

    def _note(self, batch: Batch) -> Batch:
        self._notes.about(_READ, numbers_in("tensor", batch))
        if self._raises:
            raise RaisedOnPurpose
        return batch

    def _size(self) -> int:
        return self._choice.randint(1, 2)

    def _patience(self) -> float:
        return self._choice.choice((0.0, 0.01, 0.2, 2.0))

    def _write(self) -> None:
        numbers = tuple(next(self._numbers) for _ in range(self._size()))
        self._notes.about(_WRITE, numbers)
        try:
            self._buffer.extend(batch_of("tensor", numbers), timeout=self._patience())
        except _LATE:
            self._notes.ended(_WRITE, False)
        else:
            self._notes.ended(_WRITE, True)

    def _sample(self) -> None:
        try:
            self._buffer.sample(self._size(), at_least=1, timeout=self._patience())
        except _LATE:
            return
        self._notes.ended(_READ, True)

    def _lease(self) -> None:
        try:
            lease = self._buffer.lease(self._size(), at_least=1, timeout=self._patience())
        except _LATE:
            return
        commits = self._choice.random() < 0.5
        (lease.commit if commits else lease.release)()
        self._notes.ended(_READ, commits)

    def _observe(self) -> None:
        self._buffer.wait_until_sampleable(1, timeout=0.01)

    def _fail(self) -> None:
        self._raises = True
        try:
            self._buffer.sample(1, timeout=0.0)
        except RaisedOnPurpose:
            self._notes.ended(_READ, False)
        except _LATE:
            pass
        finally:
            self._raises = False
