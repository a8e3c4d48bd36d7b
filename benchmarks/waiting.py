"""What waiting costs between processes, and how soon it ends.

P8 is the time from the call that frees space to the return of a writer that waited for it in
another process, and the time that it takes to get over a participant that was killed. P9 is the
share of a core that blocked readers use. Monotonic time is the same in all processes.
"""

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection

import forebay
import torch
from tensordict import TensorDict

from benchmarks.between import PATIENCE, Channel, SharedOurs, SharedQueue
from benchmarks.peers import small

SETTLE = 0.005
"""Seconds that a call is given to block before it is released."""
_fork = get_context("fork")


@contextmanager
def child(work: Callable[..., None], *args: object) -> Iterator[tuple[int, Connection]]:
    """Fork a process that does this work, and give its number and the line to it."""
    mine, its = _fork.Pipe()
    process = _fork.Process(target=work, args=(its, *args), daemon=True)
    process.start()
    its.close()
    assert process.pid is not None
    try:
        yield process.pid, mine
    finally:
        process.kill()
        process.join()
        mine.close()


def _heard(line: Connection) -> object:
    if not line.poll(PATIENCE):
        raise TimeoutError("the child says nothing")
    return line.recv()


def _write_and_tell(line: Connection, channel: Channel, batch: TensorDict) -> None:
    while line.recv():
        channel.put(batch)
        line.send(time.monotonic())


def _returns(line: Connection, release: Callable[[], object]) -> float:
    """Return the seconds from the start of `release` to the return of a blocked writer."""
    line.send(True)
    time.sleep(SETTLE)
    start = time.monotonic()
    release()
    returned = _heard(line)
    assert isinstance(returned, float)
    return returned - start


def wake_up(rounds: int) -> dict[str, list[float]]:
    """Measure how soon a blocked writer returns, in turns; seconds for each way of freeing."""
    batch = small(1)
    ours, queue = SharedOurs(batch, 1), SharedQueue(batch, _fork, 1)
    found: dict[str, list[float]] = {
        name: [] for name in ("forebay", "forebay, end of a lease alone", "multiprocessing.Queue")
    }
    ours.put(batch)
    queue.put(batch)
    with (
        child(_write_and_tell, ours, batch) as (_, ours_line),
        child(_write_and_tell, queue, batch) as (_, queue_line),
    ):
        for _ in range(rounds):
            found["forebay"].append(_returns(ours_line, ours.get))
            with ExitStack() as held:
                held.enter_context(ours.buffer.lease())
                found["forebay, end of a lease alone"].append(_returns(ours_line, held.close))
            found["multiprocessing.Queue"].append(_returns(queue_line, queue.get))
    return found


def _hold_the_lock(line: Connection, buffer: forebay.BlockingReplayBuffer) -> None:
    buffer.stats()
    with buffer._core.section:
        line.send("inside")
        line.recv()


def _hold_a_lease(line: Connection, buffer: forebay.BlockingReplayBuffer) -> None:
    with buffer.lease():
        line.send("inside")
        line.recv()


def after_a_death_inside(rounds: int) -> list[float]:
    """Return the seconds from SIGKILL of the holder of the lock to the end of the next call."""
    found = []
    for _ in range(rounds):
        buffer = SharedOurs(small(1), 1).buffer
        with child(_hold_the_lock, buffer) as (process, line):
            _heard(line)
            start = time.monotonic()
            os.kill(process, signal.SIGKILL)
            stats = buffer.stats()
            found.append(time.monotonic() - start)
            assert stats.recoveries == 1, "the holder was not found dead"
    return found


def after_a_death_with_a_lease(rounds: int) -> list[float]:
    """Return the seconds from SIGKILL of a lessee to the return of a reader that waits for it.

    Somebody has looked for the dead just before, so this is the longest that it takes.
    """
    found = []
    for _ in range(rounds):
        ours = SharedOurs(small(1), 1)
        ours.put(small(1))
        with child(_hold_a_lease, ours.buffer) as (process, line):
            _heard(line)
            with suppress(forebay.SampleTimeout):
                ours.buffer.sample(timeout=0.0)  # the first who finds nothing looks at once
            start = time.monotonic()
            os.kill(process, signal.SIGKILL)
            ours.get()
            found.append(time.monotonic() - start)
    return found


def _wait_in_vain(line: Connection, buffer: forebay.BlockingReplayBuffer, seconds: float) -> None:
    torch.set_num_threads(1)
    buffer.stats()
    line.send("ready")
    line.recv()
    used, start = time.process_time(), time.monotonic()
    try:
        buffer.sample(timeout=seconds)
    except forebay.SampleTimeout:
        line.send((time.process_time() - used) / (time.monotonic() - start))


def blocked_readers(readers: int, seconds: float) -> list[float]:
    """Return the share of a core that each of so many readers uses that wait in processes."""
    buffer = SharedOurs(small(1), 1).buffer
    return _together(readers, buffer, seconds, [])


def _together(
    left: int,
    buffer: forebay.BlockingReplayBuffer,
    seconds: float,
    lines: list[Connection],
) -> list[float]:
    """Start those who are left, one within the other, and let all wait at the same time."""
    if left:
        with child(_wait_in_vain, buffer, seconds) as (_, line):
            return _together(left - 1, buffer, seconds, [*lines, line])
    for line in lines:
        _heard(line)
    for line in lines:
        line.send("go")
    shares = [_heard(line) for line in lines]
    return [share for share in shares if isinstance(share, float)]


def middle(seconds: list[float]) -> tuple[float, float, float]:
    """Return the median, the smallest and the largest."""
    return statistics.median(seconds), min(seconds), max(seconds)
