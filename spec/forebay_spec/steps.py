"""What is true of every step: the predicates behind the step properties and the witnesses.

A step is (state, label, next state). Each predicate takes the bounds and a step. They compare the
two states slot by slot and believe nothing of the label but the name of the action and who acts,
so an action with a wrong effect does not get past them by having the right name.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.changes import (
    admitted_actors,
    call_of,
    drawn_hold,
    ended_hold,
    owners,
    queue,
    returned_holds,
    taken_hold,
)
from forebay_spec.effects import newest
from forebay_spec.kernel import Closing, Phase, begins_epoch, is_sampleable
from forebay_spec.state import (
    FREE_SLOT,
    NO_BOUNDARY,
    Hold,
    Slot,
    State,
    filling_of,
    is_settled,
    pinned_by,
    sampleable,
)
from forebay_spec.verdicts import filling_slots, head_of

StepPredicate = Callable[[Bounds, State, Label, State], bool]
_FREE: Final = Phase.FREE
_FILLING: Final = Phase.FILLING
_LIVE: Final = Phase.LIVE


def no_overwrite(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A record that somebody may still draw, or holds, keeps its slot, but for evicted ones."""
    if before.slots is after.slots:
        return True
    held = {number for hold in after.holds for number in pinned_by(bounds, hold)}
    for number, (old, new) in enumerate(zip(before.slots, after.slots, strict=True)):
        to_copy = number in before.boundary.slots
        needed = old.pins > 0 or to_copy or (old.phase == _LIVE and not bounds.overwriting)
        if new.phase == _FILLING and needed:
            return False
        if new.phase == _FREE and old.phase >= _LIVE and label.name != "Load":
            if number in held or number in after.boundary.slots:
                return False
            needed = is_sampleable(old.phase, old.uses, bounds.uses)
            if needed and not (
                label.name == "Empty" and old.pins == _queued(bounds, before, number)
            ):
                return False
    return True


def _queued(bounds: Bounds, state: State, number: int) -> int:
    """Count the pins of a slot that go with the queues."""
    return sum(number in pinned_by(bounds, hold) for hold in state.holds if is_settled(hold))


def whole_batches(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Slots become live all at once with the rest of their batch, or all by Restore."""
    if label.name == "Restore":
        return True
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
    """Records come by Publish and Restore, go by being spent or evicted, by Empty or by Load, and
    come back when returned."""
    if before.slots is after.slots:
        return bounds.overwriting or not returned_holds(bounds, before, label)
    if label.name in ("Load", "Restore"):
        return label.name == "Restore" or all(slot == FREE_SLOT for slot in after.slots)
    if bounds.overwriting:
        return all(
            _kept_or_gone(label.name, old, new)
            for old, new in zip(before.slots, after.slots, strict=True)
        )
    hold = ended_hold(before, label)
    ended = hold.slots if hold else ()
    back = [number for hold in returned_holds(bounds, before, label) for number in hold.slots]
    new_hold = drawn_hold(before, label, after)
    drawn = new_hold.slots if new_hold else ()
    copied = copied_slots(before, label)
    return all(
        _accounted(
            bounds,
            label.name,
            old,
            new,
            let_go=number in ended or number in copied,
            back=back.count(number),
            drawn=number in drawn,
        )
        for number, (old, new) in enumerate(zip(before.slots, after.slots, strict=True))
    )


def copied_slots(before: State, label: Label) -> tuple[int, ...]:
    """Return the slots that a step lets go of although nobody copies them again."""
    if label.name == "CaptureDone":
        return before.boundary.slots[:1]
    dead = label.name == "Recover" and label.args[0] == before.boundary.actor
    return before.boundary.slots if dead else ()


def _accounted(
    bounds: Bounds, name: str, old: Slot, new: Slot, *, let_go: bool, back: int, drawn: bool
) -> bool:
    """Tell whether what became of one slot, `back` uses of which return, is one of what may."""
    if old.phase < _LIVE:
        return new.phase < _LIVE or (name == "Publish" and new[:3] == (_LIVE, 0, 0))
    if old.phase == Phase.DROPPED:
        return new.phase == Phase.DROPPED or ((let_go or back > 0) and new.phase == _FREE)
    if new.phase == _LIVE:
        if back and not is_sampleable(new.phase, new.uses, bounds.uses):
            return False
        return new.uses - old.uses == drawn - back
    if name == "Empty":
        return new.phase in (Phase.DROPPED, _FREE)
    spent = name in ("Deliver", "CaptureDone", "Recover") and old.uses == bounds.uses
    return spent and let_go and back == 0 and new.phase == _FREE


def _kept_or_gone(name: str, old: Slot, new: Slot) -> bool:
    """Tell whether what became of one slot of an overwriting buffer is one of what may."""
    if old.phase < _LIVE:
        return new.phase < _LIVE or (name == "Publish" and new[:3] == (_LIVE, 0, 0))
    if old.phase == Phase.DROPPED:
        ends = ("Ready", "Fail", "Return", "Recover", "CaptureDone")
        return new.phase == Phase.DROPPED or (name in ends and new.phase == _FREE)
    if new.phase == _LIVE:
        return new.uses == old.uses
    if new.phase == _FILLING:
        return name in ("Admit", "Arrive")
    return name == "Empty"


def leaves_no_trace(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Calls that come to nothing change nothing, or only what the call itself had brought."""
    if label.name in ("Expire", "Cancel", "Refuse"):
        left = tuple(ticket for ticket in before.tickets if ticket.actor != label.args[0])
        return left != before.tickets and after == before._replace(tickets=left)
    if label.name in ("CaptureAsk", "RestoreAsk", "Reject"):
        return after == before._replace(boundary=after.boundary)
    if label.name == "Kill":
        return after == before._replace(dead=before.dead | {str(label.args[0])})
    if label.name == "Abandon":
        return _abandoned_cleanly(before, str(label.args[0]), after)
    if label.name in ("Arrive", "Ask"):
        call = call_of(before, label)
        assert call is not None
        drawn = drawn_hold(before, label, after) or taken_hold(before, after)
        served = admitted_actors(before, after) == {call.actor} or drawn
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


def takes_the_oldest(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Who takes, takes the oldest of the queue; Refill and Restore alone make a hold prefetched."""
    if not bounds.prefetch or before.holds is after.holds:
        return True
    if label.name not in ("Refill", "Restore") and _batches(after) - _batches(before):
        return False
    took, call = taken_hold(before, after), call_of(before, label)
    if label.name not in ("Ask", "Draw"):
        return took is None
    assert call is not None
    waits = queue(before, bounds.process(call.actor))
    if took is None:
        return not waits or call.n != bounds.batch_size
    if not waits or took is not waits[0]:
        return False
    own = took._replace(owner=call.actor, kind="plain" if call.kind == "plain" else "lease")
    holds = tuple(own if hold is took else hold for hold in before.holds)
    tickets = tuple(ticket for ticket in before.tickets if ticket.actor != call.actor)
    return after == before._replace(holds=holds, tickets=tickets)


def _batches(state: State) -> Counter[tuple[str, tuple[int, ...]]]:
    """Count the prefetched batches of each process with each slots."""
    return Counter((hold.owner, hold.slots) for hold in state.holds if hold.kind == "prefetched")


def recovers_the_dead(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Recover leaves nothing of a dead actor, and to all others what they have."""
    if label.name != "Recover":
        return True
    x = str(label.args[0])
    others = [hold for hold in before.holds if hold.owner not in owners(bounds, x)]
    boundary = NO_BOUNDARY if before.boundary.actor == x else before.boundary
    return (
        x not in after.dead
        and after.boundary == boundary
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
    hold = drawn_hold(before, label, after)
    if hold is None:
        return True
    head = head_of(before, False)
    return head is None or (hold.kind != "prefetched" and hold.owner == head.actor)


def fifo_order(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Under fifo a draw takes the oldest records, and only Publish and draws make one younger."""
    hold = drawn_hold(before, label, after)
    if not bounds.fifo or (hold is None and before.slots is after.slots):
        return True
    if label.name == "Restore":
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
    drawn = drawn_hold(before, label, after)
    if drawn is not None:
        again = sampleable(bounds, after)
        moved = tuple(number for number in drawn.slots if number in again)
    for place, number in enumerate(moved):
        ages[number] = tail + place
    for ended in returned_holds(bounds, before, label):
        for number, remembered in zip(ended.slots, ended.stamps, strict=True):
            ages[number] = min(ages[number], remembered)
    return ages


def served_whole(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A draw has what was asked for, or draining has ended what could come."""
    hold = drawn_hold(before, label, after)
    if bounds.overwriting:
        return _served_as_ordered(bounds, before, label, hold, taken_hold(before, after))
    if hold is None:
        took = taken_hold(before, after) if bounds.prefetch else None
        asked = call_of(before, label)
        return took is None or (asked is not None and len(took.slots) == asked.n)
    if hold.kind == "prefetched":
        return len(hold.slots) == bounds.batch_size
    call = call_of(before, label)
    if call is None:
        return False
    ended = before.closing == Closing.DRAINING and filling_slots(before) == 0
    return (1 if ended else call.m) <= len(hold.slots) <= call.n


def _served_as_ordered(
    bounds: Bounds, before: State, label: Label, drawn: Hold | None, took: Hold | None
) -> bool:
    """Tell whether a batch of an overwriting buffer is as large as its order makes it."""
    call = call_of(before, label)
    if drawn is None:
        return took is None or (call is not None and _fits(bounds, len(took.slots), call.n))
    if drawn.kind == "prefetched":
        k = m = bounds.batch_size
    elif call is not None:
        k, m = call.n, call.m
    else:
        return False
    ended = before.closing == Closing.DRAINING and filling_slots(before) == 0
    due = k if bounds.order == "replacement" else min(k, len(may_draw(bounds, before, k)))
    return len(drawn.slots) == due and len(sampleable(bounds, before)) >= (1 if ended else m)


def _fits(bounds: Bounds, rows: int, k: int) -> bool:
    """Tell whether a batch that is taken may have so many rows; an epoch may end in one."""
    return rows == k or (bounds.order == "epochs" and rows < k)


def may_draw(bounds: Bounds, before: State, k: int) -> frozenset[int]:
    """Return which slots a draw of k may take: under epochs what is left, or all anew."""
    everything = frozenset(sampleable(bounds, before))
    again = bounds.order == "replacement" or begins_epoch(k, len(before.left), bounds.drop_last)
    return everything if again else before.left
