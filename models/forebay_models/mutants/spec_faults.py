"""What planted faults are made of: effects, guards and judges that are wrong in one respect each.

They stand beside the right ones of `forebay_spec` and use them wherever they are not wrong, so that
a fault is one mistake and not another machine.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

from forebay_spec.actions import ACTIONS, Args
from forebay_spec.bounds import Bounds
from forebay_spec.effects import (
    abandoned,
    admitted,
    delivered,
    drawn,
    newest,
    published,
    recovered,
    returned,
    settled,
    taken,
    without_ticket,
)
from forebay_spec.kernel import Closing, Phase, Verdict, batch_rows
from forebay_spec.state import (
    FREE_SLOT,
    HoldKind,
    State,
    filling_of,
    ranked,
    sampleable,
    ticket_of,
)
from forebay_spec.verdicts import head_of, misfit, verdict, waiting

# Effects that are wrong.


def publish_first(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    """Make the first record of a batch visible; the others go on being filled."""
    slots = filling_of(state, p)
    alone = state._replace(filling=((p, slots[:1]),))
    after = published(bounds, alone, p)
    rest = ((p, slots[1:]),) if len(slots) > 1 else ()
    others = tuple(entry for entry in state.filling if entry[0] != p)
    return (after._replace(filling=tuple(sorted((*others, *rest)))),)


def abandon_and_lose(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    """Give up a batch, but forget its slots."""
    return (abandoned(state, p)._replace(free=state.free),)


def no_effect(bounds: Bounds, state: State, *args: str | int) -> tuple[State, ...]:
    """Change nothing."""
    return (state,)


def return_as_delivered(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """End a failed hold as if its batch had been handed over."""
    end = delivered if state.holds[h].state == "failed" else returned
    return (end(bounds, state, h),)


def return_to_tail(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """End a hold and make its records the youngest."""
    batch = state.holds[h].slots
    after = returned(bounds, state, h)
    slots = list(after.slots)
    for place, number in enumerate(batch, newest(after) + 1):
        if slots[number].phase == Phase.LIVE:
            slots[number] = slots[number]._replace(stamp=place)
    return (settled(bounds, after, slots, after.holds),)


def return_without_unpinning(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """End a hold, but leave its pins where they were."""
    after = returned(bounds, state, h)
    pins = {number: state.slots[number].pins for number in state.holds[h].slots}
    slots = tuple(
        slot._replace(pins=pins.get(number, slot.pins)) for number, slot in enumerate(after.slots)
    )
    return (after._replace(slots=slots),)


def deliver_and_free(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """End a hold and free what is spent, whoever else may hold it."""
    after = delivered(bounds, state, h)
    freed = [
        number
        for number in state.holds[h].slots
        if after.slots[number].phase == Phase.LIVE and after.slots[number].uses == bounds.uses
    ]
    slots = [FREE_SLOT if number in freed else slot for number, slot in enumerate(after.slots)]
    border = len(after.free) - after.fresh
    free = (*after.free[:border], *freed, *after.free[border:])
    return (settled(bounds, after, slots, after.holds)._replace(free=free),)


def draw_youngest(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Draw the youngest records instead of the oldest."""
    there = sampleable(bounds, state)
    there.sort(key=lambda number: -state.slots[number].stamp)
    return (taken(bounds, state, actor, kind, there[: batch_rows(k, len(there))]),)


def draw_with_replacement(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Draw at random, but look at each record of the batch by itself."""
    there = sampleable(bounds, state)
    batches = product(there, repeat=batch_rows(k, len(there)))
    return tuple(taken(bounds, state, actor, kind, batch) for batch in batches)


def recover_and_leave_ticket(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor, but leave its call among those who wait."""
    return (recovered(bounds, state, x)._replace(tickets=state.tickets),)


def recover_and_leave_filling(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor, but leave it the slots that it was filling."""
    others = tuple(entry for entry in state.filling if entry[0] != x)
    after = recovered(bounds, state._replace(filling=others), x)
    return (after._replace(filling=state.filling),)


def recover_and_publish(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor, and publish the batch that it was writing."""
    if filling_of(state, x):
        state = published(bounds, state, x)
    return (recovered(bounds, state, x),)


def recover_as_delivered(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor as if its batches had been handed over."""
    for h in reversed(_holds_of(state, x)):
        state = delivered(bounds, state, h)
    return (recovered(bounds, state, x),)


def recover_to_tail(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor and make its records the youngest."""
    for h in reversed(_holds_of(state, x)):
        (state,) = return_to_tail(bounds, state, h)
    return (recovered(bounds, state, x),)


def _holds_of(state: State, x: str) -> list[int]:
    return [h for h, hold in enumerate(state.holds) if hold.owner == x]


# Guards that are wrong.


def never(bounds: Bounds, state: State, *args: str | int) -> bool:
    """Let an action never happen."""
    return False


def who_wait_or_fill(bounds: Bounds, state: State) -> list[Args]:
    """Return those who wait, and those who fill."""
    tickets = [(ticket.actor,) for ticket in state.tickets]
    return [*tickets, *((p,) for p, _ in state.filling)]


def cancelled_wherever(bounds: Bounds, state: State, x: str) -> bool:
    """Tell whether a flag is set for somebody who waits or fills."""
    if filling_of(state, x):
        return bounds.token(x) in state.cancelled
    return ACTIONS["Cancel"].enabled(bounds, state, x)


def leave_or_give_up(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Take a ticket off the list, or the reserved slots away."""
    return (abandoned(state, x) if filling_of(state, x) else without_ticket(state, x),)


def refused_unless_reader_closed(bounds: Bounds, state: State, x: str) -> bool:
    """Refuse as one should, but never a reader of a closed buffer."""
    ticket = ticket_of(state, x)
    forgotten = ticket is not None and ticket.kind != "write" and state.closing != Closing.OPEN
    return not forgotten and ACTIONS["Refuse"].enabled(bounds, state, x)


# Judges that are wrong.


def _evictable(state: State) -> State:
    """Return the state as a writer sees it that takes unheld records for free space."""
    old = [n for n, slot in enumerate(state.slots) if slot.phase == Phase.LIVE and slot.pins == 0]
    old.sort(key=lambda number: state.slots[number].stamp)
    return state._replace(free=(*state.free, *old))


def overwriting(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge writers as if unheld records were free slots."""
    writes = waiting(state, actor).kind == "write"
    return verdict(bounds, _evictable(state) if writes else state, actor, expired)


def admit_over_records(state: State, actor: str, n: int) -> State:
    """Reserve free slots and, where they do not do, those of the oldest unheld records."""
    after = admitted(_evictable(state), actor, n)
    evictable = [number for number in after.free if after.slots[number].phase == Phase.LIVE]
    slots, holds = ranked(after.slots, after.holds)
    free = tuple(number for number in after.free if number not in evictable)
    fresh = min(state.fresh, len(free))
    return after._replace(slots=slots, holds=holds, free=free, fresh=fresh)


@cache
def _wider(bounds: Bounds) -> Bounds:
    return replace(bounds, name=f"{bounds.name}, one use more", uses=bounds.uses + 1)


def counting_wrong(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge as if a record had one use more."""
    return verdict(_wider(bounds), state, actor, expired)


def draw_once_more(
    bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
) -> tuple[State, ...]:
    """Draw as if a record had one use more."""
    return drawn(_wider(bounds), state, actor, kind, k)


def barging(writes: bool) -> Callable[[Bounds, State, str, bool], Verdict]:
    """Return a judge who looks at a call of this kind as if it were the oldest."""

    def judge(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
        ticket = waiting(state, actor)
        if (ticket.kind == "write") == writes:
            others = tuple(other for other in state.tickets if other is not ticket)
            in_front = state._replace(tickets=(ticket, *others))
            if verdict(bounds, in_front, actor, expired) == Verdict.SERVE:
                return Verdict.SERVE
        return verdict(bounds, state, actor, expired)

    return judge


def overlooking(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge as one should, but see no mutual wait."""
    found = verdict(bounds, state, actor, expired)
    if found == Verdict.MUTUAL_WAIT and not misfit(bounds, state, waiting(state, actor)):
        return Verdict.TIMEOUT if expired else Verdict.WAIT
    return found


def needing_both_kinds(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge as one should, but see no mutual wait of one kind alone."""
    if head_of(state, True) and head_of(state, False):
        return verdict(bounds, state, actor, expired)
    return overlooking(bounds, state, actor, expired)


def blind_to_flags(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge as if no flag were set."""
    return verdict(bounds, state._replace(cancelled=frozenset()), actor, expired)


def content_with_one(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge readers as if one record would do."""
    tickets = tuple(
        ticket if ticket.kind == "write" else ticket._replace(m=1) for ticket in state.tickets
    )
    return verdict(bounds, state._replace(tickets=tickets), actor, expired)


def wanting_all(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge readers as if draining changed nothing about what will do."""
    ticket = waiting(state, actor)
    found = verdict(bounds, state, actor, expired)
    short = ticket.kind != "write" and len(sampleable(bounds, state)) < ticket.m
    if found == Verdict.SERVE and short:
        return Verdict.TIMEOUT if expired else Verdict.WAIT
    return found


def heedless_of_the_dead(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge mutual waits as if nobody were dead."""
    return verdict(bounds, state._replace(dead=frozenset()), actor, expired)
