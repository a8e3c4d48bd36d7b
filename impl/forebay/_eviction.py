"""Which records an overwriting buffer gives up: the oldest that nobody needs.

The ring of ages is walked from its head. A record that somebody gathers is passed; such records and
what is younger than they are close ranks, so that what has gone leaves no stale cell for the next
walk. What a capture has still to copy is one stretch of the ring, since records are copied in the
order of their ages: the walk goes on behind it, at `AFTER_COPY`, and closes ranks there.
"""

from typing import NamedTuple

import numpy as np

from forebay._age_ring import AgeRing
from forebay._layout import AFTER_COPY, AGE_HEAD, AGE_TAIL, EVICTABLE, Layout
from forebay._rows import are_evictable
from forebay._stores import Flags, Ints, Store, tally


class Stretch(NamedTuple):
    """A part of the ring that was walked: what is taken, what is passed, and where it ends."""

    taken: Ints
    passed: Ints
    end: int


class EvictionRing(AgeRing):
    """All live records by age, and how many of them are evictable."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._phase = layout.phase
        self._pins = layout.pins
        self._copying = layout.copying

    def live(self) -> Ints:
        """Return all live records, oldest first."""
        head = self._cells[AGE_HEAD]
        slots, valid = self._cells_from(head, self._cells[AGE_TAIL] - head)
        return slots[valid]

    def evict(self, rows: int) -> tuple[Ints, list[Store]]:
        """Return the oldest evictable records, oldest first, and the stores that take them away."""
        cells = self._cells
        tail = cells[AGE_TAIL]
        front = self._walk(cells[AGE_HEAD], tail, rows)
        taken, stores = front.taken, self._closed_up(front, AGE_HEAD)
        if len(taken) < rows and front.end < tail:
            rest = self._walk(cells[AFTER_COPY], tail, rows - len(taken))
            taken = np.concatenate((taken, rest.taken))
            stores += self._closed_up(rest, AFTER_COPY)
        if len(taken) < rows:
            raise RuntimeError("the ledger contradicts itself: records have no age")
        return taken, [
            *stores,
            (self._entry, taken, 0),
            (self._stamp, taken, 0),
            (cells, EVICTABLE, cells[EVICTABLE] - rows),
        ]

    def append(self, slots: Ints) -> list[Store]:
        evictable = self._cells[EVICTABLE] + len(slots)
        return [*super().append(slots), (self._cells, EVICTABLE, evictable)]

    def clear(self, live: Ints) -> list[Store]:
        return [*super().clear(live), (self._cells, EVICTABLE, 0)]

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        restored = super().restore(sampleable, slots, stamps, youngest)
        return [*restored, (self._cells, EVICTABLE, len(slots))]

    def keep_all(self) -> list[Store]:
        """Return the stores after which all records of now are to be copied before they go."""
        cells = self._cells
        return [(cells, EVICTABLE, 0), (cells, AFTER_COPY, cells[AGE_TAIL])]

    def _walk(self, start: int, end: int, rows: int) -> Stretch:
        """Walk until so many are found, or up to the first that is to be copied, or to the end."""
        length = end - start
        width = min(rows, length)
        while True:
            slots, valid = self._cells_from(start, width)
            to_copy = self._copying[slots] > 0
            evictable = are_evictable(self._phase[slots], self._pins[slots], to_copy) & valid
            kept = np.flatnonzero(to_copy & valid)
            stop = int(kept[0]) if len(kept) else width
            found = np.flatnonzero(evictable[:stop])[:rows]
            if len(found) == rows or stop < width or width == length:
                break
            width = min(2 * width, length)
        if len(found) == rows:
            stop = int(found[-1]) + 1
        passed = valid[:stop].copy()
        passed[found] = False
        return Stretch(slots[found], slots[:stop][passed], start + stop)

    def _closed_up(self, walked: Stretch, start: int) -> list[Store]:
        """Return the stores that move what was passed to the end of a stretch, which begins there.

        `start` is the scalar that says where the next walk begins.
        """
        first = walked.end - len(walked.passed)
        return [*self._placed(walked.passed, first), (self._cells, start, first)]

    def _squeezed(self, head: int, valid: Flags, start: int) -> list[Store]:
        """Return the store that keeps `AFTER_COPY` behind the same records."""
        before = tally(valid[: max(self._cells[AFTER_COPY] - head, 0)])
        return [(self._cells, AFTER_COPY, start + before)]
