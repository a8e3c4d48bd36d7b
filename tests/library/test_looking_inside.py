"""What a buffer says about itself: exact counts, words, and a warning when a call stalls."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import FrozenInstanceError

import pytest
from forebay import AdmissionTimeout, BufferStats, Cancelled, SampleTimeout

from tests.library.support import Stage, make, patience, result

NAMES = {
    *("capacity", "sampleable", "filling", "pinned", "waiting_writers", "waiting_readers"),
    *("blocked_calls", "admitted", "delivered", "returned", "spent", "dropped"),
    *("admitted_batches", "delivered_batches", "returned_batches", "spent_batches"),
    *("dropped_batches", "timeouts", "cancellations", "refusals", "recoveries", "prefetched"),
    *("size", "write_count", "utilization"),
}


def test_stats_are_a_frozen_record_and_a_mapping() -> None:
    stats = make(4).stats()
    assert isinstance(stats, BufferStats)
    assert isinstance(stats, Mapping)
    assert set(stats) >= NAMES
    assert {name: getattr(stats, name) for name in stats} == dict(stats)
    assert len(stats) == len(list(stats))
    with pytest.raises(KeyError):
        stats["keys"]
    with pytest.raises(FrozenInstanceError):
        stats.capacity = 5  # type: ignore[misc]  # wrong on purpose


def test_every_count_is_exact() -> None:
    stage = Stage()
    buffer = make(4, stage, consume_after_n_samples=2)
    token = buffer.cancel_token()
    token.set()
    buffer.extend([1, 2, 3])
    buffer.extend([4])
    with pytest.raises(AdmissionTimeout):
        buffer.extend([5], timeout=0)
    with pytest.raises(Cancelled):
        buffer.extend([5], cancel_event=token)
    buffer.sample(2)
    buffer.lease(2).release()
    buffer.sample(4)
    with pytest.raises(SampleTimeout):
        buffer.sample(3, timeout=0)
    lease = buffer.lease(1)
    stats = buffer.stats()
    expected = {
        "capacity": 4,
        "sampleable": 1,
        "filling": 0,
        "pinned": 1,
        "free": 2,
        "waiting_writers": 0,
        "waiting_readers": 0,
        "waiting_observers": 0,
        "blocked_calls": 0,
        "admitted": 4,
        "admitted_batches": 2,
        "delivered": 6,
        "delivered_batches": 2,
        "returned": 2,
        "returned_batches": 1,
        "spent": 2,
        "spent_batches": 1,
        "dropped": 0,
        "dropped_batches": 0,
        "evicted": 0,
        "evicted_batches": 0,
        "timeouts": 2,
        "cancellations": 1,
        "refusals": 0,
        "recoveries": 0,
        "prefetched": 0,
        "advisory_calls": 0,
        "size": 1,
        "write_count": 4,
        "utilization": 0.25,
    }
    assert stats == expected
    lease.commit()
    buffer.empty()
    last = buffer.stats()
    assert (last.dropped, last.dropped_batches, last.spent, last.free) == (1, 1, 3, 4)
    assert last.admitted == last.spent + last.dropped


def test_waiting_calls_are_counted_while_they_wait() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    with patience() as start:
        writing = start(lambda: buffer.extend([3]))
        stage.await_sleepers(1)
        stats = buffer.stats()
        assert (stats.waiting_writers, stats.waiting_readers, stats.blocked_calls) == (1, 0, 1)
        buffer.sample(1)
        result(writing)
    stats = buffer.stats()
    assert (stats.waiting_writers, stats.blocked_calls) == (0, 1)


def test_counts_of_two_threads_are_exact() -> None:
    """R3: counts are exact, not estimates."""
    buffer = make(16)
    rounds = 300

    def write() -> None:
        for number in range(rounds):
            buffer.extend([number])

    def read() -> None:
        for _ in range(rounds):
            buffer.sample(1)

    with patience() as start:
        for call in [start(write), start(read), start(write), start(read)]:
            result(call)
    stats = buffer.stats()
    assert (stats.admitted, stats.admitted_batches) == (2 * rounds, 2 * rounds)
    assert (stats.delivered, stats.spent, stats.sampleable) == (2 * rounds, 2 * rounds, 0)


def test_describe_says_who_waits_for_what_and_who_holds_it_up() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2, 3, 4])
    buffer.sample(1)
    stage.now = 2.5
    holding, go = threading.Event(), threading.Event()

    def hold() -> None:
        threading.current_thread().name = "holder"
        with buffer.lease(2):
            holding.set()
            go.wait()

    def write() -> None:
        threading.current_thread().name = "writer"
        buffer.extend([5, 6])

    with patience() as start:
        held = start(hold)
        assert holding.wait(60)
        writing = start(write)
        stage.await_sleepers(1)
        assert buffer.describe().splitlines() == [
            "buffer of 4 records, open: 1 free, 1 sampleable, 0 being filled",
            "last delivery 2.5 s ago",
            "writer waits to write 2 records",
            "holder holds a lease of 2 records, ready",
        ]
        go.set()
        result(held)
        result(writing)
    buffer.fail(OSError("gone"))
    assert "failed with OSError('gone')" in buffer.describe()


def test_a_call_that_waits_too_long_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    buffer = make(4, stage, stall_warning=30.0)
    with caplog.at_level(logging.WARNING, logger="forebay"), patience() as start:
        reading = start(lambda: buffer.sample(3, at_least=2))
        stage.await_sleepers(1)
        stage.advance(29)
        stage.await_sleepers(1)
        assert caplog.records == []
        for _ in range(3):
            stage.advance(30)
            stage.await_sleepers(1)
        buffer.extend([1, 2])
        assert result(reading) == [1, 2]
    (record,) = caplog.records
    first, *rest = record.getMessage().splitlines()
    assert first.startswith("a sample of 2 to 3 records has waited for ")
    assert rest[0] == "buffer of 4 records, open: 4 free, 0 sampleable, 0 being filled"
    assert rest[1] == "nothing was delivered yet"
    assert rest[2].endswith("waits to sample at least 2 and at most 3 records")


def test_the_stall_warning_can_be_turned_off(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    buffer = make(4, stage, stall_warning=None)
    with caplog.at_level(logging.WARNING, logger="forebay"), patience() as start:
        reading = start(lambda: buffer.sample(1))
        stage.await_sleepers(1)
        stage.advance(1e6)
        stage.await_sleepers(1)
        buffer.extend([1])
        result(reading)
    assert caplog.records == []


def test_an_observer_that_waits_too_long_is_reported_once_and_sleeps_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    buffer = make(4, stage, stall_warning=30.0)
    with caplog.at_level(logging.WARNING, logger="forebay"), patience() as start:
        waiting = start(lambda: buffer.wait_until_sampleable(1))
        for _ in range(3):
            stage.await_sleepers(1)
            stage.advance(40)
        stage.await_sleepers(1)
        buffer.extend([1])
        assert result(waiting) is True
    assert len(caplog.records) == 1
