"""The batches that are on their way: those being filled, and those that readers hold.

A row says whose batch it is, what it is for and how far it got; its slots, and the stamps that they
had when they were drawn, lie together in a pool. Rows are used again, but no number of a batch is:
who holds one knows by its number whether the row is still its own.

The pool is handed out from its top. A block that is not on top leaves a gap, and the gaps are
closed when the top reaches the end; since the pool is twice as large as what may be in use, that
costs no more than the batches that filled it.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from forebay._layout import (
    BATCHES,
    FREE_BATCH,
    LEASES,
    NEXT_BATCH,
    NONE,
    POOL_TOP,
    PREFETCHED,
    Layout,
)
from forebay._rows import DROPPED
from forebay._stores import Ints, Store
from forebay._threads import owned_by
from forebay._tickets import Kind

_NUMBER, _ACTOR, _KIND, _STATE, _OFFSET, _COUNT, _NEXT = range(7)


class HoldState(IntEnum):
    """How far a drawn batch is: being gathered, gathered and transformed, or failed in that."""

    GATHERING = 0
    READY = 1
    FAILED = 2


_COUNTS: Final[dict[int, int]] = {Kind.LEASE: LEASES, Kind.PREFETCHED: PREFETCHED}
# Plain integers, over which numpy takes a fraction of the time.
_PREFETCHED: Final = int(Kind.PREFETCHED)
_GATHERING: Final = int(HoldState.GATHERING)


class HoldView(NamedTuple):
    """One drawn batch, for inspection; `stamps` are the ages that its slots had when drawn."""

    owner: int
    kind: Kind
    slots: list[int]
    stamps: list[int]
    state: HoldState
    number: int


class Batches:
    """The table of batches; methods that return stores change nothing themselves."""

    def __init__(self, layout: Layout) -> None:
        self._commit = layout.commit
        self._cells = layout.cells
        self._table = layout.batches
        self._starts = [layout.batch_base + field * layout.calls for field in range(7)]
        self._phase = layout.phase
        self._slots = layout.pool_slots
        self._stamps = layout.pool_stamps

    def prepare_table(self) -> None:
        """Make all rows free; once, in memory full of zeros."""
        self._table[_NEXT, :-1] = range(1, self._table.shape[1])
        self._table[_NEXT, -1] = NONE
        self._cells[FREE_BATCH] = 0
        self._cells[NEXT_BATCH] = 1

    def view(self, row: int) -> HoldView:
        """Return one batch, which may be one that is being filled."""
        number, actor, kind, state = self._table[:_OFFSET, row].tolist()
        slots, stamps = self.slots(row).tolist(), self.stamps(row).tolist()
        return HoldView(actor, Kind(kind), slots, stamps, HoldState(state), number)

    def rows_of(self, participant: int | None = None) -> list[int]:
        """Return the rows of all batches, or of those of a participant, oldest first."""
        table = self._table
        taken = table[_NUMBER] > 0
        if participant is not None:
            taken &= owned_by(table[_ACTOR], participant)
        rows = np.flatnonzero(taken)
        ordered: list[int] = rows[np.argsort(table[_NUMBER, rows])].tolist()
        return ordered

    def count(self) -> int:
        """Return how many batches are being filled or held."""
        return int(self._cells[BATCHES])

    def has_room(self) -> bool:
        """Tell whether there is a row for one batch more."""
        return bool(self._cells[FREE_BATCH] != NONE)

    def prepare(self, rows: int) -> None:
        """Make room for `rows` slots at the top of the pool."""
        if self._cells[POOL_TOP] + rows > len(self._slots):
            self._close_gaps()

    def used(self) -> int:
        """Return how many pool cells the batches use."""
        if not self._cells[BATCHES]:
            return 0
        return int(self._table[_COUNT][self._table[_NUMBER] > 0].sum())

    def open(
        self, kind: Kind, actor: int, slots: Ints, stamps: Ints | None
    ) -> tuple[int, list[Store]]:
        """Return the row for a new batch and the stores that enter it; `prepare` comes first.

        A batch that is being filled has no stamps.
        """
        cells = self._cells
        row, number, top = cells[FREE_BATCH], cells[NEXT_BATCH], cells[POOL_TOP]
        n = len(slots)
        numbers, actors, kinds, states, offsets, counts, following = self._starts
        block = slice(top, top + n)
        stores: list[Store] = [
            (cells, FREE_BATCH, cells[following + row]),
            (cells, NEXT_BATCH, number + 1),
            (cells, BATCHES, cells[BATCHES] + 1),
            (cells, POOL_TOP, top + n),
            (cells, numbers + row, number),
            (cells, actors + row, actor),
            (cells, kinds + row, kind),
            (cells, states + row, _GATHERING),
            (cells, offsets + row, top),
            (cells, counts + row, n),
            (self._slots, block, slots),
        ]
        if stamps is not None:
            stores.append((self._stamps, block, stamps))
        if kind in _COUNTS:
            stores.append((cells, _COUNTS[kind], cells[_COUNTS[kind]] + 1))
        return row, stores

    def hand_over(self, row: int, kind: Kind, actor: int) -> list[Store]:
        """Return the stores that make a prefetched batch an actor's own."""
        cells, starts = self._cells, self._starts
        stores: list[Store] = [
            (cells, starts[_ACTOR] + row, actor),
            (cells, starts[_KIND] + row, kind),
            (cells, PREFETCHED, cells[PREFETCHED] - 1),
        ]
        if kind is Kind.LEASE:
            stores.append((cells, LEASES, cells[LEASES] + 1))
        return stores

    def close(self, row: int) -> list[Store]:
        """Return the stores that remove a batch."""
        cells = self._cells
        numbers, _, kinds, _, offsets, counts, following = self._starts
        left = cells[BATCHES] - 1
        stores: list[Store] = [
            (cells, BATCHES, left),
            (cells, numbers + row, 0),
            (cells, following + row, cells[FREE_BATCH]),
            (cells, FREE_BATCH, row),
        ]
        if not left:
            stores.append((cells, POOL_TOP, 0))
        elif cells[offsets + row] + cells[counts + row] == cells[POOL_TOP]:
            stores.append((cells, POOL_TOP, cells[offsets + row]))
        count = _COUNTS.get(cells[kinds + row])
        if count is not None:
            stores.append((cells, count, cells[count] - 1))
        return stores

    def close_prefetched(self, rows: list[int]) -> list[Store]:
        """Return the stores that remove several prefetched batches."""
        cells, starts = self._cells, self._starts
        left = cells[BATCHES] - len(rows)
        stores: list[Store] = []
        free = cells[FREE_BATCH]
        for row in rows:
            stores += [(cells, starts[_NUMBER] + row, 0), (cells, starts[_NEXT] + row, free)]
            free = row
        stores += [
            (cells, FREE_BATCH, free),
            (cells, BATCHES, left),
            (cells, PREFETCHED, cells[PREFETCHED] - len(rows)),
        ]
        if not left:
            stores.append((cells, POOL_TOP, 0))
        return stores

    def slots(self, row: int) -> Ints:
        """Return the slots of a batch, in batch order."""
        start, end = self._span(row)
        return self._slots[start:end].copy()

    def stamps(self, row: int) -> Ints:
        """Return the ages that the slots of a batch had when they were drawn."""
        start, end = self._span(row)
        return self._stamps[start:end].copy()

    def number(self, row: int) -> int:
        """Return the number of a batch; numbers rise in the order of admission and drawing."""
        return int(self._cells[self._starts[_NUMBER] + row])

    def kind(self, row: int) -> Kind:
        """Return what a batch is for."""
        return Kind(self._cells[self._starts[_KIND] + row])

    def state(self, row: int) -> HoldState:
        """Return how far a batch is."""
        return HoldState(self._cells[self._starts[_STATE] + row])

    def state_store(self, row: int, state: HoldState) -> Store:
        """Return the store that says how far a batch is; its owner needs no section for it."""
        return self._cells, self._starts[_STATE] + row, state

    def busy(self, waiting: set[int]) -> int:
        """Return how many holds can still go on.

        That is all but ready leases of actors who wait, and prefetched ones that are settled.
        """
        return sum(
            hold.state is HoldState.GATHERING
            if hold.kind is Kind.PREFETCHED
            else hold.kind is not Kind.LEASE
            or hold.state is not HoldState.READY
            or hold.owner not in waiting
            for hold in self._heads()
        )

    def prefetched(self, owner: int | None = None) -> list[int]:
        """Return the rows of all prefetched batches, or of one owner's, oldest first."""
        if not self._cells[PREFETCHED]:
            return []
        table = self._table
        wanted = (table[_NUMBER] > 0) & (table[_KIND] == _PREFETCHED)
        if owner is not None:
            wanted &= table[_ACTOR] == owner
        rows = np.flatnonzero(wanted)
        ordered: list[int] = rows[np.argsort(table[_NUMBER, rows])].tolist()
        return ordered

    def settled(self) -> list[int]:
        """Return the rows of all prefetched batches that do not gather, oldest first."""
        return [row for row in self.prefetched() if self.state(row) is not HoldState.GATHERING]

    def queue(self, owner: int | None = None) -> list[int]:
        """Return the rows of the queue of an owner, or of all, oldest first."""
        return [row for row in self.prefetched(owner) if not self.is_stale(row)]

    def is_stale(self, row: int) -> bool:
        """Tell whether the records of a prefetched batch are dropped, all or none of which are."""
        first = self._slots[self._cells[self._starts[_OFFSET] + row]]
        return bool(self._phase[first] == DROPPED)

    def owners(self) -> set[int]:
        """Return the owners of all queues that have a batch."""
        return {self._cells[self._starts[_ACTOR] + row] for row in self.queue()}

    def leased_slots(self, actor: int) -> Ints:
        """Return the slots of an actor's ready leases; one that is in several comes as often."""
        if not self._cells[LEASES]:
            return np.empty(0, dtype=np.int64)
        table = self._table
        rows = np.flatnonzero(
            (table[_NUMBER] > 0)
            & (table[_KIND] == Kind.LEASE)
            & (table[_ACTOR] == actor)
            & (table[_STATE] == HoldState.READY)
        )
        return np.concatenate([np.empty(0, dtype=np.int64), *map(self.slots, rows.tolist())])

    def forget_stamps(self, dropped: Ints) -> list[Store]:
        """Return the stores that make all holds forget the ages of dropped slots."""
        top = self._cells[POOL_TOP]
        where = np.flatnonzero(np.isin(self._slots[:top], dropped))
        return [(self._stamps, where, 0)]

    def holds(self) -> list[HoldView]:
        """Return all drawn batches in draw order."""
        return sorted(
            (
                head._replace(slots=self.slots(row).tolist(), stamps=self.stamps(row).tolist())
                for row, head in zip(self._rows(), self._heads(), strict=True)
            ),
            key=lambda hold: hold.number,
        )

    def fillings(self) -> dict[int, list[int]]:
        """Return the slots that each actor fills, in batch order."""
        rows = np.flatnonzero((self._table[_NUMBER] > 0) & (self._table[_KIND] == Kind.WRITE))
        return {int(self._table[_ACTOR, row]): self.slots(row).tolist() for row in rows.tolist()}

    def gathers(self, participant: int | None = None) -> bool:
        """Tell whether any hold gathers, or any of a participant."""
        table = self._table
        gathering = (
            (table[_NUMBER] > 0)
            & (table[_KIND] != Kind.WRITE)
            & (table[_STATE] == HoldState.GATHERING)
        )
        if participant is not None:
            gathering &= owned_by(table[_ACTOR], participant)
        return bool(gathering.any())

    def clear(self) -> list[Store]:
        """Return the stores that remove all batches; their numbers are not used again."""
        cells, numbers, following = self._cells, self._table[_NUMBER], self._table[_NEXT]
        last = len(following) - 1
        return [
            (numbers, slice(0, last + 1), 0),
            (following, slice(0, last), np.arange(1, last + 1)),
            (following, slice(last, last + 1), NONE),
            *((cells, scalar, 0) for scalar in (FREE_BATCH, BATCHES, LEASES, PREFETCHED, POOL_TOP)),
        ]

    def restore(self, owner: int, queue: Sequence[tuple[Ints, Ints]]) -> list[Store]:
        """Return the stores that enter a queue, as slots and stamps, where no batch is."""
        if not queue:
            return []
        cells, table, count = self._cells, self._table, len(queue)
        first, rows = cells[NEXT_BATCH], slice(0, count)
        sizes = np.array([len(slots) for slots, _ in queue])
        ends = np.cumsum(sizes)
        top = int(ends[-1])
        return [
            (table[_NUMBER], rows, np.arange(first, first + count)),
            (table[_ACTOR], rows, owner),
            (table[_KIND], rows, int(Kind.PREFETCHED)),
            (table[_STATE], rows, int(HoldState.READY)),
            (table[_OFFSET], rows, ends - sizes),
            (table[_COUNT], rows, sizes),
            (self._slots, slice(0, top), np.concatenate([slots for slots, _ in queue])),
            (self._stamps, slice(0, top), np.concatenate([stamps for _, stamps in queue])),
            (cells, FREE_BATCH, count if count < table.shape[1] else NONE),
            (cells, NEXT_BATCH, first + count),
            (cells, BATCHES, count),
            (cells, PREFETCHED, count),
            (cells, POOL_TOP, top),
        ]

    def _span(self, row: int) -> tuple[int, int]:
        start = self._cells[self._starts[_OFFSET] + row]
        return start, start + self._cells[self._starts[_COUNT] + row]

    def _rows(self) -> list[int]:
        """Return the rows of all holds."""
        table = self._table
        rows: list[int] = np.flatnonzero(
            (table[_NUMBER] > 0) & (table[_KIND] != Kind.WRITE)
        ).tolist()
        return rows

    def _heads(self) -> list[HoldView]:
        """Return what the rows of all holds say, without their slots."""
        table = self._table[:_OFFSET, self._rows()].T.tolist()
        return [
            HoldView(actor, Kind(kind), [], [], HoldState(state), number)
            for number, actor, kind, state in table
        ]

    def _close_gaps(self) -> None:
        """Move the blocks of all batches together at the bottom of the pool."""
        table = self._table
        rows = np.flatnonzero(table[_NUMBER] > 0)
        rows = rows[np.argsort(table[_OFFSET, rows])]
        counts = table[_COUNT, rows]
        ends = np.cumsum(counts)
        top = int(ends[-1]) if len(ends) else 0
        starts = ends - counts
        cells = np.arange(top) + np.repeat(table[_OFFSET, rows] - starts, counts)
        self._commit(
            [
                (self._slots, slice(0, top), self._slots[cells]),
                (self._stamps, slice(0, top), self._stamps[cells]),
                (table[_OFFSET], rows, starts),
                (self._cells, POOL_TOP, top),
            ]
        )
