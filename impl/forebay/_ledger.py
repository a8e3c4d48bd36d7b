"""The ledger: the whole state of a buffer, and the effects of all actions on it.

Nothing else keeps or changes state. Each method that is named after an action carries out its
effect with one `commit`, in time proportional to its batch, and must be called inside the critical
section; whether the action may happen is decided before, in `_rules`. `empty` alone looks at every
slot.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from forebay_spec.kernel import Closing, Phase, close_to

from forebay import _layout as at
from forebay._ages import AgeOrder
from forebay._batches import HoldState
from forebay._bookkeeping import Bookkeeping
from forebay._calls import BATCH, NUMBER, TICKET, Call
from forebay._layout import NONE, Layout
from forebay._rows import DROPPED, LIVE, are_sampleable, become_free, returned_stamps
from forebay._stores import Ints, Store, commit, common, picked, tally, tally_of
from forebay._tickets import Kind
from forebay._trace import DONE, INTERRUPTED

FREE: Final = int(Phase.FREE)
FILLING: Final = int(Phase.FILLING)


class Ledger(Bookkeeping):
    """The effects of all actions on the bookkeeping of one buffer.

    Attributes:
        overwrites: a writer overwrites the oldest records instead of waiting for them to be used.
        reserve: how many records of the pool batches that are drawn ahead leave to others.
    """

    overwrites = False
    reserve = 0

    def over(self, layout: Layout) -> "Ledger":
        """Return a ledger of the same kind over a copy of this one's memory."""
        return Ledger(
            self.capacity,
            self.uses_per_record,
            isinstance(self.order, AgeOrder),
            limits=self.limits,
            layout=layout,
            prepared=True,
        )

    def count(self, scalar: int, by: int = 1) -> None:
        """Add to a counter that belongs to no action."""
        self.cells[scalar] += by

    def join(self, call: Call) -> None:
        """Append the call's ticket."""
        row, stores = self.queue.join(call.kind, call.actor, call.n, call.m, call.token, call.queue)
        blocked = self.cells[at.BLOCKED_CALLS] + 1
        self._commit(
            [
                *stores,
                (self.cells, at.BLOCKED_CALLS, blocked),
                (call.places, TICKET, row),
                *self.trace.waits(call),
            ]
        )

    def refuse(self, call: Call, counter: int) -> None:
        """Arrive, Ask: count a call that ends without having waited, by `call.verdict`."""
        told = self.trace.ended(call, self.flagged(call.token))
        self._commit([(self.cells, counter, self.cells[counter] + 1), *told])

    def leave(self, call: Call, counter: int | None = None) -> None:
        """Expire, Cancel, Refuse: remove the call's ticket, if it has one, and count why.

        Without a counter an exception has ended the wait; else `call.verdict` has.
        """
        stores = self._leaving(call)
        if counter is not None:
            stores.append((self.cells, counter, self.cells[counter] + 1))
            row = call.places[TICKET]
            token = call.token if row == NONE else self.queue.token(row)
            stores += self.trace.ended(call, self.flagged(token))
        elif stores:
            stores += self.trace.acts("Expire", call, INTERRUPTED)
        self._commit(stores)

    def admit(self, call: Call) -> None:
        """Admit: the first free slots become the call's, to be filled."""
        cells = self.cells
        self.batches.prepare(call.n)
        call.slots, taking = self._room_for(call.n)
        self._commit(
            [
                *self._leaving(call),
                *taking,
                (self.phase, call.slots, FILLING),
                (cells, at.FILLING, cells[at.FILLING] + call.n),
                *self._opening(call, None),
                *self.trace.served(call),
            ]
        )

    def publish(self, call: Call) -> None:
        """Publish: the call's slots become live, all at once, at the tail."""
        cells, slots, n = self.cells, call.slots, len(call.slots)
        self.order.prepare(n)
        self._commit(
            [
                (self.phase, slots, LIVE),
                *self.order.append(slots),
                (cells, at.SAMPLEABLE, cells[at.SAMPLEABLE] + n),
                (cells, at.FILLING, cells[at.FILLING] - n),
                (cells, at.ADMITTED, cells[at.ADMITTED] + n),
                (cells, at.ADMITTED_BATCHES, cells[at.ADMITTED_BATCHES] + 1),
                *self._closing(call),
                *self.trace.acts("Publish", call),
            ]
        )

    def abandon(self, call: Call) -> None:
        """Abandon: the call's slots go back to the front of the free order."""
        cells, slots = self.cells, call.slots
        self._commit(
            [
                (self.phase, slots, FREE),
                *self.free.put_back(slots),
                (cells, at.FILLING, cells[at.FILLING] - len(slots)),
                *self._closing(call),
                *self.trace.acts("Abandon", call),
            ]
        )

    def draw(self, call: Call) -> None:
        """Draw, Refill: records are used once more, and held by the call or by a queue."""
        cells = self.cells
        rows = self.rows_of_draw(call.n)
        self.order.prepare(rows)
        self.batches.prepare(rows)
        call.slots = slots = self.order.select(rows)
        uses, pins = common(self.uses[slots]) + 1, common(self.pins[slots])
        lasting = are_sampleable(LIVE, uses, self.uses_per_record)
        self._commit(
            [
                *self._leaving(call),
                (self.uses, slots, uses),
                (self.pins, slots, pins + 1),
                *self.order.draw(slots, lasting),
                (cells, at.SAMPLEABLE, cells[at.SAMPLEABLE] - rows + tally_of(rows, lasting)),
                (cells, at.PINNED, cells[at.PINNED] + tally_of(rows, pins == 0)),
                *self._opening(call, self.stamp[slots]),
                *self.trace.served(call),
            ]
        )

    def take(self, call: Call) -> None:
        """Ask, Draw: the oldest batch of a queue becomes the call's, as it is."""
        row = call.oldest
        call.slots = self.batches.slots(row)
        call.taken = True
        self._commit(
            [
                *self._leaving(call),
                *self.batches.hand_over(row, call.kind, call.actor),
                (call.places, NUMBER, self.batches.number(row)),
                (call.places, BATCH, row),
                *self.trace.served(call),
            ]
        )

    def ready(self, call: Call) -> None:
        """Ready: the held batch is gathered; its owner needs no critical section for it.

        But it does where that `overwrites`, and so for `fail`.
        """
        state = self.batches.state_store(call.places[BATCH], HoldState.READY)
        commit([state, *self.trace.acts("Ready", call)])

    def fail(self, call: Call) -> None:
        """Fail: the held batch is for nobody; its owner needs no critical section for it."""
        row = call.places[BATCH]
        commit([self.batches.state_store(row, HoldState.FAILED), *self._failing(call)])

    def deliver(self, call: Call, now: float) -> None:
        """Deliver: the held batch is the caller's; the spent that nobody holds become free."""
        cells, slots = self.cells, call.slots
        rows = len(slots)
        pins, phase = common(self.pins[slots]) - 1, common(self.phase[slots])
        kept = pins + common(self.copying[slots]) if cells[at.TO_COPY] else pins
        freed = become_free(phase, common(self.uses[slots]), self.uses_per_record, kept)
        spent = tally_of(rows, freed & (phase == LIVE))
        self._commit(
            [
                (self.pins, slots, pins),
                *self.freeing(picked(slots, freed)),
                (cells, at.PINNED, cells[at.PINNED] - tally_of(rows, pins == 0)),
                (cells, at.DELIVERED, cells[at.DELIVERED] + rows),
                (cells, at.DELIVERED_BATCHES, cells[at.DELIVERED_BATCHES] + 1),
                (cells, at.SPENT, cells[at.SPENT] + spent),
                (cells, at.SPENT_BATCHES, cells[at.SPENT_BATCHES] + (spent > 0)),
                (cells, at.LAST_DELIVERY, int(now * 1e9)),
                *self._closing(call),
                *self.trace.acts("Deliver", call),
            ]
        )

    def give_back(self, call: Call) -> None:
        """Return: the held records are as if they had not been drawn."""
        cells, slots = self.cells, call.slots
        pins, phase, uses = self.pins[slots] - 1, self.phase[slots], self.uses[slots]
        live = phase == LIVE
        again = slots[live]
        sampleable = are_sampleable(phase[live], uses[live], self.uses_per_record)
        remembered = self.batches.stamps(call.places[BATCH])[live]
        stamps = returned_stamps(self.stamp[again], remembered)
        uses = uses - live
        freed = become_free(phase, uses, self.uses_per_record, pins + self.copying[slots])
        self._commit(
            [
                (self.pins, slots, pins),
                (self.uses, slots, uses),
                *self.order.put_back(again, stamps, sampleable),
                (cells, at.SAMPLEABLE, cells[at.SAMPLEABLE] + tally(~sampleable)),
                *self.freeing(slots[freed]),
                (cells, at.PINNED, cells[at.PINNED] - tally(pins == 0)),
                (cells, at.RETURNED, cells[at.RETURNED] + len(slots)),
                (cells, at.RETURNED_BATCHES, cells[at.RETURNED_BATCHES] + 1),
                *self._closing(call),
                *(self._failing(call) if call.kind is Kind.PLAIN else ()),
                *self.trace.acts("Return", call),
            ]
        )

    def empty(self) -> None:
        """Empty: every record goes; those that are held, as soon as they are not any more.

        Batches that are drawn ahead and settled go with their records.
        """
        cells = self.cells
        live = np.flatnonzero(self.phase == LIVE)
        gone = self.batches.settled()
        if not len(live) and not gone:
            self._commit([*self.trace.empties(live)])
            return
        pins = self.pins[live] - self.pins_by([self.batches.slots(row) for row in gone])[live]
        pinned = (pins > 0) | (self.copying[live] > 0)
        dropped = live[pinned]
        self._commit(
            [
                *self._dropping(gone, live, pins),
                *self.order.clear(live),
                *self.freeing(live[~pinned]),
                (self.phase, dropped, DROPPED),
                (self.uses, dropped, 0),
                (self.stamp, dropped, 0),
                *self.batches.forget_stamps(dropped),
                (cells, at.SAMPLEABLE, 0),
                (cells, at.DROPPED, cells[at.DROPPED] + len(live)),
                (cells, at.DROPPED_BATCHES, cells[at.DROPPED_BATCHES] + (len(live) > 0)),
                *self.trace.empties(live),
            ]
        )

    def close(self, mode: Closing, failure: int = 0) -> None:
        """Close: closing moves on to `mode`, unless it is there or further.

        `failure` is how long the note of a failure is that comes with it, in bytes.
        """
        closing = close_to(self.closing, mode)
        noted = [(self.cells, at.FAILURE, failure)] if failure else []
        self._commit([(self.cells, at.CLOSING, closing), *noted, *self.trace.closes(mode)])

    def ask_to_close(self, mode: Closing) -> None:
        """Close by one plain store, which needs no critical section; in no trace."""
        self.cells[at.ASKED_TO_STOP if mode is Closing.STOPPED else at.ASKED_TO_DRAIN] = mode

    def mark_stopped(self, call: Call) -> None:
        """Let the ticket of a call, if it has one, say that the call is about to leave."""
        if call.places[TICKET] != NONE:
            stopped = self.queue.stopped_store(call.places[TICKET])
            self._commit([stopped, *self.trace.stopped(call)])

    def set_flag(self, token: int) -> None:
        """SetCancel: one plain store, which needs no critical section."""
        commit([(self.cells, self.layout.token_base + token, 1), *self.trace.flag(token)])

    def pins_by(self, batches: Sequence[Ints]) -> Ints:
        """Return how often each slot is pinned by batches that do not gather."""
        return np.bincount(np.concatenate([self.stamp[:0], *batches]), minlength=self.capacity)

    def _room_for(self, n: int) -> tuple[Ints, list[Store]]:
        """Return the slots that a writer of n is given, and the stores that take them away."""
        return self.free.first(n), self.free.take(n)

    def _opening(self, call: Call, stamps: Ints | None) -> list[Store]:
        """Return the stores that enter the batch of a call, whose slots have these ages."""
        row, stores = self.batches.open(call.kind, call.actor, call.slots, stamps)
        places = call.places
        stores += ((places, NUMBER, self.cells[at.NEXT_BATCH]), (places, BATCH, row))
        return stores

    def _dropping(self, gone: list[int], live: Ints, pins: Ints) -> list[Store]:
        """Return the stores that end prefetched batches, which leaves live slots these pins."""
        if not gone:
            return []
        cells = self.cells
        unpinned = tally((self.pins[live] > 0) & (pins == 0))
        return [
            (self.pins, live, pins),
            (cells, at.PINNED, cells[at.PINNED] - unpinned),
            *self.batches.close_prefetched(gone),
        ]

    def _leaving(self, call: Call) -> list[Store]:
        row = call.places[TICKET]
        if row == NONE:
            return []
        return [*self.queue.leave(row, call.kind), (call.places, TICKET, NONE)]

    def _closing(self, call: Call) -> list[Store]:
        stores = self.batches.close(call.places[BATCH])
        stores.append((call.places, BATCH, NONE))
        return stores

    def _failing(self, call: Call) -> Sequence[Store]:
        """Return the stores that record that a hold fails, if it has not failed before."""
        state = self.batches.state(call.places[BATCH])
        if state is HoldState.FAILED:
            return ()
        outcome = DONE if state is HoldState.GATHERING else INTERRUPTED
        return self.trace.acts("Fail", call, outcome)

    def let_go(self, slots: Ints) -> list[Store]:
        """Return the stores that free those of the slots that a capture alone has kept."""
        cells, phase = self.cells, self.phase[slots]
        freed = become_free(phase, self.uses[slots], self.uses_per_record, self.pins[slots])
        spent = tally(phase[freed] == LIVE)
        return [
            *self.freeing(slots[freed]),
            (cells, at.SPENT, cells[at.SPENT] + spent),
            (cells, at.SPENT_BATCHES, cells[at.SPENT_BATCHES] + (spent > 0)),
        ]

    def keep_all(self) -> list[Store]:
        """Return what else has to be stored when all live slots are to be copied."""
        return []

    def freeing(self, slots: Ints) -> list[Store]:
        """Return the stores that make slots free, behind the other used ones."""
        if not len(slots):
            return []
        return [
            (self.phase, slots, FREE),
            (self.uses, slots, 0),
            (self.stamp, slots, 0),
            *self.free.append(slots),
        ]
