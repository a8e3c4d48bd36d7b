"""Threads and memory of gathering ahead are gone when nobody needs them."""

import gc
import threading
import weakref

import pytest
import torch
from forebay import BlockingReplayBuffer, PeerLost, ShutDown, TensorStorage
from forebay._batches import HoldState
from forebay._pool import GatherPool

from tests.library.queues import await_no_pool_threads, by_hand, pool_threads, prefetcher_of
from tests.library.support import Slots, assert_consistent, ledger_of, make

CYCLES = 1000
BUFFERS = 200


def test_a_pool_has_no_more_threads_than_its_limit_and_none_when_idle_and_closed() -> None:
    gathering, go_on = threading.Semaphore(0), threading.Event()

    def slow(batch: list[int]) -> list[int]:
        if batch[0] > 0:
            gathering.release()
            assert go_on.wait(60)
        return batch

    buffer = make(32, batch_size=1, prefetch=6, transform=slow)
    assert pool_threads() == []
    buffer.extend(list(range(12)))
    assert buffer.sample() == [0]
    for _ in range(4):
        assert gathering.acquire(timeout=60)
    assert len(pool_threads()) == 4
    buffer.shutdown()
    go_on.set()
    assert [buffer.sample() for _ in range(11)] == [[value] for value in range(1, 12)]
    with pytest.raises(ShutDown):
        buffer.sample()
    buffer.shutdown()
    await_no_pool_threads()


def test_a_failed_buffer_has_no_threads() -> None:
    buffer = make(8, batch_size=1, prefetch=2)
    buffer.extend([1, 2, 3])
    buffer.sample()
    buffer.fail(ArithmeticError())
    await_no_pool_threads()
    with pytest.raises(PeerLost):
        buffer.sample()


def test_a_pool_without_threads_works_where_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool = GatherPool(2)
    done: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        pool.submit(lambda: done.append(1))
        assert (done, pool.threads()) == ([1], [])
    more = threading.Event()
    pool.submit(more.set)
    assert more.wait(60)
    pool.rest()
    await_no_pool_threads()
    pool.submit(lambda: done.append(2))
    pool.rest()
    await_no_pool_threads()
    assert done == [1, 2]


def test_a_buffer_that_is_dropped_leaves_no_thread_and_no_memory() -> None:
    def use() -> "weakref.ref[Slots]":
        buffer = make(8, batch_size=1, prefetch=3)
        buffer.extend([1, 2, 3, 4, 5])
        assert buffer.sample() == [1]
        storage = buffer.storage
        assert isinstance(storage, Slots)
        return weakref.ref(storage)

    gc.disable()
    try:
        storages = [use() for _ in range(BUFFERS)]
        await_no_pool_threads()
    finally:
        gc.enable()
    assert [storage for storage in storages if storage() is not None] == []


def test_a_queue_that_is_dropped_before_it_is_gathered_ends() -> None:
    buffer, pool = by_hand(8, batch_size=1, prefetch=2)
    buffer.extend([1, 2, 3])
    buffer.sample()
    alive = weakref.ref(prefetcher_of(buffer))
    del buffer
    gc.collect()
    assert alive() is None
    pool.do()


def test_l88_a_queue_with_a_failed_batch_that_is_dropped_is_gone() -> None:
    def fail(batch: list[int]) -> list[int]:
        if batch[0] > 1:
            raise ArithmeticError
        return batch

    buffer, pool = by_hand(8, batch_size=1, prefetch=2, transform=fail)
    buffer.extend([1, 2, 3])
    assert buffer.sample() == [1]
    pool.do()
    alive, core = weakref.ref(prefetcher_of(buffer)), buffer._core
    assert [batch.state for batch in core.ledger.holds()] == [HoldState.FAILED] * 2
    del buffer
    gc.collect()
    assert alive() is None
    core.reclaim()
    assert core.ledger.holds() == []


def test_leases_and_samples_by_the_thousand_leave_nothing_behind() -> None:
    buffer = BlockingReplayBuffer(TensorStorage(16), batch_size=2, prefetch=2)
    records = {"x": torch.zeros(8)}

    def cycle() -> None:
        buffer.extend(records)
        with buffer.lease():
            pass
        buffer.lease(at_least=1).release()
        for _ in range(3):
            buffer.sample()

    cycle()
    threads = threading.active_count()
    for _ in range(CYCLES):
        cycle()
    assert threading.active_count() == threads
    assert len(pool_threads()) == 2
    ledger = ledger_of(buffer)
    assert len(ledger.holds()) <= 2
    assert len(prefetcher_of(buffer)._payloads) <= 2
    buffer.shutdown()
    assert sum(len(batch) for batch in buffer) == 0
    assert buffer.stats().delivered == 8 * (CYCLES + 1)
    buffer.shutdown()
    await_no_pool_threads()
    assert_consistent(buffer)
