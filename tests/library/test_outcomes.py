"""The table "What callers see" of the design, entry by entry, and the precedence of outcomes."""

import queue
import sys
import threading
from collections.abc import Callable

import pytest
from forebay import (
    AdmissionTimeout,
    BlockingReplayBuffer,
    Cancelled,
    MutualWait,
    PeerLost,
    SampleTimeout,
    ShutDown,
)

from tests.library.support import (
    Stage,
    ledger_of,
    make,
    patience,
    result,
    snapshot,
)

CALLS: dict[str, Callable[[BlockingReplayBuffer, object], object]] = {
    "extend": lambda buffer, timeout: buffer.extend([9], timeout=timeout),  # type: ignore[arg-type]  # wrong on purpose
    "sample": lambda buffer, timeout: buffer.sample(1, timeout=timeout),  # type: ignore[call-overload]  # wrong on purpose
    "lease": lambda buffer, timeout: buffer.lease(1, timeout=timeout),  # type: ignore[arg-type]  # wrong on purpose
    "writer": lambda buffer, timeout: buffer.writer(timeout=timeout),  # type: ignore[arg-type]  # wrong on purpose
    "wait": lambda buffer, timeout: buffer.wait_until_sampleable(1, timeout=timeout),  # type: ignore[arg-type]  # wrong on purpose
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("timeout", [-1, -0.001, float("nan"), float("-inf")])
def test_timeouts_that_are_no_durations_are_refused(call: str, timeout: float) -> None:
    buffer = make(4)
    with pytest.raises(ValueError, match="timeout must be None or at least 0 seconds"):
        CALLS[call](buffer, timeout)
    assert len(buffer) == 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("timeout", [True, False, "1", 1j, [1]])
def test_timeouts_that_are_no_numbers_are_refused(call: str, timeout: object) -> None:
    with pytest.raises(TypeError, match="timeout must be None or a number"):
        CALLS[call](make(4), timeout)


@pytest.mark.parametrize("timeout", [None, float("inf"), 1e300, sys.float_info.max])
def test_endless_timeouts_wait_until_served(timeout: float | None) -> None:
    """L07: a timeout beyond what the platform can wait is accepted as for ever."""
    stage = Stage()
    buffer = make(2, stage)
    with patience() as start:
        reading = start(lambda: buffer.sample(1, timeout=timeout))
        stage.await_sleepers(1)
        buffer.extend([7])
        assert result(reading) == [7]
        buffer.extend([1, 2])
        writing = start(lambda: buffer.extend([3], timeout=timeout))
        stage.await_sleepers(1)
        assert buffer.sample(1) == [1]
        assert result(writing).tolist() == [0]


def test_timeout_zero_is_served_when_it_can_be_and_never_waits() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2], timeout=0)
    with pytest.raises(AdmissionTimeout):
        buffer.extend([3], timeout=0)
    assert buffer.sample(2, timeout=0) == [1, 2]
    with pytest.raises(SampleTimeout):
        buffer.sample(1, timeout=0)
    assert buffer.stats().blocked_calls == 0


def test_timeout_zero_expires_behind_a_ticket_though_it_would_fit() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2, 3])
    with patience() as start:
        large = start(lambda: buffer.extend([4, 5]))
        stage.await_sleepers(1)
        with pytest.raises(AdmissionTimeout):
            buffer.extend([6], timeout=0)
        buffer.sample(1)
        assert result(large).tolist() == [0, 3]


def test_a_writers_timeout() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    before = snapshot(buffer)
    with patience() as start:
        writing = start(lambda: buffer.extend([3], timeout=5))
        stage.await_sleepers(1)
        stage.advance(4.75)
        stage.await_sleepers(1)
        assert not writing.done()
        stage.advance(0.25)
        with pytest.raises(AdmissionTimeout, match=r"within 5\.0 s; nothing was written") as caught:
            result(writing)
    assert isinstance(caught.value, queue.Full)
    assert isinstance(caught.value, TimeoutError)
    assert snapshot(buffer) == before
    assert buffer.stats().timeouts == 1


def test_a_readers_timeout() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1])
    before = snapshot(buffer)
    with patience() as start:
        reading = start(lambda: buffer.sample(2, timeout=5))
        stage.await_sleepers(1)
        stage.advance(5)
        with pytest.raises(SampleTimeout, match=r"within 5\.0 s; nothing was consumed") as caught:
            result(reading)
    assert isinstance(caught.value, queue.Empty)
    assert isinstance(caught.value, TimeoutError)
    assert snapshot(buffer) == before


def test_the_deadline_is_not_restarted_by_wake_ups() -> None:
    """L07: five seconds are five seconds, however often the call is woken."""
    stage = Stage()
    buffer = make(2, stage)
    with patience() as start:
        reading = start(lambda: buffer.sample(1, timeout=5))
        for _ in range(49):
            stage.await_sleepers(1)
            stage.advance(0.1)
        stage.await_sleepers(1)
        assert not reading.done()
        stage.advance(0.2)
        with pytest.raises(SampleTimeout):
            result(reading)


@pytest.mark.parametrize("when", ["before", "while it waits"])
@pytest.mark.parametrize("kind", ["token", "event"])
def test_cancelled(when: str, kind: str) -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    event = buffer.cancel_token() if kind == "token" else threading.Event()
    if when == "before":
        event.set()
        with pytest.raises(Cancelled):
            buffer.sample(1, cancel_event=event)
        with pytest.raises(Cancelled):
            buffer.lease(1, cancel_event=event)
    before = snapshot(buffer)
    with patience() as start:
        writing = start(lambda: buffer.extend([3], cancel_event=event))
        if when != "before":
            stage.await_sleepers(1)
            event.set()
            stage.advance(1)
        with pytest.raises(Cancelled, match="a write of 1 record was cancelled") as caught:
            result(writing)
    assert not isinstance(caught.value, TimeoutError | ShutDown)
    assert snapshot(buffer) == before


def test_a_closed_buffer_refuses_writers_and_drains() -> None:
    """L23: the last producer has finished; the rest is read, then it is over."""
    stage = Stage()
    buffer = make(4, stage, batch_size=2)
    buffer.extend([1, 2, 3])
    buffer.shutdown()
    with pytest.raises(ShutDown, match="a write of 1 record was refused"):
        buffer.extend([4])
    assert buffer.sample() == [1, 2]
    assert buffer.sample() == [3]
    with pytest.raises(ShutDown, match="nothing is left") as caught:
        buffer.sample()
    assert isinstance(caught.value, RuntimeError)
    shut_down: type[BaseException] | None = getattr(queue, "ShutDown", None)
    assert shut_down is None or isinstance(caught.value, shut_down)


def test_closing_at_once_refuses_readers_and_keeps_the_records() -> None:
    buffer = make(4)
    buffer.extend([1, 2, 3])
    buffer.shutdown(immediate=True)
    with pytest.raises(ShutDown, match="the buffer was stopped; a sample of 1 record was refused"):
        buffer.sample(1)
    assert len(buffer) == 3


def test_shutdown_reaches_every_blocked_call() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1])
    with patience() as start:
        calls = [start(lambda: buffer.extend([2, 3])), start(lambda: buffer.extend([4]))]
        stage.await_sleepers(2)
        buffer.shutdown(immediate=True)
        for call in calls:
            with pytest.raises(ShutDown):
                result(call)
    assert ledger_of(buffer).tickets() == []
    assert buffer.stats().refusals == 2


def test_draining_serves_a_waiting_reader_with_less_than_it_asked_for() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1])
    with patience() as start:
        reading = start(lambda: buffer.sample(3))
        stage.await_sleepers(1)
        buffer.shutdown()
        assert result(reading) == [1]


def test_a_batch_admitted_before_the_shutdown_is_published_and_drained() -> None:
    """Drainers wait for what is being filled."""
    stage = Stage()
    buffer = make(4, stage)
    stage.at["admitted"] = buffer.shutdown
    buffer.extend([1, 2])
    assert buffer.sample(4) == [1, 2]


def test_a_failure_reaches_every_call_with_its_cause() -> None:
    stage = Stage()
    buffer = make(2, stage)
    cause = OSError("the disk is gone")
    with patience() as start:
        reading = start(lambda: buffer.sample(1))
        stage.await_sleepers(1)
        buffer.fail(cause)
        with pytest.raises(PeerLost, match="the disk is gone") as caught:
            result(reading)
        assert caught.value.__cause__ is cause
    buffer.fail(ValueError("a later failure changes nothing"))
    calls: list[Callable[[], object]] = [
        lambda: buffer.extend([1]),
        lambda: buffer.extend([]),
        lambda: buffer.sample(1),
        lambda: buffer.lease(1),
        lambda: list(buffer.available(1)),
        lambda: buffer.writer(when_closed="discard").extend([1]),
        lambda: buffer.wait_until_sampleable(1),
    ]
    for call in calls:
        with pytest.raises(PeerLost) as caught:
            call()
        assert caught.value.__cause__ is cause


def test_fail_takes_an_exception() -> None:
    with pytest.raises(TypeError, match="the exception that is the cause"):
        make(2).fail("broken")  # type: ignore[arg-type]  # wrong on purpose


def test_closing_comes_before_a_set_flag_which_comes_before_room() -> None:
    """Precedence: closed, cancelled, served, mutual wait, timeout."""
    buffer = make(4)
    buffer.extend([1])
    token = buffer.cancel_token()
    token.set()
    with pytest.raises(Cancelled):
        buffer.extend([2], cancel_event=token, timeout=0)
    with pytest.raises(Cancelled):
        buffer.sample(1, cancel_event=token, timeout=0)
    buffer.shutdown(immediate=True)
    with pytest.raises(ShutDown):
        buffer.extend([2], cancel_event=token, timeout=0)
    with pytest.raises(ShutDown):
        buffer.sample(1, cancel_event=token, timeout=0)


def test_a_draining_buffer_cancels_readers_before_it_serves_them() -> None:
    buffer = make(4)
    buffer.extend([1])
    token = buffer.cancel_token()
    token.set()
    buffer.shutdown()
    with pytest.raises(Cancelled):
        buffer.sample(1, cancel_event=token)
    assert buffer.sample(1) == [1]
    with pytest.raises(Cancelled):
        buffer.sample(1, cancel_event=token)


def test_arguments_are_checked_before_the_buffer_is_looked_at() -> None:
    buffer = make(4)
    buffer.shutdown(immediate=True)
    with pytest.raises(ValueError, match="timeout"):
        buffer.extend([1], timeout=-1)
    with pytest.raises(ValueError, match="larger than the capacity"):
        buffer.extend(list(range(9)))
    with pytest.raises(TypeError, match="cancel_event"):
        buffer.sample(1, cancel_event="now")  # type: ignore[call-overload]  # wrong on purpose


def test_mutual_wait_names_the_sizes_and_the_capacity_that_would_do() -> None:
    """Capacity 3, two records live, a writer of 2, a reader of 3."""
    stage = Stage()
    buffer = make(3, stage)
    buffer.extend([1, 2])
    with patience() as start:
        writing = start(lambda: buffer.extend([3, 4], timeout=5))
        stage.await_sleepers(1)
        message = "writer of 2 records and a reader of 3 records .* capacity of 3, .* 4 would do"
        with pytest.raises(MutualWait, match=message):
            buffer.sample(3, timeout=0)
        assert not writing.done()
        assert buffer.sample(1) == [1]
        assert result(writing).tolist() == [0, 2]


def test_the_later_head_gives_way_whatever_its_deadline() -> None:
    stage = Stage()
    buffer = make(3, stage)
    buffer.extend([1, 2])
    with patience() as start:
        reading = start(lambda: buffer.sample(3))
        stage.await_sleepers(1)
        with pytest.raises(MutualWait):
            buffer.extend([3, 4])
        buffer.extend([3])
        assert result(reading) == [1, 2, 3]
