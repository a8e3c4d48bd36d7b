"""Iteration over batches, and the questions that take nothing."""

import gc
import logging

import pytest
from forebay import Cancelled, SampleTimeout, ShutDown

from tests.library.support import Stage, make, patience, result


def test_iteration_waits_and_ends_when_closed_and_drained() -> None:
    """L23: full batches, then the short rest."""
    stage = Stage()
    buffer = make(8, stage, batch_size=3)
    with patience() as start:
        reading = start(lambda: list(buffer))
        stage.await_sleepers(1)
        buffer.extend([1, 2, 3, 4, 5])
        buffer.extend([6, 7])
        buffer.shutdown()
        assert result(reading) == [[1, 2, 3], [4, 5, 6], [7]]


def test_iteration_needs_a_batch_size_at_once() -> None:
    with pytest.raises(ValueError, match="pass batch_size"):
        iter(make(4))


def test_available_takes_what_is_there_now() -> None:
    stage = Stage()
    buffer = make(8, stage, batch_size=3)
    assert list(buffer.available()) == []
    buffer.extend([1, 2, 3, 4])
    assert list(buffer.available()) == [[1, 2, 3], [4]]
    buffer.extend([5, 6, 7])
    assert list(buffer.available(2)) == [[5, 6], [7]]
    assert buffer.stats().timeouts == 0
    assert buffer.stats().blocked_calls == 0
    assert stage.points.count("woken") == 0
    buffer.shutdown()
    assert list(buffer.available()) == []


def test_available_may_be_left_early_and_takes_only_what_it_gives() -> None:
    buffer = make(8)
    buffer.extend([1, 2, 3, 4])
    for batch in buffer.available(2):
        assert batch == [1, 2]
        break
    assert buffer.sample(2) == [3, 4]


def test_available_ends_where_own_leases_keep_everything() -> None:
    buffer = make(2, batch_size=1)
    buffer.extend([1, 2])
    with buffer.lease(2):
        assert list(buffer.available()) == []
    assert buffer.stats().spent == 2


def test_can_extend_and_can_sample_change_nothing_and_count_apart() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    assert (buffer.can_extend(2), buffer.can_extend(3)) == (True, False)
    assert (buffer.can_sample(2), buffer.can_sample(3)) == (True, False)
    assert buffer.can_sample(3, at_least=1)
    buffer.shutdown()
    assert not buffer.can_extend(1)
    assert buffer.can_sample(4)
    stats = buffer.stats()
    assert stats.advisory_calls == 7
    assert (stats.timeouts, stats.refusals, stats.blocked_calls) == (0, 0, 0)


@pytest.mark.filterwarnings("ignore:a lease of 2 records:ResourceWarning")
def test_can_extend_and_can_sample_see_what_a_finaliser_has_given_back() -> None:
    buffer = make(2)
    buffer.extend([1, 2])
    buffer.lease(2)
    gc.collect()
    assert buffer.can_sample(2)
    assert buffer.stats().returned == 2


def test_calls_that_only_look_are_no_sizes_to_warn_of(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    buffer = make(5, stage)
    buffer.extend([1, 2, 3])
    with caplog.at_level(logging.WARNING, logger="forebay"):
        assert not buffer.can_sample(4)
        assert not buffer.wait_until_sampleable(4, timeout=0)
        assert caplog.records == []
        with pytest.raises(SampleTimeout):
            buffer.sample(4, timeout=0)
    assert len(caplog.records) == 1


def test_waiting_until_records_can_be_sampled_is_not_waiting_in_line() -> None:
    """R2: advisory waits never count as blocked calls."""
    stage = Stage()
    buffer = make(4, stage)
    with patience() as start:
        watching = start(lambda: buffer.wait_until_sampleable(2))
        stage.await_sleepers(1)
        stats = buffer.stats()
        assert (stats.waiting_observers, stats.waiting_readers, stats.blocked_calls) == (1, 0, 0)
        buffer.extend([1])
        assert not watching.done()
        buffer.extend([2])
        assert result(watching)
    assert buffer.stats().waiting_observers == 0
    assert len(buffer) == 2


def test_waiting_until_records_can_be_sampled_ends_in_each_way() -> None:
    stage = Stage()
    buffer = make(4, stage)
    token = buffer.cancel_token()
    with patience() as start:
        late = start(lambda: buffer.wait_until_sampleable(1, timeout=3))
        stage.await_sleepers(1)
        stage.advance(3)
        assert result(late) is False
        cancelled = start(lambda: buffer.wait_until_sampleable(1, cancel_event=token))
        stage.await_sleepers(1)
        token.set()
        with pytest.raises(Cancelled):
            result(cancelled)
        closed = start(lambda: buffer.wait_until_sampleable(1))
        stage.await_sleepers(1)
        buffer.shutdown()
        with pytest.raises(ShutDown):
            result(closed)
    stats = buffer.stats()
    assert (stats.timeouts, stats.cancellations, stats.waiting_observers) == (0, 0, 0)
    with pytest.raises(SampleTimeout):
        make(4).sample(1, timeout=0)
