"""Storages on a device for those who look at values at once, as transforms and judges do.

Whoever gathers a batch on a device and looks at its values waits for them on the host. With CUDA
that is part of taking them there; on the simulated device every read is followed by that wait,
whichever thread makes it, and so is taking a batch that was restored. What is written stays in its
queue until something waits for it, or the adversary has it run. Each call lets a little of all that
is queued run first, so that it moves while nobody waits.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, TypeVar

import torch
from forebay import CudaStorage
from forebay._cuda import CudaStreams
from forebay._device_storage import DeviceStorage
from forebay._hand_over import HandOver
from forebay._records import Rows
from forebay._stores import Ints

from forebay_models.device.simulated import SimulatedDevice
from forebay_models.outcome import Outcome, could_not_run
from forebay_models.targets import StorageKind, Target

T = TypeVar("T")

DEVICE_TARGETS: Final = (Target.SIMULATED, Target.CUDA)
"""The targets whose records are on a device."""

ON_DEVICE: Final[tuple[StorageKind, ...]] = ("simulated", "cuda")
"""The storages that are on a device."""

STEPS: Final = 8
"""How many steps of what is queued run at most before a call."""


class PromptStorage(DeviceStorage):
    """Records on a simulated device of their own, whose batches are there when `read` returns.

    Args:
        capacity: the number of slots.
        seed: of the adversary.
    """

    def __init__(self, capacity: int, *, seed: int = 0) -> None:
        self.simulated: Final = SimulatedDevice(seed)
        self._seed = seed
        super().__init__(capacity, streams=self.simulated)

    def write(self, slots: Ints, rows: Rows) -> None:
        """Queue a copy of rows into slots."""
        self.simulated.advance(STEPS)
        super().write(slots, rows)

    def read(self, slots: Ints) -> object:
        """Queue a copy of the records in slots, and wait for it."""
        self.simulated.advance(STEPS)
        return self.awaited(super().read(slots))

    def awaited(self, batch: T) -> T:
        """Return a batch that is for the stream of the calling thread, once it is there."""
        device = self.simulated
        device.synchronize(device.record(device.current()))
        return batch

    def put_in(self, values: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the device that will hold these values."""
        device = self.simulated
        target = device.empty(values.shape, values.dtype)
        device.copy(device.current(), device.tensor(values), target)
        return target

    def another(self) -> "Callable[[], PromptStorage]":
        """Return what makes an empty storage like this one, on another device."""
        return partial(PromptStorage, self._capacity, seed=self._seed)


def device_storage(kind: StorageKind, capacity: int, seed: int) -> DeviceStorage | None:
    """Return an empty storage on a device; None if storages of this kind are on none.

    Args:
        kind: of storage.
        capacity: the number of slots.
        seed: of the adversary of a simulated device.
    """
    if kind == "simulated":
        return PromptStorage(capacity, seed=seed)
    return CudaStorage(capacity) if kind == "cuda" else None


def awaited(storage: object, batch: T) -> T:
    """Return a batch that was handed out, once its values can be looked at or fetched."""
    return storage.awaited(batch) if isinstance(storage, PromptStorage) else batch


def put_in(storage: object, batch: Any) -> Any:
    """Return a TensorDict or tensorclass on the device of a storage, if it is on one."""
    if isinstance(storage, PromptStorage):
        return batch.apply(storage.put_in)
    return batch.to(storage.device) if isinstance(storage, DeviceStorage) else batch


def aside(storage: object) -> AbstractContextManager[object]:
    """Let what the calling thread does within a block go to a stream of its own on a device.

    Of a storage that is on none nothing is changed.
    """
    return HandOver(storage).aside()


def without_device(target: Target, name: str) -> Outcome | None:
    """Return the outcome of a campaign whose target needs a device that there is not."""
    if target is not Target.CUDA:
        return None
    try:
        CudaStreams()
    except RuntimeError as error:
        return could_not_run(name, error, bounds="nothing was run")
    return None
