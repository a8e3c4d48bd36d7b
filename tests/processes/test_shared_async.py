"""Calls of asyncio on a buffer that other processes use too."""

import asyncio
import gc

import pytest
import torch
from forebay import BlockingReplayBuffer

from tests.library.support import assert_consistent, snapshot
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    all_values,
    await_waiters,
    read,
    read_from,
    remotes,
    shared_buffer,
    write,
    write_to,
)
from tests.processes.support import PATIENCE, until

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def record(value: int) -> dict[str, torch.Tensor]:
    return {"x": torch.tensor([value])}


async def see(buffer: BlockingReplayBuffer, *, writers: int = 0, readers: int = 0) -> None:
    """Let the loop run until so many calls wait."""
    await asyncio.to_thread(await_waiters, buffer, writers=writers, readers=readers)


def cancel_a_wait(hands: Hands, kind: str) -> None:
    """Begin a call that waits, and cancel its task."""

    async def work() -> None:
        buffer = hands.buffer
        if kind == "write":
            call = asyncio.ensure_future(buffer.extend_async(record(9)))
            await see(buffer, writers=1)
        else:
            call = asyncio.ensure_future(buffer.sample_async(2))
            await see(buffer, readers=1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(work())


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_cancelled_task_leaves_no_trace_for_other_processes(kind: str) -> None:
    buffer = shared_buffer(1 if kind == "write" else 2)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        before = snapshot(buffer)
        other = start.start()
        other.does(cancel_a_wait, kind)
        assert snapshot(buffer) == before
        assert other.does(read, 1) == [1]
    assert buffer.stats().cancellations == 1
    assert buffer.stats().recoveries == 0


def test_tasks_wait_for_records_from_another_process() -> None:
    buffer = shared_buffer(2)

    async def sample_twice() -> list[list[int]]:
        first = asyncio.ensure_future(buffer.sample_async(1))
        await see(buffer, readers=1)
        second = asyncio.ensure_future(buffer.sample_async(1))
        await see(buffer, readers=2)
        writer.begins(write, 1, 2)
        batches = await asyncio.wait_for(asyncio.gather(first, second), PATIENCE)
        return [batch["x"].tolist() for batch in batches]

    with remotes(buffer) as start:
        writer = start.start()
        assert asyncio.run(sample_twice()) == [[1], [2]]
        assert writer.ends().error == ""


def drop_a_coroutine(hands: Hands, kind: str) -> None:
    """Begin a call in a loop, drop both in the middle of it, and do nothing more."""
    loop = asyncio.new_event_loop()
    buffer = hands.buffer
    if kind == "write":
        call = loop.create_task(buffer.extend_async(record(9)))
        waiting = see(buffer, writers=1)
    else:
        call = loop.create_task(buffer.sample_async(2))
        waiting = see(buffer, readers=1)
    loop.run_until_complete(waiting)
    call.get_coro().close()
    call._log_destroy_pending = False  # type: ignore[attr-defined]  # it is dropped on purpose
    del call
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    gc.collect()
    hands.line.send("dropped")
    hands.line.recv()


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_dropped_coroutine_gives_back_what_it_had(kind: str) -> None:
    """Its process is idle from then on, and stays alive."""
    buffer = shared_buffer(1 if kind == "write" else 2)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        before = snapshot(buffer)
        other = start.start()
        other.begins(drop_a_coroutine, kind)
        other.reaches("dropped")
        until(lambda: snapshot(buffer) == before)
        assert read_from(buffer, 1) == [1]
        write_to(buffer, 2)
    assert all_values(buffer) == [2]
    assert_consistent(buffer)


def wait_in_a_task(hands: Hands) -> None:
    asyncio.run(see_a_sample(hands.buffer))


async def see_a_sample(buffer: BlockingReplayBuffer) -> None:
    await buffer.sample_async(2)


def test_the_ticket_of_a_task_goes_with_its_killed_process() -> None:
    """Actors of tasks are negative numbers; they belong to a process like those of threads."""
    buffer = shared_buffer(2)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        idle, dead = start.start(), start.start()
        idle.does(read, 1)
        write_to(buffer, 1)
        dead.begins(wait_in_a_task)
        await_waiters(buffer, readers=1)
        dead.dies()
        assert read_from(buffer, 1) == [1]
    stats = buffer.stats()
    assert (stats.recoveries, stats.waiting_readers) == (1, 0)
