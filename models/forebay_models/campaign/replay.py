"""Walks a given path of steps, and looks for a shorter one that fails too.

Hypothesis shrinks the choices from which a run was made; a choice that was made late rarely fits a
run in which something earlier is left out. So once it has stopped, or its time is up, stretches of
steps are left out here, long ones first, together with whatever cannot happen without them. Each
attempt costs one short run.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from forebay_spec.actions import Label

from forebay_models.adapters.adapter import USUAL, Adapter
from forebay_models.campaign.driver import Divergence, Driver, Exercise, said
from forebay_models.campaign.settings import Setting

Start = Callable[[Setting], Adapter]


class Move(NamedTuple):
    """A step to be taken, and the manner of it."""

    label: Label
    manner: str = USUAL


def walk(
    start: Start,
    setting: Setting,
    path: Iterable[Move],
    *,
    exercise: Exercise | None = None,
    leave_out: bool = False,
) -> Divergence | None:
    """Take the steps of a path and return how it failed, or None.

    Args:
        start: starts a buffer.
        setting: what it runs with.
        path: the steps.
        exercise: where to count what was exercised.
        leave_out: leave out the steps that cannot happen where the path has them.

    Raises:
        ValueError: a step cannot happen where the path has it, unless they are left out.
    """
    adapter = start(setting)
    driver = Driver(setting, adapter, exercise or Exercise())
    failure: Divergence | None = None
    try:
        for label, manner in path:
            if not leave_out or label in driver.labels(label.name):
                driver.step(label, manner)
    except Divergence as found:
        failure = found
    except BaseException:
        # Whatever ends the walk must not be hidden by what it has left behind.
        with suppress(Exception):
            adapter.close()
        raise
    try:
        adapter.close()
    except Exception as left_over:
        failure = failure or driver.divergence([said(left_over)])
    return failure


def shortened(start: Start, failure: Divergence, seconds: float) -> Divergence:
    """Return a failure on a path that is as short as time and leaving out steps allow."""
    until = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for path in _simpler(_path_of(failure)):
            if time.monotonic() >= until:
                return failure
            found = walk(start, failure.setting, path, leave_out=True)
            if found is not None and _size(found) < _size(failure):
                failure, progress = found, True
                break
    return failure


def _simpler(path: Sequence[Move]) -> Iterator[Sequence[Move]]:
    """Yield paths with something left out, long stretches first, or with a usual manner."""
    length = len(path) - 1
    while length >= 1:
        for first in range(len(path) - length, -1, -length):
            yield [*path[:first], *path[first + length :]]
        length //= 2
    for number, (label, manner) in enumerate(path):
        if manner != USUAL:
            yield [*path[:number], Move(label), *path[number + 1 :]]


def _path_of(failure: Divergence) -> list[Move]:
    return [Move(step.label, step.manner) for step in failure.steps]


def _size(failure: Divergence) -> tuple[int, int]:
    return len(failure.steps), sum(step.manner != USUAL for step in failure.steps)
