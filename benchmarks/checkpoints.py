"""Checkpoints of a large buffer, P10 and P11.

P10 is `dumps` beside a plain sequential write of the same bytes with a sync, and the memory that it
takes besides. P11 is what a capture costs those who go on meanwhile: the throughput of a producer
and a reader while `dumps` or `state_dict` runs, over that without, and the longest pause of a
single write. The place of the files decides much, so it is named.
"""

import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import forebay

from benchmarks.plan import Part, Plan
from benchmarks.records import RECORD, tokens
from benchmarks.results import Goal, Row
from benchmarks.timing import ratio, spread, timed

BATCH: Final = 32
BLOCK: Final = 16 * 2**20
"""Bytes that the plain write hands over at a time."""

P10: Final = 0.7
P11: Final = 0.5
PAUSE: Final = 2.0
"""The longest write while a capture runs, in copies of its batch, at most."""


def full_buffer(mib: int) -> forebay.BlockingReplayBuffer:
    """Return a buffer of so many MiB of records of tokens, all slots taken."""
    capacity = mib * 2**20 // RECORD // BATCH * BATCH
    buffer = forebay.BlockingReplayBuffer(forebay.TensorStorage(capacity), batch_size=BATCH)
    batch = tokens(BATCH)
    for _ in range(capacity // BATCH):
        buffer.extend(batch)
    return buffer


def write_plainly(place: Path, arrays: list[memoryview]) -> None:
    """Write these bytes one after the other into one file, and sync it."""
    with place.open("wb", buffering=0) as file:
        for array in arrays:
            for at in range(0, len(array), BLOCK):
                file.write(array[at : at + BLOCK])
        os.fsync(file.fileno())


def highest_memory() -> int:
    """Return the most bytes of memory that this process has had since `forget_memory`."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not say how much memory a process has had")


def forget_memory() -> int:
    """Begin anew to look for the most memory, and return what there is now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return highest_memory()


def saving(plan: Plan) -> list[Part]:
    """P10: `dumps` beside a plain write."""
    mib = plan.effort.mib

    def measure() -> list[Row]:
        buffer = full_buffer(mib)
        storage = buffer.storage
        assert isinstance(storage, forebay.TensorStorage)
        arrays = [array.data.cast("B") for array in storage._columns]
        allowed = BATCH * RECORD + buffer._core.ledger.layout.block.nbytes
        saved, plain, extra = [], [], []
        for turn in range(plan.effort.turns):
            for side in ("ours", "plain") if turn % 2 else ("plain", "ours"):
                if side == "plain":
                    place = plan.scratch / "plain"
                    plain.append(timed(partial(write_plainly, place, arrays)))
                    place.unlink()
                else:
                    place = plan.scratch / "checkpoint"
                    before = forget_memory()
                    saved.append(timed(partial(buffer.dumps, place)))
                    extra.append(float(highest_memory() - before))
                    shutil.rmtree(place)
        return [
            Row(
                case="P10",
                size=f"dumps of {mib} MiB",
                ours=spread(saved),
                unit="s",
                peer="plain write with sync",
                theirs=spread(plain),
                ratio=ratio(plain, saved),
                goal=Goal("at least", P10),
            ),
            Row(
                case="P10",
                size=f"dumps of {mib} MiB, memory besides; the goal is a batch and the ledger",
                ours=spread(extra).by(2**-20),
                unit="MiB",
                goal=Goal("at most", round(allowed / 2**20, 1), "ours"),
            ),
        ]

    return [Part(f"{mib} MiB", measure)]


class Traffic:
    """A producer and a reader that go on as fast as they can, and what they have done."""

    def __init__(self, buffer: forebay.BlockingReplayBuffer) -> None:
        self._buffer = buffer
        self._batch = tokens(BATCH)
        self.written = 0
        self.longest = 0.0
        self.began = 0.0

    def produce(self) -> None:
        """Write until the buffer is closed."""
        with suppress(forebay.ShutDown):
            while True:
                self.began = time.perf_counter()
                self._buffer.extend(self._batch)
                self.written += 1
                self.longest = max(self.longest, time.perf_counter() - self.began)

    def read(self) -> None:
        """Read until the buffer is closed."""
        with suppress(forebay.ShutDown):
            while True:
                self._buffer.sample()

    def during(self, work: Callable[[], object]) -> tuple[float, float]:
        """Return the batches a second that are written during some work, and the longest write.

        A write that goes on at the end counts as long as it has taken, since it may be stuck.
        """
        self.written, self.longest = 0, 0.0
        started = time.perf_counter()
        work()
        ended = time.perf_counter()
        stuck = ended - max(started, self.began)
        return self.written / (ended - started), max(self.longest, stuck)

    def __enter__(self) -> "Traffic":
        self._threads = [threading.Thread(target=work) for work in (self.read, self.produce)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._buffer.shutdown(immediate=True)
        for thread in self._threads:
            thread.join()


def going_on(plan: Plan) -> list[Part]:
    """P11: a producer and a reader while a capture runs."""
    mib = plan.effort.mib

    def measure() -> list[Row]:
        buffer = full_buffer(mib)
        batch = tokens(BATCH)
        copy = statistics.median(timed(batch.clone) for _ in range(200))
        target = plan.scratch / "checkpoint"
        ways: dict[str, Callable[[], object]] = {
            "dumps": lambda: buffer.dumps(target),
            "state_dict": buffer.state_dict,
        }
        rows = []
        with Traffic(buffer) as traffic:
            for name, way in ways.items():
                usual, during = [], []
                for _ in range(plan.effort.turns):
                    usual.append(traffic.during(lambda: time.sleep(max(0.2, min(1.0, mib / 64)))))
                    during.append(traffic.during(way))
                rows += _rows(f"{name} of {mib} MiB", usual, during, copy)
        shutil.rmtree(target)
        return rows

    return [Part(f"{mib} MiB", measure)]


def _rows(
    size: str, usual: list[tuple[float, float]], during: list[tuple[float, float]], copy: float
) -> list[Row]:
    rates, pauses = ([turn[at] for turn in during] for at in (0, 1))
    rates_without, pauses_without = ([turn[at] for turn in usual] for at in (0, 1))
    return [
        Row(
            case="P11",
            size=f"{size}, a producer meanwhile",
            ours=spread(rates),
            unit="batches/s",
            peer="the same without",
            theirs=spread(rates_without),
            ratio=ratio(rates, rates_without),
            goal=Goal("at least", P11),
        ),
        Row(
            case="P11",
            size=f"{size}, its longest write, in copies of the batch",
            ours=spread(pauses).by(1 / copy),
            unit="copies",
            peer="the same without",
            theirs=spread(pauses_without).by(1 / copy),
            ratio=ratio(pauses_without, pauses),
            goal=Goal("at most", PAUSE, "ours"),
        ),
    ]
