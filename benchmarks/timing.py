"""Time several contenders side by side, so that what disturbs one disturbs all.

A machine's speed drifts during a run, so contenders take turns, repetition by repetition, in an
order that rotates. What counts is the ratio of two contenders in the same repetition: its median
over the repetitions, and with it the smallest and the largest. A median without them says little.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import torch

OURS: Final = "forebay"
SHORTEST: Final = 0.05
"""Seconds of one repetition, below which the clock and the scheduler dominate."""

Work = Callable[[int], float | None]
"""Does something so many times; returns the seconds if only a part of what it does counts."""


class Spread(NamedTuple):
    """The median over the turns, and what it lies between."""

    median: float
    smallest: float
    largest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.smallest:.2f} to {self.largest:.2f})"

    def by(self, factor: float) -> "Spread":
        """Return the same in another unit."""
        return Spread(*(value * factor for value in self))


class Result(NamedTuple):
    """What one contender took: seconds a cycle in the median, and times slower than ours."""

    name: str
    seconds: float
    times_ours: Spread


def spread(values: Sequence[float]) -> Spread:
    """Return the median, the smallest and the largest."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Return the spread of the ratios of what was measured in the same turns."""
    return spread([one / other for one, other in zip(above, below, strict=True)])


def settle(cores: int = 2) -> str:
    """Fix threads and cores, and return a line that says on what was measured."""
    torch.set_num_threads(1)
    used = sorted(os.sched_getaffinity(0))[:cores]
    os.sched_setaffinity(0, used)
    return (
        f"torch {torch.__version__}, one thread each; Python {platform.python_version()};"
        f" {len(used)} cores of {processor()}, {platform.machine()} {platform.system()}"
    )


def processor() -> str:
    """Return what the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "a processor without a name")


@contextmanager
def pinned() -> Iterator[int]:
    """Keep this process on the first of its cores, and give the number of the last, for a peer."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield max(before)
    finally:
        os.sched_setaffinity(0, before)


def timed(run: Callable[[], object]) -> float:
    """Return the seconds that this takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def seconds_of(work: Work, cycles: int) -> float:
    """Return the seconds of so many cycles."""
    started = time.perf_counter()
    part = work(cycles)
    return time.perf_counter() - started if part is None else part


def cycles_for(work: Work, shortest: float, least: int = 8) -> int:
    """Warm up and return how many cycles, at least so many, take at least so many seconds."""
    cycles = least
    while seconds_of(work, cycles) < shortest:
        cycles *= 2
    return cycles


def take_turns(
    contenders: Mapping[str, Work], repetitions: int, shortest: float, *, least: int = 8
) -> dict[str, list[float]]:
    """Let each contender run `repetitions` times, taking turns; return the seconds a cycle."""
    names = list(contenders)
    cycles = {name: cycles_for(work, shortest, least) for name, work in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repetitions):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            seconds[name].append(seconds_of(contenders[name], cycles[name]) / cycles[name])
    return seconds


def race(contenders: Mapping[str, Work], repetitions: int) -> list[Result]:
    """Let contenders take turns, one of which is OURS, and compare each with it.

    Ratios are the others' times by ours, so above 1 means that ours is faster.
    """
    seconds = take_turns(contenders, repetitions, SHORTEST)
    return [
        Result(name, statistics.median(found), ratio(found, seconds[OURS]))
        for name, found in seconds.items()
    ]
