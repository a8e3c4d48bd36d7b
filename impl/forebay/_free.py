"""The order in which free slots are taken.

Slots that were freed by consumption come first, oldest first; then the slots that were never used,
in rising order; the slots of an abandoned batch go back to the front. The used ones are a circular
array; the fresh ones are always the last `FRESH` slots of the buffer, so a count does for them.
"""

import numpy as np

from forebay._layout import CAPACITY, FREE_HEAD, FREE_USED, FRESH, Layout
from forebay._stores import Ints, Store, consecutive, ring_stores, ring_window


class FreeOrder:
    """The free slots of a ledger; methods return stores and change nothing themselves."""

    def __init__(self, layout: Layout) -> None:
        self._cells = layout.cells
        self._ring = layout.free

    def count(self) -> int:
        """Return the number of free slots."""
        cells = self._cells
        return int(cells[FREE_USED] + cells[FRESH])

    def first(self, n: int) -> Ints:
        """Return the first n free slots in the order in which they will be taken."""
        cells = self._cells
        used = cells[FREE_USED]
        if used >= n:
            return ring_window(self._ring, cells[FREE_HEAD], n)
        start = cells[CAPACITY] - cells[FRESH]
        fresh = consecutive(start, start + n - used)
        if not used:
            return fresh
        return np.concatenate((ring_window(self._ring, cells[FREE_HEAD], used), fresh))

    def take(self, n: int) -> list[Store]:
        """Return the stores that take the first n away."""
        cells = self._cells
        used = min(n, cells[FREE_USED])
        stores: list[Store] = [
            (cells, FREE_HEAD, (cells[FREE_HEAD] + used) % len(self._ring)),
            (cells, FREE_USED, cells[FREE_USED] - used),
        ]
        if n > used:
            stores.append((cells, FRESH, cells[FRESH] - (n - used)))
        return stores

    def restore(self, used: Ints, fresh: int) -> list[Store]:
        """Return the stores that make these used slots and so many fresh ones all that is free."""
        return [
            (self._ring, slice(0, len(used)), used),
            (self._cells, FREE_HEAD, 0),
            (self._cells, FREE_USED, len(used)),
            (self._cells, FRESH, fresh),
        ]

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that put slots behind the other used ones, before the fresh ones."""
        cells = self._cells
        used = cells[FREE_USED]
        return [
            *ring_stores(self._ring, cells[FREE_HEAD] + used, slots),
            (cells, FREE_USED, used + len(slots)),
        ]

    def put_back(self, slots: Ints) -> list[Store]:
        """Return the stores that put slots at the front."""
        cells = self._cells
        head = (cells[FREE_HEAD] - len(slots)) % len(self._ring)
        return [
            *ring_stores(self._ring, head, slots),
            (cells, FREE_HEAD, head),
            (cells, FREE_USED, cells[FREE_USED] + len(slots)),
        ]
