"""What must be able to happen to queues, captures and restores.

As in `forebay_spec.witnesses`; the page on the state machine has all of them in one list.
"""

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.changes import ended_hold, taken_hold
from forebay_spec.kernel import Phase, Verdict
from forebay_spec.state import NO_BOUNDARY, State, is_ready_lease
from forebay_spec.verdicts import held_off, verdict


def taken_while_gathering(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A call takes a prefetched batch that is still being gathered."""
    took = taken_hold(before, after)
    return took is not None and took.state == "gathering"


def taken_failed(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A call takes a prefetched batch that could not be gathered."""
    took = taken_hold(before, after)
    return took is not None and took.state == "failed"


def taken_by_waiting(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A reader waited and takes a prefetched batch."""
    return label.name == "Draw" and taken_hold(before, after) is not None


def recalled(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A prefetched batch is given back since all wait for each other."""
    return label.name == "Recall"


def flushed_queue(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A prefetched batch is returned that nobody had asked for."""
    hold = ended_hold(before, label)
    return label.name == "Return" and hold is not None and hold.kind == "prefetched"


def stale_gathering(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """The records of a batch are thrown away while it is being prefetched."""
    return label.name == "Empty" and _is_gathering_ahead(before)


def _is_gathering_ahead(state: State, process: str | None = None) -> bool:
    return any(
        hold.kind == "prefetched" and hold.state == "gathering" and process in (None, hold.owner)
        for hold in state.holds
    )


def capture_while_writer_waits(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A snapshot is taken while a writer waits."""
    return label.name == "Capture" and any(ticket.kind == "write" for ticket in before.tickets)


def capture_while_filling(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A snapshot is taken while a batch is being written."""
    return label.name == "Capture" and bool(before.filling)


def capture_ask_while_gathering(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Somebody asks for a snapshot while its process is prefetching."""
    if label.name != "CaptureAsk":
        return False
    return _is_gathering_ahead(before, bounds.process(str(label.args[0])))


def capture_with_queue(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A snapshot has prefetched batches in it."""
    return label.name == "Capture" and after.saved is not None and bool(after.saved.queue)


def spent_while_copied(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """The last use of a record is delivered while the record is still to be copied."""
    hold = ended_hold(before, label)
    if label.name != "Deliver" or hold is None:
        return False
    spent = [n for n in hold.slots if after.slots[n][:3] == (Phase.LIVE, bounds.uses, 0)]
    return any(number in after.boundary.slots for number in spent)


def dropped_while_copied(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A record is thrown away while it is still to be copied."""
    return label.name == "Empty" and any(
        before.slots[number].phase == Phase.LIVE and after.slots[number].phase == Phase.DROPPED
        for number in before.boundary.slots
    )


def held_off_by_capture(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A reader waits that would be served if its process were not about to be captured."""
    if after.boundary.stage != "capturing":
        return False
    free = after._replace(boundary=NO_BOUNDARY)
    return any(
        held_off(bounds, after, ticket) and verdict(bounds, free, ticket.actor) == Verdict.SERVE
        for ticket in after.tickets
    )


def restored_with_queue(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A snapshot is restored that has prefetched batches in it."""
    return label.name == "Restore" and bool(after.holds)


def restored_while_waiting(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A buffer is restored while somebody waits."""
    return label.name in ("Load", "Restore") and bool(after.tickets)


def lease_made_void(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A buffer is restored while somebody has a lease in hands."""
    return label.name == "Load" and any(map(is_ready_lease, before.holds))


def rejected(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A restore is given up before anything has changed."""
    return label.name == "Reject"


def killed_while_copying(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A dead actor has records that it had still to copy."""
    return after.boundary.stage == "copying" and after.boundary.actor in after.dead


def killed_while_loading(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """An actor dies after the records of before are gone and before those of the snapshot come."""
    return after.boundary.stage == "loading" and after.boundary.actor in after.dead
