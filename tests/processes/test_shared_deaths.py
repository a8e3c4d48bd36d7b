"""Processes that are killed: what they had is given back, and nobody waits for them for long."""

import pytest
from forebay import Limits, ShutDown
from forebay._shared_peers import SharedPeers

from tests.library.support import assert_consistent
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    all_values,
    await_waiters,
    lease,
    new_token,
    read,
    read_from,
    release,
    remotes,
    shared_buffer,
    stop_at,
    stop_inside,
    write,
    write_to,
)
from tests.processes.support import FORKS, until

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


@pytest.mark.parametrize("method", FORKS)
def test_a_writer_behind_one_that_was_killed_while_it_waited_is_admitted(method: str) -> None:
    """L01: the dead one is the head of the queue, and the wake-up does not block."""
    buffer = shared_buffer(2)
    write_to(buffer, 1, 2)
    with remotes(buffer, method) as start:
        head, next_one = start.start(), start.start()
        head.begins(write, 3, 4)
        await_waiters(buffer, writers=1)
        next_one.begins(write, 5)
        await_waiters(buffer, writers=2)
        head.dies()
        await_waiters(buffer, writers=1)
        assert read_from(buffer, 1) == [1]
        assert next_one.ends().error == ""
        assert all_values(buffer) == [2, 5]
    assert buffer.stats().recoveries == 1
    assert_consistent(buffer)


@pytest.mark.parametrize("place", ["admitted", "copied"])
def test_slots_that_a_killed_writer_was_filling_are_free_again(place: str) -> None:
    """L02 and L22: before anything of the batch was copied, and after all of it was."""
    buffer = shared_buffer(3)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        writer = start.start()
        writer.begins(stop_at, place, write, 2, 3)
        writer.reaches(f"at {place}")
        assert buffer.stats().filling == 2
        writer.dies()
        assert write_to(buffer, 4, 5) == [1, 2]
    assert all_values(buffer) == [1, 4, 5]
    assert buffer.stats().recoveries == 1
    assert_consistent(buffer)


def write_half(hands: Hands, *values: int) -> object:
    """Write a batch whose copy stops half-way."""
    storage = hands.buffer.storage
    whole = storage.write

    def half(slots: object, rows: object) -> None:
        whole(slots, rows)  # type: ignore[arg-type]  # passed on as they came
        hands.line.send("copying")
        hands.line.recv()

    storage.write = half  # type: ignore[method-assign]  # only in this process
    return write(hands, *values)


def test_a_batch_whose_writer_is_killed_in_the_middle_of_its_copy_is_absent() -> None:
    """L02: what lies in the slots by then is never seen."""
    buffer = shared_buffer(2)
    with remotes(buffer) as start:
        writer, reader = start.start(), start.start()
        writer.begins(write_half, 7, 8)
        writer.reaches("copying")
        reader.begins(read, 1)
        await_waiters(buffer, readers=1)
        writer.dies()
        write_to(buffer, 1, 2)
        assert reader.ends().value == [1]
    assert all_values(buffer) == [2]
    assert buffer.stats().recoveries == 1


PLACES = [0, 1, 2, 7, 1000]
"""Elementary stores before the death: none, the mark, some of the action, all of it."""


@pytest.mark.parametrize("stores", PLACES)
@pytest.mark.parametrize(
    ("work", "commits", "whole"),
    [
        ("write", 0, [1, 2]),
        ("write", 1, [1, 2, 3, 4]),
        ("read", 0, [1, 2]),
        ("read", 1, []),
        ("release", 0, [1, 2]),
    ],
)
def test_an_action_in_which_a_process_is_killed_is_whole_or_absent(
    work: str, commits: int, whole: list[int], stores: int
) -> None:
    """L02 inside the critical section, in Admit, Publish, Draw, Deliver and Return.

    `whole` are the records after the action, and after what its process then still had is gone.
    """
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        victim = start.start()
        if work == "write":
            victim.begins(stop_inside, commits, stores, write, 3, 4)
        elif work == "read":
            victim.begins(stop_inside, commits, stores, read, 2)
        else:
            victim.does(lease, 2)
            victim.begins(stop_inside, commits, stores, release)
        victim.reaches("inside")
        victim.dies()
        assert buffer.stats().recoveries == 1
        assert all_values(buffer) == (whole if stores else [1, 2])
        assert buffer.stats().recoveries == 1
    stats = buffer.stats()
    assert (stats.free, stats.filling, stats.pinned) == (4, 0, 0)
    assert_consistent(buffer)


def test_batches_stay_when_their_producers_have_gone_before_anybody_reads() -> None:
    """L16: five processes write a batch each and end, one of them by being killed."""
    buffer = shared_buffer(16, batch_size=2)
    with remotes(buffer) as start:
        producers = [start.start() for _ in range(5)]
        for number, producer in enumerate(producers):
            producer.does(write, 2 * number, 2 * number + 1)
        producers.pop().dies()
        for producer in producers:
            producer.leave()
        assert [read_from(buffer, 2) for _ in range(5)] == [
            [0, 1],
            [2, 3],
            [4, 5],
            [6, 7],
            [8, 9],
        ]
    assert buffer.stats().recoveries == 0


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_the_lease_of_a_killed_reader_returns(order: str) -> None:
    """L30: records that nobody has trained on are there for the next reader, as old as before."""
    buffer = shared_buffer(4, order=order, seed=0)
    write_to(buffer, 1, 2, 3)
    with remotes(buffer) as start:
        reader, other = start.start(), start.start()
        reader.does(lease, 2)
        other.begins(read, 3)
        await_waiters(buffer, readers=1)
        reader.dies()
        values = other.ends().value
        assert isinstance(values, list)
        assert (values if order == "fifo" else sorted(values)) == [1, 2, 3]
    stats = buffer.stats()
    assert (stats.returned, stats.delivered, stats.recoveries) == (2, 3, 1)
    assert_consistent(buffer)


@pytest.mark.parametrize("place", ["drawn", "gathered"])
def test_a_batch_that_was_drawn_and_not_delivered_returns(place: str) -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2, 3)
    with remotes(buffer) as start:
        reader = start.start()
        reader.begins(stop_at, place, read, 2)
        reader.reaches(f"at {place}")
        reader.dies()
        assert read_from(buffer, 3) == [1, 2, 3]
    assert buffer.stats().recoveries == 1


def observe(hands: Hands) -> bool:
    return hands.buffer.wait_until_sampleable(1)


def test_an_observer_that_was_killed_is_not_counted_any_more() -> None:
    buffer = shared_buffer(2)
    with remotes(buffer) as start:
        observer, reader = start.start(), start.start()
        observer.begins(observe)
        until(lambda: buffer.stats().waiting_observers == 1)
        observer.dies()
        reader.begins(read, 1)
        until(lambda: buffer.stats().waiting_observers == 0)
        assert buffer.stats().recoveries == 1
        write_to(buffer, 1)
        assert reader.ends().value == [1]


def test_an_observer_alone_finds_the_dead() -> None:
    """Who only looks on counts as somebody who waits."""
    buffer = shared_buffer(2)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        reader, observer = start.start(), start.start()
        reader.does(lease, 1)
        observer.begins(observe)
        until(lambda: buffer.stats().waiting_observers == 1)
        reader.dies()
        assert observer.ends().value is True


def test_tokens_of_the_dead_are_free_for_others() -> None:
    buffer = shared_buffer(2, limits=Limits(tokens=1))
    with remotes(buffer) as start:
        owner = start.start()
        owner.does(new_token)
        owner.dies()
        token = buffer.cancel_token()
        assert not token.is_set()
    assert buffer.stats().recoveries == 0


def test_a_call_that_waits_for_the_dead_alone_is_no_victim() -> None:
    """A dead writer and a reader seem to wait for each other; the dead one just leaves."""
    buffer = shared_buffer(2)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        writer, reader = start.start(), start.start()
        writer.begins(write, 2, 3)
        await_waiters(buffer, writers=1)
        writer.dies()
        reader.begins(read, 2)
        await_waiters(buffer, readers=1)
        write_to(buffer, 4)
        assert reader.ends().value == [1, 4]


def lease_and_write(hands: Hands) -> None:
    lease(hands, 1)
    write(hands, 3)


def test_a_reader_is_no_victim_because_of_a_dead_holder_of_a_lease() -> None:
    buffer = shared_buffer(2)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        holder = start.start()
        holder.begins(lease_and_write)
        await_waiters(buffer, writers=1)
        holder.dies()
        assert read_from(buffer, 2) == [1, 2]
    assert buffer.stats().recoveries == 1


def test_a_full_table_of_calls_is_cleared_of_the_dead_first() -> None:
    buffer = shared_buffer(4, limits=Limits(calls=1))
    write_to(buffer, 1)
    with remotes(buffer) as start:
        holder = start.start()
        holder.does(lease, 1)
        holder.dies()
        assert write_to(buffer, 2) == [1]
    assert all_values(buffer) == [1, 2]


def test_a_full_table_of_participants_is_cleared_of_the_dead_first() -> None:
    buffer = shared_buffer(4, limits=Limits(participants=2))
    write_to(buffer, 1)
    with remotes(buffer) as start:
        first, second = start.start(), start.start()
        first.does(write, 2)
        second.begins(write, 3)
        outcome = second.ends()
        assert outcome.error == "LimitReached"
        assert "2 processes use this buffer, which is the limit" in outcome.words
        first.dies()
        assert second.does(write, 3) == [2]
    assert all_values(buffer) == [1, 2, 3]
    assert buffer.stats().recoveries == 0


@pytest.mark.parametrize("commits", range(6))
def test_a_finder_that_dies_while_it_recovers_leaves_the_rest_to_the_next(commits: int) -> None:
    """The first of the dead has a lease and a ticket, the finder a lease; each is counted once.

    The finder dies in each step of recovering, and after the last of them.
    """
    buffer = shared_buffer(3)
    write_to(buffer, 1, 2, 3)
    with remotes(buffer) as start:
        dead, finder = start.start(), start.start()
        finder.does(lease, 1)
        dead.begins(lease_and_write)
        await_waiters(buffer, writers=1)
        dead.dies()
        finder.begins(stop_inside, commits, 1, recover)
        finder.reaches("inside" if commits < 4 else "nothing left")
        finder.dies()
        assert read_from(buffer, 3) == [1, 2, 3]
    stats = buffer.stats()
    assert (stats.free, stats.waiting_writers, stats.pinned, stats.recoveries) == (3, 0, 0, 2)
    assert_consistent(buffer)


def recover(hands: Hands) -> None:
    """Look for the dead as a call does when it is time."""
    core = hands.buffer._core
    with core.section:
        assert core.peers.recover()
    hands.line.send("nothing left")
    hands.line.recv()


def test_who_has_died_with_nothing_is_not_counted() -> None:
    buffer = shared_buffer(2)
    with remotes(buffer) as start:
        idle = start.start()
        idle.does(write, 1)
        idle.dies()
        reader = start.start()
        reader.begins(read, 2)
        await_waiters(buffer, readers=1)
        peers = buffer._core.peers
        assert isinstance(peers, SharedPeers)
        until(lambda: peers._participants.process(0) == 0)
        assert peers._participants.process(1) == reader.child.pid
        buffer.shutdown(immediate=True)
        assert reader.ends().error == ShutDown.__name__
    assert buffer.stats().recoveries == 0
