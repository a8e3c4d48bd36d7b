"""Measure checkpoints of a large buffer: `python -m benchmarks.checkpoints [P10 P11] [--mib 1024]`.

P10 is `dumps` beside a plain sequential write of the same bytes with a sync, and the memory that it
takes besides. P11 is what a capture costs those who go on meanwhile: the throughput of a producer
and a reader while `dumps` or `state_dict` runs, over that without, and the longest pause of a
single write. Both sides take turns in one run; the place of the files decides much, so it is named.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import forebay
import torch
from tensordict import TensorDict

from benchmarks.timing import settle

WORDS: Final = 1024
"""Tokens and log-probabilities of one record, 12 bytes each."""

RECORD: Final = 12 * WORDS
BATCH: Final = 32
BLOCK: Final = 16 * 2**20
"""Bytes that the plain write hands over at a time."""


def records(rows: int) -> TensorDict:
    """Return so many records with tokens and log-probabilities."""
    tokens = torch.arange(rows * WORDS, dtype=torch.int64).reshape(rows, WORDS)
    return TensorDict({"tokens": tokens, "logprob": tokens.to(torch.float32)}, [rows])


def full_buffer(mib: int) -> forebay.BlockingReplayBuffer:
    """Return a buffer of so many MiB of records, all slots taken."""
    capacity = mib * 2**20 // RECORD // BATCH * BATCH
    buffer = forebay.BlockingReplayBuffer(forebay.TensorStorage(capacity), batch_size=BATCH)
    batch = records(BATCH)
    for _ in range(capacity // BATCH):
        buffer.extend(batch)
    return buffer


def timed(run: Callable[[], object]) -> float:
    """Return the seconds that this takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


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


def writing(mib: int, repetitions: int, scratch: Path) -> None:
    """P10: `dumps` beside a plain write."""
    buffer = full_buffer(mib)
    storage = buffer.storage
    assert isinstance(storage, forebay.TensorStorage)
    arrays = [array.data.cast("B") for array in storage._columns]
    ratios, seconds, extra = [], [], 0
    for turn in range(repetitions):
        took = {}
        for side in ("ours", "plain") if turn % 2 else ("plain", "ours"):
            if side == "plain":
                took[side] = timed(partial(write_plainly, scratch / "plain", arrays))
                (scratch / "plain").unlink()
            else:
                before = forget_memory()
                took[side] = timed(partial(buffer.dumps, scratch / "checkpoint"))
                extra = max(extra, highest_memory() - before)
                shutil.rmtree(scratch / "checkpoint")
        ratios.append(took["plain"] / took["ours"])
        seconds.append(took["ours"])
    print(
        f"P10 dumps of {mib} MiB: {statistics.median(seconds):.2f} s,"
        f" {statistics.median(ratios):.2f} of a plain write with sync"
        f" ({min(ratios):.2f} to {max(ratios):.2f}; goal 0.7);"
        f" {extra / 2**20:.0f} MiB of memory besides",
        flush=True,
    )


class Traffic:
    """A producer and a reader that go on as fast as they can, and what they have done."""

    def __init__(self, buffer: forebay.BlockingReplayBuffer) -> None:
        self._buffer = buffer
        self._batch = records(BATCH)
        self.written = 0
        self.longest = 0.0

    def produce(self) -> None:
        """Write until the buffer is closed."""
        with suppress(forebay.ShutDown):
            while True:
                took = timed(lambda: self._buffer.extend(self._batch))
                self.written += 1
                self.longest = max(self.longest, took)

    def read(self) -> None:
        """Read until the buffer is closed."""
        with suppress(forebay.ShutDown):
            while True:
                self._buffer.sample()

    def during(self, work: Callable[[], object]) -> tuple[float, float]:
        """Return the batches a second that are written during some work, and the longest write."""
        self.written, self.longest = 0, 0.0
        seconds = timed(work)
        return self.written / seconds, self.longest

    def __enter__(self) -> "Traffic":
        self._threads = [threading.Thread(target=work) for work in (self.read, self.produce)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._buffer.shutdown(immediate=True)
        for thread in self._threads:
            thread.join()


def going_on(mib: int, repetitions: int, scratch: Path) -> None:
    """P11: a producer and a reader while a capture runs."""
    buffer = full_buffer(mib)
    batch = records(BATCH)
    copies = [timed(lambda: batch.clone()) for _ in range(200)]
    target = scratch / "checkpoint"
    ways: dict[str, Callable[[], object]] = {
        "dumps": lambda: buffer.dumps(target),
        "state_dict": buffer.state_dict,
    }
    with Traffic(buffer) as traffic:
        for name, way in ways.items():
            shares, pauses, usual = [], [], []
            for _ in range(repetitions):
                without, pause = traffic.during(lambda: time.sleep(1.0))
                usual.append(pause)
                during, pause = traffic.during(way)
                shares.append(during / without)
                pauses.append(pause)
            print(
                f"P11 a producer while {name} of {mib} MiB runs: {statistics.median(shares):.2f} of"
                f" its throughput without ({min(shares):.2f} to {max(shares):.2f}; goal 0.5);"
                f" longest write {1e3 * statistics.median(pauses):.1f} ms, without"
                f" {1e3 * statistics.median(usual):.1f} ms; a copy of the batch takes"
                f" {1e3 * statistics.median(copies):.2f} ms",
                flush=True,
            )


CASES: Final = {"P10": writing, "P11": going_on}


def main(argv: list[str] | None = None) -> int:
    """Measure the cases asked for and print them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.checkpoints", description=__doc__.split("\n")[0]
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="P10 or P11; both if none")
    parser.add_argument("--mib", type=int, default=1024, help="size of the records (1024)")
    parser.add_argument("--repetitions", type=int, default=5, help="turns of each side (5)")
    parser.add_argument("--place", type=Path, help="where the files go (the usual scratch place)")
    args = parser.parse_args(argv)
    if unknown := [case for case in args.cases if case not in CASES]:
        parser.error(f"unknown case {unknown[0]}; there are {', '.join(CASES)}")
    if args.mib < 1 or args.repetitions < 1:
        parser.error("--mib and --repetitions are at least 1")
    machine = settle()
    with tempfile.TemporaryDirectory(dir=args.place) as scratch:
        for case in args.cases or CASES:
            CASES[case](args.mib, args.repetitions, Path(scratch))
    print(f"load of the machine {os.getloadavg()[0]:.1f}; {machine}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
