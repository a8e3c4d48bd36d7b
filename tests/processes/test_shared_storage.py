"""Records in shared memory: every kind of leaf, memory that is asked for first, one buffer each."""

import gc
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from forebay import BlockingReplayBuffer, Limits, RecordMismatch, SharedStorage
from tensordict import TensorDict, tensorclass

from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    blocks_here,
    read_from,
    remotes,
    shared_buffer,
    write_to,
)

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


@tensorclass
class Step:
    """A record with a class of its own, and one inside another."""

    seen: torch.Tensor
    inner: TensorDict


def leaves(dtype: torch.dtype) -> torch.Tensor:
    """Return three rows of two elements that differ."""
    return torch.tensor([[0, 1], [1, 0], [1, 1]]).to(dtype)


def record(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: leaf[0] for name, leaf in batch.items()}


def add_rows(hands: Hands) -> list[str]:
    """Take all records, write them back, and say what they are."""
    batch = hands.buffer.sample(3)
    hands.buffer.extend(batch)
    return [str(batch[name].dtype) for name in sorted(batch.keys())]


def test_every_dtype_comes_back_bit_by_bit_from_another_process() -> None:
    batch = {f"leaf {number:02}": leaves(dtype) for number, dtype in enumerate(DTYPES)}
    batch["many"] = torch.randn(3, 2, 0, 4)
    batch["nothing"] = torch.empty(3, 0)
    batch["one"] = torch.tensor([5, 6, 7])
    buffer = BlockingReplayBuffer(SharedStorage(3, example=record(batch)))
    buffer.extend(batch)
    with remotes(buffer) as start:
        names = start.start().does(add_rows)
    assert names == [str(batch[name].dtype) for name in sorted(batch)]
    found = buffer.sample(3)
    for name, leaf in batch.items():
        assert found[name].dtype == leaf.dtype
        assert torch.equal(found[name], leaf), name


def test_records_of_nothing_but_empty_leaves_are_counted() -> None:
    buffer = BlockingReplayBuffer(SharedStorage(2, example={"x": torch.empty(0)}))
    buffer.extend({"x": torch.empty(2, 0)})
    assert buffer.sample(2)["x"].shape == (2, 0)
    assert buffer.stats().delivered == 2


def nested() -> TensorDict:
    inner = TensorDict({"deep": torch.arange(3.0)}, [3])
    return TensorDict({"flat": torch.arange(3), "branch": inner}, [3])


def classed() -> Step:
    return Step(seen=torch.arange(3), inner=nested(), batch_size=[3])  # type: ignore[call-arg]  # tensorclasses take it


def echo(hands: Hands) -> str:
    """Take all records, write them back, and name their class."""
    batch = hands.buffer.sample(3)
    hands.buffer.extend(batch)
    return type(batch).__name__


@pytest.mark.parametrize("make", [nested, classed])
def test_nested_records_and_classes_travel(make: Callable[[], TensorDict]) -> None:
    batch = make()
    buffer = BlockingReplayBuffer(SharedStorage(3, example=batch[0]))
    buffer.extend(batch)
    with remotes(buffer) as start:
        assert start.start().does(echo) == type(batch).__name__
    found = buffer.sample(3)
    assert type(found) is type(batch)
    assert (found.to_tensordict() == batch.to_tensordict()).all()


def test_a_batch_of_another_shape_is_refused_in_every_process() -> None:
    buffer = shared_buffer(2)
    with remotes(buffer) as start:
        other = start.start()
        other.begins(write_pairs)
        outcome = other.ends()
        assert outcome.error == "RecordMismatch"
        assert "x" in outcome.words
    assert buffer.stats().admitted == 0
    assert buffer.stats().blocked_calls == 0


def write_pairs(hands: Hands) -> None:
    hands.buffer.extend({"x": torch.zeros(1, 2, dtype=torch.int64)})


def test_an_example_is_asked_for() -> None:
    with pytest.raises(TypeError, match="example"):
        SharedStorage(2)  # type: ignore[call-arg]  # what a user may try
    with pytest.raises(TypeError, match="a SharedStorage needs an example: one record"):
        SharedStorage(2, example=None)
    for wrong in (3, [{"x": torch.tensor(0)}], {"x": "words"}, {}):
        with pytest.raises(RecordMismatch):
            SharedStorage(2, example=wrong)
    with pytest.raises(ValueError, match="host memory"):
        SharedStorage(2, example={"x": 0.0}, device="cuda")


def test_too_large_is_an_error_with_the_bytes_and_leaves_nothing() -> None:
    """L13: for the records, and for the bookkeeping of small ones."""
    gc.collect()
    before = blocks_here()
    capacity = 10**12
    with pytest.raises(MemoryError) as caught:
        SharedStorage(capacity, example={"x": torch.tensor(0)})
    needed = int(re.findall(r"(\d+) bytes of shared memory", str(caught.value))[0])
    assert 8 * capacity <= needed <= 8 * capacity + 4096
    storage = SharedStorage(2, example={"x": torch.tensor(0)})
    with pytest.raises(MemoryError, match=r"\d{13,} bytes of shared memory are needed"):
        BlockingReplayBuffer(storage, limits=Limits(held=10**12))
    assert blocks_here() == before + 1
    assert BlockingReplayBuffer(storage).stats().free == 2


def test_a_storage_is_of_one_buffer() -> None:
    storage = SharedStorage(2, example={"x": torch.tensor(0)})
    first = BlockingReplayBuffer(storage)
    with pytest.raises(ValueError, match="this SharedStorage belongs to a buffer already"):
        BlockingReplayBuffer(storage)
    write_to(first, 1)
    with remotes(first) as start:
        outcome = start.start()
        outcome.begins(take_the_storage)
        assert outcome.ends().error == "ValueError"
    assert read_from(first, 1) == [1]


def take_the_storage(hands: Hands) -> None:
    BlockingReplayBuffer(hands.buffer.storage)


def test_ten_thousand_small_writes_take_no_descriptor() -> None:
    """L14: two for a buffer, however often it is used."""
    gc.collect()
    before = blocks_here()
    buffer = shared_buffer(8)
    for value in range(10_000):
        write_to(buffer, value)
        if value % 1000 == 0:
            assert blocks_here() == before + 2
        assert read_from(buffer, 1) == [value]
    assert blocks_here() == before + 2


def test_what_is_read_is_a_copy() -> None:
    """L33: records that a reader keeps are its own while their slots are written again."""
    buffer = shared_buffer(1)
    write_to(buffer, 1)
    kept = buffer.sample(1)
    with remotes(buffer) as start:
        start.start().does(fill)
    assert kept["x"].tolist() == [1]
    assert read_from(buffer, 1) == [2]


def fill(hands: Hands) -> None:
    write_to(hands.buffer, 2)


def test_an_array_of_numpy_is_a_record_too() -> None:
    buffer = BlockingReplayBuffer(SharedStorage(2, example={"x": np.float32(0)}))
    buffer.extend({"x": np.array([1, 2], np.float32)})
    assert buffer.sample(2)["x"].tolist() == [1.0, 2.0]


WITHOUT_TRACE = """
import os, pathlib, signal, torch
from forebay import BlockingReplayBuffer, SharedStorage
buffer = BlockingReplayBuffer(SharedStorage(1000, example={"x": torch.zeros(100)}))
buffer.extend({"x": torch.ones(1000, 100)})
opened = [os.readlink(f"/proc/self/fd/{number}") for number in range(3, 256)
          if os.path.lexists(f"/proc/self/fd/{number}")]
mapped = pathlib.Path("/proc/self/maps").read_text().split()
print([name for name in opened + mapped if name.startswith("/dev/shm")], flush=True)
if KILLED:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_is_left_of_a_program_however_it_ends(killed: bool) -> None:
    """Nothing in the shared memory area at any time, and not a word of a resource tracker."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"KILLED = {killed}\n{WITHOUT_TRACE}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "[]\n"
    assert ended.stderr == ""
    assert ended.returncode == (-signal.SIGKILL if killed else 0)
