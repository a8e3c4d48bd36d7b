"""The sampleable records without an order, for `order="random"`.

They are kept in a dense array, and `entry` says where each of them is in it. A record that is spent
leaves its place to one from the end, so that drawing and removing cost what the batch costs.

The generator is a key and a counter in the ledger, not an object: draw number d reads the stream of
Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) that starts at block
d * 2**192. Equal keys and equal calls give equal draws, whichever thread makes them, and nothing
but two integers has to be kept to continue.
"""

import numpy as np

from forebay._layout import DRAWS, KEY_HIGH, KEY_LOW, SAMPLEABLE, Layout
from forebay._stores import Flags, Ints, Store


class Bag:
    """Sampleable records, drawn uniformly and without repetition inside a batch."""

    def __init__(self, layout: Layout) -> None:
        self._cells = layout.cells
        self._dense = layout.order
        self._entry = layout.entry
        self._bits = np.random.Philox()
        self._generator = np.random.Generator(self._bits)
        self._state = self._bits.state
        self._words = layout.block.view(np.uint64)

    def prepare(self, rows: int) -> None:
        """Nothing has to be made ready here."""

    def select(self, rows: int) -> Ints:
        """Return the slots of `rows` distinct records, every ordered choice as likely."""
        count = self._cells[SAMPLEABLE]
        generator = self._generator_at(self._cells[DRAWS])
        if rows == 1:
            return self._dense[generator.integers(count, size=1)]
        return self._dense[generator.choice(count, rows, replace=False)]

    def draw(self, slots: Ints, spent: Flags) -> list[Store]:
        """Return the stores that remove the spent ones of the selected slots."""
        cells = self._cells
        stores: list[Store] = [(cells, DRAWS, cells[DRAWS] + 1)]
        leaving = slots[spent]
        if not len(leaving):
            return stores
        count = cells[SAMPLEABLE]
        left = count - len(leaving)
        places = self._entry[leaving]
        at_end = places >= left
        stays = np.ones(len(leaving), dtype=np.bool_)
        stays[places[at_end] - left] = False
        movers = self._dense[left:count][stays]
        holes = places[~at_end]
        return [
            *stores,
            (self._dense, holes, movers),
            (self._entry, movers, holes),
        ]

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that add slots."""
        count = self._cells[SAMPLEABLE]
        end = count + len(slots)
        return [
            (self._dense, slice(count, end), slots),
            (self._entry, slots, np.arange(count, end)),
        ]

    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        """Return the stores that add those returned slots that cannot be sampled already."""
        return self.append(slots[~sampleable])

    def clear(self, live: Ints) -> list[Store]:
        """Return the stores that leave no record sampleable; the count alone says so here."""
        return []

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        """Return the stores that give an empty bag these records, in these places."""
        count = len(sampleable)
        return [
            (self._dense, slice(0, count), sampleable),
            (self._entry, sampleable, np.arange(count)),
        ]

    def dense(self) -> Ints:
        """Return all records that can be sampled, in the places that they have."""
        return self._dense[: self._cells[SAMPLEABLE]].copy()

    def _generator_at(self, draw: int) -> np.random.Generator:
        state = self._state
        state["state"]["counter"][:] = (0, 0, 0, draw)
        state["state"]["key"][:] = self._words[[KEY_LOW, KEY_HIGH]]
        self._bits.state = state
        return self._generator
