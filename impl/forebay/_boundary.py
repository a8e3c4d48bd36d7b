"""The boundary: the effects of a capture and of a restore on the ledger, each one commit.

There is one capture or restore at a time. A capture marks all live slots as still to be copied, in
the step in which it takes its snapshot; a marked slot keeps its record as if it were pinned, and
the marks go as the rows are copied. A restore clears the ledger, so that no record of before is
left, and enters the restored state in a second step once the rows are in place.

Whether a step may happen is asked by `_capture` and `_restore`; all of it happens inside the
critical section.
"""

from collections.abc import Sequence

import numpy as np
from forebay_spec.kernel import Closing, close_to

from forebay import _layout as at
from forebay._ages import AgeOrder
from forebay._ledger import Ledger
from forebay._rows import LIVE, are_sampleable
from forebay._snapshot import COUNTERS, Snapshot, marks_to_copy
from forebay._stages import Stage
from forebay._stores import Ints, Store, tally
from forebay._threads import participant_of


class Boundary:
    """A capture or a restore that is in progress in a ledger, or none."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._cells = ledger.cells
        self._commit = ledger.layout.commit

    @property
    def stage(self) -> Stage:
        """How far it has got."""
        return Stage(self._cells[at.STAGE])

    @property
    def actor(self) -> int | None:
        """Whose it is."""
        return self._cells[at.BOUNDARY_ACTOR] if self._cells[at.STAGE] else None

    def is_of(self, participant: int) -> bool:
        """Tell whether it is an actor's of this process."""
        actor = self.actor
        return actor is not None and participant_of(actor) == participant

    def ask(self, actor: int, stage: Stage) -> None:
        """CaptureAsk, RestoreAsk: it is this actor's from now on."""
        cells = self._cells
        self._commit([(cells, at.STAGE, stage), (cells, at.BOUNDARY_ACTOR, actor)])

    def capture(self) -> None:
        """Capture: all live slots are still to be copied.

        Of slots with the same mark the lower one comes first.
        """
        ledger, cells = self._ledger, self._cells
        marks = marks_to_copy(ledger)
        count = int(np.count_nonzero(marks))
        self._commit(
            [
                (ledger.copying, slice(0, len(marks)), marks),
                (cells, at.TO_COPY, count),
                *ledger.keep_all(),
                (cells, at.STAGE, Stage.COPYING if count else Stage.NONE),
            ]
        )

    def copied(self, slots: Ints) -> None:
        """CaptureDone: the first of the slots that are still to be copied are copied."""
        cells = self._cells
        left = cells[at.TO_COPY] - len(slots)
        self._commit(
            [
                *self._letting_go(slots),
                (cells, at.TO_COPY, left),
                (cells, at.STAGE, Stage.COPYING if left else Stage.NONE),
            ]
        )

    def end(self, failure: int = 0) -> None:
        """Reject, or Recover: the boundary is nobody's any more, whatever its stage.

        What is still to be copied is let go. Where a restore was loading, the buffer has no records
        and never will have: it stops. `failure` is how long the note is that says so, in bytes.
        """
        cells, copying = self._cells, self._ledger.copying
        marked = np.flatnonzero(copying) if cells[at.TO_COPY] else copying[:0]
        stores = self._letting_go(marked[np.argsort(copying[marked], kind="stable")])
        if self.stage is Stage.LOADING:
            stopped = close_to(self._ledger.closing, Closing.STOPPED)
            stores.append((cells, at.CLOSING, stopped))
            stores += [(cells, at.FAILURE, failure)] if failure else []
        self._commit([*stores, (cells, at.TO_COPY, 0), (cells, at.STAGE, Stage.NONE)])

    def load(self) -> None:
        """Load: all slots are free and fresh, and nobody holds anything."""
        ledger, cells = self._ledger, self._cells
        layout = ledger.layout
        live = np.flatnonzero(ledger.phase == LIVE)
        every = slice(0, ledger.capacity)
        kept = (layout.phase, layout.uses, layout.pins, layout.stamp, layout.entry)
        self._commit(
            [
                *ledger.order.clear(live),
                *((array, every, 0) for array in kept),
                *ledger.free.restore(live[:0], ledger.capacity),
                *ledger.batches.clear(),
                (cells, at.SAMPLEABLE, 0),
                (cells, at.PINNED, 0),
                (cells, at.STAGE, Stage.LOADING),
            ]
        )

    def restore(self, snapshot: Snapshot, owner: int, payloads: Sequence[Store] = ()) -> None:
        """Restore: the state is that of a snapshot; its queue is that of `owner`.

        `payloads` are the stores that enter the batches of the queue.
        """
        ledger, cells = self._ledger, self._cells
        slots, uses = snapshot.slots, snapshot.uses
        pins = ledger.pins_by([batch for batch, _ in snapshot.queue])
        sampleable = are_sampleable(np.full(len(slots), LIVE), uses, ledger.uses_per_record)
        low, high = np.array(snapshot.key, np.uint64).view(np.int64).tolist()
        order = snapshot.dense
        if isinstance(ledger.order, AgeOrder):
            order = slots[sampleable][np.argsort(snapshot.stamps[sampleable])]
        ages = np.concatenate([snapshot.stamps, *(known for _, known in snapshot.queue)])
        youngest = int(ages.max(initial=0))
        counters: list[Store] = [
            (cells, scalar, snapshot.counters[name]) for name, scalar in COUNTERS.items()
        ]
        self._commit(
            [
                (ledger.phase, slots, LIVE),
                (ledger.uses, slots, uses),
                (ledger.pins, slots, pins[slots]),
                *ledger.order.restore(order, slots, snapshot.stamps, youngest),
                *ledger.order.place_drawn(len(order), snapshot.drawn),
                *ledger.free.restore(
                    snapshot.free[: len(snapshot.free) - snapshot.fresh], snapshot.fresh
                ),
                *ledger.batches.restore(owner, snapshot.queue),
                *payloads,
                *counters,
                (cells, at.SAMPLEABLE, tally(sampleable)),
                (cells, at.PINNED, tally(pins > 0)),
                (cells, at.KEY_LOW, low),
                (cells, at.KEY_HIGH, high),
                (cells, at.DRAWS, snapshot.draws),
                (cells, at.STAGE, Stage.NONE),
            ]
        )

    def _letting_go(self, slots: Ints) -> list[Store]:
        """Return the stores after which slots are not to be copied any more."""
        if not len(slots):
            return []
        return [(self._ledger.copying, slots, 0), *self._ledger.let_go(slots)]
