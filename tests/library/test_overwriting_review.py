"""Rings in which nobody ever waits, so that no waiting call looks for the dead."""

from collections.abc import Iterator

import pytest
from forebay import PeerLost, RandomSampler, ReplayBuffer, SamplerWithoutReplacement
from forebay import _layout as at
from forebay._samplers import Sampler

from tests.library.saving import assert_nothing_left
from tests.library.support import assert_consistent, ring_of
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    Remote,
    read,
    read_from,
    remotes,
    shared_ring,
    stop_at,
    write_to,
)

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def save(hands: Hands) -> None:
    hands.buffer.state_dict()


def register(hands: Hands) -> None:
    """Promise to write, and keep the promise."""
    hands.kept["producer"] = producer = hands.buffer.producer()
    producer.__enter__()


def take(batches: Iterator[object], count: int) -> None:
    """Take so many batches, which have to be there."""
    for _ in range(count):
        next(batches)


def kill(ring: ReplayBuffer, remote: Remote) -> None:
    """Kill a process, and let it be time to look for the dead, whenever anybody has looked."""
    remote.dies()
    ring_of(ring).cells[at.LAST_LOOK] = 0


@pytest.mark.parametrize("sampler", [RandomSampler(), SamplerWithoutReplacement()])
def test_iteration_ends_when_the_last_producer_was_killed(sampler: Sampler) -> None:
    ring = shared_ring(4, sampler, batch_size=2)
    write_to(ring, 1, 2, 3)
    with remotes(ring) as start:
        producer = start.start()
        producer.does(register)
        batches = iter(ring)
        next(batches)
        kill(ring, producer)
        with pytest.raises(PeerLost, match="1 of them died"):
            take(batches, 3)
    assert ring.stats().recoveries == 1
    assert_consistent(ring)


def test_what_a_killed_saver_had_still_to_copy_is_overwritten_again() -> None:
    ring = shared_ring(6, RandomSampler())
    write_to(ring, 0, 1, 2, 3)
    with remotes(ring) as start:
        saver = start.start()
        saver.begins(stop_at, "captured", save)
        saver.reaches("at captured")
        write_to(ring, 4, 5)
        write_to(ring, 6, 7)  # in the place of 4 and 5, since the older ones are kept
        assert ring.stats().evicted == 2
        kill(ring, saver)
        write_to(ring, 8, 9)
        assert set(read_from(ring, 6)) <= {2, 3, 6, 7, 8, 9}
        assert ring.state_dict()["records"]["data"]["x"].tolist() == [2, 3, 6, 7, 8, 9]
    assert (ring.stats().recoveries, ring.stats().blocked_calls) == (1, 0)
    assert_nothing_left(ring)


@pytest.mark.parametrize("drop_last", [False, True])
def test_what_a_killed_reader_had_is_left_of_the_epoch_at_the_next_call(drop_last: bool) -> None:
    ring = shared_ring(6, SamplerWithoutReplacement(drop_last), seed=0)
    write_to(ring, *range(6))
    with remotes(ring) as start:
        reader = start.start()
        reader.begins(stop_at, "drawn", read, 2)
        reader.reaches("at drawn")
        seen = read_from(ring, 2)
        kill(ring, reader)
        seen += read_from(ring, 2) + read_from(ring, 2)
    assert sorted(seen) == list(range(6))
    assert (ring.stats().pinned, ring.stats().recoveries) == (0, 1)
    assert_consistent(ring)
