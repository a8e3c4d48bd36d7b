"""Batches that several processes draw ahead from one buffer: each has a queue of its own."""

import gc
import os
import pickle
import signal
import threading
import warnings

import pytest
import torch
from forebay import BlockingReplayBuffer, SharedStorage
from forebay._layout import Limits

from tests.library.queues import ByHand, await_no_pool_threads, prefetcher_of, queue_of
from tests.library.support import assert_consistent, ledger_of
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    Outcome,
    all_values,
    await_waiters,
    read,
    read_from,
    remotes,
    shared_buffer,
    write_to,
)
from tests.processes.support import FORKS, until

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def queued(buffer: BlockingReplayBuffer) -> int:
    """Return how many batches are in the queues of all processes."""
    return buffer.stats().prefetched


def read_next(hands: Hands) -> list[int]:
    """Sample a batch of the buffer's size."""
    return read_from(hands.buffer, 2)


def look_at_queue(hands: Hands) -> tuple[int, int, int]:
    """Return the depth, and how many payloads and threads of a pool this process has."""
    prefetcher = prefetcher_of(hands.buffer)
    threads = [one for one in threading.enumerate() if one.name == "forebay-prefetch"]
    mine = [payload for payload in prefetcher._payloads if prefetcher._is_drawn(payload)]
    return hands.buffer.prefetch, len(mine), len(threads)


def keep_by_hand(hands: Hands) -> None:
    """Have batches gathered when the test says so, which this test never does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
    prefetcher_of(hands.buffer).use(ByHand())


def sample_by_hand(hands: Hands) -> object:
    """Say that a wait begins, take a batch that nobody gathers, and tell what an interrupt does."""
    hands.line.send("waiting")
    try:
        return read_from(hands.buffer, 2)
    except KeyboardInterrupt:
        return "interrupted"


@pytest.mark.parametrize("method", FORKS)
def test_a_child_has_a_queue_and_a_pool_of_its_own(method: str) -> None:
    """L08, L10: what travels to it, or is forked into it, has neither batches nor threads."""
    buffer = shared_buffer(16, batch_size=2, prefetch=3)
    write_to(buffer, *range(12))
    assert read_from(buffer, 2) == [0, 1]
    until(lambda: queued(buffer) == 3)
    with remotes(buffer, method) as start:
        child = start.start()
        assert child.does(look_at_queue) == (3, 0, 0)
        assert child.does(read_next) == [8, 9], "it cannot see what this process has ahead"
        assert queued(buffer) == 4
        assert read_from(buffer, 2) == [2, 3]
        assert child.does(read_next) == [10, 11]
        child.leave()
    assert [read_from(buffer, 2), read_from(buffer, 2)] == [[4, 5], [6, 7]]
    assert_consistent(buffer)


def test_a_pickled_handle_carries_the_depth_and_no_batches() -> None:
    buffer = shared_buffer(16, batch_size=2, prefetch=2)
    write_to(buffer, *range(10))
    read_from(buffer, 2)
    until(lambda: all(state == 1 for _, state in queue_of(buffer)))
    other: BlockingReplayBuffer = pickle.loads(pickle.dumps(buffer))
    assert other.prefetch == 2
    assert prefetcher_of(other)._payloads == []
    assert prefetcher_of(other).owner() != prefetcher_of(buffer).owner()
    assert read_from(other, 2) == [6, 7]
    assert queued(buffer) == 3
    assert read_from(buffer, 2) == [2, 3]


def test_a_handle_that_is_dropped_gives_back_its_queue_in_silence() -> None:
    buffer = shared_buffer(16, batch_size=2, prefetch=2)
    other: BlockingReplayBuffer = pickle.loads(pickle.dumps(buffer))
    write_to(buffer, *range(8))
    assert read_from(other, 2) == [0, 1]
    assert queued(buffer) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del other
        gc.collect()
        until(lambda: queued(buffer) == 0)
    await_no_pool_threads()
    assert all_values(buffer) == [2, 3, 4, 5, 6, 7]
    assert_consistent(buffer)


def test_a_queue_that_nobody_has_begun_to_gather_is_given_back_too() -> None:
    buffer = shared_buffer(16, batch_size=2, prefetch=2)
    other: BlockingReplayBuffer = pickle.loads(pickle.dumps(buffer))
    prefetcher_of(other).use(ByHand())
    write_to(buffer, *range(8))
    read_from(other, 2)
    del other
    gc.collect()
    until(lambda: queued(buffer) == 0)
    assert all_values(buffer) == [2, 3, 4, 5, 6, 7]
    assert_consistent(buffer)


def test_a_dead_process_gives_back_what_it_had_ahead() -> None:
    buffer = shared_buffer(8, batch_size=2, prefetch=2)
    write_to(buffer, *range(8))
    with remotes(buffer) as start:
        victim = start.start()
        victim.does(keep_by_hand)
        assert victim.does(read_next) == [0, 1]
        assert queued(buffer) == 2
        victim.dies()
        assert read_from(buffer, 6, timeout=30) == [2, 3, 4, 5, 6, 7]
    assert buffer.stats().recoveries == 1
    assert_consistent(buffer)


def test_a_batch_of_another_process_is_recalled() -> None:
    buffer = shared_buffer(4, batch_size=2, prefetch=1)
    write_to(buffer, 1, 2, 3, 4)
    with remotes(buffer) as start:
        one, two = start.start(), start.start()
        assert one.does(read_next) == [1, 2]
        until(lambda: [state for _, state in queue_of(buffer)] == [1])
        two.begins(read, 1)
        await_waiters(buffer, readers=1)
        write_to(buffer, 5, 6, 7)
        assert two.ends() == Outcome([3])
        assert one.does(read_next) == [4, 5], "its payload of the batch that went is worth nothing"
        one.leave()
        two.leave()
    assert_consistent(buffer)


def test_ctrl_c_ends_a_wait_for_a_batch_and_loses_nothing() -> None:
    buffer = shared_buffer(8, batch_size=2, prefetch=1)
    write_to(buffer, 1, 2, 3, 4)
    with remotes(buffer) as start:
        child = start.start()
        child.does(keep_by_hand)
        assert child.does(read_next) == [1, 2]
        child.begins(sample_by_hand)
        child.reaches("waiting")
        until(lambda: queued(buffer) == 0)
        child.child.await_sleep()
        child.child.interrupt()
        assert child.ends() == Outcome("interrupted")
        assert read_from(buffer, 2, timeout=30) == [3, 4]
        child.leave()
    assert_consistent(buffer)


def test_a_child_that_is_forked_while_a_batch_is_gathered_does_not_wait_for_it() -> None:
    """L10: by the plain call of the system, from a process whose pool is at work."""
    gathering, go_on = threading.Event(), threading.Event()

    def slow(batch: object) -> object:
        if threading.current_thread().name == "forebay-prefetch" and not go_on.is_set():
            gathering.set()
            assert go_on.wait(60)
        return batch

    storage = SharedStorage(8, example={"x": torch.tensor(0)})
    buffer = BlockingReplayBuffer(storage, batch_size=2, prefetch=1, transform=slow)
    write_to(buffer, 1, 2, 3, 4, 5, 6)
    assert read_from(buffer, 2) == [1, 2]
    assert gathering.wait(60)
    child = os.fork()
    if child == 0:
        go_on.set()
        done = 1
        try:
            done = 0 if read_from(buffer, 2, timeout=30) == [5, 6] else 2
        finally:
            os._exit(done)
    ended = (0, 0)

    def has_ended() -> bool:
        nonlocal ended
        ended = os.waitpid(child, os.WNOHANG)
        return ended[0] == child

    try:
        until(has_ended)
        assert os.waitstatus_to_exitcode(ended[1]) == 0
    finally:
        go_on.set()
        if ended[0] != child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert read_from(buffer, 2) == [3, 4]
    assert ledger_of(buffer).holds() == []
    assert_consistent(buffer)


def test_empty_of_a_full_queue_is_one_step_that_the_journal_has_room_for() -> None:
    limits = Limits(calls=5, tokens=1, participants=1)
    buffer = shared_buffer(4, batch_size=1, prefetch=4, consume_after_n_samples=2, limits=limits)
    write_to(buffer, 1, 2, 3, 4)
    with buffer.lease():
        until(lambda: [state for _, state in queue_of(buffer)] == [1] * 4)
        buffer.empty()
        assert queue_of(buffer) == []
        assert (buffer.stats().dropped, buffer.stats().free) == (4, 3)
        assert_consistent(buffer)
    assert buffer.stats().free == 4
    assert write_to(buffer, 5, 6) != []
    assert [read_from(buffer, 1), read_from(buffer, 1)] == [[5], [6]]
    assert_consistent(buffer)
