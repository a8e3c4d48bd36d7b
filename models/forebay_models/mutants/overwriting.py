"""Faults planted in overwriting buffers; see `forebay_models.mutants.local`."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import forebay._capture
import forebay._eviction
import forebay._ring_order
import numpy as np
from forebay import _layout as at
from forebay._actions import Actions
from forebay._calls import Call
from forebay._eviction import EvictionRing, Stretch
from forebay._ledger import Ledger
from forebay._overwriting import OverwritingLedger
from forebay._ring_order import Epochs, RingOrder
from forebay._rows import DROPPED, LIVE, are_evictable
from forebay._snapshot import Snapshot, snapshot_of
from forebay._stores import Flags, Ints, Store

from forebay_models.mutants import planting

mutant = partial(planting.mutant, overwriting=True)

_walk = EvictionRing._walk
_room_for = OverwritingLedger._room_for
_pinning = OverwritingLedger._pinning
_place_drawn = RingOrder.place_drawn
_clear = RingOrder.clear
_renew = Epochs.renew
_give_back = OverwritingLedger.give_back


def _without(stores: list[Store], *scalars: int) -> list[Store]:
    """Return stores but for those of these scalars, which all lie behind what a call keeps."""
    return [store for store in stores if not (isinstance(store[1], int) and store[1] in scalars)]


@mutant(
    "pinned_record_evicted",
    forebay._eviction,
    "are_evictable",
    "the oldest record is overwritten though it is being gathered",
)
def _evictable_though_pinned(phase: Ints, pins: Ints, to_copy: Flags) -> Flags:
    return are_evictable(phase, np.zeros_like(pins), to_copy)


@mutant(
    "evicted_before_copied",
    EvictionRing,
    "_walk",
    "the oldest record is overwritten though a capture has still to copy it",
)
def _walk_over_what_is_copied(self: EvictionRing, start: int, end: int, rows: int) -> Stretch:
    marks = self._copying
    self._copying = np.zeros_like(marks)
    try:
        return _walk(self, start, end, rows)
    finally:
        self._copying = marks


@mutant("youngest_evicted", EvictionRing, "evict", "a writer overwrites the youngest records")
def _evict_from_the_tail(self: EvictionRing, rows: int) -> tuple[Ints, list[Store]]:
    live, cells = self.live()[::-1], self._cells
    may_go = are_evictable(self._phase[live], self._pins[live], self._copying[live] > 0)
    taken = live[may_go][:rows]
    return taken, [
        (self._entry, taken, 0),
        (self._stamp, taken, 0),
        (cells, at.EVICTABLE, cells[at.EVICTABLE] - rows),
    ]


@mutant(
    "gathered_gives_no_room",
    OverwritingLedger,
    "_released",
    "what was gathered, or copied, is never overwritten",
)
def _free_the_dropped_only(self: OverwritingLedger, slots: Ints, kept: Ints) -> list[Store]:
    return self.freeing(slots[(self.phase[slots] == DROPPED) & (kept == 0)])


@mutant(
    "draw_leaves_room",
    OverwritingLedger,
    "_pinning",
    "a writer counts on the slots of records that are being gathered",
)
def _pin_and_count_on_it(self: OverwritingLedger, slots: Ints) -> list[Store]:
    return _without(_pinning(self, slots), at.EVICTABLE)


@mutant(
    "capture_leaves_room",
    OverwritingLedger,
    "keep_all",
    "a writer counts on the slots of records that a capture has still to copy",
)
def _keep_nothing(self: OverwritingLedger) -> list[Store]:
    return []


@mutant(
    "pinned_for_each_place",
    OverwritingLedger,
    "_pinning",
    "a record that a batch has twice is pinned twice, and let go once",
)
def _pin_each_place(self: OverwritingLedger, slots: Ints) -> list[Store]:
    distinct, times = np.unique(slots, return_counts=True)
    _, *others = _pinning(self, slots)
    return [(self.pins, distinct, self.pins[distinct] + times), *others]


@mutant(
    "gathered_wakes_nobody",
    Actions,
    "_anybody_hopes",
    "a writer that waits for records to be gathered is not woken then",
)
def _only_observers_hope(self: Actions) -> bool:
    return bool(self.ledger.cells[at.OBSERVERS] > 0)


@mutant(
    "abandoned_comes_back",
    OverwritingLedger,
    "abandon",
    "an abandoned batch leaves the records in its slots that it was to overwrite",
)
def _leave_what_was_there(self: OverwritingLedger, call: Call) -> None:
    cells, slots, n = self.cells, call.slots, len(call.slots)
    self.order.prepare(n)
    self._commit(
        [
            (self.phase, slots, LIVE),
            *self.order.append(slots),
            (cells, at.SAMPLEABLE, cells[at.SAMPLEABLE] + n),
            (cells, at.FILLING, cells[at.FILLING] - n),
            *self._closing(call),
        ]
    )


@mutant(
    "evictions_not_counted",
    OverwritingLedger,
    "_room_for",
    "nothing tells how many records were overwritten",
)
def _evict_silently(self: OverwritingLedger, n: int) -> tuple[Ints, list[Store]]:
    slots, stores = _room_for(self, n)
    return slots, _without(stores, at.EVICTED, at.EVICTED_BATCHES)


@mutant(
    "evicted_still_left",
    RingOrder,
    "evict",
    "a sampler goes on to draw from the slots of overwritten records",
)
def _evict_but_draw_on(self: RingOrder, rows: int) -> tuple[Ints, list[Store]]:
    return self._ages.evict(rows)


@mutant(
    "emptied_still_left", RingOrder, "clear", "a sampler goes on to draw from an emptied buffer"
)
def _clear_but_draw_on(self: RingOrder, live: Ints) -> list[Store]:
    return _without(_clear(self, live), at.LEFT)


@mutant(
    "drawn_still_left", Epochs, "draw", "a draw leaves its records in what is left of the epoch"
)
def _draw_again_and_again(self: Epochs, slots: Ints, spent: Flags) -> list[Store]:
    return [self._draws.store()]


@mutant(
    "returned_into_later_epoch",
    Epochs,
    "renew",
    "a batch that is returned after its epoch goes into the one of then",
)
def _renew_unnoticed(self: Epochs, slots: Ints) -> list[Store]:
    return _without(_renew(self, slots), at.EPOCH)


@mutant("epoch_forgets_oldest", Epochs, "renew", "a new epoch goes without the oldest record")
def _renew_in_part(self: Epochs, slots: Ints) -> list[Store]:
    cells, oldest = self._cells, self._ages.live()[:1]
    taken = np.concatenate((slots, oldest[~np.isin(oldest, slots)]))
    return [
        self._draws.store(),
        *self._list.draw(taken, cells[at.SAMPLEABLE]),
        (cells, at.EPOCH, cells[at.NEXT_BATCH]),
    ]


@mutant(
    "drop_last_ignored",
    forebay._ring_order,
    "begins_epoch",
    "the last batch of an epoch is short though it was to be left out",
)
def _begins_when_nothing_is_left(k: int, left: int, drop_last: bool) -> bool:
    return left == 0


@mutant(
    "overwritten_returned",
    OverwritingLedger,
    "remembered",
    "a batch that is returned brings back whatever record is in its slots by then",
)
def _remember_any_record(self: OverwritingLedger, row: int) -> Ints:
    stamps = self.batches.stamps(row)
    return stamps if self.batches.number(row) >= self.cells[at.EPOCH] else np.zeros_like(stamps)


@mutant(
    "all_left_in_snapshot",
    forebay._capture,
    "snapshot_of",
    "a snapshot says that all records are left of the epoch",
)
def _whole_epoch(image: Ledger, kept: Collection[int], slots: Ints) -> Snapshot:
    snapshot = snapshot_of(image, kept, slots)
    if not image.overwrites:
        return snapshot
    return replace(snapshot, dense=slots.copy(), drawn=slots[:0])


@mutant(
    "epoch_not_in_snapshot",
    forebay._capture,
    "snapshot_of",
    "a snapshot takes what was drawn ahead in an earlier epoch for a batch of this one",
)
def _of_one_epoch(image: Ledger, kept: Collection[int], slots: Ints) -> Snapshot:
    image.cells[at.EPOCH] = 0
    return snapshot_of(image, kept, slots)


@mutant("all_left_restored", RingOrder, "place_drawn", "a restored buffer begins a new epoch")
def _leave_the_drawn(self: RingOrder, left: int, drawn: Ints) -> list[Store]:
    return [*_place_drawn(self, left, drawn), (self._cells, at.LEFT, left + len(drawn))]


@mutant(
    "ended_gathering_stays_pinned",
    OverwritingLedger,
    "give_back",
    "a batch that ends while it gathers, as of a dead reader, keeps its pins",
)
def _give_back_still_pinned(self: OverwritingLedger, call: Call) -> None:
    with patch.object(self, "_unpinning", lambda slots: []):
        _give_back(self, call)
