"""What planted faults of queues, captures and restores are made of.

As in `spec_faults`: each is wrong in one respect and uses what is right for the rest.
"""

from forebay_spec.actions import ACTIONS
from forebay_spec.boundary import captured, loaded, restored
from forebay_spec.bounds import Bounds, ReaderKind
from forebay_spec.effects import (
    copied,
    delivered,
    drawn,
    gathered,
    handed,
    published,
    recovered,
    returned,
)
from forebay_spec.kernel import Closing, Verdict
from forebay_spec.state import NO_BOUNDARY, State, is_settled, sampleable
from forebay_spec.verdicts import verdict

# Queues.


def ready_though_stale(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """Note that a batch could be gathered, whatever became of its records."""
    return (gathered(bounds, state, h, "ready"),)


def take_youngest(state: State, h: int, actor: str, kind: ReaderKind) -> State:
    """Take the youngest batch of the queue that begins with hold h."""
    owner = state.holds[h].owner
    ahead = [
        n for n, hold in enumerate(state.holds) if hold.kind == "prefetched" and hold.owner == owner
    ]
    return handed(state, ahead[-1], actor, kind)


def ask_past_the_queue(
    bounds: Bounds, state: State, c: str, kind: ReaderKind, k: int, m: int
) -> tuple[State, ...]:
    """Draw for a call, if there are records and nobody waits, before its queue is looked at."""
    readers = [ticket for ticket in state.tickets if ticket.kind != "write"]
    if not readers and len(sampleable(bounds, state)) >= m and state.closing == Closing.OPEN:
        return drawn(bounds, state, c, kind, k)
    return ACTIONS["Ask"].apply(bounds, state, c, kind, k, m)


def may_refill_past_readers(bounds: Bounds, state: State, q: str) -> bool:
    """Draw ahead whoever waits."""
    return ACTIONS["Refill"].enabled(bounds, state._replace(tickets=()), q)


def may_refill_with_less(bounds: Bounds, state: State, q: str) -> bool:
    """Draw ahead as soon as one record is there."""
    there = len(sampleable(bounds, state))
    if 0 < there < bounds.batch_size:
        return not state.tickets and not state.holds and state.boundary == NO_BOUNDARY
    return ACTIONS["Refill"].enabled(bounds, state, q)


def recall_oldest(bounds: Bounds, state: State) -> tuple[State, ...]:
    """Give back the batch that was drawn ahead first."""
    oldest = min(h for h, hold in enumerate(state.holds) if is_settled(hold))
    return (returned(bounds, state, oldest),)


def flush_as_delivered(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """End a prefetched hold as if its batch had been handed over."""
    end = delivered if state.holds[h].kind == "prefetched" else returned
    return (end(bounds, state, h),)


def blind_to_queues(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge mutual waits as if no batch were drawn ahead."""
    found = verdict(bounds, state, actor, expired)
    if found in (Verdict.WAIT, Verdict.TIMEOUT):
        own = tuple(hold for hold in state.holds if not is_settled(hold))
        return verdict(bounds, state._replace(holds=own), actor, expired)
    return found


# Captures.


def may_capture_at_once(bounds: Bounds, state: State, x: str) -> bool:
    """Capture whatever is being gathered."""
    return ACTIONS["Capture"].enabled(bounds, state._replace(holds=()), x)


def may_capture_when_nobody_waits(bounds: Bounds, state: State, x: str) -> bool:
    """Capture as one should, but only when nobody waits."""
    return not state.tickets and ACTIONS["Capture"].enabled(bounds, state, x)


def capture_filling(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Capture what is being written as if it were published."""
    later = state
    for writer, _ in state.filling:
        later = published(bounds, later, writer)
    return (captured(bounds, state, x)._replace(saved=captured(bounds, later, x).saved),)


def capture_queue_reversed(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Capture the queue youngest first."""
    after = captured(bounds, state, x)
    assert after.saved is not None
    return (after._replace(saved=after.saved._replace(queue=after.saved.queue[::-1])),)


def capture_ages_as_drawn(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Capture records with the age that they have in the buffer, whatever is given back."""
    now = tuple(
        hold._replace(stamps=tuple(state.slots[number].stamp for number in hold.slots))
        if hold.kind != "prefetched"
        else hold
        for hold in state.holds
    )
    saved = captured(bounds, state._replace(holds=now), x).saved
    return (captured(bounds, state, x)._replace(saved=saved),)


def capture_with_pins(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Capture the slots with all their pins."""
    after = captured(bounds, state, x)
    assert after.saved is not None
    slots = tuple(
        new._replace(pins=old.pins) for old, new in zip(state.slots, after.saved.slots, strict=True)
    )
    return (after._replace(saved=after.saved._replace(slots=slots)),)


def deliver_though_not_copied(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    """End a hold as if nothing had still to be copied."""
    after = delivered(bounds, state._replace(boundary=NO_BOUNDARY), h)
    return (after._replace(boundary=state.boundary),)


def copy_and_keep(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Copy a slot and leave it as it is."""
    return (state._replace(boundary=copied(bounds, state).boundary),)


# Restores.


def may_load_while_filling(bounds: Bounds, state: State, x: str) -> bool:
    """Load whatever is being written."""
    return ACTIONS["Load"].enabled(bounds, state._replace(filling=()), x)


def reject_after_load(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Give up a restore when everything has been thrown away."""
    if state.filling:
        return ACTIONS["Reject"].apply(bounds, state, x)
    return (loaded(bounds, state, x)._replace(boundary=NO_BOUNDARY),)


def heedless_of_restores(bounds: Bounds, state: State, actor: str, expired: bool) -> Verdict:
    """Judge as if nothing were captured or restored."""
    return verdict(bounds, state._replace(boundary=NO_BOUNDARY), actor, expired)


def restore_without_queue(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Restore a snapshot and give its queue back."""
    after = restored(bounds, state, x)
    while after.holds:
        after = returned(bounds, after, 0)
    return (after,)


# Recovery.


def recover_and_stay_open(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor, and leave the buffer as open as it was."""
    return (recovered(bounds, state, x)._replace(closing=state.closing),)


def recover_and_leave_queue(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor, but return no batch that its process had drawn ahead."""
    others = tuple(
        hold._replace(owner="nobody") if hold.kind == "prefetched" else hold for hold in state.holds
    )
    after = recovered(bounds, state._replace(holds=others), x)
    holds = tuple(
        hold._replace(owner=x) if hold.owner == "nobody" else hold for hold in after.holds
    )
    return (after._replace(holds=holds),)


def recover_and_leave_boundary(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    """Recover a dead actor, but leave its capture or restore in progress."""
    after = recovered(bounds, state._replace(boundary=NO_BOUNDARY), x)
    return (after._replace(boundary=state.boundary),)
