"""What the actions do to a state once it is decided that they happen.

Each function takes a state and returns the next one; a draw at random returns all that may come
out. None of them asks whether the action may happen, that is the guards' matter, and none but
`recovered` touches the tickets: a ticket leaves by `without_ticket`, before. What captures and
restores do is in `forebay_spec.boundary`.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations, product
from typing import Final

from forebay_spec.bounds import Bounds, ReaderKind
from forebay_spec.kernel import (
    Closing,
    Phase,
    batch_rows,
    becomes_free,
    begins_epoch,
    is_sampleable,
    returned_stamp,
)
from forebay_spec.state import (
    FILLING_SLOT,
    FREE_SLOT,
    NO_BOUNDARY,
    NOTHING,
    Filling,
    Hold,
    HoldKind,
    Holds,
    HoldState,
    Slot,
    State,
    evictable,
    filling_of,
    is_settled,
    pinned_by,
    ranked,
    sampleable,
)

_LIVE: Final = Phase.LIVE
_DROPPED: Final = Phase.DROPPED


def without_ticket(state: State, actor: str) -> State:
    """Take an actor's call off the list of those who wait, if it is there."""
    return state._replace(tickets=tuple(t for t in state.tickets if t.actor != actor))


def admitted(state: State, actor: str, n: int) -> State:
    """Reserve the first n free slots for a writer, and after them those of the oldest records."""
    taken, rest = state.free[:n], state.free[n:]
    evicted = tuple(evictable(state)[: n - len(taken)]) if len(taken) < n else ()
    taken += evicted
    slots = list(state.slots)
    for number in taken:
        slots[number] = FILLING_SLOT
    after = state._replace(
        slots=tuple(slots),
        free=rest,
        fresh=min(state.fresh, len(rest)),
        filling=tuple(sorted((*state.filling, (actor, taken)))),
    )
    if not evicted:
        return after
    kept, holds = ranked(slots, state.holds)
    return after._replace(slots=kept, holds=holds, left=state.left.difference(evicted))


def published(bounds: Bounds, state: State, actor: str) -> State:
    """Make everything that a writer filled visible, at the tail."""
    slots = list(state.slots)
    youngest = newest(state)
    written = filling_of(state, actor)
    for place, number in enumerate(written, 1):
        slots[number] = Slot(_LIVE, 0, 0, youngest + place)
    if bounds.order == "epochs":
        state = state._replace(left=state.left.union(written))
    return settled(bounds, state, slots, state.holds, filling=_others(state.filling, actor))


def abandoned(state: State, actor: str) -> State:
    """Give back what a writer reserved, to the front of the free order."""
    given_up = filling_of(state, actor)
    slots = list(state.slots)
    for number in given_up:
        slots[number] = FREE_SLOT
    return state._replace(
        slots=tuple(slots),
        free=given_up + state.free,
        filling=_others(state.filling, actor),
    )


def drawn(bounds: Bounds, state: State, owner: str, kind: HoldKind, k: int) -> tuple[State, ...]:
    """Draw k records for an owner, or what there is: the oldest, or any, each choice a state."""
    there = sampleable(bounds, state)
    if bounds.order == "replacement":
        return tuple(
            copied_out(bounds, state, owner, kind, batch) for batch in product(there, repeat=k)
        )
    if bounds.order == "epochs":
        if begins_epoch(k, len(state.left), bounds.drop_last):
            state = next_epoch(bounds, state)
        left = sorted(state.left)
        return tuple(
            copied_out(bounds, state, owner, kind, batch)
            for batch in permutations(left, batch_rows(k, len(left)))
        )
    rows = batch_rows(k, len(there))
    if not bounds.fifo:
        return tuple(
            taken(bounds, state, owner, kind, batch) for batch in permutations(there, rows)
        )
    oldest = sorted(there, key=lambda number: state.slots[number].stamp)
    return (taken(bounds, state, owner, kind, oldest[:rows]),)


def taken(bounds: Bounds, state: State, owner: str, kind: HoldKind, batch: Sequence[int]) -> State:
    """Draw exactly these slots, in this order; what may be drawn again moves to the tail."""
    slots = list(state.slots)
    youngest = newest(state)
    for number in batch:
        _, uses, pins, stamp = slots[number]
        if is_sampleable(_LIVE, uses + 1, bounds.uses):
            youngest += 1
            stamp = youngest
        slots[number] = Slot(_LIVE, uses + 1, pins + 1, stamp)
    ages = tuple(state.slots[number].stamp for number in batch)
    hold = Hold(owner, kind, tuple(batch), ages, "gathering")
    return settled(bounds, state, slots, (*state.holds, hold))


def copied_out(
    bounds: Bounds, state: State, owner: str, kind: HoldKind, batch: Sequence[int]
) -> State:
    """Draw exactly these slots of an overwriting buffer; no record is used up or moves."""
    slots = list(state.slots)
    for number in set(batch):
        slots[number] = slots[number]._replace(pins=slots[number].pins + 1)
    epochs = bounds.order == "epochs"
    ages = tuple(slots[number].stamp if epochs else 0 for number in batch)
    return state._replace(
        slots=tuple(slots),
        holds=(*state.holds, Hold(owner, kind, tuple(batch), ages, "gathering")),
        left=state.left.difference(batch),
    )


def next_epoch(bounds: Bounds, state: State) -> State:
    """Begin an epoch: every record is left of it, and no hold can give one back to it."""
    forgetful = tuple(hold._replace(stamps=(0,) * len(hold.stamps)) for hold in state.holds)
    return state._replace(left=frozenset(sampleable(bounds, state)), holds=forgetful)


def handed(state: State, h: int, actor: str, kind: ReaderKind) -> State:
    """Make the prefetched batch of hold h the batch of a call, gathered or not."""
    return _with_hold(state, h, state.holds[h]._replace(owner=actor, kind=kind))


def gathered(bounds: Bounds, state: State, h: int, outcome: HoldState) -> State:
    """Note whether the batch of hold h could be gathered and transformed.

    In an overwriting buffer its records are pinned no more.
    """
    hold = state.holds[h]
    after = _with_hold(state, h, hold._replace(state=outcome))
    if not bounds.overwriting:
        return after
    slots = list(state.slots)
    pinned = _unpin(bounds, slots, hold)
    return _freed(bounds, after, slots, _spent(bounds, state, slots, pinned), after.holds)


def delivered(bounds: Bounds, state: State, h: int) -> State:
    """End a hold whose batch was handed over: what is spent becomes free."""
    slots = list(state.slots)
    return _ended(bounds, state, slots, h, _unpin(bounds, slots, state.holds[h]))


def returned(bounds: Bounds, state: State, h: int) -> State:
    """End a hold whose batch nobody got: its records may be drawn again, with their old ages.

    In an overwriting buffer they are left of the epoch again, if the hold remembers them.
    """
    hold = state.holds[h]
    slots = list(state.slots)
    if bounds.overwriting:
        there = [number for number, slot in enumerate(slots) if slot.phase == _LIVE]
        back = [n for n, age in zip(hold.slots, hold.stamps, strict=True) if age and n in there]
        state = state._replace(left=state.left.union(back))
        return _ended(bounds, state, slots, h, _unpin(bounds, slots, hold))
    for number, remembered in zip(hold.slots, hold.stamps, strict=True):
        phase, uses, pins, stamp = slots[number]
        if phase == _LIVE:
            slots[number] = Slot(phase, uses - 1, pins - 1, returned_stamp(stamp, remembered))
        else:
            slots[number] = Slot(phase, uses, pins - 1, stamp)
    return _ended(bounds, state, slots, h, hold.slots)


def copied(bounds: Bounds, state: State) -> State:
    """Let go the first slot that is still to be copied; after the last one the copy is over."""
    boundary = state.boundary
    number, rest = boundary.slots[0], boundary.slots[1:]
    state = state._replace(boundary=boundary._replace(slots=rest) if rest else NO_BOUNDARY)
    phase, uses, pins, _ = state.slots[number]
    if not becomes_free(phase, uses, bounds.uses, pins):
        return state
    return _freed(bounds, state, list(state.slots), [number], state.holds)


def recovered(bounds: Bounds, state: State, actor: str) -> State:
    """Take back everything that a dead actor, a process of its own, left.

    Its call, its filling slots, its holds, what it had prefetched, and what it was about to copy.
    Who dies while it loads leaves a buffer without its records, which is stopped.
    """
    state = without_ticket(state, actor)
    if filling_of(state, actor):
        state = abandoned(state, actor)
    h = 0
    while h < len(state.holds):
        if state.holds[h].owner == actor:
            state = returned(bounds, state, h)
        else:
            h += 1
    if state.boundary.actor == actor:
        if state.boundary.stage == "loading":
            state = state._replace(closing=Closing.STOPPED)
        while state.boundary.slots:
            state = copied(bounds, state)
        state = state._replace(boundary=NO_BOUNDARY)
    return state._replace(dead=state.dead - {actor})


def emptied(bounds: Bounds, state: State) -> State:
    """Throw away every record, and every prefetched batch that does not gather any more.

    Records that are still held go when their last hold does, those to be copied with their copy.
    """
    slots = list(state.slots)
    holds = state.holds
    if any(map(is_settled, holds)):
        for hold in filter(is_settled, holds):
            _unpin(bounds, slots, hold)
        holds = tuple(hold for hold in holds if not is_settled(hold))
    freed = []
    for number, slot in enumerate(slots):
        if slot.phase == _LIVE and slot.pins == 0 and number not in state.boundary.slots:
            freed.append(number)
        elif slot.phase == _LIVE:
            slots[number] = Slot(_DROPPED, 0, slot.pins, 0)
    return _freed(bounds, state, slots, freed, holds)._replace(left=NOTHING)


def newest(state: State) -> int:
    """Return the youngest age that anything has or remembers."""
    ages = [slot.stamp for slot in state.slots]
    for hold in state.holds:
        ages.extend(hold.stamps)
    return max(ages)


def settled(
    bounds: Bounds,
    state: State,
    slots: Iterable[Slot],
    holds: Holds,
    *,
    filling: Filling | None = None,
) -> State:
    """Return the state with these slots and holds, their ages ranked, or 0 under random order."""
    if bounds.aged:
        slots, holds = ranked(slots, holds)
    else:
        slots = tuple(
            Slot(slot.phase, slot.uses, slot.pins, 0) if slot.stamp else slot for slot in slots
        )
    return state._replace(
        slots=slots,
        holds=holds,
        filling=state.filling if filling is None else filling,
    )


def _with_hold(state: State, h: int, hold: Hold) -> State:
    return state._replace(holds=(*state.holds[:h], hold, *state.holds[h + 1 :]))


def _unpin(bounds: Bounds, slots: list[Slot], hold: Hold) -> tuple[int, ...]:
    """Take the pins of a hold away from the slots, and return which had one."""
    pinned = pinned_by(bounds, hold)
    for number in pinned:
        phase, uses, pins, stamp = slots[number]
        slots[number] = Slot(phase, uses, pins - 1, stamp)
    return pinned


def _ended(
    bounds: Bounds, state: State, slots: list[Slot], h: int, unpinned: Sequence[int]
) -> State:
    """Let hold h go, which has pinned these slots until now."""
    holds = state.holds[:h] + state.holds[h + 1 :]
    return _freed(bounds, state, slots, _spent(bounds, state, slots, unpinned), holds)


def _spent(bounds: Bounds, state: State, slots: list[Slot], unpinned: Sequence[int]) -> list[int]:
    """Return which of the slots that were just unpinned are free now, in batch order.

    What a capture has still to copy is not.
    """
    kept = state.boundary.slots
    return [
        number
        for number in unpinned
        if becomes_free(slots[number].phase, slots[number].uses, bounds.uses, slots[number].pins)
        and number not in kept
    ]


def _freed(
    bounds: Bounds, state: State, slots: list[Slot], freed: Sequence[int], holds: Holds
) -> State:
    """Put slots behind the used free ones and before those that were never used."""
    for number in freed:
        slots[number] = FREE_SLOT
    border = len(state.free) - state.fresh
    after = settled(bounds, state, slots, holds)
    return after._replace(free=(*state.free[:border], *freed, *state.free[border:]))


def _others(filling: Filling, actor: str) -> Filling:
    return tuple(entry for entry in filling if entry[0] != actor)
