"""Live records in the order of their stamps, as a circular array whose tail grows.

A cell of `order` is valid while `entry[slot]` names its position; positions only rise and are never
used twice. A record that leaves out of turn just gets another entry, and the stale cell is squeezed
out by whoever comes across it, or when the array is full. Each stale cell is looked at a bounded
number of times, so every operation stays proportional to its batch, on average over a run.
"""

from forebay._layout import AGE_HEAD, AGE_TAIL, NEXT_STAMP, Layout
from forebay._stores import Flags, Ints, Store, consecutive, ring_stores, ring_window


class AgeRing:
    """Records by age; what they are taken off for is for those that derive from it."""

    def __init__(self, layout: Layout) -> None:
        self._commit = layout.commit
        self._cells = layout.cells
        self._order = layout.order
        self._entry = layout.entry
        self._stamp = layout.stamp

    def prepare(self, rows: int) -> None:
        """Make room for `rows` records at the tail; the order does not change."""
        cells = self._cells
        length = cells[AGE_TAIL] - cells[AGE_HEAD]
        if length + rows > len(self._order):
            self._squeeze(length)

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that put slots at the tail, younger than every stamp there is."""
        cells = self._cells
        n = len(slots)
        tail, stamp = cells[AGE_TAIL], cells[NEXT_STAMP]
        return [
            *self._placed(slots, tail),
            (self._stamp, slots, consecutive(stamp, stamp + n)),
            (cells, AGE_TAIL, tail + n),
            (cells, NEXT_STAMP, stamp + n),
        ]

    def clear(self, live: Ints) -> list[Store]:
        """Return the stores that leave no record here; `live` are all that there were."""
        cells = self._cells
        return [
            (cells, AGE_HEAD, cells[AGE_TAIL]),
            (self._entry, live, 0),
            (self._stamp, live, 0),
        ]

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        """Return the stores that give an empty order these records and the ages of all that live.

        `sampleable` are the records that can be sampled, oldest first, and `youngest` is the
        largest age that anybody knows of: a hold may remember a larger one than its record has.
        """
        cells = self._cells
        tail, n = cells[AGE_TAIL], len(sampleable)
        return [
            *self._placed(sampleable, tail),
            (self._stamp, slots, stamps),
            (cells, AGE_HEAD, tail),
            (cells, AGE_TAIL, tail + n),
            (cells, NEXT_STAMP, youngest + 1),
        ]

    def _placed(self, slots: Ints, start: int) -> list[Store]:
        """Return the stores that put slots into the cells from a position on."""
        return [
            *ring_stores(self._order, start, slots),
            (self._entry, slots, consecutive(start, start + len(slots))),
        ]

    def _cells_from(self, start: int, width: int) -> tuple[Ints, Flags]:
        """Return the slots in so many cells, and which of the cells are valid."""
        slots = ring_window(self._order, start, width)
        valid: Flags = self._entry[slots] == consecutive(start, start + width)
        return slots, valid

    def _squeeze(self, width: int) -> None:
        """Remove the stale ones among the first `width` cells."""
        head = self._cells[AGE_HEAD]
        slots, valid = self._cells_from(head, width)
        keep = slots[valid]
        start = head + width - len(keep)
        self._commit(
            [
                *self._placed(keep, start),
                (self._cells, AGE_HEAD, start),
                *self._squeezed(head, valid, start),
            ]
        )

    def _squeezed(self, head: int, valid: Flags, start: int) -> list[Store]:
        """Return what else has to be stored when the valid cells from `head` move to `start`."""
        return []
