"""All live records in one dense array: first those that are left of the epoch, then the others.

So a new epoch begins by moving the border: everything is left again, and nothing is looked at. What
is drawn, returned, written or evicted changes places with what is at the border or at the end, and
`places` says where each record is; each costs what its batch costs. Where no record is ever drawn
out of an epoch, all are left, and this is a dense list like any other.
"""

import numpy as np

from forebay._layout import LEFT, SAMPLEABLE, Layout
from forebay._stores import Ints, Store, consecutive


class EpochList:
    """The records that a sampler draws from, and those that it has drawn from this epoch.

    Args:
        layout: the ledger of an overwriting buffer.
    """

    def __init__(self, layout: Layout) -> None:
        self._cells = layout.cells
        self._slots = layout.dense
        self._places = layout.places

    @property
    def left(self) -> int:
        """How many records are left of the epoch."""
        return int(self._cells[LEFT])

    def slots(self) -> Ints:
        """Return all records that are left, in the places that they have."""
        return self._slots[: self.left].copy()

    def drawn(self) -> Ints:
        """Return all other records, in the places that they have."""
        return self._slots[self.left : self._cells[SAMPLEABLE]].copy()

    def at(self, places: Ints) -> Ints:
        """Return the records in these places."""
        return self._slots[places]

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that add new records, which are left; drawn ones make room at once."""
        left, live = self.left, self._cells[SAMPLEABLE]
        border, end = left + len(slots), live + len(slots)
        moving = self._slots[left : min(border, live)].copy()
        return [
            *self._put(slice(end - len(moving), end), moving),
            *self._put(slice(left, border), slots),
            (self._cells, LEFT, border),
        ]

    def draw(self, slots: Ints, left: int) -> list[Store]:
        """Return the stores that draw different ones of the first `left`, all of which were left.

        In the middle of an epoch that is how many are left; to begin one, all records are.
        """
        border = left - len(slots)
        places = self._places[slots]
        at_border = places >= border
        stays = np.ones(len(slots), dtype=np.bool_)
        stays[places[at_border] - border] = False
        return [
            *self._put(places[~at_border], self._slots[border:left][stays]),
            *self._put(slice(border, left), slots),
            (self._cells, LEFT, border),
        ]

    def put_back(self, slots: Ints) -> list[Store]:
        """Return the stores after which different records, which were drawn, are left again."""
        left = self.left
        border = left + len(slots)
        places = self._places[slots]
        at_border = places < border
        goes = np.ones(len(slots), dtype=np.bool_)
        goes[places[at_border] - left] = False
        return [
            *self._put(places[~at_border], self._slots[left:border][goes]),
            *self._put(slice(left, border), slots),
            (self._cells, LEFT, border),
        ]

    def remove(self, slots: Ints) -> list[Store]:
        """Return the stores that remove different records, left or not."""
        left, live = self.left, self._cells[SAMPLEABLE]
        end = live - len(slots)
        places = self._places[slots]
        of_left = places < left
        border = left - int(np.count_nonzero(of_left))
        stores = self._closed(places[of_left], border, left)
        if left < live:
            gap = consecutive(border, min(left, end))
            stores += self._closed(places[~of_left], max(left, end), live, gap)
        return [*stores, (self._cells, LEFT, border)]

    def fill(self, left: Ints) -> list[Store]:
        """Return the stores that make these records, in these places, all that are left."""
        return [*self._put(slice(0, len(left)), left), (self._cells, LEFT, len(left))]

    def place(self, left: int, drawn: Ints) -> list[Store]:
        """Return the stores that give the records behind the first `left` these places."""
        return self._put(slice(left, left + len(drawn)), drawn)

    def _closed(self, places: Ints, start: int, end: int, gap: Ints | None = None) -> list[Store]:
        """Return the stores that move what stays from `start` to `end` into holes before.

        `places` are those of the records that go; `gap` are holes besides.
        """
        behind = places >= start
        stays = np.ones(end - start, dtype=np.bool_)
        stays[places[behind] - start] = False
        holes = places[~behind]
        if gap is not None:
            holes = np.concatenate((gap, holes))
        return self._put(holes, self._slots[start:end][stays])

    def _put(self, places: slice | Ints, slots: Ints) -> list[Store]:
        """Return the stores that put records into places."""
        if not len(slots):
            return []
        if isinstance(places, slice):
            numbers = consecutive(places.start, places.stop)
            return [(self._slots, places, slots), (self._places, slots, numbers)]
        return [(self._slots, places, slots), (self._places, slots, places)]
