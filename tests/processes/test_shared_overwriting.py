"""Overwriting buffers of several processes: what they share, and what the dead leave."""

from contextlib import ExitStack

import pytest
from forebay import Limits, RandomSampler, SamplerWithoutReplacement
from forebay import _layout as at
from forebay._journal import Journal
from forebay._prefetch import Prefetcher
from forebay._samplers import Sampler
from forebay._stores import Store
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.queues import AtOnce, prefetcher_of
from tests.library.saving import assert_nothing_left, plain
from tests.library.support import assert_consistent, patience, result, ring_of
from tests.processes.journals import commit_with_deaths, size_of, watched_commits
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    await_waiters,
    lease,
    read,
    read_from,
    remotes,
    shared_ring,
    stop_at,
    stop_inside,
    write,
    write_to,
)
from tests.processes.support import FORKS, until
from tests.processes.test_journal import Walk, assert_room

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)
EPOCHS = SamplerWithoutReplacement()
SAMPLERS: list[Sampler] = [RandomSampler(), EPOCHS, SamplerWithoutReplacement(drop_last=True)]
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=["replacement", "epochs", "last"])


def save(hands: Hands) -> None:
    hands.buffer.state_dict()


@pytest.mark.parametrize("method", FORKS)
def test_processes_write_over_and_sample_the_same_records(method: str) -> None:
    ring = shared_ring(4, EPOCHS, seed=0)
    write_to(ring, 1, 2, 3)
    with remotes(ring, method) as start:
        other = start.start()
        assert other.does(write, 4, 5) == [3, 0]
        assert sorted(read_from(ring, 4)) == [2, 3, 4, 5]
        seen = other.does(read, 3)
        assert isinstance(seen, list)
        assert sorted([*seen, *read_from(ring, 4)]) == [2, 3, 4, 5], "one epoch for all"
        other.leave()
    assert ring.stats().evicted == 1
    assert_consistent(ring)


@each_sampler
def test_the_pins_of_a_killed_reader_go(sampler: Sampler) -> None:
    ring = shared_ring(2, sampler, seed=1)
    write_to(ring, 1, 2)
    with remotes(ring) as start, patience() as thread:
        reader = start.start()
        reader.begins(stop_at, "drawn", read, 2)
        reader.reaches("at drawn")
        assert 0 < ring.stats().pinned <= 2
        writing = thread(lambda: write_to(ring, 3, 4))
        await_waiters(ring, writers=1)
        reader.dies()
        slots = result(writing)
    assert set(slots) == {0, 1}
    assert ring.stats().recoveries == 1
    assert ring_of(ring).evictable == 2
    assert_consistent(ring)


@pytest.mark.parametrize("place", ["admitted", "copied"])
def test_what_a_killed_writer_has_evicted_is_gone(place: str) -> None:
    ring = shared_ring(4, EPOCHS)
    write_to(ring, 1, 2, 3, 4)
    with remotes(ring) as start:
        writer = start.start()
        writer.begins(stop_at, place, write, 5, 6)
        writer.reaches(f"at {place}")
        assert len(ring) == 2
        writer.dies()
        assert write_to(ring, 7, 8, 9) == [0, 1, 2], "it waits, since there is room for two"
    assert sorted(read_from(ring, 4)) == [4, 7, 8, 9]
    assert ring.stats().recoveries == 1
    assert_consistent(ring)


@pytest.mark.parametrize("stores", [0, 1, 3, 5, 50])
@pytest.mark.parametrize("commits", range(3))
def test_a_reader_that_is_killed_in_the_middle_of_an_action(commits: int, stores: int) -> None:
    """Draw, Ready or Deliver is whole or absent, and nothing stays pinned."""
    ring = shared_ring(4, EPOCHS, seed=0)
    write_to(ring, 1, 2, 3, 4)
    read_from(ring, 1)
    with remotes(ring) as start:
        reader = start.start()
        reader.begins(stop_inside, commits, stores, read, 2)
        reader.reaches("inside")
        reader.dies()
        assert sorted(write_to(ring, 5, 6, 7, 8)) == [0, 1, 2, 3]
    assert sorted(read_from(ring, 4)) == [5, 6, 7, 8]
    assert ring.stats().pinned == 0
    assert_consistent(ring)


def test_what_a_killed_process_had_drawn_ahead_is_left_of_the_epoch() -> None:
    ring = shared_ring(9, EPOCHS, batch_size=2, seed=0)
    write_to(ring, *range(8))
    with remotes(ring) as start:
        reader = start.start()
        seen = reader.does(read_ahead)
        assert isinstance(seen, list)
        assert ring.stats().prefetched == 2
        reader.does(lease, 1)
        reader.dies()
        with patience() as thread:
            waiting = thread(lambda: read_from(ring, 9, at_least=9))
            until(lambda: ring.stats().recoveries == 1)  # who waits looks for the dead
            write_to(ring, 8)
            rest = result(waiting)
    assert sorted([*seen, *rest]) == list(range(9))
    assert_consistent(ring)


def read_ahead(hands: Hands) -> list[int]:
    """Sample one batch by a handle that draws two ahead."""
    buffer = hands.buffer
    parts = buffer._core, buffer._storage, buffer._transforms
    buffer._prefetcher = Prefetcher(*parts, size=2, depth=2)
    buffer._prefetcher.use(AtOnce())
    return read_from(buffer, 2)


def test_a_writer_goes_on_after_a_capture_was_killed() -> None:
    ring = shared_ring(3, EPOCHS)
    write_to(ring, 1, 2, 3)
    with remotes(ring) as start, patience() as thread:
        saver = start.start()
        saver.begins(stop_at, "captured", save)
        saver.reaches("at captured")
        writing = thread(lambda: write_to(ring, 4, 5))
        await_waiters(ring, writers=1)
        saver.dies()
        assert result(writing) == [0, 1]
    assert_nothing_left(ring)


LIMITS = Limits(calls=4, tokens=2, participants=2)


@each_sampler
@settings(deadline=None, max_examples=25)
@given(choose=st.data(), ahead=st.booleans())
def test_every_action_that_is_cut_anywhere_is_whole_or_absent(
    sampler: Sampler, choose: "st.DataObject", ahead: bool
) -> None:
    cut: list[int] = []
    with watched_commits(lambda ours, stores: cut.append(commit_with_deaths(ours, stores))):
        walk_through(sampler, choose, ahead, 5, LIMITS)
    assert max(cut) > 10


@each_sampler
@settings(deadline=None, max_examples=40)
@given(
    choose=st.data(),
    ahead=st.booleans(),
    capacity=st.sampled_from([1, 2, 3, 8, 40]),
    calls=st.sampled_from([2, 5, 64]),
)
def test_the_journal_has_room_and_its_order_does_not_matter(
    sampler: Sampler, choose: "st.DataObject", ahead: bool, capacity: int, calls: int
) -> None:
    sizes = [0]

    def watch(ours: Journal, stores: list[Store]) -> None:
        sizes.append(size_of(stores))
        Journal.commit(ours, stores)
        after = ours._ledger.copy()
        Journal.commit(ours, stores[::-1])
        assert (ours._ledger == after).all(), "no cell is stored twice with different values"

    with watched_commits(watch):
        walk_through(sampler, choose, ahead, capacity, Limits(calls=calls, participants=1), sizes)


def walk_through(
    sampler: Sampler,
    choose: "st.DataObject",
    ahead: bool,
    capacity: int,
    limits: Limits,
    sizes: list[int] | None = None,
) -> None:
    """Take steps that a test chooses, a capture and a restore among them."""
    options = {"batch_size": 1, "prefetch": 1} if ahead else {}
    ring = shared_ring(capacity, sampler, limits=limits, seed=0, **options)
    if ahead:
        prefetcher_of(ring).use(AtOnce())
    with ExitStack() as stack:
        walk = stack.enter_context(Walk(ring, choose))
        walk.write()
        for _ in range(choose.draw(st.integers(1, 12))):
            walk.step()
            assert_consistent(ring)
        state = ring.state_dict()
        walk.step()
        while walk.leases:
            walk.leases.pop().release()
        ring.load_state_dict(state)
        assert plain(ring.state_dict()) == plain(state)
    if sizes is not None:
        assert_room(ring, sizes)
    assert ring_of(ring).cells[at.PINNED] == 0
    assert_nothing_left(ring)


def test_the_journal_has_room_for_a_restore_of_a_whole_ring() -> None:
    """Every slot is live, all of the epoch is left, and as much as may be was drawn ahead."""
    capacity, sizes = 64, [0]
    limits = Limits(calls=16, tokens=1, participants=1)

    def watch(ours: Journal, stores: list[Store]) -> None:
        sizes.append(size_of(stores))
        Journal.commit(ours, stores)

    with watched_commits(watch):
        for sampler in SAMPLERS:
            ring = shared_ring(capacity, sampler, limits=limits, batch_size=32, prefetch=6)
            prefetcher_of(ring).use(AtOnce())
            write_to(ring, *range(capacity))
            read_from(ring, 32)
            write_to(ring, *range(capacity))
            state = ring.state_dict()
            ring.load_state_dict(state)
            assert len(state["prefetched"]["batches"]) > 3
            ring.empty()
    assert assert_room(ring, sizes) > 8 * capacity
