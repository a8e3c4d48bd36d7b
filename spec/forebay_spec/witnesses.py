"""What must be able to happen: the predicates behind the witnesses.

A model in which nobody can ever wait keeps every promise about waiting. So each situation that the
properties are about is named here, and a check in which one of them never comes up shows nothing.
"""

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.changes import call_of, drawn_hold, ended_hold
from forebay_spec.kernel import Closing, Phase, Verdict
from forebay_spec.state import State, filling_of, is_ready_lease, room
from forebay_spec.verdicts import misfit, mutual_wait_victim, verdict


def writer_waits_then_admitted(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A writer waited and is admitted."""
    return label.name == "Admit"


def reader_waits_then_draws(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A reader waited and draws."""
    return label.name == "Draw"


def small_behind_large(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A writer that would fit waits behind one that does not."""
    sizes = [ticket.n for ticket in after.tickets if ticket.kind == "write"]
    space = room(bounds, after)
    return len(sizes) > 1 and sizes[0] > space and min(sizes[1:]) <= space


def mutual_wait_found(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A call is told that all wait for each other."""
    refused = _refused(bounds, before, label)
    if refused is None:
        return False
    victim = mutual_wait_victim(bounds, refused)
    call = call_of(before, label)
    return victim is not None and call is not None and victim.actor == call.actor


def own_lease_refused(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A call is told that it never fits beside the leases of its own actor."""
    refused = _refused(bounds, before, label)
    call = call_of(before, label)
    return refused is not None and call is not None and misfit(bounds, refused, call)


def _refused(bounds: Bounds, before: State, label: Label) -> State | None:
    """Return the state in which a step's call got MUTUAL_WAIT, the call being in it, or None."""
    if label.name not in ("Refuse", "Arrive", "Ask"):
        return None
    call = call_of(before, label)
    if call is None:
        return None
    state = before
    if label.name != "Refuse":
        state = before._replace(tickets=(*before.tickets, call))
    return state if verdict(bounds, state, call.actor) == Verdict.MUTUAL_WAIT else None


def draw_returned(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """The records of a draw that failed are returned."""
    hold = ended_hold(before, label)
    if label.name != "Return" or hold is None:
        return False
    return hold.kind != "prefetched" and hold.state == "failed"


def lease_returned(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A lease is released, its records are returned."""
    hold = ended_hold(before, label)
    return label.name == "Return" and hold is not None and is_ready_lease(hold)


def short_by_least(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """An open buffer serves a reader with fewer records than it would have taken."""
    hold, call = drawn_hold(before, label, after), call_of(before, label)
    return (
        before.closing == Closing.OPEN
        and hold is not None
        and call is not None
        and len(hold.slots) < call.n
    )


def short_by_draining(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A buffer that is being drained serves a reader with fewer records than it asked for."""
    hold, call = drawn_hold(before, label, after), call_of(before, label)
    return hold is not None and call is not None and len(hold.slots) < call.m


def dropped_while_held(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A record is thrown away while somebody holds it."""
    return any(slot.phase == Phase.DROPPED for slot in after.slots)


def cancel_after_admit(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A flag is set while an actor that has it fills."""
    return label.name == "SetCancel" and any(
        filling_of(before, actor) for actor, token in bounds.token_of if token == label.args[0]
    )


def publish_after_close(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A writer publishes into a buffer that was closed while it was filling."""
    return label.name == "Publish" and before.closing != Closing.OPEN


def killed_while_waiting(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A dead actor has a call that waits."""
    return any(ticket.actor in after.dead for ticket in after.tickets)


def killed_while_filling(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A dead actor has slots that it was filling."""
    return any(owner in after.dead for owner, _ in after.filling)


def killed_while_gathering(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A dead actor has a batch that it was gathering."""
    return any(
        hold.owner in after.dead and hold.kind != "prefetched" and hold.state == "gathering"
        for hold in after.holds
    )


def killed_while_leasing(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A dead actor has a lease that it had in hands."""
    return any(hold.owner in after.dead and is_ready_lease(hold) for hold in after.holds)


def recovered_then_served(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A call that waits can be served because a dead actor was recovered."""
    return label.name == "Recover" and any(
        ticket.actor not in after.dead
        and verdict(bounds, after, ticket.actor) == Verdict.SERVE
        and verdict(bounds, before, ticket.actor) != Verdict.SERVE
        for ticket in after.tickets
    )
