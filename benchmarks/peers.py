"""The contenders: our buffers, TorchRL's, and a queue of batches, each behind the same two calls.

TorchRL's buffer neither waits nor consumes, so for a bounded hand-over its users count what was
written and read, and poll. `PolledRing` is that, as light as it can be made: two integers, each
written by one thread, and no lock beside TorchRL's own.
"""

import logging
import queue
import time
from typing import Literal, Protocol

import forebay
import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

# It announces every storage that it makes.
logging.getLogger("torchrl").setLevel(logging.WARNING)

CAPACITY = 4096
Order = Literal["fifo", "random"]


class Peer(Protocol):
    """Writes a batch and draws one, waiting where it must."""

    def put(self, batch: TensorDict) -> None:
        """Write a batch of records."""

    def get(self) -> object:
        """Draw as many records as one write has."""


def small(rows: int) -> TensorDict:
    """Return a batch of small records: four floats, an action, a reward and a flag each."""
    return TensorDict(
        {
            "obs": torch.randn(rows, 4),
            "act": torch.randint(2, (rows,)),
            "reward": torch.randn(rows),
            "done": torch.zeros(rows, dtype=torch.bool),
        },
        batch_size=[rows],
    )


class Ours:
    """The blocking buffer, each record once."""

    def __init__(self, rows: int, order: Order = "fifo") -> None:
        self.buffer = forebay.BlockingReplayBuffer(
            forebay.TensorStorage(CAPACITY), batch_size=rows, order=order, seed=0
        )

    def put(self, batch: TensorDict) -> None:
        """Write a batch, waiting for room."""
        self.buffer.extend(batch)

    def get(self) -> object:
        """Draw a batch, waiting for records."""
        return self.buffer.sample()


class OurRing:
    """Our buffer that overwrites, and draws with replacement."""

    def __init__(self, rows: int) -> None:
        self.buffer = forebay.ReplayBuffer(forebay.TensorStorage(CAPACITY), batch_size=rows, seed=0)

    def put(self, batch: TensorDict) -> None:
        """Write a batch over the oldest."""
        self.buffer.extend(batch)

    def get(self) -> object:
        """Draw a batch from what is there."""
        return self.buffer.sample()


class Ring:
    """TorchRL's buffer as it is: it overwrites, and draws with replacement."""

    def __init__(self, rows: int) -> None:
        self.buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(CAPACITY), batch_size=rows)

    def put(self, batch: TensorDict) -> None:
        """Write a batch over the oldest."""
        self.buffer.extend(batch)

    def get(self) -> object:
        """Draw a batch from what is there."""
        return self.buffer.sample()


class PolledRing(Ring):
    """TorchRL's buffer with two counters, polled, so that as much is read as was written."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self._rows = rows
        self._written = 0
        self._read = 0

    def put(self, batch: TensorDict) -> None:
        """Write a batch once there is room for it."""
        while self._written - self._read + self._rows > CAPACITY:
            time.sleep(0)
        super().put(batch)
        self._written += self._rows

    def get(self) -> object:
        """Draw a batch once one was written that has not been accounted for."""
        while self._written - self._read < self._rows:
            time.sleep(0)
        batch = super().get()
        self._read += self._rows
        return batch


class BatchQueue:
    """A bounded queue of whole batches, cloned, since the writer may go on changing its own."""

    def __init__(self, rows: int) -> None:
        self._queue: queue.Queue[TensorDict] = queue.Queue(maxsize=max(1, CAPACITY // rows))

    def put(self, batch: TensorDict) -> None:
        """Put a copy of the batch."""
        self._queue.put(batch.clone())

    def get(self) -> object:
        """Take the oldest batch."""
        return self._queue.get()
