"""A simulated device that several processes share: records are whole, deaths are noticed."""

import pickle
from collections.abc import Callable

import pytest
import torch
from forebay import BlockingReplayBuffer, PeerLost
from forebay._cuda import CudaStreams
from forebay._shared_device import ShareableStorage
from forebay_models.device.queues import SimulatedEvent
from forebay_models.device.shared import ROOM, SimulatedSharedDevice
from forebay_models.mutants.shared_device import SHARED_DEVICE_MUTANTS, planted_in_sharing

from tests.library.support import assert_consistent
from tests.processes import on_device_runs as runs
from tests.processes.on_device import (
    EXAMPLE,
    Kind,
    assert_owner_gone,
    company,
    get,
    pickled,
    put,
    read,
    recover,
    simulated,
    take_lease,
    write,
)
from tests.processes.remote import FORK_WARNING, Hands, outcome_of, stop_inside
from tests.processes.support import Line, family

SIMULATED = Kind(simulated)


def storage_of(capacity: int = 4, seed: int = 0) -> ShareableStorage:
    device = SimulatedSharedDevice(seed)
    return ShareableStorage(capacity, streams=device, example=EXAMPLE, shared=True)


@pytest.mark.parametrize(
    ("method", "readers"),
    [pytest.param("spawn", 0, marks=pytest.mark.slow), ("forkserver", 2)],
)
def test_all_that_several_processes_write_is_read_once_and_whole(method: str, readers: int) -> None:
    runs.all_is_read_once(Kind(simulated, method), readers)


def test_a_write_is_there_when_others_see_it() -> None:
    runs.a_write_is_there_when_others_see_it(SIMULATED)


def test_what_was_read_stays_what_it_was() -> None:
    runs.what_was_read_stays(SIMULATED)


def test_batches_that_are_drawn_ahead_are_whole() -> None:
    runs.batches_drawn_ahead_are_whole(SIMULATED)


@pytest.mark.parametrize("place", ["admitted", "queued", "copied"])
def test_what_a_killed_writer_was_filling_is_free_again(place: str) -> None:
    runs.a_dead_writer_is_recovered(SIMULATED, place)


def test_the_lease_of_a_killed_reader_returns() -> None:
    runs.the_lease_of_a_dead_reader_returns(SIMULATED)


@pytest.mark.parametrize("blocked", ["reader", "writer"])
def test_who_waits_and_who_comes_later_is_told_of_the_owners_death(blocked: str) -> None:
    runs.the_end_of_the_owner_is_told(SIMULATED, blocked)


@pytest.mark.parametrize("work", ["read", "write"])
def test_what_was_queued_when_the_owner_died_is_not_delivered(work: str) -> None:
    runs.nothing_is_delivered_after_the_end_of_the_owner(SIMULATED, work)


def test_a_buffer_that_was_stopped_has_not_failed_when_its_owner_ends() -> None:
    runs.an_orderly_end_is_no_loss(SIMULATED)


def end_of_owner(fault: str) -> None:
    runs.the_end_of_the_owner_is_told(SIMULATED, "reader", fault, timeout=5.0 if fault else None)


def late_read(fault: str) -> None:
    runs.nothing_is_delivered_after_the_end_of_the_owner(SIMULATED, "read", fault)


FOUND_BY: dict[str, Callable[[str], None]] = {
    "owner_not_noted": end_of_owner,
    "published_while_queued": lambda fault: runs.a_write_is_there_when_others_see_it(
        SIMULATED, fault
    ),
    "delivered_while_queued": lambda fault: runs.what_was_read_stays(SIMULATED, fault),
    "owner_not_asked_for": late_read,
}


@pytest.mark.parametrize("fault", SHARED_DEVICE_MUTANTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    run = FOUND_BY[fault]
    run("")
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run(fault)


@pytest.mark.parametrize("commits", range(5))
def test_who_dies_while_it_tells_of_the_owners_death_leaves_that_to_the_next(commits: int) -> None:
    """The finder dies in each step, the first of which is to count the death."""
    with company(SIMULATED, 3, 2) as (owner, (finder, other), buffer):
        owner.does(write, 1, 2, 3)
        owner.does(take_lease, 1)
        finder.does(read, 1)
        owner.dies()
        finder.begins(stop_inside, commits, 1, recover)
        finder.reaches("inside" if commits < 4 else "nothing left")
        finder.dies()
        other.begins(read, 1)
        assert_owner_gone(other.ends())
        stats = buffer.stats()
        assert (stats.pinned, stats.returned) == (0, 1)
        assert_consistent(buffer)


def test_a_handle_that_is_loaded_after_the_owners_death_says_so() -> None:
    with company(SIMULATED, 2, 0) as (owner, _, _buffer):
        handle = owner.does(pickled)
        owner.dies()
        assert isinstance(handle, bytes)
        with pytest.raises(PeerLost, match="the process that made the storage"):
            pickle.loads(handle)


def test_a_process_that_gets_a_buffer_twice_has_one() -> None:
    runs.a_second_handle_is_the_same_buffer(SIMULATED)


def test_only_the_owner_can_hand_a_buffer_on() -> None:
    runs.only_the_owner_hands_on(SIMULATED)


def pickled_storage(hands: Hands) -> bytes:
    return pickle.dumps(hands.buffer.storage)


def test_only_the_owner_can_make_a_buffer_over_its_memory() -> None:
    with company(SIMULATED, 2, 0) as (owner, _, _buffer):
        handle = owner.does(pickled_storage)
        assert isinstance(handle, bytes)
        with pytest.raises(RuntimeError, match=rf"process {owner.child.pid}'s, .* make the buffer"):
            BlockingReplayBuffer(pickle.loads(handle))


def test_an_owner_that_loads_its_own_handle_has_what_it_had() -> None:
    buffer = simulated(2)
    again = pickle.loads(pickle.dumps(buffer))
    assert again.storage is buffer.storage
    put(buffer, 1)
    assert get(again, 1) == [1]


@pytest.mark.filterwarnings(FORK_WARNING)
def test_a_forked_child_is_told_how_processes_have_to_be_started() -> None:
    buffer = simulated(2)
    put(buffer, 1)

    def child(line: Line) -> None:
        calls = (lambda: get(buffer, 1), lambda: put(buffer, 2), lambda: buffer.lease(1))
        line.send([outcome_of(call)[1:3] for call in (*calls, buffer.stats)])

    with family("fork") as children:
        forked = children.start(child)
        said = forked.says()
        assert forked.end() == 0
    assert isinstance(said, list)
    for error, words in said:
        assert error == "RuntimeError"
        assert "start processes by spawn or forkserver" in words
    assert get(buffer, 1) == [1]


@pytest.mark.filterwarnings(FORK_WARNING)
def test_a_child_that_is_forked_off_another_process_than_the_owner_is_told_so_too() -> None:
    with company(SIMULATED, 2, 0) as (_, _, buffer):

        def child(line: Line) -> None:
            line.send(outcome_of(lambda: get(buffer, 1))[1:3])

        with family("fork") as children:
            forked = children.start(child)
            said = forked.says()
            assert forked.end() == 0
    assert isinstance(said, tuple)
    assert said[0] == "RuntimeError"
    assert "spawn or forkserver" in said[1]


def save(hands: Hands) -> object:
    return hands.buffer.state_dict()


def load(hands: Hands, state: dict[str, object]) -> None:
    hands.buffer.load_state_dict(state)


def test_a_state_is_saved_and_loaded_in_any_process() -> None:
    with company(SIMULATED, 4, 1, order="fifo") as (owner, (other,), buffer):
        owner.does(write, 1, 2, 3)
        state = other.does(save)
        assert owner.does(read, 3) == [1, 2, 3]
        other.does(load, state)
        assert owner.does(read, 2) == [1, 2]
        assert get(buffer, 1) == [3]


def test_an_interrupted_write_leaves_nothing_in_a_queue() -> None:
    """Others may have its slots at once, and cannot wait for what is queued here."""
    storage = storage_of()
    buffer = BlockingReplayBuffer(storage)
    device = storage.streams
    assert isinstance(device, SimulatedSharedDevice)
    interrupts = iter([KeyboardInterrupt(), KeyboardInterrupt()])

    def interrupted(event: SimulatedEvent) -> None:
        for interrupt in interrupts:
            raise interrupt
        device.run_until(event)

    device.wait_on_host = interrupted
    with pytest.raises(KeyboardInterrupt):
        put(buffer, 1, 2)
    assert next(interrupts, None) is None
    assert device.runnable() == []
    assert (buffer.stats().free, len(buffer)) == (4, 0)
    put(buffer, 3)
    assert get(buffer, 1) == [3]


def test_memory_that_was_somebody_elses_is_free_of_his_work_before_it_is_shared() -> None:
    storage = storage_of()
    device = storage.streams
    assert isinstance(device, SimulatedSharedDevice)
    assert device.runnable() == []


def test_a_shared_storage_needs_an_example_and_a_bool() -> None:
    device = SimulatedSharedDevice()
    with pytest.raises(TypeError, match="with shared=True needs an example"):
        ShareableStorage(4, streams=device, shared=True)
    with pytest.raises(TypeError, match="shared must be True or False"):
        ShareableStorage(4, streams=device, shared=1)  # type: ignore[arg-type]  # what is refused
    assert not ShareableStorage(4, streams=device).shared
    assert storage_of().shared


def test_a_storage_belongs_to_one_buffer() -> None:
    storage = storage_of()
    first = BlockingReplayBuffer(storage)
    with pytest.raises(ValueError, match="belongs to a buffer already"):
        BlockingReplayBuffer(storage)
    assert first.shared


def test_a_storage_that_is_not_shared_is_in_no_handle() -> None:
    storage = ShareableStorage(4, streams=SimulatedSharedDevice())
    buffer = BlockingReplayBuffer(storage)
    put(buffer, 1)
    assert not buffer.shared
    with pytest.raises(TypeError):
        pickle.dumps(storage)


def test_the_memory_of_a_simulated_device_has_an_end() -> None:
    with pytest.raises(MemoryError, match="bytes of the simulated device are free"):
        SimulatedSharedDevice().empty((ROOM + 1,), torch.uint8)


def test_memory_that_was_received_cannot_be_sent() -> None:
    mine, theirs = SimulatedSharedDevice(), SimulatedSharedDevice()
    column = mine.empty((8, 2), torch.int32)
    mine.finish()
    received = theirs.attach(mine.share(column))
    assert theirs.holds(received)
    column.fill_(7)
    assert received.tolist() == column.tolist()
    with pytest.raises(RuntimeError, match="cannot be sent"):
        theirs.share(received)
    with pytest.raises(TypeError, match="only memory of the device"):
        theirs.share(torch.zeros(2))


def test_nothing_is_planted_without_a_name() -> None:
    before = ShareableStorage._finish
    with planted_in_sharing(""):
        assert ShareableStorage._finish is before


def test_the_port_to_cuda_takes_a_handle_apart_as_torch_has_made_it() -> None:
    """On the host, where torch's handles of tensors are pairs of the same kind."""
    port = CudaStreams.__new__(CudaStreams)
    tensor = torch.arange(4)
    with torch.inference_mode():
        attached = port.attach(port.share(tensor))
    assert attached.data_ptr() == tensor.data_ptr()
    assert not attached.is_inference()
