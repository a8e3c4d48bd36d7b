"""The state of a buffer as plain immutable values, and the questions that are asked of it.

Everything is a tuple, a string or a small integer, so that states can be compared, hashed and put
side by side with what TLC prints. Nothing is kept twice except what the page on the state machine
keeps twice (a slot's phase and the list that it is in); `TypeOK` says that the two agree.

Ages are ranks. Real buffers count publications upwards for ever; two states that differ only in
how far they have counted behave alike, so `ranked` numbers the ages anew after every step.
"""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Closing, Phase, is_evictable, is_sampleable

TicketKind = Literal["write", "plain", "lease"]
HoldKind = Literal["plain", "lease", "prefetched"]
HoldState = Literal["gathering", "ready", "failed"]
Stage = Literal["none", "capturing", "copying", "restoring", "loading"]
_LIVE: Final = Phase.LIVE
NOTHING: Final[frozenset[int]] = frozenset()


class Slot(NamedTuple):
    """One place for a record: `uses` draws so far, `pins` holds on it, and its age rank."""

    phase: Phase
    uses: int
    pins: int
    stamp: int


class Ticket(NamedTuple):
    """A waiting call for n records, of which m will do; a writer has m = n."""

    kind: TicketKind
    actor: str
    n: int
    m: int


class Hold(NamedTuple):
    """A drawn batch: its slots in order, and the ages that they had when they were drawn.

    The owner is an actor, or a process as long as the batch is prefetched.
    """

    owner: str
    kind: HoldKind
    slots: tuple[int, ...]
    stamps: tuple[int, ...]
    state: HoldState


class Boundary(NamedTuple):
    """A capture or a restore in progress, by whom, and the slots that it has still to copy."""

    stage: Stage
    actor: str
    slots: tuple[int, ...]


class Saved(NamedTuple):
    """A snapshot; the queue has (slots, stamps) of each prefetched batch, in draw order."""

    slots: tuple[Slot, ...]
    free: tuple[int, ...]
    fresh: int
    queue: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    left: frozenset[int] = NOTHING


NO_BOUNDARY: Final = Boundary("none", "", ())
Filling = tuple[tuple[str, tuple[int, ...]], ...]
Holds = tuple[Hold, ...]


class State(NamedTuple):
    """Everything that a buffer knows, as in the table of docs/state-machine.md.

    `filling` holds (producer, slots) for those who fill, sorted by producer. A buffer that is
    neither captured nor restored says nothing of `boundary` and `saved`, one that has no epochs
    nothing of `left`.
    """

    slots: tuple[Slot, ...]
    free: tuple[int, ...]
    fresh: int
    filling: Filling
    tickets: tuple[Ticket, ...]
    holds: Holds
    closing: Closing
    cancelled: frozenset[str]
    dead: frozenset[str]
    boundary: Boundary = NO_BOUNDARY
    saved: Saved | None = None
    left: frozenset[int] = NOTHING


FREE_SLOT: Final = Slot(Phase.FREE, 0, 0, 0)
FILLING_SLOT: Final = Slot(Phase.FILLING, 0, 0, 0)


def initial(bounds: Bounds) -> State:
    """Return the state at the start: every slot is free and was never used."""
    everything = tuple(range(bounds.capacity))
    return State(
        slots=(FREE_SLOT,) * bounds.capacity,
        free=everything,
        fresh=bounds.capacity,
        filling=(),
        tickets=(),
        holds=(),
        closing=Closing.OPEN,
        cancelled=frozenset(),
        dead=frozenset(),
    )


def sampleable(bounds: Bounds, state: State) -> list[int]:
    """Return the slots that may be drawn, in slot order."""
    limit = bounds.uses
    return [
        number
        for number, (phase, uses, _, _) in enumerate(state.slots)
        if is_sampleable(phase, uses, limit)
    ]


def evictable(state: State) -> list[int]:
    """Return the slots that a writer of an overwriting buffer may take with their records, oldest
    first."""
    to_copy = state.boundary.slots
    found = [
        number
        for number, slot in enumerate(state.slots)
        if is_evictable(slot.phase, slot.pins, number in to_copy)
    ]
    return sorted(found, key=lambda number: state.slots[number].stamp)


def room(bounds: Bounds, state: State) -> int:
    """Count the slots that a writer may take: the free ones, and the evictable ones if it may."""
    return len(state.free) + (len(evictable(state)) if bounds.overwriting else 0)


def pinned_by(bounds: Bounds, hold: Hold) -> tuple[int, ...]:
    """Return the slots that a hold pins, each once.

    In an overwriting buffer what was gathered is a copy, which needs its records no more.
    """
    if not bounds.overwriting:
        return hold.slots
    return tuple(dict.fromkeys(hold.slots)) if hold.state == "gathering" else ()


def ticket_of(state: State, actor: str) -> Ticket | None:
    """Return the call in which an actor waits, or None."""
    for ticket in state.tickets:
        if ticket.actor == actor:
            return ticket
    return None


def filling_of(state: State, actor: str) -> tuple[int, ...]:
    """Return the slots that an actor fills, in batch order; none when it fills nothing."""
    for owner, slots in state.filling:
        if owner == actor:
            return slots
    return ()


def is_ready_lease(hold: Hold) -> bool:
    """Tell whether a hold is a lease that its caller has in hands."""
    return hold.kind == "lease" and hold.state == "ready"


def is_settled(hold: Hold) -> bool:
    """Tell whether a hold is a prefetched batch that does not gather any more."""
    return hold.kind == "prefetched" and hold.state != "gathering"


def is_stale(state: State, hold: Hold) -> bool:
    """Tell whether a hold is a prefetched batch whose records are dropped; it still gathers."""
    return hold.kind == "prefetched" and state.slots[hold.slots[0]].phase == Phase.DROPPED


def prefetched_by(state: State, process: str) -> list[Hold]:
    """Return the batches that a process has drawn ahead, stale ones too, in draw order."""
    return [hold for hold in state.holds if hold.kind == "prefetched" and hold.owner == process]


def front_of_queue(state: State, process: str) -> int | None:
    """Return the position of the oldest batch that a process has in its queue, or None."""
    for h, hold in enumerate(state.holds):
        if hold.kind == "prefetched" and hold.owner == process and not is_stale(state, hold):
            return h
    return None


def has_something(state: State, actor: str) -> bool:
    """Tell whether the death of an actor, a process of its own, leaves something behind.

    It does if the actor waits, fills, holds, has prefetched, or is about to capture or restore.
    """
    return (
        ticket_of(state, actor) is not None
        or bool(filling_of(state, actor))
        or any(hold.owner == actor for hold in state.holds)
        or state.boundary.actor == actor
    )


def idle(state: State, actor: str) -> bool:
    """Tell whether an actor may make a call: it lives and is in none, though it may have leases."""
    if actor in state.dead or state.boundary.actor == actor:
        return False
    for ticket in state.tickets:
        if ticket.actor == actor:
            return False
    for owner, _ in state.filling:
        if owner == actor:
            return False
    for hold in state.holds:
        if hold.owner == actor and hold.kind != "prefetched" and not is_ready_lease(hold):
            return False
    return True


def ranked(slots: Iterable[Slot], holds: Holds) -> tuple[tuple[Slot, ...], Holds]:
    """Number the ages of live slots anew, oldest first, on the slots and in what holds remember.

    What a hold remembers of a slot that is no longer live counts for nothing, and becomes 0. A 0
    that it remembers is no age, and stays 0.
    """
    slots = tuple(slots)
    ages = {slot.stamp for slot in slots if slot.phase == _LIVE}
    for hold in holds:
        for number, stamp in zip(hold.slots, hold.stamps, strict=True):
            if slots[number].phase == _LIVE:
                ages.add(stamp)
    ages.discard(0)
    rank = {stamp: position for position, stamp in enumerate(sorted(ages), 1)}
    rank[0] = 0
    return (
        tuple(
            Slot(_LIVE, slot.uses, slot.pins, rank[slot.stamp]) if slot.phase == _LIVE else slot
            for slot in slots
        ),
        tuple(
            Hold(
                hold.owner,
                hold.kind,
                hold.slots,
                tuple(
                    rank[stamp] if slots[number].phase == _LIVE else 0
                    for number, stamp in zip(hold.slots, hold.stamps, strict=True)
                ),
                hold.state,
            )
            for hold in holds
        ),
    )
