"""The state of a buffer as plain immutable values, and the questions that are asked of it.

Everything is a tuple, a string or a small integer, so that states can be compared, hashed and put
side by side with what TLC prints. Nothing is kept twice except what the page on the state machine
keeps twice (a slot's phase and the list that it is in); `TypeOK` says that the two agree.

Ages are ranks. Real buffers count publications upwards for ever; two states that differ only in
how far they have counted behave alike, so `ranked` numbers the ages anew after every step.
"""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from forebay_spec.bounds import Bounds, ReaderKind
from forebay_spec.kernel import Closing, Phase, is_sampleable

TicketKind = Literal["write", "plain", "lease"]
HoldState = Literal["gathering", "ready", "failed"]
_LIVE: Final = Phase.LIVE


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
    """A drawn batch: its slots in order, and the ages that they had when they were drawn."""

    owner: str
    kind: ReaderKind
    slots: tuple[int, ...]
    stamps: tuple[int, ...]
    state: HoldState


Filling = tuple[tuple[str, tuple[int, ...]], ...]
Holds = tuple[Hold, ...]


class State(NamedTuple):
    """Everything that a buffer knows, as in the table of docs/state-machine.md.

    `filling` holds (producer, slots) for those who fill, sorted by producer.
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


def has_something(state: State, actor: str) -> bool:
    """Tell whether an actor waits, fills or holds, so that its death leaves something behind."""
    return (
        ticket_of(state, actor) is not None
        or bool(filling_of(state, actor))
        or any(hold.owner == actor for hold in state.holds)
    )


def idle(state: State, actor: str) -> bool:
    """Tell whether an actor may make a call: it lives and is in none, though it may have leases."""
    if actor in state.dead:
        return False
    for ticket in state.tickets:
        if ticket.actor == actor:
            return False
    for owner, _ in state.filling:
        if owner == actor:
            return False
    return all(hold.owner != actor or is_ready_lease(hold) for hold in state.holds)


def ranked(slots: Iterable[Slot], holds: Holds) -> tuple[tuple[Slot, ...], Holds]:
    """Number the ages of live slots anew, oldest first, on the slots and in what holds remember.

    What a hold remembers of a slot that is no longer live counts for nothing, and becomes 0.
    """
    slots = tuple(slots)
    ages = {slot.stamp for slot in slots if slot.phase == _LIVE}
    for hold in holds:
        for number, stamp in zip(hold.slots, hold.stamps, strict=True):
            if slots[number].phase == _LIVE:
                ages.add(stamp)
    rank = {stamp: position for position, stamp in enumerate(sorted(ages), 1)}
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
