"""Gathering ahead by threads: errors, leases, interrupts, and what a transform must not do."""

import asyncio
import contextlib
import itertools
import warnings
from collections.abc import Callable
from functools import partial

import pytest
from forebay import BlockingReplayBuffer, Cancelled, ShutDown
from forebay._batches import HoldState

from tests.library.interrupts import interrupted
from tests.library.queues import (
    at_once,
    await_no_pool_threads,
    by_hand,
    queue_of,
)
from tests.library.support import (
    Stage,
    assert_consistent,
    ledger_of,
    make,
    patience,
    result,
)

GATHERING, READY, FAILED = HoldState


class Fussy:
    """A transform that fails for batches which have a certain record."""

    def __init__(self, bad: int) -> None:
        self.bad = bad
        self.error = ArithmeticError(f"{bad} is bad")

    def __call__(self, batch: list[int]) -> list[int]:
        if self.bad in batch:
            raise self.error
        return batch


def test_an_error_is_its_batch_s_and_its_records_are_returned() -> None:
    """L36: the other batches are none the worse for it."""
    fussy = Fussy(3)
    buffer = at_once(8, batch_size=2, prefetch=2, transform=fussy)
    buffer.extend([1, 2, 3, 4, 5, 6, 7, 8])
    assert buffer.sample() == [1, 2]
    assert [state for _, state in queue_of(buffer)] == [FAILED, READY]
    with pytest.raises(ArithmeticError) as caught:
        buffer.sample()
    assert caught.value is fussy.error
    assert caught.value.__context__ is None
    assert [step.name for step in caught.traceback][-1] == "__call__", "it says where it failed"
    assert buffer.stats().returned == 2
    assert buffer.sample() == [5, 6]
    fussy.bad = 0
    assert buffer.sample() == [7, 8]
    with pytest.raises(ArithmeticError):
        buffer.sample()  # drawn again, and failed again, while 3 was bad
    assert buffer.sample() == [3, 4]
    assert_consistent(buffer)


def test_a_lease_of_a_failed_batch_is_none() -> None:
    fussy = Fussy(3)
    buffer = at_once(4, batch_size=2, prefetch=1, transform=fussy)
    buffer.extend([1, 2, 3, 4])
    buffer.sample()
    with pytest.raises(ArithmeticError):
        buffer.lease()
    assert ledger_of(buffer).holds() == []
    fussy.bad = 0
    with buffer.lease() as batch:
        assert batch == [3, 4]
    assert_consistent(buffer)


@pytest.mark.parametrize("state", [READY, GATHERING])
def test_leases_come_from_the_queue(state: HoldState) -> None:
    stage = Stage()
    buffer, pool = by_hand(8, stage, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4, 5, 6])
    buffer.sample()
    if state is READY:
        pool.do()
    with patience() as start:
        leasing = start(buffer.lease)
        if state is GATHERING:
            stage.await_sleepers(1)
            pool.do(0)
        first = result(leasing)
    assert first.batch == [3, 4]
    assert first.active
    pool.do()
    second = buffer.lease()
    assert second.batch == [5, 6]
    first.release()
    second.commit()
    assert buffer.sample() == [3, 4]
    assert (buffer.stats().returned, buffer.stats().delivered) == (2, 6)
    assert_consistent(buffer)


def test_a_block_that_raises_returns_a_lease_from_the_queue() -> None:
    buffer = at_once(8, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4, 5, 6])
    buffer.sample()
    with pytest.raises(ArithmeticError), buffer.lease():
        raise ArithmeticError
    assert [buffer.sample() for _ in range(2)] == [[5, 6], [3, 4]]


def test_two_threads_take_two_batches_and_wait_for_their_own() -> None:
    stage = Stage()
    buffer, pool = by_hand(16, stage, batch_size=2, prefetch=2)
    buffer.extend(list(range(6)))
    buffer.sample()
    with patience() as start:
        first = start(buffer.sample)
        stage.await_sleepers(1)
        second = start(buffer.sample)
        stage.await_sleepers(2)
        assert buffer.stats().prefetched == 0
        pool.do(1)
        assert result(second) == [4, 5]
        assert not first.done()
        pool.do(0)
        assert result(first) == [2, 3]


def test_neither_a_flag_nor_a_deadline_ends_a_call_that_has_its_batch() -> None:
    stage = Stage()
    buffer, pool = by_hand(8, stage, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4])
    buffer.sample()
    token = buffer.cancel_token()
    with patience() as start:
        reading = start(lambda: buffer.sample(timeout=1, cancel_event=token))
        stage.await_sleepers(1)
        token.set()
        stage.advance(5)
        stage.await_sleepers(1)
        assert not reading.done()
        pool.do()
        assert result(reading) == [3, 4]
    buffer.extend([5, 6])
    with pytest.raises(Cancelled):
        buffer.sample(cancel_event=token)


class Interrupted(Stage):
    """Raises once instead of waiting, as a handler does that interrupts the wait."""

    broken = False

    def wait(self, seen: int, deadline: float | None) -> None:
        if not self.broken:
            self.broken = True
            raise KeyboardInterrupt
        super().wait(seen, deadline)


def test_an_interrupt_ends_the_wait_for_a_batch_and_loses_nothing() -> None:
    stage = Interrupted()
    buffer, pool = by_hand(8, stage, batch_size=2, prefetch=2)
    buffer.extend([1, 2, 3, 4, 5, 6])
    buffer.sample()
    with pytest.raises(KeyboardInterrupt):
        buffer.sample()
    assert queue_of(buffer) == [([4, 5], GATHERING)]
    assert buffer.stats().returned == 2
    pool.do()  # the first of them for nobody
    assert queue_of(buffer) == [([4, 5], READY)]
    assert buffer.sample() == [5, 6]
    pool.do()
    assert buffer.sample() == [3, 4]
    assert_consistent(buffer)


ACTIONS: dict[str, Callable[[BlockingReplayBuffer], object]] = {
    "sample": lambda buffer: buffer.sample(),
    "lease": lambda buffer: buffer.lease().commit(),
    "empty": lambda buffer: buffer.empty(),
    "append_transform": lambda buffer: buffer.append_transform(lambda batch: batch),
}


def drained(buffer: BlockingReplayBuffer) -> list[int]:
    """Return what is left; a batch may have been interrupted where it was gathered at once."""
    left: list[int] = []
    while True:
        try:
            left += buffer.sample()
        except KeyboardInterrupt:
            continue
        except ShutDown:
            return left


@pytest.mark.parametrize("pool", ["at once", "threads"])
@pytest.mark.parametrize("action", ACTIONS)
def test_an_interrupt_at_any_place_leaves_a_queue_that_goes_on(action: str, pool: str) -> None:
    for place in itertools.count():
        buffer = (at_once if pool == "at once" else make)(8, batch_size=2, prefetch=2)
        buffer.extend([1, 2, 3, 4, 5, 6, 7, 8])
        with contextlib.suppress(KeyboardInterrupt):
            assert buffer.sample() == [1, 2]
        with warnings.catch_warnings():
            # A lease that an interrupt keeps from its caller is returned by its finaliser.
            warnings.simplefilter("ignore", ResourceWarning)
            reached = interrupted(partial(ACTIONS[action], buffer), place)
        assert buffer.stats().waiting_readers == 0  # a lease that was dropped is returned now
        assert_consistent(buffer)
        buffer.shutdown()
        left = drained(buffer)
        assert ledger_of(buffer).holds() == [], place
        assert len(left) == len(set(left))
        assert set(left) <= {3, 4, 5, 6, 7, 8}
        delivered, dropped = buffer.stats().delivered, buffer.stats().dropped
        assert delivered + dropped == 8
        if action == "append_transform":
            assert left == [3, 4, 5, 6, 7, 8]
        assert_consistent(buffer)
        buffer.shutdown()  # what the interrupt raised may keep the buffer until the next collection
        if not reached:
            break
    await_no_pool_threads()


def test_a_transform_that_calls_its_buffer_fails_its_batch() -> None:
    told: list[object] = []

    def curious(batch: list[int]) -> list[int]:
        if 3 in batch:
            told.append((len(buffer), buffer.stats().sampleable, buffer.describe()[:6]))
            calls[len(told) - 1]()
        return batch

    buffer = make(16, batch_size=2, prefetch=1, transform=curious)
    calls: list[Callable[[], object]] = [
        lambda: buffer.extend([9]),
        lambda: buffer.sample(1),
        lambda: buffer.lease(),
        lambda: buffer.can_sample(),
        lambda: buffer.empty(),
        lambda: buffer.append_transform(curious),
        lambda: asyncio.run(buffer.sample_async()),
    ]
    for _ in calls:
        buffer.empty()
        buffer.extend([1, 2, 3, 4])
        assert buffer.sample() == [1, 2]
        with pytest.raises(RuntimeError, match="what gathers it must not call its buffer"):
            buffer.sample()
    assert len(told) == len(calls)
    assert told[0] == (0, 0, "buffer")
    assert_consistent(buffer)
    buffer.shutdown()
    await_no_pool_threads()


def test_waiting_for_a_batch_leaves_the_event_loop_free() -> None:
    stage = Stage()
    buffer, pool = by_hand(8, stage, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4, 5, 6])
    buffer.sample()

    async def body() -> None:
        reading = asyncio.create_task(buffer.sample_async())
        await asyncio.to_thread(stage.await_sleepers, 1)
        pool.do(0)
        assert await reading == [3, 4]
        cancelled = asyncio.create_task(buffer.sample_async())
        await asyncio.to_thread(stage.await_sleepers, 1)
        cancelled.cancel()
        await asyncio.sleep(0)
        pool.do()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(asyncio.wait_for(body(), 60))
    assert ledger_of(buffer).holds() == []
    assert buffer.sample() == [5, 6]
    assert_consistent(buffer)
