"""The records of an overwriting buffer: all of them by age, and those that a sampler draws from.

`RandomSampler` draws from all records. Without replacement it draws from what is left of the epoch.
"""

from abc import ABC, abstractmethod

import numpy as np
from forebay_spec.kernel import batch_rows, begins_epoch

from forebay._dense import Draws
from forebay._epoch_list import EpochList
from forebay._eviction import EvictionRing
from forebay._layout import EPOCH, LEFT, NEXT_BATCH, SAMPLEABLE, Layout
from forebay._samplers import RandomSampler, Sampler
from forebay._stores import Flags, Ints, Store, picked


class RingOrder(ABC):
    """The ages and the sampler's choice; methods that return stores change nothing themselves.

    Attributes:
        repeats: whether a draw may have a record twice.
    """

    repeats = False

    def __init__(self, layout: Layout) -> None:
        self._cells = layout.cells
        self._stamp = layout.stamp
        self._ages = EvictionRing(layout)
        self._list = EpochList(layout)
        self._draws = Draws(layout)

    @abstractmethod
    def rows(self, k: int) -> int:
        """Return how many records a draw of k gets now; there is one at least to be drawn."""

    @abstractmethod
    def select(self, rows: int) -> Ints:
        """Return the slots that a draw of `rows` gets now, of which there may be fewer."""

    @abstractmethod
    def begins(self, k: int) -> bool:
        """Tell whether a draw of k begins an epoch."""

    @abstractmethod
    def renew(self, slots: Ints) -> list[Store]:
        """Return the stores of a draw that begins an epoch and has selected these slots."""

    @abstractmethod
    def draw(self, slots: Ints, lasting: Flags | bool) -> list[Store]:
        """Return the stores of another draw of these slots, of which the lasting are left."""

    @abstractmethod
    def remembered(self, slots: Ints) -> Ints:
        """Return what a hold on these slots remembers of them."""

    @abstractmethod
    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        """Return the stores that add those returned slots that are not left already."""

    def prepare(self, rows: int) -> None:
        """Make room for `rows` records at the tail; the order does not change."""
        self._ages.prepare(rows)

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that add slots, younger than every other one."""
        return [*self._ages.append(slots), *self._list.append(slots)]

    def evict(self, rows: int) -> tuple[Ints, list[Store]]:
        """Return the oldest evictable records, oldest first, and the stores that take them away."""
        if not rows:
            return self._stamp[:0].copy(), []
        slots, stores = self._ages.evict(rows)
        return slots, [*stores, *self._list.remove(slots)]

    def keep_all(self) -> list[Store]:
        """Return the stores after which all records of now are to be copied before they go."""
        return self._ages.keep_all()

    def clear(self, live: Ints) -> list[Store]:
        """Return the stores that leave no record; `live` are all that there were."""
        return [*self._ages.clear(live), (self._cells, LEFT, 0)]

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        """Return the stores that give an empty order these records.

        `sampleable` are those that the sampler draws from, in the places that they had; `slots` and
        `stamps` are all that live and their ages. `place_drawn` is for the others.
        """
        by_age = slots[np.argsort(stamps, kind="stable")]
        return [
            *self._ages.restore(by_age, slots, stamps, youngest),
            *self._list.fill(sampleable),
        ]

    def place_drawn(self, left: int, drawn: Ints) -> list[Store]:
        """Return the stores that put drawn records behind the first `left`, which are restored."""
        return self._list.place(left, drawn)

    def dense(self) -> Ints:
        """Return all records that the sampler draws from, in the places that they have."""
        return self._list.slots()

    def drawn(self) -> Ints:
        """Return all other records, in the places that they have."""
        return self._list.drawn()


class Replacement(RingOrder):
    """Every record at every draw, for `RandomSampler`."""

    repeats = True

    def rows(self, k: int) -> int:
        return k

    def select(self, rows: int) -> Ints:
        return self._list.at(self._draws.independent(self._list.left, rows))

    def begins(self, k: int) -> bool:
        return False

    def renew(self, slots: Ints) -> list[Store]:
        raise AssertionError("there are no epochs")

    def draw(self, slots: Ints, lasting: Flags | bool) -> list[Store]:
        return [self._draws.store()]

    def remembered(self, slots: Ints) -> Ints:
        return np.zeros_like(slots)

    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        return []


class Epochs(RingOrder):
    """Every record once in an epoch, for `SamplerWithoutReplacement`.

    Args:
        layout: the ledger.
        drop_last: whether the last batch of an epoch is left out when it would be short.
    """

    def __init__(self, layout: Layout, drop_last: bool) -> None:
        super().__init__(layout)
        self._drop_last = drop_last

    def rows(self, k: int) -> int:
        return batch_rows(k, self._drawn_from(k))

    def select(self, rows: int) -> Ints:
        there = self._drawn_from(rows)
        return self._list.at(self._draws.distinct(there, batch_rows(rows, there)))

    def begins(self, k: int) -> bool:
        return begins_epoch(k, self._list.left, self._drop_last)

    def renew(self, slots: Ints) -> list[Store]:
        """See `RingOrder.renew`; the batch of this draw is the first that is of the epoch."""
        cells = self._cells
        return [
            self._draws.store(),
            *self._list.draw(slots, cells[SAMPLEABLE]),
            (cells, EPOCH, cells[NEXT_BATCH]),
        ]

    def draw(self, slots: Ints, lasting: Flags | bool) -> list[Store]:
        leaving = picked(slots, lasting ^ True)
        return [self._draws.store(), *self._list.draw(leaving, self._list.left)]

    def remembered(self, slots: Ints) -> Ints:
        return self._stamp[slots]

    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        return self._list.put_back(slots[~sampleable])

    def _drawn_from(self, k: int) -> int:
        """Return how many records a draw of k is made from: all, if it begins an epoch."""
        return int(self._cells[SAMPLEABLE]) if self.begins(k) else self._list.left


def make_order(layout: Layout, sampler: Sampler) -> RingOrder:
    """Return the order of a ledger whose buffer has this sampler."""
    if isinstance(sampler, RandomSampler):
        return Replacement(layout)
    return Epochs(layout, sampler.drop_last)
