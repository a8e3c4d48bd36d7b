"""Captures and restores of a shared buffer: by any process, and when that is killed meanwhile."""

import threading
from typing import Any

import pytest
import torch
from forebay import (
    BlockingReplayBuffer,
    CheckpointError,
    Limits,
    PeerLost,
    ShutDown,
    TensorStorage,
)
from forebay._journal import Journal
from forebay._stages import Stage as Crossing
from forebay._stores import Store
from tensordict import TensorDict

from tests.library.saving import assert_nothing_left, assert_whole, crossing, plain
from tests.library.support import PATIENCE, ledger_of, patience, result
from tests.processes.journals import commit_with_deaths, size_of, watched_commits
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    all_values,
    await_waiters,
    lease,
    read,
    read_from,
    remotes,
    shared_buffer,
    stop_at,
    write_to,
)
from tests.processes.support import FORKS, until

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)
State = dict[str, Any]


def save(hands: Hands) -> object:
    """Return the values in the order of the state, and what else can be told shortly."""
    state = hands.buffer.state_dict()
    assert_whole(state, hands.buffer)
    queue = [batch["batch"]["x"].tolist() for batch in state["prefetched"]["batches"]]
    return state["records"]["data"]["x"].tolist(), queue


def load(hands: Hands, values: list[int], timeout: float | None = None) -> None:
    """Load the state of a local buffer with these records."""
    hands.buffer.load_state_dict(local_state(hands.buffer.capacity, values), timeout=timeout)


def local_state(capacity: int, values: list[int], **options: Any) -> State:
    """Return the state of a buffer of this process alone."""
    buffer = BlockingReplayBuffer(TensorStorage(capacity), **options)
    buffer.extend({"x": torch.tensor(values)})
    return buffer.state_dict()


@pytest.mark.parametrize("method", FORKS)
def test_any_process_saves_and_loads_the_buffer(method: str) -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2, 3)
    with remotes(buffer, method) as start:
        other = start.start()
        assert other.does(save) == ([1, 2, 3], [])
        read_from(buffer, 1)
        other.does(load, [7, 8])
        assert all_values(buffer) == [7, 8]
        assert write_to(buffer, 1, 2, 3) == [0, 1, 2]
        other.leave()
    assert_nothing_left(buffer)


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_states_go_from_a_local_buffer_to_a_shared_one_and_back(order: Any, tmp_path: Any) -> None:
    options: dict[str, Any] = {"order": order, "batch_size": 2, "prefetch": 2}
    local = BlockingReplayBuffer(TensorStorage(8), seed=3, **options)
    local.extend({"x": torch.arange(8)})
    local.sample()
    state = local.state_dict()
    shared = shared_buffer(8, **options)
    shared.load_state_dict(state)
    assert plain(shared.state_dict()) == plain(state)
    shared.dumps(tmp_path / "here")
    back = BlockingReplayBuffer(TensorStorage(8), **options)
    back.loads(tmp_path / "here")
    for buffer in (local, shared, back):
        buffer.shutdown()
    assert [plain(batch) for batch in shared] == [plain(batch) for batch in local]
    assert len(list(back)) == 3
    assert_nothing_left(shared)


def test_a_schema_that_differs_is_refused_before_anything_changes() -> None:
    buffer = shared_buffer(2)
    write_to(buffer, 1)
    state = local_state(2, [5])
    state["records"]["data"] = TensorDict({"x": torch.zeros(1)}, [1])
    with pytest.raises(CheckpointError, match=r"'x': expected int64\[\], got float32\[\]"):
        buffer.load_state_dict(state)
    assert all_values(buffer) == [1]


def test_the_queue_of_another_process_is_given_back_in_the_state() -> None:
    buffer = shared_buffer(6, batch_size=2, prefetch=1)
    write_to(buffer, 1, 2, 3, 4, 5, 6)
    with remotes(buffer) as start:
        other = start.start()
        assert other.does(read, 2) == [1, 2]
        state = buffer.state_dict()
        assert state["records"]["data"]["x"].tolist() == [3, 4, 5, 6]
        assert state["records"]["uses"].tolist() == [0, 0, 0, 0]
        assert state["prefetched"]["batches"] == []
        assert other.does(save) == ([3, 4, 5, 6], [[3, 4]])
        other.leave()


def test_a_capture_holds_off_the_readers_of_its_own_process_only() -> None:
    """The other process's lease gathers nothing here, and its readers draw meanwhile."""
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2, 3)
    gathered, go_on = threading.Event(), threading.Event()

    def hold(slots: Any) -> object:
        gathered.set()
        assert go_on.wait(PATIENCE)
        return read_slots(slots)

    read_slots = buffer.storage.read
    buffer.storage.read = hold  # type: ignore[method-assign]  # only in this process
    with remotes(buffer) as start, patience() as run:
        other = start.start()
        reading = run(lambda: read_from(buffer, 1))
        try:
            assert gathered.wait(PATIENCE)
            saving = run(buffer.state_dict)
            until(lambda: crossing(buffer) is Crossing.CAPTURING)
            assert other.does(read, 1) == [2]
            assert not saving.done()
        finally:
            go_on.set()
        assert result(reading) == [1]
        assert result(saving)["records"]["data"]["x"].tolist() in ([1, 3], [3])
        other.leave()
    assert_nothing_left(buffer)


def test_what_a_killed_capturer_had_still_to_copy_comes_free() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2, 3, 4)
    with remotes(buffer) as start, patience() as run:
        other = start.start()
        other.begins(stop_at, "captured", save)
        other.reaches("at captured")
        assert crossing(buffer) is Crossing.COPYING
        assert read_from(buffer, 3) == [1, 2, 3]
        assert buffer.stats().free == 0
        assert buffer.stats().spent == 0
        writing = run(lambda: write_to(buffer, 5, 6, 7))
        await_waiters(buffer, writers=1)
        other.dies()
        assert result(writing) == [0, 1, 2]
    assert buffer.stats().spent == 3
    assert buffer.stats().recoveries == 1
    assert all_values(buffer) == [4, 5, 6, 7]
    assert_nothing_left(buffer)


@pytest.mark.parametrize("place", ["capturing", "captured"])
def test_a_capture_behind_a_killed_one_goes_on(place: str) -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start, patience() as run:
        other = start.start()
        other.begins(stop_at, place, save)
        other.reaches(f"at {place}")
        saving = run(buffer.state_dict)
        other.dies()
        assert result(saving)["records"]["data"]["x"].tolist() == [1, 2]
    assert_nothing_left(buffer)


def test_a_killed_restorer_that_had_not_begun_leaves_all_as_it_was() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start, patience() as run:
        other = start.start()
        other.begins(stop_at, "restoring", load, [7])
        other.reaches("at restoring")
        assert crossing(buffer) is Crossing.RESTORING
        reading = run(lambda: read_from(buffer, 2))
        await_waiters(buffer, readers=1)
        other.dies()
        assert result(reading) == [1, 2]
    assert_nothing_left(buffer)


def test_a_killed_restorer_in_the_middle_stops_the_buffer_for_all() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start, patience() as run:
        other = start.start()
        other.begins(stop_at, "loading", load, [7])
        other.reaches("at loading")
        reading = run(lambda: read_from(buffer, 1))
        await_waiters(buffer, readers=1)
        other.dies()
        with pytest.raises(PeerLost, match="in the middle of a restore"):
            result(reading)
    assert len(buffer) == 0
    with pytest.raises((PeerLost, ShutDown)):
        write_to(buffer, 1)
    assert not (ledger_of(buffer).phase == 2).any()


def test_a_restore_waits_for_the_dead_to_be_reclaimed() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        other = start.start()
        other.begins(stop_at, "admitted", write_three)
        other.reaches("at admitted")
        with pytest.raises(CheckpointError, match=r"within 0\.0 s"):
            buffer.load_state_dict(local_state(4, [7]), timeout=0)
        other.dies()
        buffer.load_state_dict(local_state(4, [7]))
        assert all_values(buffer) == [7]
    assert_nothing_left(buffer)


def write_three(hands: Hands) -> object:
    """Write a record."""
    return write_to(hands.buffer, 3)


def commit_lease(hands: Hands) -> None:
    """Commit the lease that was kept."""
    held: Any = hands.kept["lease"]
    held.commit()


def test_a_lease_of_another_process_is_void() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        other = start.start()
        assert other.does(lease, 1) == [1]
        buffer.load_state_dict(local_state(4, [7]))
        other.begins(commit_lease)
        ended = other.ends()
        assert (ended.error, "void by a restore" in ended.words) == ("RuntimeError", True)
        assert other.does(read, 1) == [7]
        other.leave()
    assert_nothing_left(buffer)


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_each_step_of_a_capture_and_a_restore_is_whole_or_absent(order: Any) -> None:
    """Each of their commits dies at each of its places first, and somebody else looks."""
    limits = Limits(calls=8, tokens=2, participants=2)
    cut: list[int] = []
    with watched_commits(lambda ours, stores: cut.append(commit_with_deaths(ours, stores))):
        buffer = shared_buffer(4, limits=limits, order=order, batch_size=1)
        write_to(buffer, 1, 2, 3, 4)
        held = buffer.lease(1)
        cut.clear()
        state = buffer.state_dict()
        buffer.load_state_dict(state)
        assert len(cut) >= 6
        assert max(cut) > 4 * 6
        assert not held.active
    assert plain(buffer.state_dict()) == plain(state)
    assert_nothing_left(buffer)


@pytest.mark.parametrize("order", ["fifo", "random"])
@pytest.mark.parametrize("calls", [4, 48])
def test_the_journal_has_room_for_a_capture_and_a_restore(order: Any, calls: int) -> None:
    """Every slot is live and as many batches as may be were drawn ahead."""
    uses, capacity = 3, 16
    limits = Limits(calls=calls, participants=2, held=capacity * uses)
    sizes: list[int] = []

    def watch(ours: Journal, stores: list[Store]) -> None:
        sizes.append(size_of(stores))
        Journal.commit(ours, stores)

    with watched_commits(watch):
        buffer = shared_buffer(
            capacity,
            consume_after_n_samples=uses,
            limits=limits,
            order=order,
            batch_size=1,
            prefetch=calls - 1,
        )
        write_to(buffer, *range(capacity))
        read_from(buffer, 1)
        assert buffer.stats().prefetched >= min(calls, capacity * uses - 1) - 1
        sizes.clear()
        state = buffer.state_dict()
        buffer.load_state_dict(state)
    assert max(sizes) <= buffer._core._plan.journal_length()  # type: ignore[attr-defined]  # a shared buffer's core
    assert max(sizes) > 6 * capacity
    assert plain(buffer.state_dict()) == plain(state)
