"""The ledger of an overwriting buffer: what admission evicts, and what a hold pins.

A writer that finds too few free slots takes the oldest records that nobody needs. A hold pins its
records only while it gathers, each of them once, so that `ready` and `fail` take pins away and have
to be called inside the critical section. No draw uses a record up: `uses` stays 0. What a hold
remembers of a record is its stamp, which is never given a second time: so a hold remembers a record
as long as its slot has that stamp, and as long as no later epoch has begun.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from forebay import _layout as at
from forebay._batches import HoldState, HoldView
from forebay._calls import BATCH, Call
from forebay._layout import Layout, Limits
from forebay._ledger import Ledger
from forebay._ring_order import RingOrder, make_order
from forebay._rows import DROPPED, are_evictable
from forebay._samplers import Sampler
from forebay._stores import Ints, Store, tally


class OverwritingLedger(Ledger):
    """All bookkeeping of one overwriting buffer.

    Args:
        capacity: the number of slots.
        sampler: how records are drawn.
        key: the two words that seed the generator.
        limits: how large the tables are.
        layout: where the ledger lies, if not in memory of its own.
        prepared: that memory has a ledger of the same sizes already.
    """

    overwrites = True

    def __init__(
        self,
        capacity: int,
        sampler: Sampler,
        key: tuple[int, int] = (0, 0),
        limits: Limits | None = None,
        layout: Layout | None = None,
        prepared: bool = False,
    ) -> None:
        self.sampler: Final = sampler
        limits = limits or Limits()
        layout = layout or Layout(capacity, 1, limits, overwriting=True)
        super().__init__(capacity, key=key, limits=limits, layout=layout, prepared=prepared)
        self.reserve = capacity

    def _make_order(self, fifo: bool) -> RingOrder:
        self.ring = make_order(self.layout, self.sampler)
        return self.ring

    def over(self, layout: Layout) -> "OverwritingLedger":
        return OverwritingLedger(
            self.capacity, self.sampler, limits=self.limits, layout=layout, prepared=True
        )

    @property
    def room(self) -> int:
        return self.free.count() + self.evictable

    @property
    def evictable(self) -> int:
        """How many records a writer may take the slots of."""
        return int(self.cells[at.EVICTABLE])

    def left(self) -> list[int]:
        """Return the slots that are left of the epoch, or that all draws are made from."""
        slots: list[int] = self.ring.dense().tolist()
        return slots

    def remembered(self, row: int) -> Ints:
        stamps, slots = self.batches.stamps(row), self.batches.slots(row)
        if self.batches.number(row) < self.cells[at.EPOCH]:
            return np.zeros_like(stamps)
        return np.where(self.stamp[slots] == stamps, stamps, 0)

    def rows_of_draw(self, k: int) -> int:
        return self.ring.rows(k)

    def blocked_by_leases(self, actor: int) -> tuple[Ints, Ints]:
        """Return nothing: leases pin no slots."""
        return self.stamp[:0], self.stamp[:0]

    def holds(self) -> list[HoldView]:
        rows = {self.batches.number(row): row for row in self.batches.rows_of()}
        return [
            hold._replace(stamps=self.remembered(rows[hold.number]).tolist())
            for hold in super().holds()
        ]

    def draw(self, call: Call) -> None:
        k = call.n
        self.batches.prepare(self.rows_of_draw(k))
        call.slots = slots = self.ring.select(k)
        choosing = self.ring.renew(slots) if self.ring.begins(k) else self.ring.draw(slots, False)
        self._commit(
            [
                *self._leaving(call),
                *choosing,
                *self._pinning(slots),
                *self._opening(call, self.ring.remembered(slots)),
            ]
        )

    def ready(self, call: Call) -> None:
        """Ready: the held batch is gathered and needs its records no more."""
        self._gathered(call, HoldState.READY)

    def fail(self, call: Call) -> None:
        """Fail: the held batch is for nobody and needs its records no more."""
        self._gathered(call, HoldState.FAILED)

    def deliver(self, call: Call, now: float) -> None:
        """Deliver: the held batch is the caller's."""
        cells = self.cells
        self._commit(
            [
                (cells, at.DELIVERED, cells[at.DELIVERED] + len(call.slots)),
                (cells, at.DELIVERED_BATCHES, cells[at.DELIVERED_BATCHES] + 1),
                (cells, at.LAST_DELIVERY, int(now * 1e9)),
                *self._closing(call),
            ]
        )

    def give_back(self, call: Call) -> None:
        """Return: those records that the hold remembers are left of the epoch again."""
        cells, row = self.cells, call.places[BATCH]
        gathering = self.batches.state(row) is HoldState.GATHERING
        stamps = self.remembered(row)
        known = stamps > 0
        again, drawn = call.slots[known], np.zeros(tally(known), dtype=np.bool_)
        self._commit(
            [
                *(self._unpinning(call.slots) if gathering else ()),
                *self.ring.put_back(again, stamps[known], drawn),
                (cells, at.RETURNED, cells[at.RETURNED] + len(call.slots)),
                (cells, at.RETURNED_BATCHES, cells[at.RETURNED_BATCHES] + 1),
                *self._closing(call),
            ]
        )

    def pins_by(self, batches: Sequence[Ints]) -> Ints:
        return np.zeros(self.capacity, dtype=np.int64)

    def let_go(self, slots: Ints) -> list[Store]:
        """Return the stores after which slots that were copied are free, or may be evicted."""
        return self._released(slots, self.pins[slots])

    def keep_all(self) -> list[Store]:
        return self.ring.keep_all()

    def _room_for(self, n: int) -> tuple[Ints, list[Store]]:
        """Return the free slots and, if they are not enough, the oldest evictable ones."""
        cells, free = self.cells, min(n, self.free.count())
        slots, taking = self.free.first(free), self.free.take(free)
        if free == n:
            return slots, taking
        evicted, evicting = self.ring.evict(n - free)
        return np.concatenate((slots, evicted)), [
            *taking,
            *evicting,
            (cells, at.SAMPLEABLE, cells[at.SAMPLEABLE] - len(evicted)),
            (cells, at.EVICTED, cells[at.EVICTED] + len(evicted)),
            (cells, at.EVICTED_BATCHES, cells[at.EVICTED_BATCHES] + 1),
        ]

    def _gathered(self, call: Call, state: HoldState) -> None:
        store = self.batches.state_store(call.places[BATCH], state)
        self._commit([store, *self._unpinning(call.slots)])

    def _pinning(self, slots: Ints) -> list[Store]:
        """Return the stores that pin slots, each once however often it is named."""
        cells, slots = self.cells, self._distinct(slots)
        pins = self.pins[slots]
        evictable = are_evictable(self.phase[slots], pins, self.copying[slots] > 0)
        return [
            (self.pins, slots, pins + 1),
            (cells, at.PINNED, cells[at.PINNED] + tally(pins == 0)),
            (cells, at.EVICTABLE, cells[at.EVICTABLE] - tally(evictable)),
        ]

    def _unpinning(self, slots: Ints) -> list[Store]:
        """Return the stores that take one pin away from slots; dropped ones without pins go."""
        cells, batch = self.cells, slots
        slots = self._distinct(slots)
        if slots is not batch and (self.phase[slots] == DROPPED).any():
            slots = batch[np.sort(np.unique(batch, return_index=True)[1])]  # freed in batch order
        pins = self.pins[slots] - 1
        return [
            (self.pins, slots, pins),
            (cells, at.PINNED, cells[at.PINNED] - tally(pins == 0)),
            *self._released(slots, pins + self.copying[slots]),
        ]

    def _distinct(self, slots: Ints) -> Ints:
        """Return each of these slots once."""
        if not self.ring.repeats:
            return slots
        ordered = np.sort(slots)
        first = np.ones(len(slots), dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
        return ordered[first]

    def _released(self, slots: Ints, kept: Ints) -> list[Store]:
        """Return the stores after which slots that nothing keeps are free, or may be evicted."""
        cells, phase = self.cells, self.phase[slots]
        evictable = are_evictable(phase, kept, np.zeros(len(slots), dtype=np.bool_))
        return [
            *self.freeing(slots[(phase == DROPPED) & (kept == 0)]),
            (cells, at.EVICTABLE, cells[at.EVICTABLE] + tally(evictable)),
        ]
