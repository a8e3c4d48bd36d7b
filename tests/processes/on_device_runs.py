"""What happens to buffers on a device that processes share, whichever device it is."""

import pickle

import pytest
from forebay import PeerLost

from tests.processes.on_device import (
    Kind,
    assert_owner_gone,
    company,
    get,
    goes_on,
    in_order,
    pickled,
    put,
    read,
    read_all,
    reads,
    stop_queued,
    take_lease,
    values_of,
    write,
    write_all,
)
from tests.processes.remote import Hands, await_waiters, outcome_of, stop_at
from tests.processes.support import until


def all_is_read_once(kind: Kind, readers: int) -> None:
    """Two processes write, of which one is the owner; others read, this one too."""
    with company(kind, 12, 1 + readers, batch_size=3) as (
        owner,
        (writer, *others),
        buffer,
    ):
        writers = [owner, writer]
        for number, remote in enumerate(writers):
            remote.begins(write_all, 120 * number, 40, 3)
            remote.reaches("there")
        for reader in others:
            reader.begins(read_all)
        for remote in writers:
            goes_on(remote)
        here = [value for batch in buffer for value in values_of(batch)]
        assert [remote.ends().error for remote in writers] == ["", ""]
        seen = [reader.ends() for reader in others]
        assert [outcome.error for outcome in seen] == [""] * readers
        for outcome in seen:
            here += in_order(outcome.value)
        assert sorted(here) == list(range(240))
        stats = buffer.stats()
        assert (stats.admitted, stats.delivered, stats.recoveries) == (240, 240, 0)


def a_write_is_there_when_others_see_it(kind: Kind, fault: str = "") -> None:
    """In both directions, into slots that had other records before."""
    with company(kind, 4, fault=fault) as (owner, (other,), _):
        for first in range(0, 24, 8):
            owner.does(write, *range(first, first + 3))
            assert reads(other, 3) == [first, first + 1, first + 2]
            other.does(write, *range(first + 4, first + 7))
            assert reads(owner, 3) == [first + 4, first + 5, first + 6]


def what_was_read_stays(kind: Kind, fault: str = "") -> None:
    """A batch that was delivered is not what others have written to the slots since."""
    with company(kind, 2, fault=fault) as (owner, (other,), _):
        for first in range(0, 12, 4):
            owner.does(write, first, first + 1)
            other.begins(read_and_wait, 2)
            other.reaches("read")
            owner.does(write, first + 2, first + 3)
            goes_on(other)
            assert in_order(other.ends().value) == [first, first + 1]
            owner.does(read, 2)


def read_and_wait(hands: Hands, size: int) -> object:
    """Sample records, and look at them only when told, once all that was queued has run."""
    batch = hands.buffer.sample(size)
    hands.line.send("read")
    hands.line.recv()
    streams = hands.buffer.storage.streams  # type: ignore[attr-defined]  # it is on a device
    streams.synchronize(streams.record(streams.current()))
    return values_of(batch)


def a_dead_writer_is_recovered(kind: Kind, place: str) -> None:
    """What it was filling is free again, and what it had queued harms nobody."""
    with company(kind, 3, 2) as (owner, (writer, reader), buffer):
        owner.does(write, 1)
        if place == "queued":
            writer.begins(stop_queued, write, 7, 8)
            writer.reaches("queued")
        else:
            writer.begins(stop_at, place, write, 7, 8)
            writer.reaches(f"at {place}")
        assert buffer.stats().filling == 2
        writer.dies()
        assert put(buffer, 4, 5) == [1, 2]
        assert reads(reader, 3) == [1, 4, 5]
        assert buffer.stats().recoveries == 1


def the_lease_of_a_dead_reader_returns(kind: Kind) -> None:
    """So that others can read its records."""
    with company(kind, 3, 2) as (owner, (reader, other), buffer):
        owner.does(write, 1, 2, 3)
        reader.does(take_lease, 2)
        other.begins(read, 3)
        await_waiters(buffer, readers=1)
        reader.dies()
        assert in_order(other.ends().value) == [1, 2, 3]
        assert buffer.stats().recoveries == 1


def the_end_of_the_owner_is_told(
    kind: Kind, blocked: str, fault: str = "", timeout: float | None = None
) -> None:
    """To a call that waits, to later ones, and in each process; whether it is killed or ends."""
    with company(kind, 2, 2, fault=fault) as (owner, (waiter, later), buffer):
        owner.does(write, 1)
        if blocked == "reader":
            waiter.begins(read, 2, timeout=timeout)
            await_waiters(buffer, readers=1)
        else:
            waiter.begins(write, 2, 3, timeout=timeout)
            await_waiters(buffer, writers=1)
        owner.dies()
        assert_owner_gone(waiter.ends())
        for work in (read, take_lease, write):
            later.begins(work, 1)
            assert_owner_gone(later.ends())
        for call in (lambda: get(buffer, 1), lambda: put(buffer, 2), lambda: buffer.lease(1)):
            assert_owner_gone(outcome_of(call))
        assert buffer.stats().recoveries == 1


def nothing_is_delivered_after_the_end_of_the_owner(kind: Kind, work: str, fault: str = "") -> None:
    """Though there are records and room, and though the call had begun before."""
    with company(kind, 4, 1, fault=fault) as (owner, (other,), buffer):
        owner.does(write, 1, 2)
        other.begins(stop_queued, *((read, 1) if work == "read" else (write, 3)))
        other.reaches("queued")
        owner.dies()
        goes_on(other)
        assert_owner_gone(other.ends())
        with pytest.raises(PeerLost, match="has ended"):
            get(buffer, 1)
        stats = buffer.stats()
        assert (stats.delivered, stats.admitted) == (0, 2)
        assert (stats.filling, stats.pinned) == (0, 0)


def an_orderly_end_is_no_loss(kind: Kind) -> None:
    """A buffer that was stopped before its owner ends is stopped, and has not failed."""
    with company(kind, 2, 1) as (owner, (other,), buffer):
        owner.does(write, 1)
        buffer.shutdown(immediate=True)
        owner.leave()
        other.begins(read, 1)
        assert other.ends().error == "ShutDown"


def batches_drawn_ahead_are_whole(kind: Kind) -> None:
    """And nobody gets one of them any more when the owner has ended."""
    with company(kind, 8, 1, batch_size=2, prefetch=2) as (owner, (other,), buffer):
        owner.does(write, *range(8))
        assert sorted(reads(other, 2) + reads(other, 2)) == [0, 1, 2, 3]
        until(lambda: buffer.stats().prefetched == 2)
        owner.dies()
        other.begins(read, 2)
        assert_owner_gone(other.ends())


def only_the_owner_hands_on(kind: Kind) -> None:
    """Another process is told which one can."""
    with company(kind, 2, 1) as (owner, (other,), _):
        other.begins(pickled)
        outcome = other.ends()
        assert outcome.error == "RuntimeError"
        assert "only the process that made a storage on a device" in outcome.words
        assert f"which is process {owner.child.pid}" in outcome.words


def a_second_handle_is_the_same_buffer(kind: Kind) -> None:
    """There is one storage in a process for one memory."""
    with company(kind, 2, 0) as (owner, _, buffer):
        handle = owner.does(pickled)
        assert isinstance(handle, bytes)
        again = pickle.loads(handle)
        assert again.storage is buffer.storage
        owner.does(write, 1)
        assert get(again, 1) == [1]
