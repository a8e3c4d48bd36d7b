"""The sampleable records in the order of their age, for `order="fifo"`.

New records, and drawn ones that have uses left, join at the tail, so the tail grows in the order of
the stamps: a circular array of slots, `order`, is enough for them. A returned record gets its old
stamp again and belongs somewhere near the front; such records are kept in a second circular array,
`back`, sorted by stamp. The oldest records are found by merging the fronts of both.

A record that is returned to an older place leaves a stale cell in `order`. `back` never holds stale
cells; it is only as long as the number of records that were returned and not drawn again, and
joining it costs more than the batch only when records come back in an order that is neither that of
their ages nor its reverse.
"""

import numpy as np

from forebay._age_ring import AgeRing
from forebay._layout import AGE_HEAD, AGE_TAIL, BACK_COUNT, BACK_HEAD, SAMPLEABLE, Layout
from forebay._stores import Flags, Ints, Store, picked, ring_stores, ring_window, tally

IN_BACK = -1
"""The entry of a record in `back`; positions in `order` are positive, 0 means in neither."""


class AgeOrder(AgeRing):
    """Sampleable records, oldest first."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._back = layout.back

    def select(self, rows: int) -> Ints:
        """Return the slots of the `rows` oldest sampleable records, oldest first."""
        cells = self._cells
        count = cells[BACK_COUNT]
        fresh = cells[SAMPLEABLE] - count
        if not count:
            return self._front(rows)
        back = ring_window(self._back, cells[BACK_HEAD], min(rows, count))
        if not fresh:
            return back
        if len(back) == rows and self._stamp[back[-1]] < self._stamp[self._front(1)[0]]:
            return back
        both = np.concatenate((back, self._front(min(rows, fresh))))
        return both[np.argsort(self._stamp[both])[:rows]]

    def draw(self, slots: Ints, lasting: Flags | bool) -> list[Store]:
        """Return the stores that take selected slots off the front; the lasting join the tail."""
        cells = self._cells
        stores: list[Store] = []
        from_back = 0
        if cells[BACK_COUNT]:
            from_back = tally(self._entry[slots] == IN_BACK)
            stores = [
                (cells, BACK_HEAD, (cells[BACK_HEAD] + from_back) % len(self._back)),
                (cells, BACK_COUNT, cells[BACK_COUNT] - from_back),
            ]
        stores.append((cells, AGE_HEAD, cells[AGE_HEAD] + len(slots) - from_back))
        stores.append((self._entry, slots, 0))
        staying = picked(slots, lasting)
        return [*stores, *self.append(staying)] if len(staying) else stores

    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        """Return the stores that give returned slots these stamps.

        `sampleable` tells which of them can be sampled already. Those keep their place when their
        stamp does not change; the others are sorted into `back`.
        """
        moving = ~sampleable | (stamps != self._stamp[slots])
        slots, stamps = slots[moving], stamps[moving]
        if not len(slots):
            return []
        sorting = np.argsort(stamps)
        slots, stamps = slots[sorting], stamps[sorting]
        return [
            *self._join_back(slots, stamps),
            (self._entry, slots, IN_BACK),
            (self._stamp, slots, stamps),
        ]

    def clear(self, live: Ints) -> list[Store]:
        """Return the stores that leave no record sampleable; `live` are all that there were."""
        return [*super().clear(live), (self._cells, BACK_COUNT, 0)]

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        """Return the stores that give an empty order these records; see `AgeRing.restore`."""
        restored = super().restore(sampleable, slots, stamps, youngest)
        return [*restored, (self._cells, BACK_COUNT, 0)]

    def dense(self) -> Ints:
        """Return nothing: there is nothing to keep but the ages."""
        return self._order[:0].copy()

    def drawn(self) -> Ints:
        """Return nothing: there are no epochs."""
        return self._order[:0].copy()

    def place_drawn(self, left: int, drawn: Ints) -> list[Store]:
        """Return nothing: there are no epochs."""
        return []

    def _join_back(self, slots: Ints, stamps: Ints) -> list[Store]:
        """Return the stores that merge slots, sorted by their new stamps, into `back`."""
        cells = self._cells
        size, head, count = len(self._back), cells[BACK_HEAD], cells[BACK_COUNT]
        n = len(slots)
        if not count:
            return [*ring_stores(self._back, head, slots), (cells, BACK_COUNT, n)]
        if not (self._entry[slots] == IN_BACK).any():
            if stamps[0] > self._stamp[self._back[(head + count - 1) % size]]:
                return [
                    *ring_stores(self._back, head + count, slots),
                    (cells, BACK_COUNT, count + n),
                ]
            if stamps[-1] < self._stamp[self._back[head]]:
                head = (head - n) % size
                return [
                    *ring_stores(self._back, head, slots),
                    (cells, BACK_HEAD, head),
                    (cells, BACK_COUNT, count + n),
                ]
        staying = ring_window(self._back, head, count)
        staying = staying[~np.isin(staying, slots)]
        merged = np.insert(staying, np.searchsorted(self._stamp[staying], stamps), slots)
        return [*ring_stores(self._back, head, merged), (cells, BACK_COUNT, len(merged))]

    def _front(self, rows: int) -> Ints:
        """Return the first `rows` slots of `order`, squeezing out stale cells on the way."""
        cells = self._cells
        length = cells[AGE_TAIL] - cells[AGE_HEAD]
        width = rows
        if length > cells[SAMPLEABLE] - cells[BACK_COUNT]:
            while tally(self._valid(width)) < rows:
                if width >= length:
                    raise RuntimeError("the ledger contradicts itself: records have no age")
                width = min(2 * width, length)
            if width > rows or not self._valid(rows).all():
                self._squeeze(width)
        return ring_window(self._order, cells[AGE_HEAD], rows)

    def _valid(self, width: int) -> Flags:
        """Tell which of the first `width` cells of `order` are valid."""
        return self._cells_from(self._cells[AGE_HEAD], width)[1]
