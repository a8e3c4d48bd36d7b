"""What is true of the steps of overwriting buffers: which records go, and which are drawn.

As in `forebay_spec.steps`; here is what a consuming buffer has nothing of.
"""

from typing import Final

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.changes import call_of, drawn_hold, returned_holds
from forebay_spec.kernel import Phase, begins_epoch, is_evictable
from forebay_spec.state import State, filling_of
from forebay_spec.steps import may_draw

_LIVE: Final = Phase.LIVE


def evicted_slots(before: State, after: State) -> list[int]:
    """Return the slots whose records a step has overwritten."""
    if before.filling is after.filling:
        return []
    return [
        number
        for number, (old, new) in enumerate(zip(before.slots, after.slots, strict=True))
        if old.phase == _LIVE and new.phase == Phase.FILLING
    ]


def oldest_evicted(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Only a writer for whom the free slots do not do evicts, and only the oldest that it may."""
    evicted = evicted_slots(before, after)
    if not evicted:
        return True
    if not bounds.overwriting or label.name not in ("Admit", "Arrive") or after.free:
        return False
    could_go = {
        number: slot.stamp
        for number, slot in enumerate(before.slots)
        if is_evictable(slot.phase, slot.pins, number in before.boundary.slots)
    }
    stay = [age for number, age in could_go.items() if number not in evicted]
    return all(
        number in could_go and all(could_go[number] < age for age in stay) for number in evicted
    )


def rows_wanted(bounds: Bounds, before: State, label: Label) -> int:
    """Return how many records a step that draws would have, at most."""
    call = call_of(before, label)
    return bounds.batch_size if call is None else call.n


def once_per_epoch(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A draw takes what was left of the epoch, or begins one anew.

    A slot joins what is left when it is published, restored, or given back by who remembers it, and
    at no other time; it stays until it is drawn or its record is gone.
    """
    if bounds.order != "epochs":
        return True
    hold = drawn_hold(before, label, after)
    if hold is not None:
        k = rows_wanted(bounds, before, label)
        there = may_draw(bounds, before, k)
        begun = begins_epoch(k, len(before.left), bounds.drop_last)
        return (
            len(set(hold.slots)) == len(hold.slots)
            and there.issuperset(hold.slots)
            and after.left == there.difference(hold.slots)
            and not (begun and any(any(other.stamps) for other in after.holds[:-1]))
        )
    if label.name == "Restore":
        return True
    live = {number for number, slot in enumerate(after.slots) if slot.phase == _LIVE}
    joins = set(filling_of(before, str(label.args[0]))) if label.name == "Publish" else set()
    for ended in returned_holds(bounds, before, label):
        joins.update(n for n, age in zip(ended.slots, ended.stamps, strict=True) if age)
    return after.left == (before.left | joins) & live
