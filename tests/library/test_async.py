"""Calls for asyncio: they do what the others do, and a cancelled task leaves no trace."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable

import pytest
from forebay import (
    AdmissionTimeout,
    BlockingReplayBuffer,
    Cancelled,
    MutualWait,
    SampleTimeout,
    ShutDown,
)

from tests.library.support import Stage, assert_consistent, make, snapshot


async def asleep(stage: Stage, count: int) -> None:
    """Wait, without blocking the loop, until this many calls sleep."""
    await asyncio.to_thread(stage.await_sleepers, count)


async def ended(task: "asyncio.Task[object]") -> None:
    """Cancel a task and see it end so."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def join_workers() -> None:
    """Wait, blocking the loop, until the threads of all calls have ended."""
    for thread in threading.enumerate():
        if thread.name == "forebay-async":
            thread.join(60)


def run(body: Callable[[Stage, BlockingReplayBuffer], Awaitable[None]]) -> None:
    """Run a test in an event loop, with a buffer of four."""
    stage = Stage()
    buffer = make(4, stage)

    async def bounded() -> None:
        await asyncio.wait_for(body(stage, buffer), 60)

    asyncio.run(bounded())
    assert_consistent(buffer)
    assert snapshot(buffer)[5:8] == ([], [], {})


def test_asynchronous_calls_write_and_read() -> None:
    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        assert (await buffer.extend_async([1, 2, 3])).tolist() == [0, 1, 2]
        assert await buffer.sample_async(2) == [1, 2]
        assert await buffer.sample_async(3, at_least=1) == [3]
        before = snapshot(buffer)
        assert (await buffer.extend_async([])).tolist() == []
        assert snapshot(buffer) == before
        assert_consistent(buffer)

    run(body)


def test_a_batch_that_a_transform_drops_is_a_no_op_for_asyncio_too() -> None:
    buffer = make(4, write_transform=lambda batch: None)
    before = snapshot(buffer)
    assert asyncio.run(buffer.extend_async([1, 2])).tolist() == []
    assert snapshot(buffer) == before
    assert buffer.stats().admitted_batches == 0
    assert_consistent(buffer)


def test_asynchronous_calls_wait_without_blocking_the_loop() -> None:
    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        readers = [asyncio.create_task(buffer.sample_async(1)) for _ in range(40)]
        await asleep(stage, 40)
        for number in range(40):
            await buffer.extend_async([number])
        batches = await asyncio.gather(*readers)
        assert sorted(batch[0] for batch in batches) == list(range(40))

    run(body)


def test_asynchronous_calls_raise_what_the_others_raise() -> None:
    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        with pytest.raises(ValueError, match="larger than the capacity"):
            await buffer.extend_async(list(range(9)))
        await buffer.extend_async([1, 2, 3])
        with pytest.raises(AdmissionTimeout):
            await buffer.extend_async([4, 5], timeout=0)
        token = buffer.cancel_token()
        token.set()
        with pytest.raises(Cancelled):
            await buffer.sample_async(1, cancel_event=token)
        waiting = asyncio.create_task(buffer.extend_async([4, 5]))
        await asleep(stage, 1)
        with pytest.raises(MutualWait):
            await buffer.sample_async(4)
        buffer.shutdown()
        with pytest.raises(ShutDown):
            await waiting

    run(body)


def test_a_task_cancelled_while_it_waits_leaves_no_trace() -> None:
    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        await buffer.extend_async([1, 2, 3])
        before = snapshot(buffer)
        writing = asyncio.create_task(buffer.extend_async([4, 5]))
        await asleep(stage, 1)
        await ended(writing)
        assert snapshot(buffer) == before
        reading = asyncio.create_task(buffer.sample_async(4))
        await asleep(stage, 1)
        await ended(reading)
        assert snapshot(buffer) == before

    run(body)


@pytest.mark.parametrize("label", ["admitted", "copied"])
def test_a_task_cancelled_while_it_copies_publishes_nothing(label: str) -> None:
    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        before = snapshot(buffer)[:3]
        inside, go = threading.Event(), threading.Event()

        def stall() -> None:
            inside.set()
            go.wait(60)

        stage.at[label] = stall
        writing = asyncio.create_task(buffer.extend_async([4, 5]))
        await asyncio.to_thread(inside.wait, 60)
        writing.cancel()
        await asyncio.sleep(0)
        assert buffer.stats().filling == 2
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert snapshot(buffer)[:3] == before
        assert buffer.stats().admitted == 0

    run(body)


@pytest.mark.parametrize("label", ["drawn", "gathered"])
def test_a_task_cancelled_while_it_gathers_consumes_nothing(label: str) -> None:
    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        await buffer.extend_async([1, 2, 3])
        inside, go = threading.Event(), threading.Event()

        def stall() -> None:
            stage.at.clear()
            inside.set()
            go.wait(60)

        stage.at[label] = stall
        reading = asyncio.create_task(buffer.sample_async(2))
        await asyncio.to_thread(inside.wait, 60)
        reading.cancel()
        await asyncio.sleep(0)
        reading.cancel()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert buffer.stats().delivered == 0
        assert await buffer.sample_async(3) == [1, 2, 3]

    run(body)


def test_a_task_cancelled_between_the_copy_and_its_last_step_leaves_no_trace() -> None:
    """The thread is done and the loop has not gone on: the last action was not taken yet."""

    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        await buffer.extend_async([1, 2])
        copied = threading.Event()
        stage.at["copied"] = copied.set
        writing = asyncio.create_task(buffer.extend_async([3]))
        await asyncio.sleep(0)
        assert copied.wait(60)
        join_workers()
        await ended(writing)
        stage.at.clear()
        gathered = threading.Event()
        stage.at["gathered"] = gathered.set
        reading = asyncio.create_task(buffer.sample_async(1))
        await asyncio.sleep(0)
        assert gathered.wait(60)
        join_workers()
        await ended(reading)
        assert (len(buffer), buffer.stats().admitted, buffer.stats().delivered) == (2, 2, 0)

    run(body)


def test_a_cancelled_task_takes_part_in_no_mutual_wait() -> None:
    """Its ticket is about to leave, so nobody has to give way to it."""

    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        await buffer.extend_async([1, 2, 3])
        writing = asyncio.create_task(buffer.extend_async([4, 5]))
        await asleep(stage, 1)
        with pytest.raises(MutualWait):
            buffer.sample(4, timeout=0)
        woken, go = threading.Event(), threading.Event()

        def stall() -> None:
            woken.set()
            go.wait(60)

        stage.at["woken"] = stall
        writing.cancel()
        await asyncio.to_thread(woken.wait, 60)
        with pytest.raises(SampleTimeout):
            buffer.sample(4, timeout=0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await writing

    run(body)


def test_a_timeout_of_asyncio_is_a_cancellation() -> None:
    async def body(stage: Stage, buffer: BlockingReplayBuffer) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(buffer.sample_async(1), 0.01)
        await buffer.extend_async([1])
        assert await buffer.sample_async(1) == [1]
        assert buffer.stats().timeouts == 0

    run(body)


def test_a_loop_that_ends_leaves_no_trace() -> None:
    """`asyncio.run` cancels what is still running; the calls end with it."""
    stage = Stage()
    buffer = make(4, stage)
    tasks: list[object] = []

    async def body() -> None:
        tasks.append(asyncio.create_task(buffer.sample_async(1)))
        await asleep(stage, 1)

    asyncio.run(body())
    assert buffer.stats().waiting_readers == 0
    buffer.extend([1])
    assert buffer.sample(1) == [1]


@pytest.mark.parametrize("reading", [False, True])
def test_a_loop_that_is_closed_before_the_outcome_arrives_leaves_no_trace(reading: bool) -> None:
    started, go = threading.Event(), threading.Event()

    def gate(batch: object) -> object:
        if started.is_set():
            assert go.wait(30)
        return batch

    buffer = make(4, transform=gate, write_transform=gate)
    buffer.extend([1])
    started.set()
    loop = asyncio.new_event_loop()
    call = buffer.sample_async(1) if reading else buffer.extend_async([2, 3])
    before = set(threading.enumerate())
    task = loop.create_task(call)
    loop.run_until_complete(asyncio.sleep(0))
    (worker,) = set(threading.enumerate()) - before
    go.set()
    worker.join(30)
    assert not worker.is_alive()
    assert (buffer.stats().filling, buffer.stats().pinned) == ((0, 1) if reading else (2, 0))
    loop.close()
    del task, call
    gc.collect()
    assert (buffer.stats().filling, buffer.stats().pinned, len(buffer)) == (0, 0, 1)
    assert_consistent(buffer)


def test_a_transform_that_raises_stop_iteration_ends_the_call() -> None:
    def exhausted(batch: object) -> object:
        raise StopIteration

    async def body() -> None:
        buffer = make(2, transform=exhausted)
        await buffer.extend_async([1])
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(buffer.sample_async(1), 30)
        assert len(buffer) == 1
        assert_consistent(buffer)

    asyncio.run(body())
