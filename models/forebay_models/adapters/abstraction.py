"""The ledger of a buffer, read as a state of the specification.

The specification has names for actors and ranks for ages where the ledger has threads and counters;
everything else is the same. A hold of an overwriting buffer is read as remembering a record as long
as its slot has the age that the hold noted and no later epoch has begun. Nothing is repaired or
left out on the way: a ledger that contradicts itself gives a state that no specification reaches.

A campaign reads the ledger several times a step. So the table of batches is read whole, by the
layout that the library goes by, and not with the library's methods for inspection, which ask numpy
a dozen small questions.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import forebay._layout as at
import numpy as np
from forebay import AdmissionTimeout, Cancelled, MutualWait, SampleTimeout, ShutDown
from forebay._batches import HoldState as LedgerHoldState
from forebay._layout import Limits
from forebay._ledger import Ledger
from forebay._snapshot import Snapshot
from forebay._stages import Stage as LedgerStage
from forebay._tickets import Kind, TicketView
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Phase, Verdict
from forebay_spec.state import (
    FREE_SLOT,
    NO_BOUNDARY,
    NOTHING,
    Boundary,
    Filling,
    Hold,
    HoldKind,
    HoldState,
    Saved,
    Slot,
    Stage,
    State,
    Ticket,
    TicketKind,
    ranked,
)

Names = Callable[[int], str]

_KINDS: Final[Mapping[int, TicketKind]] = {
    Kind.WRITE: "write",
    Kind.PLAIN: "plain",
    Kind.LEASE: "lease",
}
_HOLDERS: Final[Mapping[int, HoldKind]] = {
    Kind.PLAIN: "plain",
    Kind.LEASE: "lease",
    Kind.PREFETCHED: "prefetched",
}
_STAGES: Final[Mapping[int, Stage]] = {
    LedgerStage.CAPTURING: "capturing",
    LedgerStage.COPYING: "copying",
    LedgerStage.RESTORING: "restoring",
    LedgerStage.LOADING: "loading",
}
_STATES: Final[Mapping[int, HoldState]] = {
    LedgerHoldState.GATHERING: "gathering",
    LedgerHoldState.READY: "ready",
    LedgerHoldState.FAILED: "failed",
}
ENDS: Final[Mapping[type[BaseException], Verdict]] = {
    ShutDown: Verdict.SHUT_DOWN,
    Cancelled: Verdict.CANCELLED,
    MutualWait: Verdict.MUTUAL_WAIT,
    AdmissionTimeout: Verdict.TIMEOUT,
    SampleTimeout: Verdict.TIMEOUT,
}
"""What the errors that calls end with say of their verdict."""

_PHASES: Final = tuple(Phase)
_WRITE: Final = int(Kind.WRITE)


class _Batch(NamedTuple):
    """One row of the ledger's table of batches, with its slots and their stamps."""

    number: int
    actor: int
    kind: int
    state: int
    slots: tuple[int, ...]
    stamps: tuple[int, ...]


def state_of(ledger: Ledger, name_of: Names, tokens: Mapping[int, str], bounds: Bounds) -> State:
    """Return a ledger's state; to be called while nobody changes it.

    Args:
        ledger: the ledger.
        name_of: gives an actor's name for its number in the ledger.
        tokens: the names of the tokens by their rows.
        bounds: whether ages count, and whether there is anything left of an epoch.

    Raises:
        ValueError: the sampler of an overwriting buffer contradicts itself or the records.
    """
    aged = bounds.aged
    stamps = ledger.stamp.tolist() if aged else [0] * ledger.capacity
    slots = tuple(
        Slot(_PHASES[phase], uses, pins, stamp)
        for phase, uses, pins, stamp in zip(
            ledger.phase.tolist(), ledger.uses.tolist(), ledger.pins.tolist(), stamps, strict=True
        )
    )
    batches = _batches(ledger)
    if bounds.order == "epochs":
        batches = [_as_remembered(ledger, stamps, batch) for batch in batches]
    holds = tuple(_hold(batch, name_of, aged) for batch in batches if batch.kind != _WRITE)
    if aged:
        slots, holds = ranked(slots, holds)
    return State(
        slots=slots,
        free=tuple(ledger.free_order()),
        fresh=ledger.fresh,
        filling=_filling(batches, name_of),
        tickets=tuple(_ticket(view, name_of) for view in ledger.tickets()),
        holds=holds,
        closing=ledger.closing,
        cancelled=frozenset(tokens.get(row, f"?{row}") for row in ledger.cancelled_tokens()),
        dead=frozenset(),
        boundary=_boundary(ledger, name_of),
        left=_left(ledger, bounds) if bounds.overwriting else NOTHING,
    )


def saved_of(snapshot: Snapshot, bounds: Bounds) -> Saved:
    """Return a snapshot of the library as one of the specification."""
    return _saved(
        bounds,
        (snapshot.slots.tolist(), snapshot.uses.tolist(), snapshot.stamps.tolist()),
        snapshot.free.tolist(),
        snapshot.fresh,
        [(slots.tolist(), stamps.tolist()) for slots, stamps in snapshot.queue],
        snapshot.dense.tolist(),
    )


def saved_in(state: Mapping[str, Any], bounds: Bounds) -> Saved:
    """Return the snapshot that is in a state of `state_dict`."""
    records, free = state["records"], state["free"]
    return _saved(
        bounds,
        (records["slots"].tolist(), records["uses"].tolist(), records["stamps"].tolist()),
        free["order"].tolist(),
        free["fresh"],
        [
            (batch["slots"].tolist(), batch["stamps"].tolist())
            for batch in state["prefetched"]["batches"]
        ],
        [] if bounds.fifo else state["sampler"]["dense"].tolist(),
    )


class Reader:
    """Reads the state of one ledger again and again.

    Args:
        ledger: the ledger.
        name_of: gives an actor's name for its number in the ledger.
        tokens: the names of the tokens by their rows.
        bounds: what the buffer is like.

    Attributes:
        saved: the last snapshot, which is nowhere in the ledger.
    """

    def __init__(
        self, ledger: Ledger, name_of: Names, tokens: Mapping[int, str], bounds: Bounds
    ) -> None:
        self._ledger = ledger
        self._name_of = name_of
        self._tokens = tokens
        self._bounds = bounds
        self._last: tuple[bytes, Saved | None, State] | None = None
        self.saved: Saved | None = None

    def state(self) -> State:
        """Return the state; it is worked out anew only if an integer of the ledger has changed."""
        block, saved = self._ledger.layout.block.tobytes(), self.saved
        if self._last is None or self._last[0] != block or self._last[1] is not saved:
            state = state_of(self._ledger, self._name_of, self._tokens, self._bounds)
            self._last = block, saved, state._replace(saved=saved)
        return self._last[2]


def limits_for(bounds: Bounds) -> Limits:
    """Return tables that are large enough, and no larger, since they are read at every step."""
    actors, held = len(bounds.actors), 0
    # A hold has a use of a record, a batch being written a slot, and an actor one ticket.
    calls = bounds.capacity * (bounds.uses + 1) + actors
    if bounds.overwriting:
        # An actor has a lease, and a call besides; a process what it has drawn ahead.
        ahead = len(bounds.reading) * bounds.prefetch
        calls = 2 * actors + ahead
        # What is drawn ahead leaves as many records of the pool to others as there can be.
        held = (calls + 1) * bounds.capacity
    # Who was killed has its row until it is recovered; the driver has one, and its process.
    participants = 2 * actors + 2
    tokens = len(bounds.tokens) + 1
    return Limits(calls=calls, tokens=tokens, held=held, participants=participants)


def _batches(ledger: Ledger) -> list[_Batch]:
    """Return all batches in the order of admission and drawing."""
    layout = ledger.layout
    # The table's lines are in the order of the names at the top of `forebay._batches`.
    numbers, actors, kinds, states, offsets, counts, _ = layout.batches.tolist()
    if not any(numbers):
        return []
    slots, stamps = layout.pool_slots.tolist(), layout.pool_stamps.tolist()
    found = []
    for row, number in enumerate(numbers):
        if number > 0:
            start, end = offsets[row], offsets[row] + counts[row]
            found.append(
                _Batch(
                    number,
                    actors[row],
                    kinds[row],
                    states[row],
                    tuple(slots[start:end]),
                    tuple(stamps[start:end]),
                )
            )
    return sorted(found)


def _filling(batches: list[_Batch], name_of: Names) -> Filling:
    # An actor fills one batch at most; should a ledger say otherwise, no state is like that.
    filling = [(name_of(batch.actor), batch.slots) for batch in batches if batch.kind == _WRITE]
    return tuple(sorted(filling))


def _ticket(view: TicketView, name_of: Names) -> Ticket:
    return Ticket(_KINDS[view.kind], name_of(view.actor), view.n, view.m)


def _as_remembered(ledger: Ledger, ages: Sequence[int], batch: _Batch) -> _Batch:
    """Return a batch with those stamps that it still remembers, and 0 for the others."""
    if batch.number < ledger.cells[at.EPOCH]:
        return batch._replace(stamps=(0,) * len(batch.stamps))
    known = zip(batch.slots, batch.stamps, strict=True)
    return batch._replace(stamps=tuple(it if ages[slot] == it else 0 for slot, it in known))


def _left(ledger: Ledger, bounds: Bounds) -> frozenset[int]:
    """Return what is left of the epoch, which is all that the sampler draws from."""
    count = ledger.cells[at.LEFT]
    slots: list[int] = ledger.layout.dense[:count].tolist()
    if ledger.layout.places[slots].tolist() != list(range(count)):
        raise ValueError(f"the sampler has {slots}, but not each of them in its place")
    if bounds.order == "epochs":
        return frozenset(slots)
    live = np.flatnonzero(ledger.phase == Phase.LIVE).tolist()
    if sorted(slots) != live:
        raise ValueError(f"the sampler draws from {slots}, but the records are in {live}")
    return NOTHING


def _hold(batch: _Batch, name_of: Names, aged: bool) -> Hold:
    return Hold(
        name_of(batch.actor),
        _HOLDERS[batch.kind],
        batch.slots,
        batch.stamps if aged else (0,) * len(batch.slots),
        _STATES[batch.state],
    )


def _boundary(ledger: Ledger, name_of: Names) -> Boundary:
    stage, actor = ledger.cells[at.STAGE], ledger.cells[at.BOUNDARY_ACTOR]
    if not stage:
        return NO_BOUNDARY
    # The marks are numbers in copying order.
    marks = sorted((mark, slot) for slot, mark in enumerate(ledger.copying.tolist()) if mark)
    return Boundary(_STAGES[stage], name_of(actor), tuple(slot for _, slot in marks))


def _saved(
    bounds: Bounds,
    records: tuple[Sequence[int], Sequence[int], Sequence[int]],
    free: Sequence[int],
    fresh: int,
    queue: Sequence[tuple[Sequence[int], Sequence[int]]],
    dense: Sequence[int],
) -> Saved:
    # What was gathered ahead pins its records only where it is to use them up.
    pins = Counter(slot for slots, _ in queue for slot in slots if not bounds.overwriting)
    slots = [FREE_SLOT] * bounds.capacity
    for slot, uses, stamp in zip(*records, strict=True):
        slots[slot] = Slot(Phase.LIVE, uses, pins[slot], stamp)
    held = tuple((tuple(slots), tuple(stamps)) for slots, stamps in queue)
    left = frozenset(dense) if bounds.order == "epochs" else NOTHING
    return Saved(tuple(slots), tuple(free), fresh, held, left)
