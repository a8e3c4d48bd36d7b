"""Faults planted in what a snapshot has and in how a buffer goes on from one.

`forebay campaign twins` has to find each of `RESUME_MUTANTS` since a twin then goes on otherwise
than its original; `forebay campaign snapshots` those of `SNAPSHOT_MUTANTS`, which need others who
write and read while a capture is taken. What can only be wrong with an overwriting buffer is in
`forebay_models.mutants.overwriting_resumes`.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import forebay._ages
import forebay._capture
import forebay._homes
import forebay._payloads
import forebay._snapshot
import numpy as np
import torch
from forebay import _image
from forebay._ages import AgeOrder
from forebay._boundary import Boundary
from forebay._capture import Capture
from forebay._layout import Layout
from forebay._ledger import Ledger
from forebay._payloads import OfTensor
from forebay._snapshot import Snapshot
from forebay._stores import Ints, Store
from forebay._tickets import Kind
from forebay._transforms import Transforms

from forebay_models.mutants.device import DEVICE_MUTANTS
from forebay_models.mutants.overwriting_resumes import RING_RESUME_MUTANTS, RING_SNAPSHOT_MUTANTS
from forebay_models.mutants.resume_mutant import ResumeMutant

_snapshot_of = forebay._snapshot.snapshot_of
_copy_of = forebay._payloads.copy_of
_restore = Boundary.restore
_age_restore = AgeOrder.restore


def _taken(change: Callable[[Snapshot], Snapshot]) -> Callable[[], AbstractContextManager[object]]:
    """Return what plants a snapshot that is changed in the end."""

    def changed(image: Ledger, kept: Collection[int], slots: Ints) -> Snapshot:
        return change(_snapshot_of(image, kept, slots))

    return lambda: patch.object(forebay._capture, "snapshot_of", changed)


def _used_by_queue(snapshot: Snapshot) -> Snapshot:
    held = np.concatenate([snapshot.slots[:0], *(slots for slots, _ in snapshot.queue)])
    pins = np.bincount(held, minlength=int(snapshot.slots.max(initial=0)) + 1)
    return replace(snapshot, uses=pins[snapshot.slots])


def _sorted_free(snapshot: Snapshot) -> Snapshot:
    used = len(snapshot.free) - snapshot.fresh
    return replace(
        snapshot, free=np.concatenate([np.sort(snapshot.free[:used]), snapshot.free[used:]])
    )


def _reversed_ages(snapshot: Snapshot) -> Snapshot:
    stamps = snapshot.stamps
    turned = stamps.max(initial=0) + 1 - stamps
    return replace(snapshot, stamps=np.where(stamps > 0, turned, 0))


def _without_queue(
    self: Boundary, snapshot: Snapshot, owner: int, payloads: Sequence[Store] = ()
) -> None:
    _restore(self, replace(snapshot, queue=()), owner)


def _never_younger(
    self: AgeOrder, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int
) -> list[Store]:
    return _age_restore(self, sampleable, slots, stamps, 0)


def _consumed(image: Ledger, kept: Collection[int]) -> None:
    batches, held = image.batches, forebay._snapshot._is_kept
    consumed = [
        row
        for row in batches.rows_of()
        if batches.kind(row) is not Kind.WRITE and not held(image, row, kept)
    ]
    for row in consumed:
        image.deliver(image.call_of(row), 0)
    _drop(image, kept)


_drop = forebay._snapshot._drop


def _widened(value: object, of_tensor: OfTensor) -> object:
    copied = _copy_of(value, of_tensor)
    if isinstance(copied, torch.Tensor) or not hasattr(copied, "apply"):
        return copied
    return copied.apply(lambda leaf: leaf.float() if leaf.dtype is torch.bfloat16 else leaf)


RESUME_MUTANTS: Final[dict[str, ResumeMutant]] = {
    "generator_rewound": ResumeMutant(
        "the random order begins anew after a restore",
        _taken(lambda snapshot: replace(snapshot, draws=0)),
    ),
    "queue_dropped": ResumeMutant(
        "batches that were drawn ahead are not there after a restore",
        lambda: patch.object(Boundary, "restore", _without_queue),
    ),
    "queue_order_lost": ResumeMutant(
        "batches that were drawn ahead come back in another order",
        _taken(
            lambda snapshot: replace(
                snapshot, queue=snapshot.queue[::-1], numbers=snapshot.numbers[::-1]
            )
        ),
    ),
    "ages_reversed": ResumeMutant(
        "records are drawn youngest first after a restore", _taken(_reversed_ages)
    ),
    "ages_not_rebased": ResumeMutant(
        "what is written after a restore may be older than what was restored",
        lambda: patch.object(AgeOrder, "restore", _never_younger),
    ),
    "free_order_lost": ResumeMutant(
        "the free slots are taken in another order after a restore", _taken(_sorted_free)
    ),
    "uses_lost": ResumeMutant(
        "how often records were drawn is forgotten by a restore", _taken(_used_by_queue)
    ),
    "counters_lost": ResumeMutant(
        "all counts begin anew after a restore",
        _taken(lambda snapshot: replace(snapshot, counters=dict.fromkeys(snapshot.counters, 0))),
    ),
    "transforms_forgotten": ResumeMutant(
        "transforms keep the states that they have in a restore",
        lambda: patch.object(Transforms, "load", lambda self, states: None),
    ),
    "leases_consumed": ResumeMutant(
        "records that somebody holds are not in a snapshot",
        lambda: patch.object(forebay._snapshot, "_drop", _consumed),
    ),
    "requires_grad_lost": ResumeMutant(
        "batches that were drawn ahead do not require the gradients that they did",
        lambda: patch.object(forebay._payloads, "_like", lambda copied, value: None),
    ),
    "dtype_widened": ResumeMutant(
        "leaves of batches that were drawn ahead come back in a wider dtype",
        lambda: patch.object(forebay._homes, "copy_of", _widened),
    ),
    **RING_RESUME_MUTANTS,
}


def _parts_let_go_first(self: Capture, rows: int) -> Iterator[Ints]:
    slots = self._snapshot.slots
    for start in range(0, len(slots), rows):
        part = slots[start : start + rows]
        self._step(lambda part=part: self._boundary.copied(part))  # type: ignore[misc]  # a default that binds
        yield part


def _two_moments(self: Capture, image: Layout) -> None:
    _image.copy(self._ledger.layout, image)
    self._core.section.__exit__(None, None, None)
    try:
        time.sleep(0.0005)
    finally:
        self._core.section.__enter__()
    self._boundary.capture()


SNAPSHOT_MUTANTS: Final[dict[str, ResumeMutant]] = {
    "let_go_before_copied": ResumeMutant(
        "records are copied after their slots were let go",
        lambda: patch.object(Capture, "parts", _parts_let_go_first),
    ),
    "two_moments": ResumeMutant(
        "what a snapshot counts and which records it has are of two moments",
        lambda: patch.object(Capture, "_capture", _two_moments),
    ),
    **RING_SNAPSHOT_MUTANTS,
}


@contextmanager
def planted_in_resumes(fault: str) -> Iterator[None]:
    """Plant the fault of that name, or one of a storage on a device, for the length of the block.

    Nothing without a name.
    """
    if not fault:
        yield
        return
    found = DEVICE_MUTANTS.get(fault) or {**RESUME_MUTANTS, **SNAPSHOT_MUTANTS}[fault]
    with found.plant():
        yield
