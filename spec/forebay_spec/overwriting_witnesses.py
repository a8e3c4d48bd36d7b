"""What must be able to happen to overwriting buffers.

As in `forebay_spec.witnesses`; the page on the state machine has all of them in one list.
"""

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.changes import drawn_hold, ended_hold
from forebay_spec.kernel import Phase, begins_epoch
from forebay_spec.overwriting_steps import evicted_slots, rows_wanted
from forebay_spec.state import State, is_ready_lease, room, sampleable
from forebay_spec.verdicts import head_of


def evicted(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A writer is admitted that overwrites a record."""
    return bool(evicted_slots(before, after))


def evicted_past_pinned(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A writer overwrites a record, since an older one is being gathered."""
    pinned = [slot.stamp for slot in before.slots if slot.phase == Phase.LIVE and slot.pins > 0]
    gone = [before.slots[number].stamp for number in evicted_slots(before, after)]
    return bool(pinned and gone) and min(pinned) < max(gone)


def evicted_while_leased(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A record is overwritten that somebody has in a lease."""
    leased = {number for hold in before.holds if is_ready_lease(hold) for number in hold.slots}
    return not leased.isdisjoint(evicted_slots(before, after))


def evicted_while_copying(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A record is overwritten while a snapshot still has others to copy."""
    return bool(before.boundary.slots) and bool(evicted_slots(before, after))


def writer_waits_for_gather(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A writer of an overwriting buffer waits for records that are being gathered."""
    if not bounds.overwriting or all(hold.state != "gathering" for hold in after.holds):
        return False
    head = head_of(after, True)
    return head is not None and room(bounds, after) < head.n


def drawn_twice(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A batch has a record twice."""
    hold = drawn_hold(before, label, after)
    return hold is not None and len(set(hold.slots)) < len(hold.slots)


def epoch_ends(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A batch is short since an epoch has no more, though there are more records."""
    hold = drawn_hold(before, label, after)
    if not bounds.overwriting or hold is None:
        return False
    rows, there = len(hold.slots), len(sampleable(bounds, before))
    return rows < rows_wanted(bounds, before, label) and rows < there


def new_epoch(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """An epoch begins while a batch of the one before could still be given back."""
    return _begins(bounds, before, label, after) and any(any(hold.stamps) for hold in before.holds)


def _begins(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    if bounds.order != "epochs" or drawn_hold(before, label, after) is None:
        return False
    k = rows_wanted(bounds, before, label)
    return begins_epoch(k, len(before.left), bounds.drop_last)


def back_in_epoch(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A batch is given back, and its records are left of the epoch again."""
    return label.name == "Return" and not after.left <= before.left


def too_late_for_epoch(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A batch is given back, and a record of it is there but not left of the epoch."""
    hold = ended_hold(before, label)
    if bounds.order != "epochs" or label.name != "Return" or hold is None:
        return False
    there = {number for number in hold.slots if after.slots[number].phase == Phase.LIVE}
    return not there <= after.left


def last_dropped(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """An epoch begins although something is left of the one before."""
    return bool(before.left) and _begins(bounds, before, label, after)


def restored_left(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A buffer is restored in the middle of an epoch."""
    return label.name == "Restore" and 0 < len(after.left) < len(sampleable(bounds, after))
