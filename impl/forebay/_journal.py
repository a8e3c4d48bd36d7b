"""The journal of a shared ledger: an action that a death cuts short is carried out by its finder.

A list of stores is one step for the threads of a process (see `_stores`), but a process can be
killed between any two of them. So the list is first written down in shared memory: for every cell
that changes its index in the ledger and what it will be. Then come, in one call into C, the mark,
which is how many cells there are, all the stores, and the mark's removal. Whoever finds a mark
after a death carries the list out again, from its first store; since stores are absolute, it does
not matter how many had been done. `tla/Journal.tla` is this protocol.

What belongs to one process only - where a call has got to - is stored in the same step and not
written down, since it dies with the process. Writing down is not part of the step: before the mark
nobody reads it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from forebay._layout import JOURNALED, Layout
from forebay._stores import Ints, Store
from forebay._stores import commit as carry_out


class Journal:
    """Carries out the actions on a ledger that lies in shared memory.

    Args:
        layout: the ledger.
        cells: int64, room for the indices of the cells that change.
        values: int64, room for what they will be.

    Attributes:
        carry_out: does a list of stores in one call into C; only who looks for what a death between
            two stores does puts something else here.
    """

    def __init__(self, layout: Layout, cells: Ints, values: Ints) -> None:
        self._ledger = layout.block
        self._scalars = layout.cells
        self._start = _address(layout.block)
        # The layout's own views live as long as it does, so their ids are theirs alone.
        self._starts = {
            id(view): self._place(view)
            for view in vars(layout).values()
            if isinstance(view, np.ndarray)
        }
        self._cells = cells
        self._values = values
        self.carry_out: Callable[[list[Store]], None] = carry_out

    def commit(self, stores: list[Store]) -> None:
        """Carry out all stores, in order, as one step that survives the death of this process."""
        single_cells: list[int] = []
        single_values: list[int] = []
        own: list[Any] = []
        at = 0
        cells, values = self._cells, self._values
        for target, index, value in stores:
            if target is self._scalars:
                single_cells.append(index)  # type: ignore[arg-type]  # scalars are stored singly
                single_values.append(value)  # type: ignore[arg-type]  # and so are their values
            elif isinstance(target, np.ndarray):
                start = self._starts.get(id(target))
                if start is None:
                    start = self._place(target)
                where: Any = index
                if isinstance(index, slice):
                    where = np.arange(index.start, index.stop)
                end = at + len(where)
                cells[at:end] = where
                cells[at:end] += start
                values[at:end] = value
                at = end
            else:
                own.append((target, index, value))
        end = at + len(single_cells)
        cells[at:end] = single_cells
        values[at:end] = single_values
        scalars = self._scalars
        step = [
            (scalars, JOURNALED, end),
            (self._ledger, cells[:end], values[:end]),
            *own,
            (scalars, JOURNALED, 0),
        ]
        self.carry_out(step)

    def _place(self, view: Ints) -> int:
        """Return at which cell of the ledger a view begins."""
        return (_address(view) - self._start) >> 3

    def redo(self) -> None:
        """Finish the action of a process that died in the middle of it, if one did."""
        count = self._scalars[JOURNALED]
        if count:
            cells, values = self._cells[:count], self._values[:count]
            self.carry_out([(self._ledger, cells, values), (self._scalars, JOURNALED, 0)])


def _address(array: Ints) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
