"""Continuation: what was restored goes on as the original does, batch by batch, index by index."""

from collections.abc import Callable
from typing import Any

import pytest
from forebay import BlockingReplayBuffer, TensorStorage
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.continuing import STEPS, WAYS, Buffer, act
from tests.library.saving import assert_nothing_left, assert_whole, plain

CAPACITY = 7
BATCH = 2


def make(order: str, uses: int, prefetch: int, seed: int) -> BlockingReplayBuffer:
    options: dict[str, Any] = {"order": order, "consume_after_n_samples": uses}
    return BlockingReplayBuffer(
        TensorStorage(CAPACITY), batch_size=BATCH, prefetch=prefetch, seed=seed, **options
    )


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("order", ["fifo", "random"])
@settings(max_examples=50, deadline=None)
@given(
    steps=STEPS,
    later=STEPS,
    uses=st.integers(1, 3),
    way=st.sampled_from(WAYS),
    seed=st.integers(0, 3),
)
def test_a_restored_buffer_goes_on_as_the_original(
    order: str,
    prefetch: int,
    steps: list[tuple[str, int]],
    later: list[tuple[str, int]],
    uses: int,
    way: Callable[[Buffer, Buffer], Buffer],
    seed: int,
) -> None:
    original = make(order, uses, prefetch, seed)
    for number, (kind, size) in enumerate(steps):
        act(original, kind, size, 10 * number)
    state = original.state_dict()
    assert_whole(state, original)
    restored = way(original, make(order, uses, prefetch, 99))
    assert plain(restored.state_dict()) == plain(state)
    for number, (kind, size) in enumerate(later):
        first = 1000 + 10 * number
        assert act(restored, kind, size, first) == act(original, kind, size, first)
    assert plain(restored.state_dict()) == plain(original.state_dict())
    assert_nothing_left(restored)
