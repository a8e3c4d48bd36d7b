"""A buffer of one process can be pickled and copied: it is made again, with its state."""

import copy
import gc
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from forebay import BlockingReplayBuffer, Limits, SharedStorage, TensorStorage
from tensordict import TensorDict

from tests.library.saving import assert_nothing_left, make, make_tensors, numbers, plain
from tests.library.support import ledger_of

pytestmark = pytest.mark.filterwarnings("error")


def double(batch: TensorDict) -> TensorDict:
    return batch.apply(lambda leaf: leaf * 2)


class Scale:
    """A transform with an inverse."""

    def __call__(self, batch: TensorDict) -> object:
        return [value * 10 for value in batch]

    def inv(self, batch: TensorDict) -> object:
        return [value / 10 for value in batch]


def pickled(buffer: BlockingReplayBuffer) -> BlockingReplayBuffer:
    loaded = pickle.loads(pickle.dumps(buffer))
    assert isinstance(loaded, BlockingReplayBuffer)
    return loaded


@pytest.mark.parametrize("duplicate", [pickled, copy.deepcopy, copy.copy])
def test_a_copy_is_made_like_the_original_and_goes_its_own_way(duplicate: Any) -> None:
    buffer = make_tensors(
        8,
        batch_size=2,
        order="random",
        prefetch=1,
        consume_after_n_samples=2,
        transform=double,
        stall_warning=None,
        dim_extend=0,
        limits=Limits(calls=32),
        seed=4,
    )
    buffer.extend(numbers(0, 6))
    buffer.sample()
    other = duplicate(buffer)
    assert plain(other.state_dict()) == plain(buffer.state_dict())
    assert other._core.ledger.limits == Limits(calls=32)
    assert other.prefetch == 1
    assert other.sampler == buffer.sampler
    assert other.sample()["x"].tolist() == buffer.sample()["x"].tolist()
    other.empty()
    assert len(buffer) > 0
    assert_nothing_left(buffer)
    assert_nothing_left(other)


def test_transforms_travel_with_it() -> None:
    buffer = make(4, transform=Scale())
    buffer.extend([10, 20])
    other = pickled(buffer)
    other.extend([30])
    assert other.sample(3) == [10, 20, 30]


def test_a_buffer_in_which_nothing_was_written() -> None:
    assert plain(pickled(make(4)).state_dict())["records"]["data"] == []
    other = pickled(make_tensors(4))
    other.extend(numbers(0, 1))
    assert len(other) == 1
    example = BlockingReplayBuffer(TensorStorage(4, example={"x": torch.zeros(2)}))
    with pytest.raises(ValueError, match="'x'"):
        pickled(example).extend({"x": torch.zeros(1, 3)})


def test_a_closed_buffer_is_open_again() -> None:
    buffer = make(4)
    buffer.extend([1])
    buffer.shutdown()
    other = pickled(buffer)
    other.extend([2])
    assert other.sample(2) == [1, 2]


def test_a_transform_that_cannot_be_pickled_says_so() -> None:
    buffer = make(4, transform=lambda batch: batch)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(buffer)
    assert_nothing_left(buffer)


def test_a_shared_buffer_is_a_handle_and_not_a_copy() -> None:
    buffer = BlockingReplayBuffer(SharedStorage(4, example={"x": torch.zeros(())}))
    other = copy.deepcopy(buffer)
    buffer.extend({"x": torch.tensor([1.0])})
    assert other.sample(1)["x"].tolist() == [1.0]
    assert len(buffer) == 0


CYCLES = 300
LEAST = 64 * 2**10
"""Bytes that a buffer takes at least: its ledger alone has more."""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to count descriptors")
def test_b14_pickle_use_and_discard_come_back_to_the_baseline() -> None:
    before = set(threading.enumerate())
    buffer = make_tensors(16, batch_size=2, prefetch=2)
    buffer.extend(numbers(0, 16))
    assert ledger_of(buffer).layout.block.nbytes > LEAST

    def cycle() -> None:
        other = pickled(buffer)
        assert other.sample()["x"].tolist() == [0, 1]
        other.shutdown()
        assert len(list(other)) == 7

    for _ in range(100):
        cycle()
    gc.collect()
    files, memory = descriptors(), resident()
    for _ in range(CYCLES):
        cycle()
    gc.collect()
    assert descriptors() == files
    assert resident() - memory < CYCLES * LEAST // 4
    new = set(threading.enumerate()) - before
    for thread in new:
        thread.join(60)
    assert not any(thread.is_alive() for thread in new)
