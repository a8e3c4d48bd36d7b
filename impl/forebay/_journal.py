"""The journal of a shared ledger: an action that a death cuts short is carried out by its finder.

A list of stores is one step for the threads of a process (see `_stores`), but a process can be
killed between any two of them. So the list is first written down in shared memory. Then come, in
one call into C, the mark, which is how many words there are, all the stores, and the mark's
removal. Whoever finds a mark after a death carries the list out again, from its first store; since
stores are absolute, it does not matter how many had been done. `tla/Journal.tla` is this protocol.

An entry of a single cell is two words, where and what. One of several cells begins with what kind
it is, below 0, where their column begins or they do, and how many there are; arrays, of what the
cells become or of their places in the column, lie before all entries, in order. The last word says
where the entries begin.

What belongs to one process only - where a call has got to - is stored in the same step and not
written down, since it dies with the process. Writing down is not part of the step: before the mark
nobody reads it.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from forebay._layout import JOURNALED, Layout
from forebay._stores import Ints, Store
from forebay._stores import commit as carry_out

ENTRY: Final = 4
"""How many words the entry of several cells takes at most, besides its arrays."""

COLUMNS: Final = 64
"""Room for the entries of so many stores of several cells; the largest action has some thirty."""

_ALIKE, _EACH, _LISTED_ALIKE, _LISTED_EACH = -1, -2, -3, -4
"""Cells side by side become one number, or each its own; so do cells whose places are listed."""


class Journal:
    """Carries out the actions on a ledger that lies in shared memory.

    Args:
        layout: the ledger.
        words: int64, room for the list of an action.

    Attributes:
        carry_out: does a list of stores in one call into C; only who looks for what a death between
            two stores does puts something else here.
    """

    def __init__(self, layout: Layout, words: Ints) -> None:
        self._ledger = layout.block
        self._scalars = layout.cells
        self._start = _address(layout.block)
        # The layout's own views live as long as it does, so their ids are theirs alone.
        self._starts = {
            id(view): self._place(view)
            for view in vars(layout).values()
            if isinstance(view, np.ndarray)
        }
        self._words = words
        self._room: Any = words.data
        self._bytes = self._room.cast("B")
        self.carry_out: Callable[[list[Store]], None] = carry_out

    def commit(self, stores: list[Store]) -> None:
        """Carry out all stores, in order, as one step that survives the death of this process."""
        scalars, room, starts, array = self._scalars, self._room, self._starts, np.ndarray
        untyped: list[Any] = stores
        entries: list[int] = []
        write = entries.append
        at = 0
        for target, index, value in untyped:
            if target is scalars:
                write(index)
                write(value)
                continue
            start = starts.get(id(target))
            if start is None:
                if isinstance(target, list):
                    continue
                start = self._place(target)
            if isinstance(index, slice):
                kind, count = _ALIKE, index.stop - index.start
                start += index.start
            else:
                kind, count = _LISTED_ALIKE, len(index)
                room[at : at + count] = index
                at += count
            if isinstance(value, array):
                room[at : at + count] = value
                at += count
                entries += (kind - 1, start, count)
            else:
                entries += (kind, start, count, value)
        write(at)
        words = len(entries)
        struct.pack_into(f"{words}q", self._bytes, 8 * at, *entries)
        self.carry_out([(scalars, JOURNALED, at + words), *stores, (scalars, JOURNALED, 0)])

    def _place(self, view: Ints) -> int:
        """Return at which cell of the ledger a view begins."""
        return (_address(view) - self._start) >> 3

    def unfinished(self) -> list[Store]:
        """Return the stores of an action that was marked and not finished, if there is one."""
        end = self._scalars[JOURNALED]
        if not end:
            return []
        words = self._words[:end].copy()
        entries, arrays = iter(words[words[-1] : -1].tolist()), iter(words)
        stores: list[Any] = []
        for first in entries:
            if first >= 0:
                stores.append((self._scalars, first, next(entries)))
                continue
            start, count = next(entries), next(entries)
            index: Ints | slice = slice(start, start + count)
            if first in (_LISTED_ALIKE, _LISTED_EACH):
                index = start + np.fromiter(arrays, np.int64, count)
            each = first in (_EACH, _LISTED_EACH)
            value = np.fromiter(arrays, np.int64, count) if each else next(entries)
            stores.append((self._ledger, index, value))
        return stores

    def redo(self) -> None:
        """Finish the action of a process that died in the middle of it, if one did."""
        if self._scalars[JOURNALED]:
            self.carry_out([*self.unfinished(), (self._scalars, JOURNALED, 0)])


def _address(array: Ints) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
