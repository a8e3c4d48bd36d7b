"""What a ledger consists of, and what can be read of it.

The parts - free order, ages, tickets, batches, tokens, attendance - lie in one block of integers
(see `_layout`) and change nothing themselves: they return the stores of which `_ledger` makes its
actions. Everything here only reads, but for the first filling of a new block.
"""

from typing import Final, Protocol

import numpy as np
from forebay_spec.kernel import Closing, batch_rows

from forebay import _layout as at
from forebay._ages import AgeOrder
from forebay._attendance import Attendance
from forebay._bag import Bag
from forebay._batches import Batches, HoldView
from forebay._calls import BATCH, NUMBER, Call
from forebay._free import FreeOrder
from forebay._layout import NONE, Layout, Limits
from forebay._rows import are_sampleable
from forebay._stores import Flags, Ints, Store
from forebay._tickets import STOPPED, Kind, Tickets, TicketView
from forebay._token_rows import TokenRows
from forebay._trace import NO_TRACE, Tracer

CLOSINGS: Final = tuple(Closing)


class Order(Protocol):
    """Which records are drawn next; methods that return stores change nothing themselves."""

    def prepare(self, rows: int) -> None:
        """Make room for `rows` records more; the order does not change."""

    def select(self, rows: int) -> Ints:
        """Return the slots of the records that a draw of `rows` takes now."""

    def draw(self, slots: Ints, lasting: Flags | bool) -> list[Store]:
        """Return the stores that a draw of selected slots makes; are they sampleable still?"""

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that add new records."""

    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        """Return the stores that add returned records, some of which can be sampled already."""

    def clear(self, live: Ints) -> list[Store]:
        """Return the stores that leave no record; `live` are all that there were."""

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        """Return the stores that give an empty order the records of a snapshot."""

    def dense(self) -> Ints:
        """Return the records that random draws are made from, in their places, if there are any."""

    def drawn(self) -> Ints:
        """Return the records that are no more left of an epoch, in their places, if any."""

    def place_drawn(self, left: int, drawn: Ints) -> list[Store]:
        """Return the stores that give these records their places behind those that are left."""


class Bookkeeping:
    """All bookkeeping of one buffer, in one block of integers.

    Args:
        capacity: the number of slots.
        uses_per_record: how often a record is drawn before it is spent.
        fifo: whether the oldest records are drawn, or random ones.
        key: the two words that seed the generator.
        limits: how large the tables are.
        trace: where the actions are written down.
        layout: where the ledger lies, if not in memory of its own.
        prepared: that memory has a ledger of the same sizes already.
    """

    def __init__(
        self,
        capacity: int,
        uses_per_record: int = 1,
        fifo: bool = True,
        key: tuple[int, int] = (0, 0),
        limits: Limits | None = None,
        trace: Tracer = NO_TRACE,
        layout: Layout | None = None,
        prepared: bool = False,
    ) -> None:
        self.trace = trace
        self.limits = limits or Limits()
        self.layout = layout = layout or Layout(capacity, uses_per_record, self.limits)
        self._capacity, self._uses_per_record = capacity, uses_per_record
        self.cells = layout.cells
        self._commit = layout.commit
        self.phase, self.uses, self.pins = layout.phase, layout.uses, layout.pins
        self.stamp, self.copying = layout.stamp, layout.copying
        self.free = FreeOrder(layout)
        self.order = self._make_order(fifo)
        self.queue = Tickets(layout)
        self.batches = Batches(layout)
        self.tokens = TokenRows(layout, trace)
        self.attendance = Attendance(layout)
        if not prepared:
            self._prepare(capacity, uses_per_record, key)

    def _make_order(self, fifo: bool) -> Order:
        return AgeOrder(self.layout) if fifo else Bag(self.layout)

    def _prepare(self, capacity: int, uses_per_record: int, key: tuple[int, int]) -> None:
        """Make memory full of zeros a ledger."""
        cells = self.cells
        cells[at.CAPACITY] = capacity
        cells[at.USES_PER_RECORD] = uses_per_record
        cells[at.FRESH] = capacity
        cells[at.AGE_HEAD] = cells[at.AGE_TAIL] = cells[at.NEXT_STAMP] = 1
        cells[at.KEY_LOW], cells[at.KEY_HIGH] = np.array(key, np.uint64).view(np.int64).tolist()
        cells[at.LAST_DELIVERY] = NONE
        self.queue.prepare_table()
        self.batches.prepare_table()

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return self._capacity

    @property
    def uses_per_record(self) -> int:
        """How often a record is drawn before it is spent."""
        return self._uses_per_record

    @property
    def closing(self) -> Closing:
        """How far the buffer is closed, or was asked to close by one who could not enter."""
        cells = self.cells
        return CLOSINGS[max(cells[at.CLOSING], cells[at.ASKED_TO_DRAIN], cells[at.ASKED_TO_STOP])]

    @property
    def sampleable(self) -> int:
        """How many records can be sampled."""
        return int(self.cells[at.SAMPLEABLE])

    @property
    def filling(self) -> int:
        """How many slots are being filled."""
        return int(self.cells[at.FILLING])

    @property
    def room(self) -> int:
        """How many slots a writer could be given now."""
        return self.free.count()

    @property
    def fresh(self) -> int:
        """How many slots at the end of the free order were never used."""
        return int(self.cells[at.FRESH])

    def flagged(self, token: int) -> bool:
        """Tell whether a token's flag is set: never for `NO_TOKEN`, always for `STOPPED`."""
        if token < 0:
            return token == STOPPED
        return bool(self.cells[self.layout.token_base + token])

    def remembered(self, row: int) -> Ints:
        """Return the ages that a hold remembers of its slots; 0 for none."""
        return self.batches.stamps(row)

    def rows_of_draw(self, k: int) -> int:
        """Return how many records a draw of k gets now."""
        return batch_rows(k, self.sampleable)

    def calls_are_full(self) -> bool:
        """Tell whether there are as many tickets and batches as there may be."""
        cells = self.cells
        return bool(cells[at.WRITERS] + cells[at.READERS] + cells[at.BATCHES] >= self.limits.calls)

    def pool_is_full(self, rows: int) -> bool:
        """Tell whether a batch of so many rows would be more than may be held."""
        limit = self.layout.held - rows
        return bool(self.cells[at.POOL_TOP] > limit and self.batches.used() > limit)

    def pool_lacks_room(self, call: Call) -> bool:
        """Tell whether the batch that a call gets would be more than may be held."""
        return self.pool_is_full(call.n if call.kind is Kind.WRITE else self.rows_of_draw(call.n))

    def holds_batch(self, call: Call) -> bool:
        """Tell whether a call's batch is in the ledger still."""
        row = call.places[BATCH]
        return row != NONE and self.batches.number(row) == call.places[NUMBER]

    def blocked_by_leases(self, actor: int) -> tuple[Ints, Ints]:
        """Return the slots of an actor's leases and how many of these leases hold each."""
        slots, own = np.unique(self.batches.leased_slots(actor), return_counts=True)
        return slots, own.astype(np.int64)

    def call_of(self, row: int) -> Call:
        """Return a call that the batch in a row can be ended with, in the place of its owner."""
        batch, slots = self.batches.view(row), self.batches.slots(row)
        places = [NONE, row, 0, batch.number]
        call = Call(batch.kind, batch.owner, len(slots), len(slots), places=places)
        call.slots = slots
        return call

    def free_order(self) -> list[int]:
        """Return the free slots in the order in which they will be taken, for inspection."""
        order: list[int] = self.free.first(self.free.count()).tolist()
        return order

    def tickets(self) -> list[TicketView]:
        """Return the waiting calls in arrival order, for inspection."""
        return self.queue.views()

    def holds(self) -> list[HoldView]:
        """Return the drawn batches in draw order, for inspection."""
        return self.batches.holds()

    def fillings(self) -> dict[int, list[int]]:
        """Return the slots that each actor fills, in batch order, for inspection."""
        return self.batches.fillings()

    def cancelled_tokens(self) -> list[int]:
        """Return the rows of the tokens whose flag is set, for inspection."""
        rows: list[int] = np.flatnonzero(self.layout.tokens).tolist()
        return rows

    def sampleable_slots(self) -> Flags:
        """Tell of every slot whether its record can be sampled, for inspection."""
        return are_sampleable(self.phase, self.uses, self.uses_per_record)
