"""Sizes of writes and reads: what is refused, what waits, and what is nothing at all."""

import numpy as np
import pytest
from forebay import (
    Cancelled,
    ShutDown,
)

from tests.library.support import (
    Stage,
    make,
    patience,
    result,
    snapshot,
)


def test_a_batch_larger_than_capacity_is_refused_at_once() -> None:
    """L18."""
    buffer = make(4)
    before = snapshot(buffer)
    with pytest.raises(ValueError, match="5 records is larger than the capacity of 4"):
        buffer.extend(list(range(5)))
    assert snapshot(buffer) == before
    assert buffer.stats().blocked_calls == 0


def test_a_batch_size_larger_than_capacity_is_refused_at_once() -> None:
    """L18."""
    buffer = make(4)
    with pytest.raises(ValueError, match="batch_size 5 is larger than the capacity of 4"):
        buffer.sample(5)
    with pytest.raises(ValueError, match="larger than the capacity"):
        make(4, batch_size=5)


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_below_one_are_refused(size: int) -> None:
    """L40."""
    buffer = make(4)
    buffer.extend([1, 2, 3])
    with pytest.raises(ValueError, match="at least 1"):
        buffer.sample(size)
    with pytest.raises(ValueError, match="at least 1"):
        buffer.lease(size)
    assert len(buffer) == 3


def test_sample_of_more_than_there_is_waits() -> None:
    """L40: `sample(10)` of 3."""
    stage = Stage()
    buffer = make(12, stage)
    buffer.extend([1, 2, 3])
    with patience() as start:
        reading = start(lambda: buffer.sample(10))
        stage.await_sleepers(1)
        assert buffer.stats().waiting_readers == 1
        buffer.extend(list(range(4, 11)))
        assert result(reading) == list(range(1, 11))


@pytest.mark.parametrize("size", [True, 1.0, "2"])
def test_sizes_that_are_no_integers_are_refused(size: object) -> None:
    with pytest.raises(TypeError, match="batch_size must be an int"):
        make(4).sample(size)  # type: ignore[call-overload]  # wrong on purpose


def test_numpy_integers_are_sizes() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    assert buffer.sample(np.int64(2)) == [1, 2]  # type: ignore[call-overload]  # an __index__


def test_at_least_lies_between_one_and_the_batch_size() -> None:
    buffer = make(4)
    with pytest.raises(ValueError, match="at_least 3 is larger than the batch size of 2"):
        buffer.sample(2, at_least=3)
    with pytest.raises(ValueError, match="at_least must be at least 1"):
        buffer.sample(2, at_least=0)


def test_a_batch_size_is_needed() -> None:
    with pytest.raises(ValueError, match="pass batch_size"):
        make(4).sample()


def test_an_empty_batch_is_a_no_op() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    before, wakes = snapshot(buffer), stage.wakes
    index = buffer.extend([])
    assert index.tolist() == []
    assert str(index.dtype) == "torch.int64"
    assert snapshot(buffer) == before
    assert stage.wakes == wakes
    assert buffer.stats().admitted_batches == 1


def test_an_empty_batch_is_refused_by_a_closed_buffer_and_a_set_token() -> None:
    buffer = make(2)
    token = buffer.cancel_token()
    token.set()
    with pytest.raises(Cancelled):
        buffer.extend([], cancel_event=token)
    buffer.shutdown()
    with pytest.raises(ShutDown):
        buffer.extend([], cancel_event=token)
    assert (buffer.stats().cancellations, buffer.stats().refusals) == (1, 1)
