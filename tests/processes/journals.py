"""Deaths in the middle of a commit, without a process that dies.

The journal ends with one call into C that carries out its stores. Here that call is cut short after
any number of elementary stores: those that a death can come between.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from forebay._journal import Journal
from forebay._stores import Store
from forebay._stores import commit as carry_out

Step = tuple[Any, Any, Any]


class Death(Exception):
    """The process has died."""


def elements(step: Iterable[Step]) -> Iterator[Step]:
    """Yield the elementary stores of a step."""
    for target, index, value in step:
        if isinstance(target, np.ndarray):
            places = np.arange(len(target))[index].tolist()
            values = np.broadcast_to(value, len(places)).tolist()
            yield from ((target, at, new) for at, new in zip(places, values, strict=True))
        else:
            yield target, index, value


def dying(after: int) -> Callable[[Iterable[Step]], None]:
    """Return what carries out so many elementary stores and then dies."""

    def carry_out(step: Iterable[Step]) -> None:
        for done, (target, index, value) in enumerate(elements(step)):
            if done == after:
                raise Death
            target[index] = value

    return carry_out


def size_of(stores: list[Store]) -> int:
    """Return how many cells of the ledger a list of stores names."""
    return sum(_cells(target, index) for target, index, _ in stores)


def _cells(target: object, index: object) -> int:
    if isinstance(target, memoryview):
        return 1
    if not isinstance(target, np.ndarray):
        return 0
    if isinstance(index, slice):
        return int(index.stop - index.start)
    assert isinstance(index, np.ndarray)
    return len(index)


def commit_with_deaths(journal: Journal, stores: list[Store]) -> int:
    """Commit, after having died at every place of it; return how many places there were.

    Each time somebody else, who has nothing but the shared memory, finds the state as it was before
    or as it is afterwards.
    """
    memory = journal._ledger
    own = [(target, list(target)) for target, _, _ in stores if isinstance(target, list)]
    before = memory.copy()
    places, died = 0, True
    while died:
        memory[:] = before
        for target, values in own:
            target[:] = values
        journal.carry_out = dying(places)
        try:
            Journal.commit(journal, stores)
            died = False
        except Death:
            died = True
        finally:
            journal.carry_out = carry_out
        if died:
            journal.redo()
            found = memory.copy()
            if places == 0:
                assert (found == before).all()
            elif places == 1:
                first = found
            else:
                assert (found == first).all()
            places += 1
    assert (memory == first).all()
    return places


@contextmanager
def watched_commits(watch: Callable[[Journal, list[Store]], object]) -> Iterator[None]:
    """Have all journals that are made meanwhile hand each commit to `watch` instead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forebay._shared_core.Journal", _watched(watch))
        yield


def _watched(watch: Callable[[Journal, list[Store]], object]) -> type[Journal]:
    class Watched(Journal):
        def commit(self, stores: list[Store]) -> None:
            watch(self, stores)

    return Watched
