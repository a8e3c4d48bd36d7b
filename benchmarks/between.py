"""From one process to another: our buffer over shared memory, and a `multiprocessing.Queue`.

The queue is given dicts of numpy arrays, which it passes on faster than tensors. It is bounded so
that it holds as many records as our buffer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.queues import Queue
from typing import Protocol

import forebay
import numpy as np
import torch
from tensordict import TensorDict

from benchmarks.peers import CAPACITY, small

PATIENCE = 60.0
Arrays = dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]


class Channel(Protocol):
    """What two processes share: one writes batches to it, the other draws them."""

    def put(self, batch: TensorDict) -> None:
        """Write a batch, waiting for room."""

    def get(self) -> object:
        """Draw a batch, waiting for one."""


class SharedOurs:
    """The blocking buffer over a SharedStorage."""

    def __init__(self, batch: TensorDict, capacity: int = CAPACITY) -> None:
        self.buffer = forebay.BlockingReplayBuffer(
            forebay.SharedStorage(capacity, example=batch[0]), batch_size=len(batch)
        )

    def put(self, batch: TensorDict) -> None:
        """Write a batch, waiting for room."""
        self.buffer.extend(batch, timeout=PATIENCE)

    def get(self) -> object:
        """Draw a batch, waiting for one."""
        return self.buffer.sample(timeout=PATIENCE)


class SharedQueue:
    """A queue of batches, each a dict of arrays."""

    def __init__(self, batch: TensorDict, context: BaseContext, capacity: int = CAPACITY) -> None:
        self._queue: Queue[Arrays] = context.Queue(max(1, capacity // len(batch)))

    def put(self, batch: TensorDict) -> None:
        """Put a batch, waiting for room."""
        arrays = {str(name): value.numpy() for name, value in batch.items()}
        self._queue.put(arrays, timeout=PATIENCE)

    def get(self) -> object:
        """Take a batch, waiting for one."""
        return self._queue.get(timeout=PATIENCE)


def tokens(rows: int) -> TensorDict:
    """Return a batch of records of 256 tokens and a reward each."""
    return TensorDict(
        {"tokens": torch.randint(50_000, (rows, 256)), "reward": torch.randn(rows)},
        batch_size=[rows],
    )


BATCHES: dict[str, Callable[[int], TensorDict]] = {"small": small, "tokens": tokens}


def write_on_demand(line: Connection, channel: Channel, batch: TensorDict) -> None:
    """Write as many batches as the other side asks for, until it asks for none."""
    torch.set_num_threads(1)
    line.send("ready")
    while cycles := line.recv():
        for _ in range(cycles):
            channel.put(batch)


@contextmanager
def writer(
    channel: Channel, batch: TensorDict, context: BaseContext
) -> Iterator[Callable[[int], None]]:
    """Give a function that draws so many batches, which another process writes meanwhile."""
    mine, its = context.Pipe()
    process = context.Process(  # type: ignore[attr-defined]  # each context has its own
        target=write_on_demand, args=(its, channel, batch), daemon=True
    )
    process.start()
    its.close()

    def run(cycles: int) -> None:
        mine.send(cycles)
        for _ in range(cycles):
            channel.get()

    try:
        if not mine.poll(PATIENCE):
            raise TimeoutError("the writer does not start")
        mine.recv()
        yield run
        mine.send(0)
        process.join(PATIENCE)
    finally:
        process.kill()
        process.join()
        mine.close()
