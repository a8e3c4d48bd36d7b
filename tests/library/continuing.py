"""Continuation: ways to save a buffer and have it again, and steps whose outcomes are compared."""

import copy
import pickle
import tempfile
from collections.abc import Callable

from forebay import BlockingReplayBuffer, ReplayBuffer
from hypothesis import strategies as st

from tests.library.saving import numbers, plain

Buffer = BlockingReplayBuffer | ReplayBuffer


def by_state(buffer: Buffer, new: Buffer) -> Buffer:
    new.load_state_dict(buffer.state_dict())
    return new


def by_file(buffer: Buffer, new: Buffer) -> Buffer:
    with tempfile.TemporaryDirectory() as path:
        buffer.dumps(path)
        new.loads(path)
    return new


def by_pickle(buffer: Buffer, new: Buffer) -> Buffer:
    loaded = pickle.loads(pickle.dumps(buffer))
    assert isinstance(loaded, BlockingReplayBuffer | ReplayBuffer)
    return loaded


def by_copy(buffer: Buffer, new: Buffer) -> Buffer:
    return copy.deepcopy(buffer)


WAYS: list[Callable[[Buffer, Buffer], Buffer]] = [by_state, by_file, by_pickle, by_copy]


def act(buffer: Buffer, kind: str, size: int, first: int) -> object:
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
