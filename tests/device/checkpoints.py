"""What the tests of checkpoints on a device share: buffers on one, and how to look at batches."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import torch
from forebay import BlockingReplayBuffer, Storage, TensorStorage
from forebay._device_storage import DeviceStorage
from forebay._payloads import tensors_in
from forebay_models.device.simulated import SimulatedDevice
from tensordict import LazyStackedTensorDict, TensorDict, is_tensorclass

from tests.library.queues import AtOnce, prefetcher_of
from tests.library.saving import numbers
from tests.storage.support import step

_DEVICES: WeakValueDictionary[int, SimulatedDevice] = WeakValueDictionary()


class SimulatedStorage(DeviceStorage):
    """A storage on a simulated device, of which there can be another one."""

    def __init__(self, capacity: int, device: SimulatedDevice) -> None:
        super().__init__(capacity, streams=device)
        _DEVICES[id(device)] = device

    def another(self) -> Callable[[], Storage]:
        return partial(_on, id(self.streams), self._capacity)


def _on(device: int, capacity: int) -> Storage:
    return SimulatedStorage(capacity, _DEVICES[device])


class Sort(NamedTuple):
    """A sort of batch: what is written, and what the transform makes of it."""

    records: Callable[[int, int], Any]
    transform: Callable[[Any], Any] | None = None


def _steps(first: int, count: int) -> Any:
    number = torch.arange(first, first + count)
    obs = number.float().unsqueeze(1).expand(count, 4).clone()
    return step(obs, number.to(torch.bfloat16), size=[count])


def mixed(batch: Any) -> object:
    """Return a batch in a dict, beside tensors that are on the host."""
    mask = torch.arange(len(batch)) > 0
    return {"records": batch, "mask": mask, "rest": (batch["x"], [torch.zeros(0), "text"])}


def stacked(batch: Any) -> object:
    """Return a batch that is stacked lazily of two, and says more than its tensors do."""
    other = TensorDict({"x": batch["x"], "inner": {"y": batch["y"]}, "name": "other"}, [len(batch)])
    return LazyStackedTensorDict(batch, other, stack_dim=0)


def learning(batch: Any) -> object:
    """Return a batch of which a part requires a gradient."""
    batch["y"] = batch["y"].detach().requires_grad_()
    return batch


SORTS = {
    "TensorDict": Sort(numbers),
    "tensorclass": Sort(_steps),
    "dict": Sort(numbers, mixed),
    "stack": Sort(numbers, stacked),
    "gradient": Sort(numbers, learning),
}


def make(storage: Storage, sort: Sort) -> BlockingReplayBuffer:
    """Return a buffer that draws two batches of two records ahead, each as soon as it can."""
    buffer = BlockingReplayBuffer(storage, batch_size=2, prefetch=2, transform=sort.transform)
    prefetcher_of(buffer).use(AtOnce())
    return buffer


def eager(device: SimulatedDevice) -> None:
    """Let the adversary run a bit of what is queued whenever something is."""
    device.on_queued = lambda stream: (device.advance(4), None)[1]


def used(device: SimulatedDevice, batch: object, name: str) -> object:
    """Queue a use of a batch on the current stream, and return what it will have seen."""
    for number, tensor in enumerate(tensors_in(batch)):
        if device.holds(tensor):
            device.look(tensor.detach(), f"{name}.{number}")
    return told(batch, lambda it: device.promised(it.detach()) if device.holds(it) else it)


def told(value: Any, there: Callable[[torch.Tensor], torch.Tensor]) -> object:
    """Return a batch as plain values with their types, its tensors as `there` says they are."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.requires_grad, there(value).tolist()]
    kind = type(value).__name__
    if isinstance(value, LazyStackedTensorDict):
        return [kind, value.stack_dim, *(told(part, there) for part in value.tensordicts)]
    if isinstance(value, TensorDict) or is_tensorclass(value):
        return [kind, list(value.batch_size), {k: told(v, there) for k, v in value.items()}]
    if isinstance(value, dict):
        return [kind, {k: told(v, there) for k, v in value.items()}]
    if isinstance(value, list | tuple):
        return [kind, *(told(item, there) for item in value)]
    return value


def on_host(sort: Sort, count: int = 8) -> tuple[BlockingReplayBuffer, list[object]]:
    """Return a buffer on the host that has given one batch, and what it would give next."""
    twins = [make(TensorStorage(8), sort) for _ in range(2)]
    for twin in twins:
        twin.extend(sort.records(0, count))
        twin.sample()
    rest = [told(twins[1].sample(), torch.Tensor.detach) for _ in range(count // 2 - 1)]
    return twins[0], rest


def on_device(device: SimulatedDevice, sort: str, count: int = 8) -> BlockingReplayBuffer:
    """Return a buffer on a device that has given one batch; each call has a stream of its own."""
    buffer = make(SimulatedStorage(8, device), SORTS[sort])
    for first in range(0, count, 2):
        with device.on(device.stream(f"writer {first % 3}")):
            buffer.extend(SORTS[sort].records(first, 2))
    with device.on(device.stream("reader")):
        used(device, buffer.sample(), "the first batch")
    return buffer


def drained(device: SimulatedDevice, buffer: BlockingReplayBuffer, count: int = 3) -> list[object]:
    """Return what a buffer gives next on several streams, and see it used there."""
    batches = []
    for number in range(count):
        with device.on(device.stream(f"user {number % 2}")):
            batches.append(used(device, buffer.sample(), f"batch {number}"))
    return batches


def settle(device: SimulatedDevice) -> None:
    """Run all that is queued, which has to have been in order."""
    device.finish()
    assert device.faults == []
