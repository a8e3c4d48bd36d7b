"""Time several contenders side by side, so that what disturbs one disturbs all.

A machine's speed drifts during a run, so contenders take turns, repetition by repetition, in an
order that rotates. What counts is the ratio: the median over the repetitions of a contender's time
by the time of ours in the same repetition. The smallest and the largest ratio are reported beside
it; a median without them says little.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

OURS = "forebay"
SHORTEST = 0.05  # seconds of one repetition, below which the clock and the scheduler dominate


@dataclass(frozen=True)
class Result:
    """What one contender took: seconds a cycle in the median, and times slower than ours."""

    name: str
    seconds: float
    ratio: float
    smallest: float
    largest: float


def settle(cores: int = 2) -> str:
    """Fix threads and cores, and return a line that says on what was measured."""
    torch.set_num_threads(1)
    used = sorted(os.sched_getaffinity(0))[:cores]
    os.sched_setaffinity(0, used)
    return (
        f"torch {torch.__version__}, one thread each; Python {platform.python_version()};"
        f" {len(used)} cores of {platform.machine()} {platform.system()}"
    )


def cycles_for(run: Callable[[int], None]) -> int:
    """Warm up and return how many cycles take at least SHORTEST seconds."""
    cycles = 8
    while True:
        started = time.perf_counter()
        run(cycles)
        if time.perf_counter() - started >= SHORTEST:
            return cycles
        cycles *= 2


def race(contenders: Mapping[str, Callable[[int], None]], repetitions: int) -> list[Result]:
    """Run each contender `repetitions` times, taking turns; each is given a number of cycles.

    One contender is named OURS; ratios are its peers' times by its own, so above 1 means that
    ours is faster.
    """
    names = list(contenders)
    cycles = {name: cycles_for(run) for name, run in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repetitions):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            started = time.perf_counter()
            contenders[name](cycles[name])
            seconds[name].append((time.perf_counter() - started) / cycles[name])
    results = []
    for name in names:
        ratios = [theirs / ours for theirs, ours in zip(seconds[name], seconds[OURS], strict=True)]
        median = statistics.median(seconds[name])
        results.append(Result(name, median, statistics.median(ratios), min(ratios), max(ratios)))
    return results
