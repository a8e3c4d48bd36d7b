"""KeyboardInterrupt anywhere in a capture or a restore: it is over, and all or nothing was done."""

import itertools
from functools import partial

import pytest
from forebay import BlockingReplayBuffer, ListStorage

from tests.library.interrupts import Interrupts, interrupted
from tests.library.saving import State, assert_nothing_left, plain
from tests.library.support import ledger_of
from tests.library.test_interrupts import Plain


def make(order: str, *records: int) -> BlockingReplayBuffer:
    """Return a buffer with these records, and one that was spent."""
    buffer = BlockingReplayBuffer(
        ListStorage(4), order="fifo" if order == "fifo" else "random", seed=0, monitor=Plain()
    )
    buffer.extend([0, *records])
    while buffer.sample(1) != [0]:
        buffer.empty()
        buffer.extend([0, *records])
    return buffer


def assert_free_to_go_on(buffer: BlockingReplayBuffer) -> None:
    assert_nothing_left(buffer)
    assert ledger_of(buffer).holds() == []
    assert buffer.stats().pinned == 0


@pytest.mark.parametrize("order", ["fifo", "random"])
@pytest.mark.parametrize("later", [(), (0,), (3,), (20,)])
def test_a_capture_that_is_interrupted_anywhere_changes_nothing(
    order: str, later: tuple[int, ...]
) -> None:
    buffer = make(order, 1, 2)
    before = plain(buffer.state_dict())
    for place in itertools.count():
        reached = interrupted(buffer.state_dict, place, *later)
        assert_free_to_go_on(buffer)
        assert plain(buffer.state_dict()) == before, place
        if not reached:
            break
    assert place > 50


def without_counters(state: State) -> object:
    return plain({**state, "counters": None})


@pytest.mark.parametrize("order", ["fifo", "random"])
@pytest.mark.parametrize("later", [(), (0,), (3,), (20,)])
def test_a_restore_that_is_interrupted_anywhere_is_whole_or_absent(
    order: str, later: tuple[int, ...]
) -> None:
    loaded = make(order, 7, 8, 9).state_dict()
    outcomes = set()
    for place in itertools.count():
        buffer = make(order, 1, 2)
        before = without_counters(buffer.state_dict())
        reached = interrupted(partial(buffer.load_state_dict, loaded), place, *later)
        assert_free_to_go_on(buffer)
        after = without_counters(buffer.state_dict())
        assert after in (before, without_counters(loaded)), place
        outcomes.add(after == before)
        if not reached:
            break
    assert outcomes == {True, False}
    assert place > 50


def test_interrupts_are_raised_at_all() -> None:
    buffer = make("fifo", 1)
    with Interrupts([10]) as planned, pytest.raises(KeyboardInterrupt):
        buffer.state_dict()
    assert planned.raised == 1
