"""A snapshot: what of a ledger is worth keeping, as numbers that belong to no ledger.

A capture copies the ledger's block in one step. Everything else happens on that private copy, with
the ledger's own effects: what is being filled is abandoned, what others hold is returned, and what
waits leaves. So a snapshot is a state that the buffer could have come to by itself.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from forebay import _layout as at
from forebay._ledger import Ledger
from forebay._rows import LIVE
from forebay._stores import Flags, Ints
from forebay._tickets import Kind

COUNTERS: Final = {
    "admitted": at.ADMITTED,
    "admitted_batches": at.ADMITTED_BATCHES,
    "delivered": at.DELIVERED,
    "delivered_batches": at.DELIVERED_BATCHES,
    "returned": at.RETURNED,
    "returned_batches": at.RETURNED_BATCHES,
    "spent": at.SPENT,
    "spent_batches": at.SPENT_BATCHES,
    "dropped": at.DROPPED,
    "dropped_batches": at.DROPPED_BATCHES,
    "evicted": at.EVICTED,
    "evicted_batches": at.EVICTED_BATCHES,
    "blocked_calls": at.BLOCKED_CALLS,
    "timeouts": at.TIMEOUTS,
    "cancellations": at.CANCELLATIONS,
    "refusals": at.REFUSALS,
    "recoveries": at.RECOVERIES,
    "advisory_calls": at.ADVISORY_CALLS,
}
"""The counters that a snapshot has, and where they are; how many wait is no part of it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """The state of a buffer without its records.

    Attributes:
        slots: the slots of all live records, in the order in which their rows are copied.
        uses: how often each of these has been drawn.
        stamps: their ages as ranks, 1 the oldest; 0 where records are drawn in no order.
        free: the free slots in the order in which they will be taken.
        fresh: how many at the end of these were never used.
        dense: the slots that random draws are made from, in their places: all sampleable ones, or
            what is left of the epoch; empty under fifo.
        drawn: the other records of an overwriting buffer, in their places.
        queue: the prefetched batches in draw order, each its slots and the ages that it remembers.
        numbers: the numbers of these batches in the ledger that was captured.
        counters: what has happened so far, by name.
        key: the two words of the generator.
        draws: how many draws the generator has given.
    """

    slots: Ints
    uses: Ints
    stamps: Ints
    free: Ints
    fresh: int
    dense: Ints
    drawn: Ints
    queue: tuple[tuple[Ints, Ints], ...]
    numbers: tuple[int, ...]
    counters: dict[str, int]
    key: tuple[int, int]
    draws: int


def snapshot_of(image: Ledger, kept: Collection[int], slots: Ints) -> Snapshot:
    """Return the snapshot of a process.

    Args:
        image: a private copy of the ledger; it is changed.
        kept: the numbers of the process's ready prefetched batches, as far as they are still there.
        slots: all live slots, in copying order.
    """
    _drop(image, kept)
    cells = image.cells
    rows = image.batches.rows_of()
    queue = [(image.batches.slots(row), image.remembered(row)) for row in rows]
    low, high = np.array([cells[at.KEY_LOW], cells[at.KEY_HIGH]]).view(np.uint64).tolist()
    stamps, queue = _ranked(image.stamp[slots], queue)
    return Snapshot(
        slots=slots,
        uses=image.uses[slots],
        stamps=stamps,
        free=image.free.first(image.free.count()),
        fresh=image.fresh,
        dense=image.order.dense(),
        drawn=image.order.drawn(),
        queue=tuple(queue),
        numbers=tuple(map(image.batches.number, rows)),
        counters={name: cells[scalar] for name, scalar in COUNTERS.items()},
        key=(low, high),
        draws=cells[at.DRAWS],
    )


def to_copy(ledger: Ledger) -> Flags:
    """Tell of all slots that were ever used which of them a capture has to copy: the live ones."""
    flags: Flags = ledger.phase[: ledger.capacity - ledger.fresh] == LIVE
    return flags


def marks_to_copy(ledger: Ledger) -> Ints:
    """Return marks of slots that rise in copying order, 0 for those that are not to be copied.

    Slots that were never used have none.
    """
    flags = to_copy(ledger)
    marks: Ints = (ledger.stamp[: len(flags)] + 1) * flags
    return marks


def copying_order(image: Ledger) -> Ints:
    """Return the slots to copy, oldest first or, where there are no ages, in slot order."""
    slots = np.flatnonzero(to_copy(image))
    return slots[np.argsort(image.stamp[slots], kind="stable")]


def _drop(image: Ledger, kept: Collection[int]) -> None:
    """Abandon and return all that a snapshot does not have; who waits plays no part in it."""
    batches = image.batches
    rows = batches.rows_of()
    filling = [row for row in rows if batches.kind(row) is Kind.WRITE]
    abandoned = np.sort(np.concatenate([image.uses[:0], *map(batches.slots, filling)]))
    for row in filling:
        call = image.call_of(row)
        call.slots = abandoned
        image.abandon(call)
        abandoned = abandoned[:0]
    for row in rows:
        if row not in filling and not _is_kept(image, row, kept):
            image.give_back(image.call_of(row))


def _is_kept(image: Ledger, row: int, kept: Collection[int]) -> bool:
    """Tell whether a hold stays: nobody has taken it, and its records are not dropped."""
    batches = image.batches
    return (
        batches.kind(row) is Kind.PREFETCHED
        and batches.number(row) in kept
        and not batches.is_stale(row)
    )


def _ranked(stamps: Ints, queue: list[tuple[Ints, Ints]]) -> tuple[Ints, list[tuple[Ints, Ints]]]:
    """Return ages as ranks from 1; 0, which is no age, stays 0."""
    ages = np.concatenate([[0], stamps, *(remembered for _, remembered in queue)])
    # A stable sort, since what comes in copying order is sorted but for what was returned.
    sorting = np.argsort(ages, kind="stable")
    ranks = np.empty_like(ages)
    ranks[sorting] = np.cumsum(np.diff(ages[sorting], prepend=0) > 0)
    ends = np.cumsum([1, len(stamps), *(len(remembered) for _, remembered in queue)])
    own, *others = np.split(ranks, ends[:-1])[1:]
    return own, [(slots, known) for (slots, _), known in zip(queue, others, strict=True)]
