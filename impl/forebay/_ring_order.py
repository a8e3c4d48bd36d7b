"""The records of an overwriting buffer: all of them by age, and those that a sampler draws from.

`RandomSampler` draws from all, so that its dense list has all live records. Without replacement it
has what is left of the epoch, and a new epoch fills it with all live records in the order of their
ages: that costs as much as there are records, once for each time that all are drawn.
"""

from abc import ABC, abstractmethod

import numpy as np
from forebay_spec.kernel import batch_rows, begins_epoch

from forebay._dense import Dense, Draws
from forebay._eviction import EvictionRing
from forebay._layout import EPOCH, LEFT, NEXT_BATCH, SAMPLEABLE, Layout
from forebay._samplers import RandomSampler, Sampler
from forebay._stores import Flags, Ints, Store


class RingOrder(ABC):
    """The ages and the sampler's choice; methods that return stores change nothing themselves."""

    def __init__(self, layout: Layout) -> None:
        self._cells = layout.cells
        self._stamp = layout.stamp
        self._ages = EvictionRing(layout)
        self._dense = Dense(layout, layout.dense, layout.places, LEFT)
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
    def draw(self, slots: Ints, spent: Flags) -> list[Store]:
        """Return the stores of another draw of these slots, the spent of which are not left."""

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
        return [*self._ages.append(slots), *self._more(slots)]

    def evict(self, rows: int) -> tuple[Ints, list[Store]]:
        """Return the oldest evictable records, oldest first, and the stores that take them away."""
        if not rows:
            return self._stamp[:0].copy(), []
        slots, stores = self._ages.evict(rows)
        return slots, [*stores, *self._fewer(slots[self._dense.has(slots)])]

    def keep_all(self) -> list[Store]:
        """Return the stores after which all records of now are to be copied before they go."""
        return self._ages.keep_all()

    def clear(self, live: Ints) -> list[Store]:
        """Return the stores that leave no record; `live` are all that there were."""
        return [*self._ages.clear(live), (self._cells, LEFT, 0)]

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        """Return the stores that give an empty order these records.

        `sampleable` are those that the sampler draws from, in the places that they had; `slots` and
        `stamps` are all that live and their ages.
        """
        by_age = slots[np.argsort(stamps)]
        return [
            *self._ages.restore(by_age, slots, stamps, youngest),
            *self._dense.fill(sampleable),
            (self._cells, LEFT, len(sampleable)),
        ]

    def dense(self) -> Ints:
        """Return all records that the sampler draws from, in the places that they have."""
        return self._dense.slots()

    def _more(self, slots: Ints) -> list[Store]:
        return [*self._dense.append(slots), (self._cells, LEFT, len(self._dense) + len(slots))]

    def _fewer(self, slots: Ints) -> list[Store]:
        return [*self._dense.remove(slots), (self._cells, LEFT, len(self._dense) - len(slots))]


class Replacement(RingOrder):
    """Every record at every draw, for `RandomSampler`."""

    def rows(self, k: int) -> int:
        return k

    def select(self, rows: int) -> Ints:
        return self._dense.at(self._draws.independent(len(self._dense), rows))

    def begins(self, k: int) -> bool:
        return False

    def renew(self, slots: Ints) -> list[Store]:
        raise AssertionError("there are no epochs")

    def draw(self, slots: Ints, spent: Flags) -> list[Store]:
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
        return batch_rows(k, self._cells[SAMPLEABLE] if self.begins(k) else len(self._dense))

    def select(self, rows: int) -> Ints:
        n = self.rows(rows)
        if self.begins(rows):
            live = self._ages.live()
            return live[self._draws.distinct(len(live), n)]
        return self._dense.at(self._draws.distinct(len(self._dense), n))

    def begins(self, k: int) -> bool:
        return begins_epoch(k, len(self._dense), self._drop_last)

    def renew(self, slots: Ints) -> list[Store]:
        """See `RingOrder.renew`; the batch of this draw is the first that is of the epoch."""
        live, cells = self._ages.live(), self._cells
        left = live[~np.isin(live, slots)]
        return [
            self._draws.store(),
            *self._dense.fill(left),
            (cells, LEFT, len(left)),
            (cells, EPOCH, cells[NEXT_BATCH]),
        ]

    def draw(self, slots: Ints, spent: Flags) -> list[Store]:
        return [self._draws.store(), *self._fewer(slots[spent])]

    def remembered(self, slots: Ints) -> Ints:
        return self._stamp[slots]

    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        return self._more(slots[~sampleable])


def make_order(layout: Layout, sampler: Sampler) -> RingOrder:
    """Return the order of a ledger whose buffer has this sampler."""
    if isinstance(sampler, RandomSampler):
        return Replacement(layout)
    return Epochs(layout, sampler.drop_last)
