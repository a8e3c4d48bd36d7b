"""The contenders within one process, each behind the same two calls, and the copy that bounds all.

TorchRL's consuming buffer neither waits nor keeps writers from overwriting what nobody has read, so
for a hand-over between threads its users ask for its length, and poll. `Polled` is that, as light
as it can be made: no lock beside TorchRL's own.
"""

import logging
import queue
import time
import warnings
from itertools import cycle
from typing import Final, Literal, Protocol

import forebay
import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase

from benchmarks.records import arrays_of

CAPACITY: Final = 4096
TORCHRL: Final = "TorchRL consuming"
RING: Final = "TorchRL ring"
COPY: Final = "memory copy"
CLONES: Final = "queue.Queue of clones"
RANDOM: Final = "forebay, random order"
Order = Literal["fifo", "random"]

FILL: Final = 2**16
FILL_BYTES: Final = 2**25
"""Records that are written at once to fill a buffer, and their bytes, at most."""


class Peer(Protocol):
    """Writes a batch and draws one, waiting where it must."""

    def put(self, batch: TensorDictBase) -> None:
        """Write a batch of records."""

    def get(self) -> object:
        """Draw as many records as one write has."""


class Ours:
    """The blocking buffer, each record once."""

    def __init__(self, rows: int, capacity: int = CAPACITY, order: Order = "fifo") -> None:
        self.buffer = forebay.BlockingReplayBuffer(
            forebay.TensorStorage(capacity), batch_size=rows, order=order, seed=0
        )

    def put(self, batch: TensorDictBase) -> None:
        """Write a batch, waiting for room."""
        self.buffer.extend(batch)

    def get(self) -> object:
        """Draw a batch, waiting for records."""
        return self.buffer.sample()

    def drop(self, records: int) -> None:
        """Draw so many records, and use them up."""
        self.buffer.sample(records)


class OurRing:
    """Our buffer that overwrites, and draws with replacement."""

    def __init__(self, rows: int, capacity: int = CAPACITY) -> None:
        self.buffer = forebay.ReplayBuffer(forebay.TensorStorage(capacity), batch_size=rows, seed=0)

    def put(self, batch: TensorDictBase) -> None:
        """Write a batch over the oldest."""
        self.buffer.extend(batch)

    def get(self) -> object:
        """Draw a batch from what is there."""
        return self.buffer.sample()


class Ring:
    """TorchRL's buffer: it overwrites and draws with replacement, or drops what was drawn."""

    def __init__(self, rows: int, capacity: int = CAPACITY, *, consuming: bool = False) -> None:
        from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

        # It announces every storage that it makes.
        logging.getLogger("torchrl").setLevel(logging.WARNING)
        uses = {"consume_after_n_samples": 1} if consuming else {}
        self.buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(capacity), batch_size=rows, **uses
        )

    def put(self, batch: TensorDictBase) -> None:
        """Write a batch, over the oldest where there is no room."""
        self.buffer.extend(batch)

    def get(self) -> object:
        """Draw a batch from what is there."""
        return self.buffer.sample()

    def drop(self, records: int) -> None:
        """Draw so many records, and use them up if they can be."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of another size than that of a batch
            self.buffer.sample(records)


class Polled(Ring):
    """TorchRL's consuming buffer, whose length both sides ask for until they may go on."""

    def __init__(self, rows: int, capacity: int = CAPACITY) -> None:
        super().__init__(rows, capacity, consuming=True)
        self._rows = rows
        self._capacity = capacity

    def put(self, batch: TensorDictBase) -> None:
        """Write a batch once there is room for it."""
        while len(self.buffer) + self._rows > self._capacity:
            time.sleep(0)
        super().put(batch)

    def get(self) -> object:
        """Draw a batch once there are records enough."""
        while len(self.buffer) < self._rows:
            time.sleep(0)
        return super().get()


class BatchQueue:
    """A bounded queue of whole batches, cloned, since the writer may go on changing its own."""

    def __init__(self, rows: int, capacity: int = CAPACITY) -> None:
        self._queue: queue.Queue[TensorDictBase] = queue.Queue(maxsize=max(1, capacity // rows))

    def put(self, batch: TensorDictBase) -> None:
        """Put a copy of the batch."""
        self._queue.put(batch.clone())

    def get(self) -> object:
        """Take the oldest batch."""
        return self._queue.get()


class Copies:
    """What no buffer can be faster than: each leaf is copied in and out of memory that is there.

    It goes through as many slots as a buffer that is half full does, and keeps no account of them.
    """

    def __init__(self, batch: TensorDict, capacity: int = CAPACITY) -> None:
        leaves = arrays_of(batch)
        rows = len(batch)
        rings = [np.ones((capacity, *leaf.shape[1:]), leaf.dtype) for leaf in leaves.values()]
        views = [
            [ring[at : at + rows] for ring in rings] for at in range(0, capacity - rows + 1, rows)
        ]
        half = len(views) // 2  # ones, and not zeros, since those are not there before a write
        self._to_write = cycle(views)
        self._to_read = cycle(views[half:] + views[:half])
        self._given = list(leaves.values())
        self._taken = [np.empty_like(leaf) for leaf in self._given]

    def put(self, batch: TensorDictBase) -> None:
        """Copy the batch that this was made with into the next slots."""
        for slot, leaf in zip(next(self._to_write), self._given, strict=True):
            np.copyto(slot, leaf)

    def get(self) -> object:
        """Copy as many rows out, from other slots."""
        for leaf, slot in zip(self._taken, next(self._to_read), strict=True):
            np.copyto(leaf, slot)
        return self._taken


def fill(peer: Peer, batch: TensorDict, records: int) -> None:
    """Write so many records, all of them like those of a batch."""
    at_once = max(len(batch), min(FILL, FILL_BYTES // max(1, batch.bytes() // len(batch))))
    for start in range(0, records, at_once):
        wanted = min(at_once, records - start)
        peer.put(batch[torch.arange(wanted) % len(batch)])
