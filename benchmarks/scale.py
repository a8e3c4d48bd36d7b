"""Very many records, very large ones, and very many producers.

Buffers are made and filled in a process of their own, whose memory is looked at. Where there are
many producers every record has a number, and it is checked that each of them arrives once.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

import forebay
import torch
from tensordict import TensorDict

from benchmarks.channels import SharedOurs
from benchmarks.children import PATIENCE, Child, child
from benchmarks.peers import CAPACITY, FILL
from benchmarks.plan import Part, Plan
from benchmarks.records import BATCHES, RECORD
from benchmarks.results import Row
from benchmarks.timing import spread

BATCH: Final = 32
LONG: Final = 600.0
"""Seconds that a very large buffer may take to be filled."""

SLOT: Final = 384
"""Bytes that ledger and journal take for a slot at most, to know whether there is memory."""


class Built(NamedTuple):
    """What making and filling a buffer took: seconds, and bytes by which memory has grown.

    `reserved` are bytes of shared memory, which nobody else gets though they are not used yet.
    """

    making: float
    made: float
    reserved: float
    filling: float
    filled: float


def resident() -> int:
    """Return how many bytes of memory this process has."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not say how much memory a process has")


def reserved() -> int:
    """Return how many bytes of anonymous shared memory this process has open."""
    blocks = {}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder itself was open while it was listed
            if os.readlink(link).startswith("/memfd:"):
                found = link.stat()
                blocks[found.st_ino] = found.st_blocks * 512
    return sum(blocks.values())


def available() -> int:
    """Return how many bytes of memory are free for new processes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not say how much memory is free")


def _build(line: Connection, kind: str, capacity: int, at_once: int, shared: bool) -> None:
    torch.set_num_threads(1)
    batch = BATCHES[kind](at_once)
    before, taken, started = resident(), reserved(), time.perf_counter()
    storage = (
        forebay.SharedStorage(capacity, example=batch[0])
        if shared
        else forebay.TensorStorage(capacity, example=batch[0])
    )
    buffer = forebay.BlockingReplayBuffer(storage, batch_size=at_once)
    making, made = time.perf_counter() - started, resident() - before
    kept = reserved() - taken
    started = time.perf_counter()
    for start in range(0, capacity, at_once):
        buffer.extend(batch[: min(at_once, capacity - start)])
    filling, filled = time.perf_counter() - started, resident() - before
    drawn = buffer.sample()
    assert isinstance(drawn, TensorDict)
    assert len(drawn) == at_once
    line.send(Built(making, made, kept, filling, filled))


def building(plan: Plan, kind: str, capacity: int, at_once: int, shared: bool) -> list[Row]:
    """Make a buffer and fill it, unless there is no memory for it."""
    where = "SharedStorage" if shared else "TensorStorage"
    what = f"{capacity} {kind} records, {where}"
    record = sum(leaf.nbytes for leaf in BATCHES[kind](1).values())
    wanted = capacity * (record + SLOT)
    if wanted > available():
        plan.note(
            f"{what}: not measured, since it takes up to {wanted / 2**30:.1f} GiB of memory and"
            f" {available() / 2**30:.1f} GiB are free"
        )
        return []
    with child(_build, kind, capacity, at_once, shared) as builder:
        built = builder.hear(LONG)
    assert isinstance(built, Built)
    figures = {
        "made": (built.making, "s"),
        "memory when made": (built.made / 2**20, "MiB"),
        "shared memory reserved": (built.reserved / 2**20, "MiB"),
        "every slot written": (built.filling, "s"),
        "memory when every slot is written": (built.filled / 2**20, "MiB"),
        "bytes of the records": (capacity * record / 2**20, "MiB"),
    }
    return [
        Row(case="scale", size=f"{what}: {name}", ours=spread([value]), unit=unit)
        for name, (value, unit) in figures.items()
        if shared or name != "shared memory reserved"
    ]


def numbered(start: int, rows: int) -> TensorDict:
    """Return a batch of records that are numbered from there on."""
    return TensorDict(
        {"number": torch.arange(start, start + rows), "obs": torch.zeros(rows, 4)},
        batch_size=[rows],
    )


def read_all(buffer: forebay.BlockingReplayBuffer, records: int) -> None:
    """Read so many records and check that their numbers are 0 and so on, each once.

    Raises:
        AssertionError: they are not.
    """
    found = []
    for _ in range(records // BATCH):
        batch = buffer.sample(timeout=PATIENCE)
        assert isinstance(batch, TensorDict)
        found.append(batch["number"])
    arrived = torch.cat(found).sort().values
    assert torch.equal(arrived, torch.arange(records)), "a record was lost or came twice"


def _write(buffer: forebay.BlockingReplayBuffer, producer: int, batches: int) -> None:
    for number in range(batches):
        start = (producer * batches + number) * BATCH
        buffer.extend(numbered(start, BATCH), timeout=PATIENCE)


def _write_on_demand(
    line: Connection, buffer: forebay.BlockingReplayBuffer, producer: int, batches: int
) -> None:
    torch.set_num_threads(1)
    while line.recv():
        _write(buffer, producer, batches)


@contextmanager
def threads(producers: int, batches: int) -> Iterator[Callable[[], None]]:
    """Give a function that lets so many threads write and reads all of it."""
    buffer = forebay.BlockingReplayBuffer(forebay.TensorStorage(CAPACITY), batch_size=BATCH)

    def write(producer: int) -> None:
        with suppress(forebay.ShutDown):  # only if this is stopped in the middle
            _write(buffer, producer, batches)

    def run() -> None:
        writers = [
            threading.Thread(target=write, args=(number,), daemon=True)
            for number in range(producers)
        ]
        for writer in writers:
            writer.start()
        read_all(buffer, producers * batches * BATCH)
        for writer in writers:
            writer.join()

    try:
        yield run
    finally:
        buffer.shutdown(immediate=True)


@contextmanager
def processes(producers: int, batches: int) -> Iterator[Callable[[], None]]:
    """Give a function that lets so many processes write and reads all of it."""
    buffer = SharedOurs(numbered(0, BATCH)).buffer
    with ExitStack() as stack:
        writers: list[Child] = [
            stack.enter_context(child(_write_on_demand, buffer, number, batches))
            for number in range(producers)
        ]

        def run() -> None:
            for writer in writers:
                writer.line.send(True)
            read_all(buffer, producers * batches * BATCH)

        yield run


def crowd(plan: Plan, kind: str, producers: int) -> list[Row]:
    """Measure the throughput of many producers and one reader."""
    batches = plan.effort.batches
    records = producers * batches * BATCH
    make = threads if kind == "threads" else processes
    rates = []
    with make(producers, batches) as run:
        run()
        for _ in range(plan.effort.turns):
            started = time.perf_counter()
            run()
            rates.append(records / (time.perf_counter() - started))
    return [
        Row(
            case="scale",
            size=f"{producers} {kind} write batches of {BATCH}, one reader, each record once",
            ours=spread(rates),
            unit="records/s",
        )
    ]


def scaling(plan: Plan) -> list[Part]:
    """Very many records, very large ones, very many producers."""
    effort = plan.effort
    buffers = [("small", effort.records, min(FILL, effort.records))]
    buffers.append(("tokens", effort.nbytes // RECORD, min(512, effort.nbytes // RECORD)))
    return [
        *(
            Part(
                f"{capacity} {kind} records", partial(building, plan, kind, capacity, many, shared)
            )
            for kind, capacity, many in buffers
            for shared in (False, True)
        ),
        Part(f"{effort.threads} threads", partial(crowd, plan, "threads", effort.threads)),
        Part(f"{effort.processes} processes", partial(crowd, plan, "processes", effort.processes)),
    ]
