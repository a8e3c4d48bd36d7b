"""A device as the benchmarks see it, and the contenders on one, each behind the same two calls.

All of them are full, and keep equal records in memory of the device. The plain ones are what
torch gives: one `index_copy_` or `index_select` a leaf, with slot numbers that were made before and
are on the device. They go through all slots, so that no cache has what they read. They keep no
order between streams, and neither does TorchRL's buffer; ours does, and its time has that in it.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from itertools import cycle
from typing import Final, Protocol

import forebay
import torch
from tensordict import TensorDict

from benchmarks.records import tokens
from benchmarks.timing import OURS


class NoDevice(RuntimeError):
    """There is no CUDA device; the message says what is missing."""


class Device(Protocol):
    """Where the records are, and all that depends on it."""

    @property
    def name(self) -> str:
        """The machine, for whoever reads the figures."""

    @property
    def where(self) -> torch.device:
        """The place, as torch has it."""

    def wait(self) -> None:
        """Wait on the host until all that was queued has run, in every stream."""

    def storage(self, capacity: int) -> forebay.Storage:
        """Return a storage of ours on the device."""

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy on the host that the device can fetch by itself."""

    def aside(self) -> Callable[[], AbstractContextManager[object]]:
        """Return a block, as often as called, whose work goes to one new stream."""


class Cuda:
    """The current CUDA device.

    Raises:
        NoDevice: there is none.
    """

    def __init__(self) -> None:
        if torch.version.cuda is None:
            raise NoDevice(f"torch {torch.__version__} is built without CUDA")
        if not torch.cuda.is_available():
            raise NoDevice("torch.cuda.is_available() says that there is none")
        self.where = torch.device("cuda", torch.cuda.current_device())
        self.name = f"{torch.cuda.get_device_name(self.where)}, CUDA {torch.version.cuda}"

    def wait(self) -> None:
        """Wait for the whole device."""
        torch.cuda.synchronize(self.where)

    def storage(self, capacity: int) -> forebay.Storage:
        """Return a `CudaStorage`."""
        return forebay.CudaStorage(capacity, device=self.where)

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy in pinned memory."""
        return tensor.pin_memory()

    def aside(self) -> Callable[[], AbstractContextManager[object]]:
        """Return `torch.cuda.stream` of one new stream."""
        stream = torch.cuda.Stream(self.where)  # type: ignore[no-untyped-call]  # torch's has no types
        return lambda: torch.cuda.stream(stream)


class Side(Protocol):
    """Writes a batch over the oldest records, and draws one."""

    def put(self) -> None:
        """Write the batch that the side was made with."""

    def get(self) -> object:
        """Draw as many records as that batch has."""


class Ours:
    """Our buffer that overwrites, so that neither call ever waits for the other."""

    def __init__(self, device: Device, batch: TensorDict, capacity: int) -> None:
        self._batch = batch
        self.buffer = forebay.ReplayBuffer(device.storage(capacity), batch_size=len(batch), seed=0)

    def put(self) -> None:
        """Write the batch over the oldest."""
        self.buffer.extend(self._batch)

    def get(self) -> object:
        """Draw a batch from what is there."""
        return self.buffer.sample()


class Plain:
    """A tensor for each leaf, which is copied into and gathered from.

    Args:
        device: where the tensors are.
        batch: what is written; where it is on the host, it is moved first.
        capacity: rows of each tensor; batches divide it.
        pinned: whether the batch is in pinned memory already, and is moved without the host
            waiting; this is as fast as a write from the host can be.
    """

    def __init__(
        self, device: Device, batch: TensorDict, capacity: int, *, pinned: bool = False
    ) -> None:
        leaves: list[torch.Tensor] = list(batch.values())
        self._where = device.where
        self._pinned = pinned
        self._rows = [device.pinned(leaf) for leaf in leaves] if pinned else leaves
        self.columns = [
            torch.empty((capacity, *leaf.shape[1:]), dtype=leaf.dtype, device=device.where)
            for leaf in leaves
        ]
        in_order = torch.arange(capacity, device=device.where)
        shuffled = torch.randperm(capacity).to(device.where)
        self._to_write = cycle(in_order.reshape(-1, len(batch)).unbind())
        self._to_read = cycle(shuffled.reshape(-1, len(batch)).unbind())

    def put(self) -> None:
        """Write the batch into the next slots."""
        slots = next(self._to_write)
        for column, rows in zip(self.columns, self._rows, strict=True):
            column.index_copy_(0, slots, rows.to(self._where, non_blocking=self._pinned))

    def get(self) -> object:
        """Gather the rows of slots all over the place."""
        slots = next(self._to_read)
        return [column.index_select(0, slots) for column in self.columns]


class TorchRL:
    """TorchRL's buffer with its storage on the device."""

    def __init__(self, device: Device, batch: TensorDict, capacity: int) -> None:
        from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

        # It announces every storage that it makes.
        logging.getLogger("torchrl").setLevel(logging.WARNING)
        self._batch = batch
        self._buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(capacity, device=device.where), batch_size=len(batch)
        )

    def put(self) -> None:
        """Write the batch over the oldest."""
        self._buffer.extend(self._batch)

    def get(self) -> object:
        """Draw a batch from what is there."""
        return self._buffer.sample()


PLAIN: Final = "index_copy_, index_select"
PINNED: Final = "the same, batch pinned before"
TORCHRL: Final = "TorchRL ring"


def has_torchrl() -> bool:
    """Tell whether TorchRL is installed."""
    return find_spec("torchrl") is not None


def full_sides(device: Device, rows: int, capacity: int, *, from_host: bool) -> dict[str, Side]:
    """Return all contenders by name, ours first, each full of records.

    Args:
        device: where the records are kept.
        rows: records of a batch; divides the capacity.
        capacity: records that each contender has.
        from_host: whether the batches that are written are on the host, else on the device.
    """

    def batch() -> TensorDict:  # one each, since TorchRL writes into what it is given
        return tokens(rows) if from_host else tokens(rows).to(device.where)

    sides: dict[str, Side] = {
        OURS: Ours(device, batch(), capacity),
        PLAIN: Plain(device, batch(), capacity),
    }
    if from_host:
        sides[PINNED] = Plain(device, batch(), capacity, pinned=True)
    if has_torchrl():
        sides[TORCHRL] = TorchRL(device, batch(), capacity)
    for side in sides.values():
        for _ in range(capacity // rows):
            side.put()
    return sides
