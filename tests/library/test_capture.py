"""What `state_dict` returns: one moment of the buffer, whatever others are in the middle of."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from forebay import BlockingReplayBuffer, ListStorage, ShutDown
from forebay._stages import Stage as Crossing
from tensordict import TensorDict

from tests.library.saving import (
    assert_nothing_left,
    assert_whole,
    at_point,
    crossing,
    make,
    make_tensors,
    numbers,
    plain,
)
from tests.library.support import PATIENCE, Stage, ledger_of, patience, result, snapshot

pytestmark = pytest.mark.filterwarnings("error")


def test_the_state_of_a_new_buffer() -> None:
    buffer = BlockingReplayBuffer(ListStorage(3), batch_size=2, seed=5)
    state = buffer.state_dict()
    key = state["generator"]["key"]
    assert len(key) == 2
    assert plain(state) == {
        "format": "forebay",
        "version": 1,
        "buffer": {
            "kind": "blocking",
            "capacity": 3,
            "consume_after_n_samples": 1,
            "order": "fifo",
            "batch_size": 2,
            "prefetch": 0,
        },
        "counters": dict.fromkeys(state["counters"], 0),
        "generator": {"key": key, "draws": 0},
        "records": {
            "slots": ["torch.int64", []],
            "uses": ["torch.int64", []],
            "stamps": ["torch.int64", []],
            "data": [],
        },
        "free": {"order": ["torch.int64", [0, 1, 2]], "fresh": 3},
        "sampler": {},
        "prefetched": {"version": 1, "depth": 0, "batches": []},
        "transforms": [],
    }
    assert not {name for name in state["counters"] if "waiting" in name}
    assert make_tensors(3).state_dict()["records"]["data"] is None


def test_records_come_oldest_first_with_their_uses_and_ages() -> None:
    buffer = make(4, consume_after_n_samples=2)
    buffer.extend(["a", "b", "c"])
    assert buffer.sample(1) == ["a"]
    records = buffer.state_dict()["records"]
    assert records["data"] == ["b", "c", "a"]
    assert records["slots"].tolist() == [1, 2, 0]
    assert records["uses"].tolist() == [0, 0, 1]
    assert records["stamps"].tolist() == [1, 2, 3]


def test_a_random_buffer_has_its_places_instead_of_ages() -> None:
    buffer = make(4, order="random", seed=3)
    buffer.extend(["a", "b", "c", "d"])
    buffer.sample(1)
    state = buffer.state_dict()
    slots = state["records"]["slots"].tolist()
    assert slots == sorted(slots)
    assert state["records"]["stamps"].tolist() == [0, 0, 0]
    assert sorted(state["sampler"]["dense"].tolist()) == slots
    assert state["generator"]["draws"] == 1


def test_l37_a_state_is_a_frozen_copy() -> None:
    buffer = make_tensors(4, batch_size=2)
    buffer.extend(numbers(0, 4))
    state = buffer.state_dict()
    before = plain(state)
    buffer.sample(4)
    buffer.extend(numbers(10, 4))
    buffer.empty()
    assert plain(state) == before
    assert state["records"]["data"]["x"].tolist() == [0, 1, 2, 3]


def test_a_capture_changes_nothing() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    lease = buffer.lease(1)
    before, counts = snapshot(buffer), dict(buffer.stats())
    buffer.state_dict()
    assert snapshot(buffer) == before
    assert dict(buffer.stats()) == counts
    assert_nothing_left(buffer)
    lease.commit()


def test_what_others_hold_counts_as_not_drawn() -> None:
    """Leases are returned in draw order, each record with the age that it had."""
    buffer = make(4, consume_after_n_samples=2)
    buffer.extend(["a", "b", "c"])
    first, second = buffer.lease(2), buffer.lease(2)
    assert second.batch == ["c", "a"]
    records = buffer.state_dict()["records"]
    by_slot = dict(zip(records["slots"].tolist(), records["uses"].tolist(), strict=True))
    assert by_slot == {0: 0, 1: 0, 2: 0}
    ages = dict(zip(records["data"], records["stamps"].tolist(), strict=True))
    assert sorted(ages, key=ages.__getitem__) == ["a", "b", "c"]
    assert_whole(buffer.state_dict(), buffer)
    first.release()
    second.commit()


def test_dropped_records_that_a_lease_holds_are_free() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    lease = buffer.lease(1)
    buffer.empty()
    state = buffer.state_dict()
    assert state["records"]["slots"].tolist() == []
    assert state["free"]["order"].tolist() == [1, 0, 2, 3]
    assert state["free"]["fresh"] == 2
    lease.release()


class TestL29:
    """A write that waits or copies is wholly out; the caller gets its index afterwards."""

    def test_a_write_that_waits(self) -> None:
        stage = Stage()
        buffer = make(2, stage)
        buffer.extend([1, 2])
        with patience() as start:
            writing = start(lambda: buffer.extend([3]))
            stage.await_sleepers(1)
            state = buffer.state_dict()
            assert state["records"]["data"] == [1, 2]
            assert_whole(state, buffer)
            assert buffer.sample(1) == [1]
            assert result(writing).tolist() == [0]

    def test_a_write_that_copies(self) -> None:
        stage = Stage()
        buffer = make(4, stage)
        buffer.extend([1])
        states: list[dict[str, Any]] = []
        with at_point(stage, "copied", lambda: states.append(buffer_state())), patience() as start:

            def buffer_state() -> dict[str, Any]:
                return result(start(buffer.state_dict))

            assert buffer.extend([2, 3]).tolist() == [1, 2]
        assert states[0]["records"]["data"] == [1]
        assert states[0]["free"]["order"].tolist() == [1, 2, 3]
        assert states[0]["free"]["fresh"] == 1
        assert states[0]["counters"]["admitted"] == 1
        assert_whole(states[0], buffer)


def test_l27_waiting_calls_are_not_state() -> None:
    stage = Stage()
    buffer = make(2, stage)
    with patience() as start:
        reading = start(lambda: buffer.sample(1, timeout=5))
        stage.await_sleepers(1)
        state = buffer.state_dict()
        other = make(2)
        other.load_state_dict(state)
        assert other.stats().waiting_readers == 0
        assert buffer.stats().waiting_readers == 1
        buffer.extend([1])
        assert result(reading) == [1]


def test_a_capture_waits_for_what_gathers_and_readers_wait_for_the_capture() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2, 3])
    gathered, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        gathered.set()
        assert go_on.wait(PATIENCE)

    with patience() as start, at_point(stage, "drawn", hold):
        reading = start(lambda: buffer.lease(1))
        assert gathered.wait(PATIENCE)
        saving = start(buffer.state_dict)
        stage.await_sleepers(1)
        assert crossing(buffer) is Crossing.CAPTURING
        held_off = start(lambda: buffer.sample(1))
        stage.await_sleepers(2)
        assert not saving.done()
        go_on.set()
        assert result(saving)["records"]["data"] == [1, 2, 3]
        assert result(held_off) == [2]
        result(reading).commit()
    assert_nothing_left(buffer)


def test_a_second_capture_waits_for_the_first() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1])
    others: list[Any] = []

    def begin() -> None:
        others.append(start(buffer.state_dict))
        stage.await_sleepers(1)

    with patience() as start:
        with at_point(stage, "captured", begin):
            first = buffer.state_dict()
        assert plain(result(others[0])) == plain(first)
    assert_nothing_left(buffer)


def test_what_is_still_to_be_copied_is_not_overwritten_and_then_let_go_part_by_part() -> None:
    """Copied slots: spent while they are copied they stay; each part is free once it is copied."""
    stage = Stage()
    buffer = make(2048, stage)
    buffer.extend(list(range(2048)))
    free: list[int] = []

    def spend() -> None:
        assert crossing(buffer) is Crossing.COPYING
        assert buffer.sample(2048) == list(range(2048))
        free.append(buffer.stats().free)
        stage.at["copied out"] = lambda: free.append(buffer.stats().free)

    with at_point(stage, "captured", spend):
        state = buffer.state_dict()
    assert free == [0, 1024, 2048]
    assert state["records"]["data"] == list(range(2048))
    assert buffer.stats().spent == 2048
    assert ledger_of(buffer).free_order() == list(range(2048))
    assert_nothing_left(buffer)


def test_a_writer_goes_on_as_soon_as_a_part_is_copied() -> None:
    stage = Stage()
    buffer = make(2048, stage)
    buffer.extend(list(range(2048)))
    writes: list[Any] = []

    def spend() -> None:
        buffer.sample(2048)
        writes.append(start(lambda: buffer.extend([-1] * 1024)))
        stage.await_sleepers(1)
        stage.at["copied out"] = lambda: result(writes[0])

    with patience() as start, at_point(stage, "captured", spend):
        state = buffer.state_dict()
    assert state["records"]["data"] == list(range(2048))
    assert_nothing_left(buffer)


def test_records_that_are_dropped_while_they_are_copied_are_in_the_state() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    with at_point(stage, "captured", buffer.empty):
        state = buffer.state_dict()
    assert state["records"]["data"] == [1, 2]
    assert buffer.stats().free == 2
    assert_nothing_left(buffer)


@pytest.mark.parametrize("label", ["capturing", "captured", "copied out"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_at_any_place_lets_all_go(label: str, error: type[BaseException]) -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2])

    def fail() -> None:
        raise error

    before = snapshot(buffer)
    with at_point(stage, label, fail), pytest.raises(error):
        buffer.state_dict()
    assert snapshot(buffer) == before
    assert_nothing_left(buffer)
    assert buffer.state_dict()["records"]["data"] == [1, 2]


def test_a_transform_that_captures_raises() -> None:
    def capture(batch: TensorDict) -> object:
        buffer.state_dict()
        return batch

    buffer = make(4, transform=capture)
    buffer.extend([1])
    with pytest.raises(RuntimeError, match="by one of its transforms"):
        buffer.sample(1)
    assert_nothing_left(buffer)
    assert len(buffer) == 1


def test_a_handler_inside_a_call_of_its_own_thread_is_refused() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1])
    calls: dict[str, Callable[[], object]] = {
        "drawn": lambda: buffer.sample(1),
        "captured": buffer.state_dict,
    }
    for label, call in calls.items():
        with (
            at_point(stage, label, buffer.state_dict),
            pytest.raises(RuntimeError, match="inside one of its own calls"),
        ):
            call()
    assert_nothing_left(buffer)
    assert buffer.sample(1) == [1]


def test_a_traced_buffer_is_not_saved(tmp_path: Any) -> None:
    from forebay import Trace

    buffer = make(4, trace=Trace(tmp_path / "trace"))
    with pytest.raises(NotImplementedError, match="trace"):
        buffer.state_dict()


def test_a_closed_buffer_is_saved() -> None:
    buffer = make(4)
    buffer.extend([1])
    buffer.shutdown(immediate=True)
    state = buffer.state_dict()
    other = make(4)
    other.load_state_dict(state)
    assert other.sample(1) == [1]
    buffer.load_state_dict(state)
    with pytest.raises(ShutDown):
        buffer.sample(1)


class TestPrefetched:
    def test_b1_the_queue_is_in_the_state_and_comes_back_in_order(self) -> None:
        buffer = make_tensors(8, batch_size=2, prefetch=3)
        buffer.extend(numbers(0, 8))
        assert buffer.sample()["x"].tolist() == [0, 1]
        state = buffer.state_dict()
        batches = state["prefetched"]["batches"]
        assert [batch["batch"]["x"].tolist() for batch in batches] == [[2, 3], [4, 5], [6, 7]]
        assert state["prefetched"]["depth"] == 3
        other = make_tensors(8, batch_size=2, prefetch=3)
        other.load_state_dict(state)
        assert other.stats().prefetched == 3
        assert [other.sample()["x"].tolist() for _ in range(3)] == [[2, 3], [4, 5], [6, 7]]
        assert_nothing_left(other)

    def test_b10_payloads_are_detached_clones_that_require_their_gradients(self) -> None:
        weight = torch.ones(3, requires_grad=True)

        def scaled(batch: TensorDict) -> TensorDict:
            batch["z"] = batch["y"] * weight
            return batch

        buffer = make_tensors(8, batch_size=2, prefetch=1, transform=scaled)
        buffer.extend(numbers(0, 4))
        buffer.sample()
        payload = buffer.state_dict()["prefetched"]["batches"][0]["batch"]
        assert payload["z"].is_leaf
        assert payload["z"].requires_grad
        assert not payload["y"].requires_grad
        taken = buffer.sample()
        assert taken["z"].grad_fn is not None
        taken["y"].zero_()
        assert payload["y"][0].tolist() == [1.0, 1.0, 1.0]

    def test_a_failed_batch_is_given_back_in_the_state(self) -> None:
        def fail(batch: TensorDict) -> TensorDict:
            if int(batch["x"][0]) == 2:
                raise ValueError("the second")
            return batch

        buffer = make_tensors(8, batch_size=2, prefetch=2, transform=fail)
        buffer.extend(numbers(0, 6))
        buffer.sample()
        state = buffer.state_dict()
        batches = state["prefetched"]["batches"]
        assert [batch["batch"]["x"].tolist() for batch in batches] == [[4, 5]]
        assert state["records"]["uses"].tolist() == [0, 0, 1, 1]
        assert_whole(state, buffer)
        with pytest.raises(ValueError, match="the second"):
            buffer.sample()


def test_b13_snapshots_under_concurrent_writers_and_readers_are_all_whole() -> None:
    """CaptureAtomic: a few hundred snapshots; each record is whole and nothing is in two places."""
    buffer = make_tensors(32, batch_size=3, prefetch=2, consume_after_n_samples=2)
    stop = threading.Event()
    snapshots = 300

    def write(first: int) -> int:
        number = first
        while not stop.is_set():
            try:
                buffer.extend(numbers(number, 5), timeout=0.05)
            except (TimeoutError, RuntimeError):
                continue
            number += 10
        return number

    def read() -> int:
        count = 0
        while not stop.is_set():
            try:
                batch = buffer.sample(timeout=0.05)
            except (TimeoutError, RuntimeError):
                continue
            assert torch.equal(batch["y"][:, 0], batch["x"] * 0.5)
            count += 1
        return count

    with patience() as start:
        busy = [start(lambda first=first: write(first)) for first in (0, 5)]  # type: ignore[misc]  # a default that binds
        busy += [start(read) for _ in range(2)]
        try:
            for _ in range(snapshots):
                state = buffer.state_dict()
                assert_whole(state, buffer)
                data = state["records"]["data"]
                if data is not None:
                    assert torch.equal(data["y"][:, 2], data["x"] * 0.5)
                    assert len(set(data["x"].tolist())) == len(data["x"])
        finally:
            stop.set()
        assert all(result(each) > 0 for each in busy)
    assert_nothing_left(buffer)
