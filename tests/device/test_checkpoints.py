"""Checkpoints move between the host and a device, in whatever order the device does things.

A state has all that was on the device on the host. It goes on as it was wherever it is loaded, and
what was drawn ahead is there for whoever is handed it, on any stream.
"""

import copy
import pickle
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
from forebay import (
    BlockingReplayBuffer,
    RandomSampler,
    ReplayBuffer,
    TensorStorage,
)
from forebay._payloads import copy_of, tensors_in
from forebay_models.device.simulated import SimulatedDevice
from tensordict import TensorDict, lazy_stack

from tests.device.checkpoints import (
    SORTS,
    SimulatedStorage,
    drained,
    eager,
    make,
    on_device,
    on_host,
    settle,
    told,
)
from tests.library.queues import AtOnce, prefetcher_of
from tests.library.saving import numbers
from tests.storage.support import step

SEEDS = range(6)
WAYS = ("state_dict", "dumps", "pickle", "deepcopy")


def moved(
    way: str, source: BlockingReplayBuffer, target: BlockingReplayBuffer, path: Path
) -> BlockingReplayBuffer:
    """Return the buffer that goes on from a source: the target, or one that is made for it."""
    if way == "state_dict":
        target.load_state_dict(source.state_dict())
    elif way == "dumps":
        source.dumps(path)
        target.loads(path)
    else:
        target = copy.deepcopy(source) if way == "deepcopy" else pickle.loads(pickle.dumps(source))
        prefetcher_of(target).use(AtOnce())
    return target


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sort", SORTS)
def test_a_buffer_on_a_device_goes_on_on_a_device(
    sort: str, way: str, seed: int, tmp_path: Path
) -> None:
    device = SimulatedDevice(seed)
    if seed % 2:
        eager(device)
    source, target = on_device(device, sort), on_device(device, sort, 4)
    _, rest = on_host(SORTS[sort])
    with device.on(device.stream("loader")):
        other = moved(way, source, target, tmp_path / "checkpoint")
    assert other.stats().prefetched == 2
    assert drained(device, other) == rest
    assert drained(device, source) == rest
    settle(device)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("sort", SORTS)
def test_a_buffer_on_a_device_goes_on_on_the_host(
    sort: str, way: str, seed: int, tmp_path: Path
) -> None:
    device = SimulatedDevice(seed)
    source, target = on_device(device, sort), make(TensorStorage(8), SORTS[sort])
    _, rest = on_host(SORTS[sort])
    other = moved(way, source, target, tmp_path / "checkpoint")
    batches = [other.sample() for _ in rest]
    assert [told(batch, torch.Tensor.detach) for batch in batches] == rest
    assert not any(map(device.holds, tensors_in(batches)))
    settle(device)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("sort", SORTS)
def test_a_buffer_on_the_host_goes_on_on_a_device(
    sort: str, way: str, seed: int, tmp_path: Path
) -> None:
    device = SimulatedDevice(seed)
    if seed % 2:
        eager(device)
    source, rest = on_host(SORTS[sort])
    target = make(SimulatedStorage(8, device), SORTS[sort])
    with device.on(device.stream("loader")):
        other = moved(way, source, target, tmp_path / "checkpoint")
        ahead = [prefetcher_of(other).payload(n) for _, n in prefetcher_of(other).settled_queue()]
    assert len(ahead) == 2
    assert all(device.holds(it) for it in tensors_in(ahead) if it.numel())
    assert drained(device, other) == rest
    # The memory was reserved on the loader's stream, and is written on others.
    with device.on(device.stream("writer")):
        other.extend(SORTS[sort].records(20, 6))
    twin, _ = on_host(SORTS[sort])
    for _ in rest:
        twin.sample()
    twin.extend(SORTS[sort].records(20, 6))
    assert drained(device, other) == [told(twin.sample(), torch.Tensor.detach) for _ in range(3)]
    settle(device)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_not_at_home_stays_where_it_is(seed: int) -> None:
    device = SimulatedDevice(seed)
    source, target = on_device(device, "dict"), make(SimulatedStorage(8, device), SORTS["dict"])
    state = source.state_dict()
    batches = state["prefetched"]["batches"]
    assert [batch["elsewhere"] for batch in batches] == [[2, 4], [2, 4]]
    with device.on(device.stream("loader")):
        target.load_state_dict(state)
    with device.on(device.stream("user")):
        batch: Any = target.sample()
    tensors = list(tensors_in(batch))
    assert [device.holds(it) for it in tensors] == [True, True, False, True, False]
    assert batch["mask"].tolist() == [False, True]
    again = target.state_dict()["prefetched"]["batches"]
    assert [batch["elsewhere"] for batch in again] == [[2, 4], [2, 4]]
    settle(device)


@pytest.mark.parametrize("sort", SORTS)
def test_a_state_has_nothing_on_the_device(sort: str) -> None:
    device = SimulatedDevice(3)
    buffer = on_device(device, sort)
    state = buffer.state_dict()
    tensors = list(tensors_in(state))
    assert len(tensors) > 10
    assert not any(map(device.holds, tensors))
    batches = state["prefetched"]["batches"]
    assert len(batches) == 2
    assert all(("elsewhere" in batch) == (sort == "dict") for batch in batches)
    # Nor do its tensors share the staging memory, which the next capture uses.
    before = [tensor.tolist() for tensor in tensors]
    buffer.sample()
    buffer.extend(SORTS[sort].records(50, 2))
    buffer.state_dict()
    settle(device)
    assert [tensor.tolist() for tensor in tensors] == before


@pytest.mark.parametrize("seed", SEEDS)
def test_a_capture_waits_for_copies_of_other_streams(seed: int) -> None:
    device = SimulatedDevice(seed)
    storage = SimulatedStorage(8, device)
    buffer = ReplayBuffer(storage, RandomSampler(), batch_size=2)
    for first in range(0, 24, 3):
        with device.on(device.stream(f"writer {first % 4}")):
            buffer.extend(numbers(first, 3))
    assert any(stream.operations for stream in device.runnable())
    with device.on(device.stream("saver")):
        state = buffer.state_dict()
    assert state["records"]["data"]["x"].tolist() == list(range(16, 24))
    # Whoever overwrites what was captured comes behind the copy.
    with device.on(device.stream("writer 9")):
        buffer.extend(numbers(90, 8))
    assert state["records"]["data"]["y"][:, 2].tolist() == [n / 2 for n in range(16, 24)]
    settle(device)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restore_comes_behind_reads_of_the_old_records(seed: int) -> None:
    device = SimulatedDevice(seed)
    source, _ = on_host(SORTS["TensorDict"])
    target = on_device(device, "TensorDict")
    # Gathers and uses of them are queued on several streams and have not run.
    old = drained(device, target)
    assert device.stream("user 0").operations
    with device.on(device.stream("loader")):
        target.load_state_dict(source.state_dict())
    assert len(old) == 3
    _, rest = on_host(SORTS["TensorDict"])
    assert drained(device, target) == rest
    settle(device)


def test_a_state_of_before_there_were_devices_loads_as_it_did() -> None:
    source, rest = on_host(SORTS["dict"])
    state = source.state_dict()
    assert all("elsewhere" not in batch for batch in state["prefetched"]["batches"])
    target = make(TensorStorage(8), SORTS["dict"])
    target.load_state_dict(state)
    assert [told(target.sample(), torch.Tensor.detach) for _ in rest] == rest


def test_a_copy_says_where_its_tensors_are_if_the_original_does() -> None:
    inner = TensorDict({"b": torch.ones(2, 3)}, [2, 3], device="cpu")
    value = TensorDict({"a": torch.ones(2), "in": inner, "n": "text"}, [2], names=["t"])
    both = [value, lazy_stack([inner, inner]), step(torch.ones(2, 4), torch.ones(2), "n", size=[2])]
    copied: Any = copy_of(both, lambda tensor: torch.empty_like(tensor, device="meta"))
    assert all(tensor.is_meta for tensor in tensors_in(copied))
    assert copied[0].device is None
    assert copied[0]["in"].device == torch.device("meta")
    assert copied[0].names == ["t"]
    assert copied[0]["n"] == "text"
    assert copied[1].tensordicts[0].device == torch.device("meta")
    assert copied[2].note == "n"


def aside() -> AbstractContextManager[object]:
    """Work on a new stream within a block."""
    return torch.cuda.stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]  # torch's own


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.cuda
@needs_cuda
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("first", "second"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")])
def test_checkpoints_move_between_cpu_and_cuda(
    first: str, second: str, sort: str, way: str, tmp_path: Path
) -> None:
    from forebay import CudaStorage

    def made(device: str) -> BlockingReplayBuffer:
        storage = TensorStorage(8) if device == "cpu" else CudaStorage(8)
        return make(storage, SORTS[sort])

    if way in WAYS[2:]:
        second = first  # a pickle or a deep copy is where the original is
    source, target = made(first), made(second)
    source.extend(SORTS[sort].records(0, 8))
    source.sample()
    _, rest = on_host(SORTS[sort])
    with aside():
        other = moved(way, source, target, tmp_path / "checkpoint")
    with aside():
        batches = [other.sample() for _ in rest]
        assert [told(batch, torch.Tensor.detach) for batch in batches] == rest
    away = (2, 4) if sort == "dict" and first == "cuda" else ()
    found = [it.device.type for it in tensors_in(batches[0])]
    assert found == ["cpu" if number in away else second for number in range(len(found))]


@pytest.mark.cuda
@needs_cuda
def test_a_state_from_cuda_is_on_the_host() -> None:
    from forebay import CudaStorage

    def placed(batch: TensorDict) -> TensorDict:
        return TensorDict(dict(batch.items()), batch.batch_size, device=batch["x"].device)

    storage = CudaStorage(8)
    buffer = BlockingReplayBuffer(storage, batch_size=2, prefetch=2, transform=placed)
    buffer.extend(numbers(0, 8))
    buffer.sample()
    state = buffer.state_dict()
    assert all(tensor.device.type == "cpu" for tensor in tensors_in(state))
    batch = state["prefetched"]["batches"][0]["batch"]
    assert batch.device == torch.device("cpu")
    buffer.load_state_dict(state)
    assert buffer.sample().device == storage.device
