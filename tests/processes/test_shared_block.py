"""Shared memory: views, journeys to other processes, and nothing left behind."""

import copy
import gc
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from forebay._errors import PeerLost
from forebay._memory import Free
from forebay._shared_block import SharedBlock

from tests.processes.support import FORKS, METHODS, context, family
from tests.processes.workers import (
    load,
    pickle_and_wait,
    stay_until_killed,
    store_from_queue,
    store_in,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def mappings() -> int:
    return Path("/proc/self/maps").read_text(encoding="utf-8").count("memfd:forebay")


def named_memory() -> set[str]:
    """Return the shared memory that has a name, without other people's semaphores."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.")}


def test_views_are_of_one_memory_and_begin_with_zeros() -> None:
    block = SharedBlock(256)
    array = block.array(np.int64, (2, 3), 64)
    cells = block.cells("q", 6, 64)
    assert array.tolist() == [[0, 0, 0], [0, 0, 0]]
    array[1, 2] = -7
    assert cells[5] == -7
    cells[0] = 2**40
    assert array[0, 0] == 2**40
    assert block.array(np.float32, (0, 4), 192).shape == (0, 4)


@pytest.mark.parametrize(("count", "offset"), [(1, 256), (33, 0), (1, -64), (1, 8)])
def test_a_view_outside_or_askew_is_refused(count: int, offset: int) -> None:
    block = SharedBlock(256)
    with pytest.raises(ValueError, match="bytes"):
        block.array(np.int64, (count,), offset)
    with pytest.raises(ValueError, match="bytes"):
        block.cells("q", count, offset)


def test_the_memory_is_reserved_at_once_and_its_size_is_sealed() -> None:
    nbytes = 1 << 22
    block = SharedBlock(nbytes)
    status = os.fstat(block._descriptor)
    assert status.st_blocks * 512 >= nbytes
    for size in (nbytes // 2, nbytes * 2):
        with pytest.raises(PermissionError):
            os.ftruncate(block._descriptor, size)


def test_too_much_memory_is_refused_with_both_figures_before_anything_is_made() -> None:
    before = descriptors()
    with pytest.raises(MemoryError, match=r"1001 bytes.* 5000 bytes available.* leaves 1000:"):
        SharedBlock(1001, free=lambda: Free(machine=5000, group=1000))
    with pytest.raises(MemoryError, match=r"5001 bytes.* 5000 bytes available.* leaves 9000:"):
        SharedBlock(5001, free=lambda: Free(machine=5000, group=9000))
    assert descriptors() == before
    assert SharedBlock(1000, free=lambda: Free(machine=5000, group=1000)).nbytes == 1000
    assert SharedBlock(10, free=lambda: Free(machine=None, group=None)).nbytes == 10


def test_more_memory_than_the_machine_has_is_refused() -> None:
    with pytest.raises(MemoryError, match=f"^{2**50} bytes"):
        SharedBlock(2**50)


def test_other_systems_are_told_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NotImplementedError, match=r"64-bit Linux.*darwin.*TensorStorage"):
        SharedBlock(64)


def test_an_empty_block_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 byte, got 0"):
        SharedBlock(0)


def test_a_block_takes_one_descriptor_and_gives_it_back() -> None:
    before = descriptors()
    block = SharedBlock(64)
    assert len(descriptors()) == len(before) + 1
    block.close()
    block.close()
    assert descriptors() == before
    with pytest.raises(ValueError, match="closed"):
        block.cells("q", 1, 0)
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(block)


def test_the_memory_stays_while_a_view_lives() -> None:
    gc.collect()
    before = mappings()
    block = SharedBlock(4096)
    array = block.array(np.int64, (8,), 0)[2:4]
    cells = block.cells("q", 8, 0)[2:4]
    block.close()
    del block
    array[1] = 5
    assert cells[1] == 5
    assert mappings() == before + 1
    del array, cells
    assert mappings() == before


def test_nothing_is_left_after_two_hundred_blocks() -> None:
    gc.collect()
    before = descriptors(), mappings()
    named = named_memory()
    for turn in range(200):
        block = SharedBlock(1 << 16)
        block.array(np.int64, (8,), 0)[:] = turn
        if turn % 2:
            block.close()
        del block
    assert (descriptors(), mappings()) == before
    assert named_memory() <= named


def test_nothing_is_left_by_a_process_that_was_killed() -> None:
    before = named_memory()
    with family() as children:
        child = children.start(stay_until_killed, 1 << 20)
        assert child.says() == 1 << 20
        child.kill()
    assert named_memory() <= before


@pytest.mark.parametrize("method", METHODS)
def test_a_block_is_an_argument_of_a_child_started_in_any_way(method: str) -> None:
    block = SharedBlock(4096)
    cells = block.cells("q", 1, 128)
    cells[0] = 4711
    with family(method) as children:
        child = children.start(store_in, block, 128)
        found = child.says()
        assert isinstance(found, tuple)
        assert found[0] == 4711
        assert child.says() == "stored"
        assert cells[0] == child.pid


@pytest.mark.parametrize("method", FORKS)
def test_a_block_goes_through_a_queue_and_stays_one(method: str) -> None:
    block = SharedBlock(4096)
    cells = block.cells("q", 1, 0)
    cells[0] = 12
    blocks = context(method).Queue()
    try:
        with family(method) as children:
            child = children.start(store_from_queue, blocks)
            blocks.put(block)
            found = child.says()
            assert isinstance(found, tuple), found
            assert found[0] == 12
            assert child.says() == "stored"
            assert cells[0] == child.pid
    finally:
        blocks.close()
        blocks.join_thread()


def test_a_block_pickled_by_hand_is_a_handle_and_in_its_own_process_itself() -> None:
    block = SharedBlock(1 << 20)
    before = descriptors()
    pickled = pickle.dumps(block)
    assert len(pickled) < 1000
    assert pickle.loads(pickled) is block
    assert copy.deepcopy(block) is block
    assert descriptors() == before


def test_a_pickled_block_is_reached_by_another_process_once() -> None:
    block = SharedBlock(4096)
    cells = block.cells("q", 1, 0)
    cells[0] = 3
    with family() as children:
        child = children.start(load, pickle.dumps(block))
        assert child.says() is True
        found = child.says()
        assert isinstance(found, tuple)
        assert found[0] == 3
        assert child.says() == "stored"
        assert cells[0] == child.pid


def test_a_block_of_another_process_is_reached_while_that_lives() -> None:
    with family() as children:
        owner = children.start(pickle_and_wait)
        pickled = owner.says()
        assert isinstance(pickled, bytes)
        block = pickle.loads(pickled)
        block.cells("q", 1, 0)[0] = 99
        block.close()
        owner.line.send("go on")
        assert owner.says() == 99
        assert owner.end() == 0
        with pytest.raises(PeerLost, match=f"process {owner.pid}.*lives"):
            pickle.loads(pickled)


def test_a_descriptor_that_is_something_else_by_now_is_not_taken_for_the_block() -> None:
    block = SharedBlock(4096)
    number, pickled = block._descriptor, pickle.dumps(block)
    block.close()
    other = SharedBlock(4096)
    assert other._descriptor == number
    before = descriptors()
    with pytest.raises(PeerLost, match="is a handle"):
        pickle.loads(pickled)
    assert descriptors() == before
