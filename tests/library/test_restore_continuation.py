"""Continuation: what was restored goes on as the original does, batch by batch, index by index."""

import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from forebay import BlockingReplayBuffer, TensorStorage
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.saving import assert_nothing_left, assert_whole, numbers, plain

CAPACITY = 7
BATCH = 2


def make(order: str, uses: int, prefetch: int, seed: int) -> BlockingReplayBuffer:
    options: dict[str, Any] = {"order": order, "consume_after_n_samples": uses}
    return BlockingReplayBuffer(
        TensorStorage(CAPACITY), batch_size=BATCH, prefetch=prefetch, seed=seed, **options
    )


def by_state(buffer: BlockingReplayBuffer, new: BlockingReplayBuffer) -> BlockingReplayBuffer:
    new.load_state_dict(buffer.state_dict())
    return new


def by_file(buffer: BlockingReplayBuffer, new: BlockingReplayBuffer) -> BlockingReplayBuffer:
    with tempfile.TemporaryDirectory() as path:
        buffer.dumps(path)
        new.loads(path)
    return new


def by_pickle(buffer: BlockingReplayBuffer, new: BlockingReplayBuffer) -> BlockingReplayBuffer:
    loaded = pickle.loads(pickle.dumps(buffer))
    assert isinstance(loaded, BlockingReplayBuffer)
    return loaded


WAYS: list[Callable[[BlockingReplayBuffer, BlockingReplayBuffer], BlockingReplayBuffer]] = [
    by_state,
    by_file,
    by_pickle,
]


def act(buffer: BlockingReplayBuffer, kind: str, size: int, first: int) -> object:
    """Take one step and return all that can be seen of it.

    What is drawn ahead has settled before, so that it does not matter how fast that goes.
    """
    if buffer._prefetcher is not None:
        assert buffer._prefetcher.wait_settled(None)
    try:
        if kind == "extend":
            return buffer.extend(numbers(first, size), timeout=0).tolist()
        if kind == "empty":
            buffer.empty()
            return len(buffer)
        if kind == "sample":
            batch, info = buffer.sample(size, True, timeout=0)
            return plain(batch), info["index"].tolist()
        lease = buffer.lease(size, timeout=0, at_least=1)
        seen = plain(lease.batch), lease.index.tolist()
        (lease.commit if kind == "commit" else lease.release)()
        return seen
    except (TimeoutError, RuntimeError) as error:
        return type(error).__name__


KINDS = st.sampled_from(["extend", "extend", "sample", "sample", "commit", "release", "empty"])
STEPS = st.lists(st.tuples(KINDS, st.integers(1, 4)), min_size=1, max_size=25)


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
    way: Callable[[BlockingReplayBuffer, BlockingReplayBuffer], BlockingReplayBuffer],
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
