"""Faults planted in snapshots of overwriting buffers and in how a buffer goes on from them.

`forebay campaign twins` has to find each of `RING_RESUME_MUTANTS`, and `forebay campaign snapshots`
those of `RING_SNAPSHOT_MUTANTS`: faults of the bookkeeping, which then show in what is saved while
others write and read. See `forebay_models.mutants.resumes`.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import forebay._capture
import forebay._snapshot
import numpy as np
from forebay import _layout as at
from forebay._age_ring import AgeRing
from forebay._boundary import Boundary
from forebay._eviction import EvictionRing
from forebay._ledger import Ledger
from forebay._overwriting import OverwritingLedger
from forebay._ring_order import Epochs, RingOrder
from forebay._snapshot import Snapshot
from forebay._stores import Ints, Store

# Their faults are registered by being loaded.
from forebay_models.mutants import overwriting as overwriting
from forebay_models.mutants.planting import PLANTED
from forebay_models.mutants.resume_mutant import ResumeMutant

_snapshot_of = forebay._snapshot.snapshot_of
_boundary_restore = Boundary.restore
_order_restore = RingOrder.restore
_ring_restore = EvictionRing.restore
_age_restore = AgeRing.restore
_drop = forebay._snapshot._drop


def _known(name: str) -> ResumeMutant:
    """Return a fault that the campaigns of single steps plant, too."""
    return ResumeMutant(PLANTED[name].sentence, PLANTED[name].plant)


def _taken(
    change: Callable[[Snapshot], Snapshot], order: type[RingOrder] = RingOrder
) -> Callable[[], AbstractContextManager[object]]:
    """Return what plants a snapshot that is changed in the end, where there is such an order."""

    def changed(image: Ledger, kept: Collection[int], slots: Ints) -> Snapshot:
        snapshot = _snapshot_of(image, kept, slots)
        return change(snapshot) if isinstance(image.order, order) else snapshot

    return lambda: patch.object(forebay._capture, "snapshot_of", changed)


def _without_overwritten(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without the batches that do not remember all of their records."""
    kept = [place for place, (_, known) in enumerate(snapshot.queue) if known.all()]
    queue = tuple(snapshot.queue[place] for place in kept)
    return replace(snapshot, queue=queue, numbers=tuple(snapshot.numbers[place] for place in kept))


def _with_nothing_left(snapshot: Snapshot) -> Snapshot:
    every = np.concatenate([snapshot.dense, snapshot.drawn])
    return replace(snapshot, dense=every[:0], drawn=every)


def _remembering_anew(
    self: Boundary, snapshot: Snapshot, owner: int, payloads: Sequence[Store] = ()
) -> None:
    ages = np.zeros(self._ledger.capacity, dtype=np.int64)
    ages[snapshot.slots] = snapshot.stamps
    if isinstance(self._ledger.order, Epochs):
        snapshot = replace(
            snapshot, queue=tuple((slots, ages[slots]) for slots, _ in snapshot.queue)
        )
    _boundary_restore(self, snapshot, owner, payloads)


def _in_a_later_epoch(
    self: Boundary, snapshot: Snapshot, owner: int, payloads: Sequence[Store] = ()
) -> None:
    _boundary_restore(self, snapshot, owner, payloads)
    self._commit([(self._cells, at.EPOCH, self._cells[at.NEXT_BATCH])])


def _aged_by_slot(
    self: RingOrder, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int
) -> list[Store]:
    return _order_restore(self, sampleable, np.sort(slots), np.sort(stamps), youngest)


def _without_room(
    self: EvictionRing, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int
) -> list[Store]:
    return _age_restore(self, sampleable, slots, stamps, youngest)


def _never_younger(
    self: EvictionRing, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int
) -> list[Store]:
    return _ring_restore(self, sampleable, slots, stamps, 0)


def _nothing_comes_back(self: OverwritingLedger, row: int) -> Ints:
    return np.zeros_like(self.batches.stamps(row))


def _drop_and_forget(image: Ledger, kept: Collection[int]) -> None:
    with patch.object(OverwritingLedger, "remembered", _nothing_comes_back):
        _drop(image, kept)


RING_RESUME_MUTANTS: Final[dict[str, ResumeMutant]] = {
    "left_lost": ResumeMutant(
        "what is left of the epoch is not in a snapshot",
        _taken(_with_nothing_left, Epochs),
    ),
    "all_left_in_snapshot": _known("all_left_in_snapshot"),
    "all_left_restored": _known("all_left_restored"),
    "left_order_lost": ResumeMutant(
        "the records that a sampler draws from have other places after a restore",
        _taken(lambda snapshot: replace(snapshot, dense=np.sort(snapshot.dense))),
    ),
    "drawn_order_lost": ResumeMutant(
        "the records that a sampler has drawn have other places after a restore",
        _taken(lambda snapshot: replace(snapshot, drawn=np.sort(snapshot.drawn)), Epochs),
    ),
    "unreturned_not_left": ResumeMutant(
        "what somebody holds is not left of the epoch in a snapshot",
        lambda: patch.object(forebay._snapshot, "_drop", _drop_and_forget),
    ),
    "epoch_not_in_snapshot": _known("epoch_not_in_snapshot"),
    "queue_remembers_anew": ResumeMutant(
        "what was drawn ahead in an earlier epoch, or was overwritten since, is taken for records"
        " of this epoch by a restore",
        lambda: patch.object(Boundary, "restore", _remembering_anew),
    ),
    "epoch_ended_by_restore": ResumeMutant(
        "a batch that was drawn ahead and is returned after a restore comes back nowhere",
        lambda: patch.object(Boundary, "restore", _in_a_later_epoch),
    ),
    "overwritten_ahead_dropped": ResumeMutant(
        "a batch that was drawn ahead is not in a snapshot once records of it are overwritten",
        _taken(_without_overwritten, Epochs),
    ),
    "aged_by_slot": ResumeMutant(
        "records are as old after a restore as their slots say",
        lambda: patch.object(RingOrder, "restore", _aged_by_slot),
    ),
    "ring_ages_not_rebased": ResumeMutant(
        "what is written into an overwriting buffer after a restore may be older than what was"
        " restored",
        lambda: patch.object(EvictionRing, "restore", _never_younger),
    ),
    "restored_gives_no_room": ResumeMutant(
        "what was restored is never overwritten",
        lambda: patch.object(EvictionRing, "restore", _without_room),
    ),
}

RING_SNAPSHOT_MUTANTS: Final[dict[str, ResumeMutant]] = {
    name: _known(name)
    for name in (
        *("evicted_before_copied", "pinned_record_evicted", "youngest_evicted"),
        "evictions_not_counted",
    )
}
