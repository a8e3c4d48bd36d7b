"""What is true of every step: the predicates behind the step properties and the witnesses.

A step is (state, label, next state). Each predicate takes the bounds and a step. They compare the
two states slot by slot and believe nothing of the label but the name of the action and who acts,
so an action with a wrong effect does not get past them by having the right name.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.effects import newest
from forebay_spec.kernel import Closing, Phase, is_sampleable
from forebay_spec.state import (
    FREE_SLOT,
    Hold,
    Slot,
    State,
    Ticket,
    filling_of,
    sampleable,
    ticket_of,
)
from forebay_spec.verdicts import filling_slots, head_of

StepPredicate = Callable[[Bounds, State, Label, State], bool]
_FREE: Final = Phase.FREE
_FILLING: Final = Phase.FILLING
_LIVE: Final = Phase.LIVE


def call_of(before: State, label: Label) -> Ticket | None:
    """Return the call that a step is about: the one it makes, or the one that waits."""
    if label.name == "Arrive":
        actor, n = label.args
        assert isinstance(actor, str)
        assert isinstance(n, int)
        return Ticket("write", actor, n, n)
    if label.name == "Ask":
        actor, kind, k, m = label.args
        assert isinstance(actor, str)
        assert isinstance(k, int)
        assert isinstance(m, int)
        return Ticket("plain" if kind == "plain" else "lease", actor, k, m)
    if label.name in ("Admit", "Draw", "Expire", "Cancel", "Refuse"):
        return ticket_of(before, str(label.args[0]))
    return None


def ended_hold(before: State, label: Label) -> Hold | None:
    """Return the hold that a step ends, or None."""
    if label.name in ("Deliver", "Return"):
        h = label.args[0]
        assert isinstance(h, int)
        return before.holds[h]
    return None


def returned_holds(before: State, label: Label) -> tuple[Hold, ...]:
    """Return the holds whose records a step returns, in draw order."""
    if label.name == "Recover":
        return tuple(hold for hold in before.holds if hold.owner == label.args[0])
    hold = ended_hold(before, label) if label.name == "Return" else None
    return () if hold is None else (hold,)


def drawn_hold(before: State, after: State) -> Hold | None:
    """Return the hold that a step has drawn, or None."""
    return after.holds[-1] if len(after.holds) > len(before.holds) else None


def admitted_actors(before: State, after: State) -> set[str]:
    """Return who fills after a step and did not before."""
    return {owner for owner, _ in after.filling} - {owner for owner, _ in before.filling}


def no_overwrite(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A record that somebody may still draw, or holds, keeps its slot."""
    if before.slots is after.slots:
        return True
    held = {number for hold in after.holds for number in hold.slots}
    for number, (old, new) in enumerate(zip(before.slots, after.slots, strict=True)):
        if new.phase == _FILLING and (old.phase == _LIVE or old.pins > 0):
            return False
        if new.phase == _FREE and old.phase >= _LIVE:
            if number in held:
                return False
            needed = is_sampleable(old.phase, old.uses, bounds.uses)
            if needed and not (label.name == "Empty" and old.pins == 0):
                return False
    return True


def whole_batches(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Slots become live all at once with the rest of their batch, when it is published."""
    if before.slots is after.slots:
        return label.name != "Publish"
    fresh = {
        number
        for number, (old, new) in enumerate(zip(before.slots, after.slots, strict=True))
        if new.phase == _LIVE and old.phase != _LIVE
    }
    if label.name != "Publish":
        return not fresh
    writer = str(label.args[0])
    return fresh == set(filling_of(before, writer)) and not filling_of(after, writer)


def conservation(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Records come by Publish, go by being spent or by Empty, and come back when returned."""
    if before.slots is after.slots:
        return not returned_holds(before, label)
    hold = ended_hold(before, label)
    ended = hold.slots if hold else ()
    back = [number for hold in returned_holds(before, label) for number in hold.slots]
    new_hold = drawn_hold(before, after)
    drawn = new_hold.slots if new_hold else ()
    return all(
        _accounted(
            bounds, label.name, old, new, number in ended, back.count(number), number in drawn
        )
        for number, (old, new) in enumerate(zip(before.slots, after.slots, strict=True))
    )


def _accounted(
    bounds: Bounds, name: str, old: Slot, new: Slot, ended: bool, back: int, drawn: bool
) -> bool:
    """Tell whether what became of one slot, `back` uses of which return, is one of what may."""
    if old.phase < _LIVE:
        return new.phase < _LIVE or (name == "Publish" and new[:3] == (_LIVE, 0, 0))
    if old.phase == Phase.DROPPED:
        return new.phase == Phase.DROPPED or ((ended or back > 0) and new.phase == _FREE)
    if new.phase == _LIVE:
        if back and not is_sampleable(new.phase, new.uses, bounds.uses):
            return False
        return new.uses - old.uses == drawn - back
    if name == "Empty":
        return new.phase == (Phase.DROPPED if old.pins else _FREE)
    return name == "Deliver" and ended and old.uses == bounds.uses and new.phase == _FREE


def leaves_no_trace(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Calls that come to nothing change nothing, or only what the call itself had brought."""
    if label.name in ("Expire", "Cancel", "Refuse"):
        left = tuple(ticket for ticket in before.tickets if ticket.actor != label.args[0])
        return left != before.tickets and after == before._replace(tickets=left)
    if label.name == "Kill":
        return after == before._replace(dead=before.dead | {str(label.args[0])})
    if label.name == "Abandon":
        return _abandoned_cleanly(before, str(label.args[0]), after)
    if label.name in ("Arrive", "Ask"):
        call = call_of(before, label)
        assert call is not None
        served = admitted_actors(before, after) == {call.actor} or drawn_hold(before, after)
        queued = before._replace(tickets=(*before.tickets, call))
        return bool(served) or after in (before, queued)
    return True


def _abandoned_cleanly(before: State, writer: str, after: State) -> bool:
    """Tell whether a writer's slots became free and nothing else changed but the free order."""
    given_up = filling_of(before, writer)
    others = tuple(entry for entry in before.filling if entry[0] != writer)
    slots = tuple(
        FREE_SLOT if number in given_up else slot for number, slot in enumerate(before.slots)
    )
    kept = [number for number in after.free if number not in given_up]
    return (
        after == before._replace(slots=slots, filling=others, free=after.free)
        and kept == list(before.free)
        and set(given_up) <= set(after.free)
    )


def recovers_the_dead(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Recover leaves nothing of a dead actor, and to all others what they have."""
    if label.name != "Recover":
        return True
    x = label.args[0]
    others = [hold for hold in before.holds if hold.owner != x]
    return (
        x not in after.dead
        and after.tickets == tuple(ticket for ticket in before.tickets if ticket.actor != x)
        and after.filling == tuple(entry for entry in before.filling if entry[0] != x)
        and [hold._replace(stamps=()) for hold in after.holds]
        == [hold._replace(stamps=()) for hold in others]
        and _order(after.holds) == _order(others)
    )


def _order(holds: Iterable[Hold]) -> list[int]:
    """Return the ages that holds remember, numbered among themselves; ranks may move together."""
    ages = [stamp for hold in holds for stamp in hold.stamps]
    ordered = sorted(set(ages))
    return [ordered.index(age) for age in ages]


def fifo_admission(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A writer is admitted only when no older writer waits."""
    if before.filling is after.filling:
        return True
    admitted = admitted_actors(before, after)
    head = head_of(before, True)
    return not admitted or head is None or admitted == {head.actor}


def fifo_sampling(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A reader draws only when no older reader waits."""
    hold = drawn_hold(before, after)
    if hold is None:
        return True
    head = head_of(before, False)
    return head is None or hold.owner == head.actor


def fifo_order(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Under fifo a draw takes the oldest records, and only Publish and draws make one younger."""
    hold = drawn_hold(before, after)
    if not bounds.fifo or (hold is None and before.slots is after.slots):
        return True
    if hold is not None:
        oldest = sorted(sampleable(bounds, before), key=lambda number: before.slots[number].stamp)
        if list(hold.slots) != oldest[: len(hold.slots)]:
            return False
    live = [number for number, slot in enumerate(after.slots) if slot.phase == _LIVE]
    ages = _ages_due(bounds, before, label, after)
    live.sort(key=lambda number: after.slots[number].stamp)
    return all(ages[older] < ages[younger] for older, younger in pairwise(live))


def _ages_due(bounds: Bounds, before: State, label: Label, after: State) -> list[int]:
    """Return the ages, by slot, in the order of which the records have to be after a step."""
    ages = [slot.stamp for slot in before.slots]
    tail = 1 + newest(before)
    moved = filling_of(before, str(label.args[0])) if label.name == "Publish" else ()
    drawn = drawn_hold(before, after)
    if drawn is not None:
        again = sampleable(bounds, after)
        moved = tuple(number for number in drawn.slots if number in again)
    for place, number in enumerate(moved):
        ages[number] = tail + place
    for ended in returned_holds(before, label):
        for number, remembered in zip(ended.slots, ended.stamps, strict=True):
            ages[number] = min(ages[number], remembered)
    return ages


def served_whole(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A draw has what was asked for, or draining has ended what could come."""
    hold = drawn_hold(before, after)
    if hold is None:
        return True
    call = call_of(before, label)
    if call is None:
        return False
    ended = before.closing == Closing.DRAINING and filling_slots(before) == 0
    return (1 if ended else call.m) <= len(hold.slots) <= call.n
