"""Batches that one thread gathers and another one uses: drawn ahead, or in an event loop."""

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import pytest
import torch
from forebay import BlockingReplayBuffer, ReplayBuffer
from forebay._device_storage import DeviceStorage
from forebay._hand_over import HandOver
from forebay_models.device.simulated import SimulatedDevice
from tensordict import TensorDict

SEEDS = range(8)


def records(first: int, n: int = 4) -> TensorDict:
    """Return records that tell their number twice."""
    number = torch.arange(first, first + n)
    return TensorDict({"x": number, "y": number.unsqueeze(1).repeat(1, 3)}, batch_size=[n])


def use(device: SimulatedDevice, batch: object) -> list[int]:
    """Use a batch on the current stream, and return what it should hold."""
    assert isinstance(batch, TensorDict)
    device.look(batch["x"], "x")
    device.look(batch["y"], "y")
    numbers: list[int] = device.promised(batch["x"]).tolist()
    assert device.promised(batch["y"])[:, 2].tolist() == numbers
    return numbers


@contextmanager
def drawing_ahead(seed: int) -> Iterator[tuple[SimulatedDevice, BlockingReplayBuffer]]:
    """Yield a buffer that draws two batches ahead, and end its threads."""
    device = SimulatedDevice(seed)
    storage = DeviceStorage(16, streams=device)
    buffer = BlockingReplayBuffer(storage, batch_size=4, prefetch=2)
    try:
        yield device, buffer
    finally:
        buffer.shutdown(immediate=True)


def sampled_ahead(seed: int) -> list[str]:
    """Draw batches ahead, use each and drop it, and return what was wrong."""
    with drawing_ahead(seed) as (device, buffer):
        with device.on(device.stream("actor")):
            for first in (0, 4, 8):
                buffer.extend(records(first))
        drawn = []
        for first in (12, 16, 20, 24, 28):
            with device.on(device.stream("learner")):
                drawn += use(device, buffer.sample())
            device.advance(4)
            with device.on(device.stream("actor")):
                buffer.extend(records(first))
        assert drawn == list(range(20))
        device.finish()
        return device.faults


@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_that_was_drawn_ahead_is_there_when_it_is_used(seed: int) -> None:
    assert sampled_ahead(seed) == []


def test_a_batch_that_is_not_waited_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HandOver, "receive", lambda self, batch, event: batch)
    assert any(sampled_ahead(seed) for seed in range(20))


def test_its_memory_is_kept_for_the_stream_that_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the storage shows whether it is; that the device was told does."""
    kept: list[tuple[int, object]] = []
    keep = SimulatedDevice.keep

    def told(self: SimulatedDevice, tensor: torch.Tensor, stream: Hashable) -> None:
        kept.append((tensor.data_ptr(), stream))
        keep(self, tensor, stream)

    monkeypatch.setattr(SimulatedDevice, "keep", told)
    with drawing_ahead(0) as (device, buffer):
        buffer.extend(records(0))
        buffer.extend(records(4))
        buffer.sample()
        learner = device.stream("learner")
        with device.on(learner):
            batch = buffer.sample()
        assert {(batch[name].data_ptr(), learner) for name in ("x", "y")} <= set(kept)
        device.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_leased_records_are_read_before_their_slots_are_written_again(seed: int) -> None:
    device = SimulatedDevice(seed)
    buffer = BlockingReplayBuffer(DeviceStorage(4, streams=device), batch_size=4)
    for first in (0, 4, 8):
        with device.on(device.stream("actor")):
            buffer.extend(records(first), timeout=0.0)
        with device.on(device.stream("learner")), buffer.lease() as batch:
            assert use(device, batch) == list(range(first, first + 4))
        device.advance(3)
    device.finish()
    assert device.faults == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ring_overwrites_what_was_gathered_only_once_it_was_read(seed: int) -> None:
    device = SimulatedDevice(seed)
    ring = ReplayBuffer(DeviceStorage(4, streams=device), batch_size=3, seed=seed)
    for first in range(0, 40, 2):
        with device.on(device.stream("actor")):
            ring.extend(records(first, 2))
        with device.on(device.stream("learner")):
            assert max(use(device, ring.sample())) >= first - 2
        device.advance(2)
    device.finish()
    assert device.faults == []


@pytest.mark.parametrize("seed", SEEDS)
def test_asyncio_calls_work_on_the_stream_of_their_task(seed: int) -> None:
    device = SimulatedDevice(seed)
    buffer = BlockingReplayBuffer(DeviceStorage(4, streams=device), batch_size=4)

    async def act() -> None:
        for first in (0, 4, 8):
            with device.on(device.stream("task")):
                rows = records(first)
                rows["x"] = device.tensor(rows["x"])
                call = buffer.extend_async(rows)
                await call
            with device.on(device.stream("task")):
                batch = await buffer.sample_async(timeout=30.0)
                assert use(device, batch) == list(range(first, first + 4))

    asyncio.run(act())
    used = {stream.name for stream in device.runnable()}
    device.finish()
    assert device.faults == []
    assert used <= {"task", "common"}
