"""What two processes can share so that one writes batches and the other draws them.

All are bounded to as many records as our buffer has slots. The queues of the standard library and
faster-fifo are given dicts of numpy arrays, which they pass on faster than tensors.
"""

import os
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from typing import Final, Protocol

import forebay
import torch
import torch.multiprocessing
from tensordict import TensorDict

from benchmarks.children import PATIENCE, Child, Method
from benchmarks.peers import CAPACITY, Order
from benchmarks.records import Arrays, arrays_of
from benchmarks.timing import Work

MP_QUEUE: Final = "multiprocessing.Queue"
TORCH_QUEUE: Final = "torch.multiprocessing.Queue"
FASTER_FIFO: Final = "faster-fifo"
RAY: Final = "Ray's queue"
DESCRIPTORS: Final = 64
"""Batches in a torch queue, each of whose tensors takes a descriptor of its writer's."""


class Channel(Protocol):
    """What two processes share: one writes batches to it, the other draws them."""

    def put(self, batch: TensorDict) -> None:
        """Write a batch, waiting for room."""

    def get(self) -> object:
        """Draw a batch, waiting for one."""

    def close(self) -> None:
        """Give back what the side that draws has."""


class SharedOurs:
    """The blocking buffer over a SharedStorage."""

    def __init__(
        self, batch: TensorDict, capacity: int = CAPACITY, *, order: Order = "fifo"
    ) -> None:
        self.buffer = forebay.BlockingReplayBuffer(
            forebay.SharedStorage(capacity, example=batch[0]),
            batch_size=len(batch),
            order=order,
            seed=0,
        )

    def put(self, batch: TensorDict) -> None:
        """Write a batch, waiting for room."""
        self.buffer.extend(batch, timeout=PATIENCE)

    def get(self) -> object:
        """Draw a batch, waiting for one."""
        return self.buffer.sample(timeout=PATIENCE)

    def close(self) -> None:
        """Its memory goes with the last who has it."""


class SharedQueue:
    """A queue of batches, each a dict of arrays."""

    def __init__(
        self, batch: TensorDict, capacity: int = CAPACITY, *, method: Method = "spawn"
    ) -> None:
        self._queue: Queue[Arrays] = get_context(method).Queue(max(1, capacity // len(batch)))

    def put(self, batch: TensorDict) -> None:
        """Put a batch, waiting for room."""
        self._queue.put(arrays_of(batch), timeout=PATIENCE)

    def get(self) -> object:
        """Take a batch, waiting for one."""
        return self._queue.get(timeout=PATIENCE)

    def close(self) -> None:
        """Close our end."""
        self._queue.close()


class TorchQueue:
    """A torch queue, which moves tensors into shared memory and passes their descriptors on.

    What was put is shared with who takes it, so the writer puts a copy and may go on with its own.
    """

    def __init__(self, batch: TensorDict, capacity: int = CAPACITY) -> None:
        most = min(DESCRIPTORS, max(1, capacity // len(batch)))
        self._queue: Queue[TensorDict] = torch.multiprocessing.get_context("spawn").Queue(most)

    def put(self, batch: TensorDict) -> None:
        """Put a copy of a batch, waiting for room."""
        self._queue.put(batch.clone(), timeout=PATIENCE)

    def get(self) -> object:
        """Take a batch, waiting for one."""
        return self._queue.get(timeout=PATIENCE)

    def close(self) -> None:
        """Close our end."""
        self._queue.close()


class FasterFifo:
    """A queue in a ring of shared memory, with batches as dicts of arrays."""

    def __init__(self, batch: TensorDict, capacity: int = CAPACITY) -> None:
        import faster_fifo
        import faster_fifo_reduction  # noqa: F401  # without it the queue cannot be handed over

        most = max(1, capacity // len(batch))
        message = sum(array.nbytes for array in arrays_of(batch).values()) + 1024
        self._queue = faster_fifo.Queue(max_size_bytes=most * message, maxsize=most)

    def put(self, batch: TensorDict) -> None:
        """Put a batch, waiting for room."""
        self._queue.put(arrays_of(batch), timeout=PATIENCE)

    def get(self) -> object:
        """Take a batch, waiting for one."""
        return self._queue.get(timeout=PATIENCE)

    def close(self) -> None:
        """Close our end."""
        self._queue.close()


def serve(line: Connection, core: int, channels: dict[str, Channel], batch: TensorDict) -> None:
    """Write as many batches as the other side asks for, to the channel that it names."""
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    line.send("ready")
    while True:
        name, cycles = line.recv()
        channel = channels[name]
        for _ in range(cycles):
            channel.put(batch)


def draws(writer: Child, name: str, channel: Channel) -> Work:
    """Return work that draws so many batches, which the writer is asked for."""

    def run(cycles: int) -> None:
        writer.line.send((name, cycles))
        for _ in range(cycles):
            channel.get()

    return run
