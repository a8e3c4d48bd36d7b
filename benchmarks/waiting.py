"""What waiting costs between processes, and how soon it ends.

P8 is the time from the call that frees space to the return of a writer that waited for it in
another process, and the time that it takes to get over a participant that was killed. P9 is the
share of a core that blocked readers use. Monotonic time is the same in all processes.
"""

import os
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

import forebay
import torch
from tensordict import TensorDict

from benchmarks.channels import MP_QUEUE, Channel, SharedOurs, SharedQueue
from benchmarks.children import Child, child
from benchmarks.plan import Part, Plan
from benchmarks.records import small
from benchmarks.results import Goal, Row
from benchmarks.timing import OURS, pinned, ratio, spread

SETTLE: Final = 0.005
"""Seconds that a call is given to block before it is released."""

WAKE: Final = 150.0
"""Microseconds until a blocked writer returns, at most."""

HEAL: Final = 50.0
"""Milliseconds until the next call is done after the holder of the lock was killed, at most."""

IDLE: Final = 1.0
"""Percent of a core that a blocked reader uses, at most."""

LEASE: Final = "forebay, end of a lease"
PIPE: Final = "byte in a pipe"


class Pipe:
    """A pipe: who waits reads, and what frees it is a write of one byte, in the place of a draw.

    Short of a spin nothing wakes another process sooner.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def put(self, batch: TensorDict) -> None:
        """Wait for a byte."""
        os.read(self._read, 1)

    def get(self) -> object:
        """Write a byte."""
        return os.write(self._write, b"x")

    def close(self) -> None:
        """Close both ends."""
        os.close(self._read)
        os.close(self._write)


def _write_and_tell(line: Connection, core: int, channel: Channel, batch: TensorDict) -> None:
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    while line.recv():
        channel.put(batch)
        line.send(time.monotonic())


def _returns(waiter: Child, release: Callable[[], object]) -> float:
    """Return the seconds from the start of `release` to the return of a blocked writer."""
    waiter.line.send(True)
    time.sleep(SETTLE)
    start = time.monotonic()
    release()
    returned = waiter.hear()
    assert isinstance(returned, float)
    return returned - start


def wake_up(rounds: int) -> dict[str, list[float]]:
    """Measure how soon a blocked writer returns, in turns; seconds for each way of freeing."""
    batch = small(1)
    ours, queue, pipe = SharedOurs(batch, 1), SharedQueue(batch, 1, method="fork"), Pipe()
    found: dict[str, list[float]] = {name: [] for name in (OURS, LEASE, MP_QUEUE, PIPE)}
    ours.put(batch)
    queue.put(batch)
    with (
        pinned() as core,
        child(_write_and_tell, core, ours, batch) as our_writer,
        child(_write_and_tell, core, queue, batch) as queue_writer,
        child(_write_and_tell, core, pipe, batch) as reader,
    ):
        for _ in range(rounds):
            found[OURS].append(_returns(our_writer, ours.get))
            with ExitStack() as held:
                held.enter_context(ours.buffer.lease())
                found[LEASE].append(_returns(our_writer, held.close))
            found[MP_QUEUE].append(_returns(queue_writer, queue.get))
            found[PIPE].append(_returns(reader, pipe.get))
    queue.close()
    pipe.close()
    return found


def medians(seconds: Sequence[float], turns: int) -> list[float]:
    """Return the median of each of so many turns, into which what was measured is dealt out."""
    return [statistics.median(seconds[turn::turns]) for turn in range(turns)]


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
        with child(_hold_the_lock, buffer) as victim:
            victim.hear()
            start = time.monotonic()
            os.kill(victim.number, signal.SIGKILL)
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
        with child(_hold_a_lease, ours.buffer) as victim:
            victim.hear()
            with suppress(forebay.SampleTimeout):
                ours.buffer.sample(timeout=0.0)  # the first who finds nothing looks at once
            start = time.monotonic()
            os.kill(victim.number, signal.SIGKILL)
            ours.get()
            found.append(time.monotonic() - start)
    return found


def waking(plan: Plan) -> list[Part]:
    """P8: a blocked writer returns, and deaths are got over."""

    def releases() -> list[Row]:
        effort = plan.effort
        found = {
            name: medians(seconds, effort.turns) for name, seconds in wake_up(effort.wakes).items()
        }
        goals = {(OURS, MP_QUEUE): Goal("at most", WAKE, "ours")}
        return [
            Row(
                case="P8",
                size="a blocked writer returns",
                who=who,
                ours=spread(found[who]).by(1e6),
                unit="us",
                peer=peer,
                theirs=spread(found[peer]).by(1e6),
                ratio=ratio(found[peer], found[who]),
                goal=goals.get((who, peer)),
            )
            for who in (OURS, LEASE)
            for peer in (MP_QUEUE, PIPE)
        ]

    def death(size: str, measure: Callable[[int], list[float]], goal: Goal | None) -> list[Row]:
        found = spread(measure(plan.effort.deaths)).by(1e3)
        return [Row(case="P8", size=size, ours=found, unit="ms", goal=goal)]

    deaths: list[tuple[str, Callable[[int], list[float]], Goal | None]] = [
        (
            "holder of the lock is killed, next call done",
            after_a_death_inside,
            Goal("at most", HEAL, "ours"),
        ),
        ("lessee is killed, waiting reader has its record", after_a_death_with_a_lease, None),
    ]
    return [
        Part("a blocked writer", releases),
        *(Part(each[0], partial(death, *each)) for each in deaths),
    ]


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
    with ExitStack() as stack:
        waiters = [
            stack.enter_context(child(_wait_in_vain, buffer, seconds)) for _ in range(readers)
        ]
        for waiter in waiters:
            waiter.hear()
        for waiter in waiters:
            waiter.line.send("go")
        shares = [waiter.hear() for waiter in waiters]
    return [share for share in shares if isinstance(share, float)]


def idling(plan: Plan) -> list[Part]:
    """P9: what blocked readers use; the goal is about the one that uses most."""

    def measure() -> list[Row]:
        effort = plan.effort
        turns = [blocked_readers(effort.readers, effort.idle) for _ in range(effort.turns)]
        most = [100.0 * max(shares) for shares in turns]
        middle = [100.0 * statistics.median(shares) for shares in turns]
        size = f"{effort.readers} readers wait"
        return [
            Row(
                case="P9",
                size=f"{size}, the one that uses most",
                ours=spread(most),
                unit="% of a core",
                goal=Goal("at most", IDLE, "ours"),
            ),
            Row(
                case="P9",
                size=f"{size}, the one in the middle",
                ours=spread(middle),
                unit="% of a core",
            ),
        ]

    return [Part(f"{plan.effort.readers} readers", measure)]
