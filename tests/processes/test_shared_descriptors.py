"""Descriptors and mappings of shared memory: never lost, and never those of others."""

import gc
import os
import pickle
import resource
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

import pytest
import torch
from forebay import SharedStorage
from forebay._memory import Free
from forebay._shared_block import SharedBlock

from tests.library.interrupts import interrupted
from tests.processes.support import family
from tests.processes.workers import pickle_and_wait

PLACES = 400
"""More than there are places where a block is made or reached; the tests check that."""


def in_use() -> tuple[list[str], int]:
    """Return the descriptors of this process, and how often it has shared memory mapped."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    return sorted(os.listdir("/proc/self/fd")), maps.count("memfd:forebay")


def make_block() -> SharedBlock:
    return SharedBlock(64, free=lambda: Free(machine=None, group=None))


def leave_nothing_when_interrupted(action: Callable[[], object]) -> None:
    """Through all places of an action; what it gives is dropped after it."""
    kept: list[object] = []
    action()
    before = in_use()
    for place in range(PLACES):
        raised = interrupted(lambda: kept.append(action()), place)
        kept.clear()
        assert in_use() == before, place
        if raised == 0:
            break
    assert 1 < place < PLACES - 1


def test_an_interrupt_at_any_place_of_making_a_block_leaves_nothing() -> None:
    leave_nothing_when_interrupted(make_block)


def test_an_interrupt_at_any_place_of_reaching_a_block_leaves_nothing() -> None:
    with family() as children:
        pickled = children.start(pickle_and_wait).says()
        assert isinstance(pickled, bytes)
        leave_nothing_when_interrupted(lambda: pickle.loads(pickled))


def replace_descriptor(block: SharedBlock) -> int:
    """Have another file where the block's descriptor was, and return its number."""
    other = os.open("/dev/null", os.O_RDONLY)
    os.dup2(other, block._descriptor)
    os.close(other)
    return block._descriptor


@pytest.mark.parametrize("closing", [True, False])
def test_what_has_the_number_of_the_descriptor_by_now_is_not_closed(closing: bool) -> None:
    block = make_block()
    number = replace_descriptor(block)
    try:
        if closing:
            block.close()
        del block
        assert os.fstat(number).st_rdev == os.stat("/dev/null").st_rdev
    finally:
        os.close(number)


def test_a_block_whose_descriptor_was_closed_is_dropped_quietly() -> None:
    before = in_use()
    block = make_block()
    os.close(block._descriptor)
    block.cells("q", 1, 0)[0] = 1
    del block
    assert in_use() == before


@pytest.mark.parametrize("replaced", [True, False])
def test_a_block_whose_descriptor_was_closed_does_not_travel(replaced: bool) -> None:
    block = make_block()
    number = replace_descriptor(block)
    try:
        if not replaced:
            os.close(number)
        with pytest.raises(RuntimeError, match="has closed the descriptor of its shared buffer"):
            pickle.dumps(block)
        process = get_context("spawn").Process(target=print, args=(block,))
        with pytest.raises(RuntimeError, match="has closed the descriptor of its shared buffer"):
            process.start()
    finally:
        if replaced:
            os.close(number)


def test_having_no_descriptor_left_is_not_taken_for_a_lost_peer() -> None:
    with family() as children:
        pickled = children.start(pickle_and_wait).says()
        assert isinstance(pickled, bytes)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest = os.open("/dev/null", os.O_RDONLY)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                pickle.loads(pickled)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        pickle.loads(pickled).close()


def test_memory_is_there_for_finalizers_of_the_same_cycle() -> None:
    """They run in an order that nobody chooses, and all before anything of the cycle is cleared."""
    written = []

    class Late:
        def __init__(self) -> None:
            self.block = make_block()
            self.cells = self.block.cells("q", 1, 0)
            self.itself = self

        def __del__(self) -> None:
            self.cells[0] += 7
            written.append(self.cells[0])

    Late()
    gc.collect()
    assert written == [7]


def claims(storage: SharedStorage) -> bool:
    try:
        storage.claim()
    except ValueError:
        return False
    return True


def test_one_of_two_buffers_gets_a_storage_whatever_comes_between() -> None:
    """One claims it; before each step of Python that this takes, another claims it as well."""
    for place in range(PLACES):
        storage = SharedStorage(2, example={"x": torch.tensor(0)})
        steps, won = 0, []

        def step(frame: FrameType, event: str, argument: object) -> object:
            nonlocal steps
            frame.f_trace_opcodes = True
            if event == "opcode":
                if steps == place:  # noqa: B023  # used up within this turn
                    won.append(claims(storage))  # noqa: B023
                steps += 1
            return step

        before = sys.gettrace()
        sys.settrace(step)  # type: ignore[arg-type]  # it returns itself
        try:
            first = claims(storage)
        finally:
            sys.settrace(before)
        if not won:
            break
        assert [*won, first] in ([True, False], [False, True]), place
    assert 1 < place < PLACES - 1
