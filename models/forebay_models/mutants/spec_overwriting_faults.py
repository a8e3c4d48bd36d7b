"""What planted faults of overwriting buffers are made of.

As in `spec_faults`: each is wrong in one respect and uses what is right for the rest.
"""

from collections.abc import Sequence
from dataclasses import replace

from forebay_spec.boundary import captured, restored
from forebay_spec.bounds import Bounds
from forebay_spec.effects import abandoned, admitted, drawn, gathered, published, returned
from forebay_spec.kernel import Phase, Verdict, begins_epoch, never_fits
from forebay_spec.state import (
    NO_BOUNDARY,
    NOTHING,
    HoldKind,
    State,
    evictable,
    filling_of,
    is_stale,
    ranked,
)
from forebay_spec.verdicts import verdict, waiting

# Eviction.


def _unpinned(state: State) -> State:
    """Return the state as it is seen by who looks at no pins."""
    return state._replace(slots=tuple(slot._replace(pins=0) for slot in state.slots))


def _overwriting(state: State, actor: str, n: int, order: Sequence[int]) -> State:
    """Admit a writer; where free slots do not do, records go in this order."""
    gone = order[: max(0, n - len(state.free))]
    after = admitted(state._replace(free=(*state.free, *gone)), actor, n)
    slots, holds = ranked(after.slots, after.holds)
    return after._replace(slots=slots, holds=holds, left=state.left.difference(gone))


def admit_over_pinned(state: State, actor: str, n: int) -> State:
    """Overwrite the oldest records, whoever gathers them."""
    return _overwriting(state, actor, n, evictable(_unpinned(state)))


def blind_to_pins(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge writers as if nothing were gathered."""
    writes = waiting(state, actor).kind == "write"
    return verdict(bounds, _unpinned(state) if writes else state, actor, expired)


def admit_over_youngest(state: State, actor: str, n: int) -> State:
    """Overwrite the youngest records first."""
    return _overwriting(state, actor, n, evictable(state)[::-1])


def admit_over_copied(state: State, actor: str, n: int) -> State:
    """Overwrite the oldest records, though a capture has still to copy them."""
    return _overwriting(state, actor, n, evictable(state._replace(boundary=NO_BOUNDARY)))


def blind_to_copies(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge writers as if nothing had still to be copied."""
    writes = waiting(state, actor).kind == "write"
    return verdict(
        bounds, state._replace(boundary=NO_BOUNDARY) if writes else state, actor, expired
    )


def admit_and_leave(state: State, actor: str, n: int) -> State:
    """Evict, but leave what is left of the epoch alone."""
    return admitted(state, actor, n)._replace(left=state.left)


def admit_and_remember(state: State, actor: str, n: int) -> State:
    """Evict, but let holds remember the ages of what is gone."""
    return admitted(state, actor, n)._replace(holds=state.holds)


def abandon_and_bring_back(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    """Give up a batch, and let the records be there again that were in its slots."""
    return (published(bounds, state, p),)


def abandon_first_slot(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    """Give up a batch, but put only its first slot into the free order."""
    first = filling_of(state, p)[:1]
    return (abandoned(state, p)._replace(free=(*first, *state.free)),)


# Holds.


def ready_and_pinned(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """Note that a batch was gathered, and keep its records pinned."""
    hold = state.holds[h]
    if is_stale(state, hold):
        return (returned(bounds, state, h),)
    return (gathered(bounds, state, h, "ready")._replace(slots=state.slots),)


def draw_with_a_pin_each(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Draw with replacement, and pin a slot as often as the batch has it."""
    return tuple(
        after._replace(
            slots=tuple(
                slot._replace(pins=old.pins + after.holds[-1].slots.count(number))
                for number, (old, slot) in enumerate(zip(state.slots, after.slots, strict=True))
            )
        )
        for after in drawn(bounds, state, actor, kind, k)
    )


def draw_what_is_there(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Draw with replacement, but no more than there are records."""
    there = sum(slot.phase == Phase.LIVE for slot in state.slots)
    return drawn(bounds, state, actor, kind, min(k, there))


def counting_own_leases(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge as one should, but let own leases keep their records from being drawn."""
    found, ticket = verdict(bounds, state, actor, expired), waiting(state, actor)
    leased = {number for hold in state.holds if hold.owner == actor for number in hold.slots}
    stuck = never_fits(ticket.m, bounds.capacity, len(leased))
    return Verdict.MUTUAL_WAIT if stuck and found == Verdict.WAIT else found


# Epochs.


def draw_and_leave(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Draw of an epoch, but leave it what was drawn."""
    return tuple(
        after._replace(left=after.left.union(after.holds[-1].slots))
        for after in drawn(bounds, state, actor, kind, k)
    )


def draw_and_remember(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Begin an epoch, but let the holds of the one before remember their ages."""
    return tuple(
        after._replace(holds=(*state.holds, after.holds[-1]))
        for after in drawn(bounds, state, actor, kind, k)
    )


def draw_the_last(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Draw the last batch of an epoch, however short it is."""
    return drawn(replace(bounds, drop_last=False), state, actor, kind, k)


def draw_no_short_batch(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Begin an epoch wherever a batch would be short."""
    if begins_epoch(k, len(state.left), True):
        state = state._replace(left=NOTHING)
    return drawn(bounds, state, actor, kind, k)


def publish_for_the_next(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    """Publish a batch, but draw of it only in the next epoch."""
    return (published(bounds, state, p)._replace(left=state.left),)


def return_for_the_next(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """Return a batch, but draw of it only in the next epoch."""
    return (returned(bounds, state, h)._replace(left=state.left),)


def capture_without_left(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Capture, but forget what is left of the epoch."""
    after = captured(bounds, state, x)
    assert after.saved is not None
    return (after._replace(saved=after.saved._replace(left=NOTHING)),)


def restore_without_left(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Restore, but begin an epoch."""
    return (restored(bounds, state, x)._replace(left=NOTHING),)
