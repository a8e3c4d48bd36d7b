"""Slots in no order, each of which is found and removed in one step, and random choices of them.

They are kept in a dense array, and `places` says where each of them is in it. One that leaves gives
its place to one from the end, so that drawing and removing cost what the batch costs.

The generator is a key and a counter in the ledger, not an object: draw number d reads the stream of
Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) that starts at block
d * 2**192. Equal keys and equal calls give equal draws, whichever thread makes them, and nothing
but two integers has to be kept to continue.
"""

import numpy as np

from forebay._layout import DRAWS, KEY_HIGH, KEY_LOW, Layout
from forebay._stores import Ints, Store, consecutive


class Dense:
    """A dense list of slots, whose length somebody else stores.

    Args:
        layout: the ledger that it lies in.
        slots: the array.
        places: where each slot is in it.
        count: the scalar that says how many there are.
    """

    def __init__(self, layout: Layout, slots: Ints, places: Ints, count: int) -> None:
        self._cells = layout.cells
        self._slots = slots
        self._places = places
        self._count = count

    def __len__(self) -> int:
        return int(self._cells[self._count])

    def slots(self) -> Ints:
        """Return all of them, in the places that they have."""
        return self._slots[: len(self)].copy()

    def at(self, places: Ints) -> Ints:
        """Return the slots in these places."""
        return self._slots[places]

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that add slots."""
        end = len(self) + len(slots)
        return [
            (self._slots, slice(len(self), end), slots),
            (self._places, slots, consecutive(len(self), end)),
        ]

    def remove(self, slots: Ints) -> list[Store]:
        """Return the stores that remove different slots, all of which are in the list."""
        count = len(self)
        left = count - len(slots)
        places = self._places[slots]
        at_end = places >= left
        stays = np.ones(len(slots), dtype=np.bool_)
        stays[places[at_end] - left] = False
        movers = self._slots[left:count][stays]
        holes = places[~at_end]
        return [(self._slots, holes, movers), (self._places, movers, holes)]

    def fill(self, slots: Ints) -> list[Store]:
        """Return the stores that make these slots, in these places, all that there are."""
        count = len(slots)
        return [
            (self._slots, slice(0, count), slots),
            (self._places, slots, np.arange(count)),
        ]


class Draws:
    """The random choices of a ledger; each draw makes one, by `store` in its commit."""

    def __init__(self, layout: Layout) -> None:
        self._cells = layout.cells
        self._bits = np.random.Philox()
        self._generator = np.random.Generator(self._bits)
        self._state = self._bits.state
        self._words = layout.block.view(np.uint64)

    def distinct(self, count: int, rows: int) -> Ints:
        """Return `rows` different places below `count`, every ordered choice as likely."""
        if rows == 1:
            return self.independent(count, 1)
        chosen: Ints = self._now().choice(count, rows, replace=False)
        return chosen

    def independent(self, count: int, rows: int) -> Ints:
        """Return `rows` places below `count`, each whatever the others are."""
        return self._now().integers(count, size=rows)

    def store(self) -> Store:
        """Return the store after which the next choice is another one."""
        return self._cells, DRAWS, self._cells[DRAWS] + 1

    def _now(self) -> np.random.Generator:
        state = self._state
        state["state"]["counter"][:] = (0, 0, 0, self._cells[DRAWS])
        state["state"]["key"][:] = self._words[[KEY_LOW, KEY_HIGH]]
        self._bits.state = state
        return self._generator
