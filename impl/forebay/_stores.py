"""How the ledger changes: all stores of an action at once, or none.

A signal handler runs between two Python instructions of the main thread and may raise there, in the
middle of a critical section too. An action that changed the ledger store by store could be cut in
half by a Ctrl-C. So an action first works out what it will store, without storing anything, and
then hands the whole list to `commit`, which is one call into C: the interpreter gives signal
handlers no chance before it returns. Stores are absolute ("this cell becomes 7"), never relative,
so that the list is also a journal that may be replayed.
"""

import operator
from collections import deque
from itertools import starmap
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Store = (
    tuple[memoryview, int, int]
    | tuple[Ints, slice, Ints | int]
    | tuple[Ints, Ints, Ints | int]
    | tuple[list[int], int, int]
    | tuple[list[Any], slice, list[Any]]
)
"""A target, the index in it, and what will be there."""


def commit(stores: list[Store]) -> None:
    """Carry out all stores, in order, as one step."""
    deque(starmap(operator.setitem, stores), 0)


def ring_stores(ring: Ints, start: int, values: Ints) -> list[Store]:
    """Return the stores that write `values` into a circular array from index `start` on."""
    size = len(ring)
    start %= size
    end = start + len(values)
    if end <= size:
        return [(ring, slice(start, end), values)]
    room = size - start
    return [(ring, slice(start, size), values[:room]), (ring, slice(0, end - size), values[room:])]


def ring_window(ring: Ints, start: int, count: int) -> Ints:
    """Return a copy of `count` cells of a circular array from index `start` on."""
    size = len(ring)
    start %= size
    end = start + count
    if end <= size:
        return ring[start:end].copy()
    return np.concatenate((ring[start:], ring[: end - size]))


_FIRST: Final = np.arange(4096)


def consecutive(start: int, end: int) -> Ints:
    """Return the numbers from `start` up to `end`, as `numpy.arange` does.

    That lets go of the interpreter lock even for a few numbers, and then has to wait for it if
    another thread wants it too.
    """
    count = end - start
    return _FIRST[:count] + start if 0 <= count <= len(_FIRST) else np.arange(start, end)


def common(values: Ints) -> Ints | int:
    """Return the values of a batch, as one number if they are all the same.

    They nearly always are, and numbers are worked with several times faster than small arrays.
    """
    rows = len(values)
    if rows == 1:
        return values.item()
    raw = values.tobytes()
    return values.item(0) if rows and raw == raw[:8] * rows else values


def tally(flags: Flags) -> int:
    """Return how many of the flags are set."""
    return int(np.count_nonzero(flags))


def tally_of(rows: int, flags: Flags | bool) -> int:
    """Return how many of so many rows are flagged; one flag is the same for all."""
    if isinstance(flags, bool):
        return rows if flags else 0
    return tally(flags)


def picked(slots: Ints, flags: Flags | bool) -> Ints:
    """Return the slots whose flags are set; one flag is the same for all."""
    if isinstance(flags, bool):
        return slots if flags else slots[:0]
    return slots[flags]
