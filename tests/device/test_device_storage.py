"""The storage on a device: what goes in comes out, bit by bit, whoever works on which stream."""

import gc
import threading
from functools import partial

import numpy as np
import pytest
import torch
from forebay import BlockingReplayBuffer, RecordMismatch, TensorStorage
from forebay._arrays import stand_in
from forebay._device_storage import DeviceStorage
from forebay_models.device.simulated import SimulatedDevice
from tensordict import TensorDict

from tests.storage.support import slots, step, steps

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.uint32,
    torch.float32,
    torch.int64,
    torch.uint64,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
]
SHAPES = [(), (1,), (3,), (4,), (5, 7), (0,), (2, 0, 3)]
SCATTERED, RANGE = slots(6, 1, 3, 0), slots(2, 3, 4, 5)


def made(seed: int = 0, example: object = None) -> tuple[SimulatedDevice, DeviceStorage]:
    """Return a device and a storage of eight slots on it."""
    device = SimulatedDevice(seed)
    return device, DeviceStorage(8, streams=device, example=example)


def put(storage: DeviceStorage, where: np.ndarray, batch: object, *, cast: bool = False) -> None:
    """Check and write a batch."""
    storage.write(where, storage.check(batch, cast=cast))


def taken(device: SimulatedDevice, storage: DeviceStorage, where: np.ndarray) -> TensorDict:
    """Return the records in slots once all that is queued has run."""
    batch = storage.read(where)
    device.finish()
    assert isinstance(batch, TensorDict)
    return batch


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two tensors are alike to the bit."""
    alike = one.dtype is other.dtype and one.shape == other.shape
    return alike and one.contiguous().view(-1).view(torch.uint8).tolist() == (
        other.contiguous().view(-1).view(torch.uint8).tolist()
    )


def bits(dtype: torch.dtype, shape: tuple[int, ...], rows: int = 4) -> torch.Tensor:
    """Return rows of a dtype; any bits, but for bools, which are 0 or 1."""
    count = rows * int(np.prod(shape)) * dtype.itemsize
    numbers = torch.arange(1, count + 1, dtype=torch.uint8)
    numbers = numbers % 2 if dtype is torch.bool else numbers
    return numbers.view(dtype).view(rows, *shape)


@pytest.mark.parametrize("where", [SCATTERED, RANGE], ids=["scattered", "range"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_every_dtype_comes_back_bit_by_bit(
    dtype: torch.dtype, shape: tuple[int, ...], where: np.ndarray
) -> None:
    assert stand_in(dtype) is not None
    device, storage = made()
    batch = TensorDict({"x": bits(dtype, shape), "n": torch.arange(4)}, batch_size=[4])
    put(storage, where, batch)
    found = taken(device, storage, where)
    assert same(found["x"], batch["x"])
    assert found["n"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("where", [SCATTERED, RANGE], ids=["scattered", "range"])
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_of_the_host_may_be_changed_once_it_is_written(
    where: np.ndarray, seed: int
) -> None:
    device, storage = made(seed)
    batch = steps(4)
    put(storage, where, batch)
    batch["obs"].fill_(-1.0)
    batch["next", "obs"].fill_(-1.0)
    found = taken(device, storage, where)
    assert found["obs"][:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found["next", "obs"][:, 3].tolist() == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize("where", [SCATTERED, RANGE], ids=["scattered", "range"])
def test_rows_may_be_on_the_device_or_on_the_host_leaf_by_leaf(where: np.ndarray) -> None:
    device, storage = made()
    batch = steps(4)
    batch["obs"] = device.tensor(batch["obs"])
    put(storage, where, batch)
    mixed = taken(device, storage, where)
    assert mixed["obs"][:, 1].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert mixed["action"].tolist() == [0, 1, 2, 3]


def test_the_strides_and_the_place_of_rows_on_the_device_do_not_matter() -> None:
    device, storage = made()
    numbers = device.tensor(torch.arange(64, dtype=torch.float32).view(4, 16))
    wide = TensorDict({"x": numbers[:, 3:7], "y": numbers.t()[1:5].t()}, batch_size=[4])
    shifted = TensorDict({"x": numbers.view(-1)[3:19].view(4, 4), "y": wide["y"]}, batch_size=[4])
    put(storage, SCATTERED, wide)
    assert same(taken(device, storage, SCATTERED)["x"], wide["x"])
    assert same(taken(device, storage, SCATTERED)["y"], wide["y"])
    put(storage, SCATTERED, shifted)
    assert same(taken(device, storage, SCATTERED)["x"], shifted["x"])


def test_rows_on_the_device_are_converted_there() -> None:
    device, storage = made(example={"x": torch.zeros(2, dtype=torch.float64)})
    rows = {"x": device.tensor(torch.tensor([[1, 2], [3, 4]], dtype=torch.int32))}
    with pytest.raises(RecordMismatch, match=r"float64\[2\], got int32\[2\]; cast=True converts"):
        storage.check(rows)
    put(storage, slots(4, 1), rows, cast=True)
    found = taken(device, storage, slots(1, 4))
    assert found["x"].tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert found["x"].dtype is torch.float64


def test_conjugated_rows_and_rows_with_a_history_are_taken_as_they_look() -> None:
    device, storage = made()
    numbers = device.tensor(torch.tensor([[1 + 2j], [3 - 4j]]))
    weight = device.tensor(torch.ones(2, 1)).requires_grad_()
    put(storage, slots(0, 1), {"x": numbers.conj(), "y": weight})
    found = taken(device, storage, slots(0, 1))
    assert found["x"].tolist() == [[1 - 2j], [3 + 4j]]
    assert not found["y"].requires_grad


def test_a_tensor_of_another_device_is_refused_by_name() -> None:
    _, storage = made(example={"x": torch.zeros(2)})
    sentence = "expected a tensor on cpu or on the device of the storage, got one on meta"
    with pytest.raises(RecordMismatch, match=sentence):
        storage.check({"x": torch.zeros(3, 2, device="meta")})


def test_batches_of_several_dimensions_classes_and_lists() -> None:
    device, storage = made()
    put(storage, slots(0, 1, 2, 3), steps(4).reshape(2, 2))
    put(storage, slots(5, 4), list(steps(2, start=7).unbind(0)))
    assert taken(device, storage, slots(0, 2, 4, 5))["action"].tolist() == [0, 2, 8, 7]
    device, storage = made()
    put(storage, slots(1, 0), step(torch.zeros(2, 3), torch.arange(2.0), size=[2]))
    found = storage.read(slots(0, 1))
    device.finish()
    assert type(found).__name__ == "Step"
    assert found.reward.tolist() == [1.0, 0.0]  # type: ignore[attr-defined]  # it is a Step


def test_what_is_read_is_a_copy_that_stays() -> None:
    device, storage = made()
    put(storage, slots(0, 1), {"x": torch.tensor([1, 2])})
    kept = storage.read(slots(0, 1))
    put(storage, slots(0, 1), {"x": torch.tensor([3, 4])})
    device.finish()
    assert isinstance(kept, TensorDict)
    assert kept["x"].tolist() == [1, 2]


def test_there_is_nothing_to_read_before_the_first_write() -> None:
    _, storage = made()
    with pytest.raises(RuntimeError, match="nothing to read before the first write"):
        storage.read(slots(0))


def test_too_large_a_storage_names_both_figures_and_holds_nothing() -> None:
    device = SimulatedDevice(memory=10_000)
    with pytest.raises(MemoryError, match="32000 bytes"):
        DeviceStorage(1000, streams=device, example={"x": torch.zeros(2), "y": torch.zeros(8)})
    DeviceStorage(100, streams=device, example={"x": torch.zeros(2), "y": torch.zeros(8)})


def test_a_write_in_inference_mode_leaves_a_storage_that_all_can_use() -> None:
    device, storage = made()
    with torch.inference_mode():
        put(storage, slots(0, 1), {"x": torch.tensor([1, 2])})
    put(storage, slots(3, 1), {"x": torch.tensor([5, 6])})
    assert taken(device, storage, slots(0, 1, 3))["x"].tolist() == [1, 6, 5]


@pytest.mark.parametrize("seed", range(6))
def test_threads_on_streams_of_their_own_see_what_others_have_written(seed: int) -> None:
    device = SimulatedDevice(seed, apart=True)
    storage = DeviceStorage(8, streams=device)
    for round_ in range(10):
        where = np.roll(SCATTERED, round_)
        batch = {"x": torch.arange(4) + 10 * round_, "y": torch.full((4, 3), float(round_))}
        for work in (partial(put, storage, where, batch), partial(look, device, storage, where)):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(30.0)
            assert not thread.is_alive()
            device.advance(5)
    device.finish()
    assert device.faults == []


def look(device: SimulatedDevice, storage: DeviceStorage, where: np.ndarray) -> None:
    """Read slots and use what they hold on the device."""
    batch = storage.read(where)
    assert isinstance(batch, TensorDict)
    for name in ("x", "y"):
        device.look(batch[name], name)


@pytest.mark.parametrize("where", [SCATTERED, RANGE], ids=["scattered", "range"])
def test_a_default_device_of_the_program_changes_nothing(where: np.ndarray) -> None:
    device, storage = made()
    put(storage, where, {"x": torch.arange(4)})
    with torch.device("meta"):
        put(storage, where, [{"x": number} for number in (4, 3, 2, 1)])
        batch = storage.read(where)
    device.finish()
    assert isinstance(batch, TensorDict)
    assert batch["x"].tolist() == [4, 3, 2, 1]


def test_a_storage_that_is_dropped_gives_its_memory_back_at_once() -> None:
    device = SimulatedDevice(memory=40_000)
    gc.disable()
    try:
        for _ in range(3):
            storage = DeviceStorage(1000, streams=device, example={"x": torch.zeros(4)})
            put(storage, SCATTERED, {"x": torch.ones(4, 4)})
            device.finish()
            del storage
    finally:
        gc.enable()


def test_a_single_row_may_have_any_strides() -> None:
    device, storage = made()
    wide = device.tensor(torch.arange(10).to(torch.complex128))
    put(storage, slots(3), {"x": wide[2::8], "y": device.tensor(torch.ones(1, 9))[:, ::3]})
    found = taken(device, storage, slots(3))
    assert found["x"].tolist() == [2 + 0j]
    assert found["y"].tolist() == [[1.0, 1.0, 1.0]]


def test_a_restore_takes_no_more_memory_than_a_write() -> None:
    """More than half of the device is the storage's, and scattered records land elsewhere first."""
    rows = 4096
    device = SimulatedDevice(memory=rows * 64 * 3 // 2)
    host = BlockingReplayBuffer(TensorStorage(rows), order="random", seed=0)
    host.extend({"x": torch.arange(rows).unsqueeze(1).repeat(1, 16).float()})
    for _ in range(8):
        host.sample(256)
    state = host.state_dict()
    buffer = BlockingReplayBuffer(
        DeviceStorage(rows, streams=device, example={"x": torch.zeros(16)}), order="random", seed=0
    )
    buffer.load_state_dict(state)
    assert len(buffer) == rows // 2
    again = buffer.state_dict()["records"]
    assert again["slots"].tolist() == state["records"]["slots"].tolist()
    assert again["data"]["x"].tolist() == state["records"]["data"]["x"].tolist()
