"""Who is served when: arrival order, mutual waits, and what a waiting call leaves behind."""

import logging
import threading
from functools import partial

import pytest
from forebay import AdmissionTimeout, Cancelled, MutualWait, SampleTimeout

from tests.library.support import (
    Stage,
    assert_consistent,
    ledger_of,
    make,
    patience,
    result,
    snapshot,
)


def test_a_large_batch_is_not_overtaken_by_small_ones() -> None:
    """L06: capacity 8, a writer of 6 waits while others write 1 in a loop."""
    stage = Stage()
    buffer = make(8, stage)
    buffer.extend(list(range(8)))
    with patience() as start:
        large = start(lambda: buffer.extend([f"large {i}" for i in range(6)]))
        stage.await_sleepers(1)
        small = [start(partial(buffer.extend, [f"small {i}"])) for i in range(3)]
        stage.await_sleepers(4)
        for _ in range(5):
            buffer.sample(1)
            assert not large.done()
            assert not any(call.done() for call in small)
        buffer.sample(1)
        assert result(large).tolist() == list(range(6))
        assert not any(call.done() for call in small)
        buffer.sample(2)
        buffer.sample(1)
        assert sorted(result(call).tolist()[0] for call in small) == [0, 6, 7]
    assert_consistent(buffer)


def test_readers_are_served_in_the_order_of_their_arrival() -> None:
    stage = Stage()
    buffer = make(8, stage)
    with patience() as start:
        first = start(lambda: buffer.sample(3))
        stage.await_sleepers(1)
        second = start(lambda: buffer.sample(1))
        stage.await_sleepers(2)
        buffer.extend([1, 2])
        assert not second.done()
        with pytest.raises(SampleTimeout):
            buffer.sample(1, timeout=0)
        buffer.extend([3, 4])
        assert (result(first), result(second)) == ([1, 2, 3], [4])


def test_a_head_that_expires_lets_the_next_one_in() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2, 3])
    with patience() as start:
        large = start(lambda: buffer.extend([4, 5], timeout=1))
        stage.await_sleepers(1)
        small = start(lambda: buffer.extend([6]))
        stage.await_sleepers(2)
        stage.advance(1)
        with pytest.raises(AdmissionTimeout):
            result(large)
        assert result(small).tolist() == [3]
    assert_consistent(buffer)


def test_a_head_that_is_cancelled_lets_the_next_one_in() -> None:
    stage = Stage()
    buffer = make(4, stage)
    token = buffer.cancel_token()
    with patience() as start:
        large = start(lambda: buffer.sample(3, cancel_event=token))
        stage.await_sleepers(1)
        small = start(lambda: buffer.sample(1))
        stage.await_sleepers(2)
        buffer.extend([1])
        assert not small.done()
        token.set()
        with pytest.raises(Cancelled):
            result(large)
        assert result(small) == [1]


def test_at_least_takes_what_is_there_as_soon_as_there_are_enough() -> None:
    stage = Stage()
    buffer = make(8, stage)
    buffer.extend([1])
    with patience() as start:
        reading = start(lambda: buffer.sample(5, at_least=3))
        stage.await_sleepers(1)
        buffer.extend([2, 3, 4])
        assert result(reading) == [1, 2, 3, 4]


def test_one_publish_wakes_all_who_can_go_on() -> None:
    stage = Stage()
    buffer = make(8, stage)
    with patience() as start:
        readers = [start(lambda: buffer.sample(2)) for _ in range(4)]
        stage.await_sleepers(4)
        buffer.extend(list(range(8)))
        taken = [result(reader) for reader in readers]
    assert sorted(map(str, taken)) == ["[0, 1]", "[2, 3]", "[4, 5]", "[6, 7]"]


def test_leases_of_threads_that_wait_for_each_other_are_a_mutual_wait() -> None:
    """ADR 1: a deadlock needs only one kind of waiter."""
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    both_hold = threading.Barrier(2)

    def lease_and_ask() -> object:
        with buffer.lease(1) as held:
            both_hold.wait()
            buffer.sample(1)
        return held

    with patience() as start:
        calls = [start(lease_and_ask), start(lease_and_ask)]
        errors = [call.exception(60) for call in calls]
        victims = [error for error in errors if error is not None]
        assert [type(error) for error in victims] == [MutualWait]
        assert "leases of threads that wait themselves" in str(victims[0])
    assert len(buffer) == 0


def test_a_newcomer_makes_the_older_victim_give_way() -> None:
    """The arrival that completes a mutual wait wakes the victim, who is already asleep."""
    stage = Stage()
    buffer = make(3, stage)
    buffer.extend([1, 2, 3])
    ready, go = threading.Event(), threading.Event()

    def hold_and_write() -> list[int]:
        with buffer.lease(1):
            ready.set()
            go.wait()
            return buffer.extend([4, 5]).tolist()

    with patience() as start:
        writing = start(hold_and_write)
        ready.wait()
        head = start(lambda: buffer.extend([6]))
        stage.await_sleepers(1)
        reading = start(lambda: buffer.sample(3))
        stage.await_sleepers(2)
        go.set()
        with pytest.raises(MutualWait):
            result(reading)
        assert buffer.sample(1) == [2]
        assert result(head).tolist() == [1]
        assert buffer.sample(2) == [3, 6]
        assert result(writing) == [2, 1]
    assert_consistent(buffer)


def test_a_call_that_never_fits_beside_its_own_leases_fails_at_once() -> None:
    stage = Stage()
    buffer = make(3, stage)
    buffer.extend([1, 2])
    with buffer.lease(2):
        with pytest.raises(MutualWait, match="leases of this thread keep 2 of 3 slots"):
            buffer.extend([3, 4])
        with pytest.raises(MutualWait, match="a capacity of at least 4"):
            buffer.sample(2)
        assert buffer.extend([3]).tolist() == [2]
    assert stage.points.count("woken") == 0
    assert buffer.sample(1) == [3]


def test_a_waiting_call_that_raises_leaves_no_ticket() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    before = snapshot(buffer)

    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.at["woken"] = interrupt
    with patience() as start:
        writing = start(lambda: buffer.extend([3]))
        stage.await_sleepers(1)
        assert buffer.stats().waiting_writers == 1
        stage.advance(0)
        with pytest.raises(KeyboardInterrupt):
            result(writing)
    assert snapshot(buffer) == before
    assert buffer.stats().waiting_writers == 0


def test_sizes_that_can_come_to_wait_for_each_other_are_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """n + k > C + gcd(n, k)."""
    buffer = make(6)
    with caplog.at_level(logging.WARNING, logger="forebay"):
        buffer.extend([1, 2, 3, 4])
        buffer.sample(4)
        assert caplog.records == []
        buffer.extend([1, 2, 3, 4])
        buffer.sample(3)
        assert caplog.records == []
        buffer.extend([1, 2, 3])
        buffer.sample(4)
    assert caplog.records == []
    narrow = make(5)
    with caplog.at_level(logging.WARNING, logger="forebay"):
        for _ in range(2):
            narrow.extend([1, 2, 3])
            with pytest.raises(SampleTimeout):
                narrow.sample(4, timeout=0)
            narrow.empty()
    assert [record.getMessage() for record in caplog.records] == [
        "writes of 3 and samples of 4 records can come to wait for each other in a capacity of 5, "
        "which ends one of them with MutualWait; a capacity of 6 cannot"
    ]


def test_tickets_of_many_calls_keep_their_order() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([0, 1, 2, 3])
    with patience() as start:
        calls = []
        for number in range(6):
            calls.append(start(partial(buffer.extend, [number])))
            stage.await_sleepers(number + 1)
        tickets = ledger_of(buffer).tickets()
        assert [ticket.number for ticket in tickets] == sorted(t.number for t in tickets)
        assert len({ticket.actor for ticket in tickets}) == 6
        buffer.sample(4)
        for call in calls[:4]:
            result(call)
        buffer.sample(2)
        for call in calls[4:]:
            result(call)
    assert buffer.sample(4) == [2, 3, 4, 5]
