"""The calls that wait, in arrival order.

Writers and readers are two linked lists in one table, since the oldest of each kind is what counts;
numbers rise with arrival over both. Joining, leaving from anywhere and finding a head cost the
same, however many wait.
"""

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from forebay._layout import (
    FREE_TICKET,
    NEXT_TICKET,
    NONE,
    READER_HEAD,
    READER_TAIL,
    READERS,
    TICKET_FIELDS,
    WRITER_HEAD,
    WRITER_TAIL,
    WRITERS,
    Layout,
)
from forebay._stores import Store
from forebay._threads import owned_by

_NUMBER, _KIND, _ACTOR, _N, _M, _TOKEN, _QUEUE, _PREVIOUS, _NEXT = range(TICKET_FIELDS)

NO_TOKEN: Final = -1
STOPPED: Final = -2
"""In the place of a token: the call's own task has cancelled it."""

NO_QUEUE: Final = 0
"""In the place of the owner of a queue of prefetched batches; those owners are below 0."""


class Kind(IntEnum):
    """What a call wants, and what its batch is for."""

    WRITE = 0
    PLAIN = 1
    LEASE = 2
    PREFETCHED = 3


class TicketView(NamedTuple):
    """One waiting call, for inspection."""

    kind: Kind
    actor: int
    n: int
    m: int
    token: int
    number: int
    queue: int = NO_QUEUE


class Tickets:
    """The table of waiting calls; methods return stores and change nothing themselves."""

    def __init__(self, layout: Layout) -> None:
        self._cells = layout.cells
        self._rows = layout.calls
        base, rows = layout.ticket_base, layout.calls
        self._starts = [base + field * rows for field in range(TICKET_FIELDS)]
        self._table = layout.tickets

    def prepare_table(self) -> None:
        """Make all rows free; once, in memory full of zeros."""
        self._table[_NEXT, :-1] = range(1, self._rows)
        self._table[_NEXT, -1] = NONE
        for scalar in (WRITER_HEAD, WRITER_TAIL, READER_HEAD, READER_TAIL):
            self._cells[scalar] = NONE
        self._cells[FREE_TICKET] = 0
        self._cells[NEXT_TICKET] = 1

    def count(self) -> int:
        """Return how many calls wait."""
        return int(self._cells[WRITERS] + self._cells[READERS])

    def head(self, kind: Kind) -> int:
        """Return the row of the oldest ticket that is, or is not, of a writer, or `NONE`."""
        return int(self._cells[WRITER_HEAD if kind is Kind.WRITE else READER_HEAD])

    def number(self, row: int) -> int:
        """Return the arrival number of a ticket."""
        return int(self._cells[self._starts[_NUMBER] + row])

    def least(self, row: int) -> int:
        """Return how many records a ticket waits for at least."""
        return int(self._cells[self._starts[_M] + row])

    def token(self, row: int) -> int:
        """Return the token of a ticket, or `NO_TOKEN`."""
        return int(self._cells[self._starts[_TOKEN] + row])

    def stopped_store(self, row: int) -> Store:
        """Return the store that says that a ticket's call was cancelled by its task."""
        return self._cells, self._starts[_TOKEN] + row, STOPPED

    def join(
        self, kind: Kind, actor: int, n: int, m: int, token: int, queue: int = NO_QUEUE
    ) -> tuple[int, list[Store]]:
        """Return the row for a new ticket and the stores that append it."""
        cells, starts = self._cells, self._starts
        row: int = cells[FREE_TICKET]
        head, tail, count = _ends(kind)
        last = cells[tail]
        stores: list[Store] = [
            (cells, FREE_TICKET, cells[starts[_NEXT] + row]),
            (cells, NEXT_TICKET, cells[NEXT_TICKET] + 1),
            (cells, starts[_NUMBER] + row, cells[NEXT_TICKET]),
            (cells, starts[_KIND] + row, kind),
            (cells, starts[_ACTOR] + row, actor),
            (cells, starts[_N] + row, n),
            (cells, starts[_M] + row, m),
            (cells, starts[_TOKEN] + row, token),
            (cells, starts[_QUEUE] + row, queue),
            (cells, starts[_PREVIOUS] + row, last),
            (cells, starts[_NEXT] + row, NONE),
            (cells, count, cells[count] + 1),
            (cells, tail, row),
            (cells, head if last == NONE else starts[_NEXT] + last, row),
        ]
        return row, stores

    def leave(self, row: int, kind: Kind) -> list[Store]:
        """Return the stores that remove a ticket."""
        cells, starts = self._cells, self._starts
        head, tail, count = _ends(kind)
        before, after = cells[starts[_PREVIOUS] + row], cells[starts[_NEXT] + row]
        return [
            (cells, head if before == NONE else starts[_NEXT] + before, after),
            (cells, tail if after == NONE else starts[_PREVIOUS] + after, before),
            (cells, count, cells[count] - 1),
            (cells, starts[_NUMBER] + row, 0),
            (cells, starts[_NEXT] + row, cells[FREE_TICKET]),
            (cells, FREE_TICKET, row),
        ]

    def view(self, row: int) -> TicketView:
        """Return one ticket."""
        number, kind, actor, n, m, token, queue = (
            self._cells[self._starts[field] + row]
            for field in (_NUMBER, _KIND, _ACTOR, _N, _M, _TOKEN, _QUEUE)
        )
        return TicketView(Kind(kind), actor, n, m, token, number, queue)

    def rows_of(self, participant: int) -> list[int]:
        """Return the rows of all tickets of a participant."""
        table = self._table
        owned = owned_by(table[_ACTOR], participant)
        rows: list[int] = np.flatnonzero((table[_NUMBER] > 0) & owned).tolist()
        return rows

    def actors(self) -> set[int]:
        """Return the actors of all tickets."""
        return {ticket.actor for ticket in self.views()}

    def views(self) -> list[TicketView]:
        """Return all tickets in arrival order."""
        rows = [*self._list(WRITER_HEAD), *self._list(READER_HEAD)]
        return sorted((self.view(row) for row in rows), key=lambda ticket: ticket.number)

    def _list(self, head: int) -> list[int]:
        rows = []
        row = self._cells[head]
        while row != NONE:
            rows.append(row)
            row = self._cells[self._starts[_NEXT] + row]
        return rows


def _ends(kind: Kind) -> tuple[int, int, int]:
    """Return which scalars hold the head, the tail and the length of a kind's list."""
    if kind is Kind.WRITE:
        return WRITER_HEAD, WRITER_TAIL, WRITERS
    return READER_HEAD, READER_TAIL, READERS
