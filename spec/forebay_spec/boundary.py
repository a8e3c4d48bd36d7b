"""What captures and restores do to a state: the snapshot, and how the buffer becomes one.

A snapshot is the state as if everything had ended that is going on, but for the batches that its
process has drawn ahead. A restore takes two steps, since records are copied in place: after
`loaded` those of before are gone, after `restored` those of the snapshot are there.
"""

from forebay_spec.bounds import Bounds
from forebay_spec.effects import abandoned, returned
from forebay_spec.kernel import Phase
from forebay_spec.state import (
    FREE_SLOT,
    NO_BOUNDARY,
    NOTHING,
    Boundary,
    Hold,
    Holds,
    Saved,
    State,
)


def snapshot(bounds: Bounds, state: State, process: str) -> Saved:
    """Return what a capture by a process saves."""
    state = state._replace(tickets=(), boundary=NO_BOUNDARY)
    filling = sorted(number for _, slots in state.filling for number in slots)
    for writer, _ in state.filling:
        state = abandoned(state, writer)
    state = state._replace(free=(*filling, *state.free[len(filling) :]))
    h = 0
    while h < len(state.holds):
        if _is_queued(state.holds[h], process):
            h += 1
        else:
            state = returned(bounds, state, h)
    queue = tuple((hold.slots, hold.stamps) for hold in state.holds)
    return Saved(state.slots, state.free, state.fresh, queue, state.left)


def captured(bounds: Bounds, state: State, actor: str) -> State:
    """Take the snapshot; its records are still to be copied, oldest first."""
    live = [number for number, slot in enumerate(state.slots) if slot.phase == Phase.LIVE]
    live.sort(key=lambda number: state.slots[number].stamp)  # under random order all are 0
    saved = snapshot(bounds, state, bounds.process(actor))
    boundary = Boundary("copying", actor, tuple(live)) if live else NO_BOUNDARY
    return state._replace(saved=saved, boundary=boundary)


def loaded(bounds: Bounds, state: State, actor: str) -> State:
    """Throw away every record and every hold, so that others can be copied to their places."""
    everything = tuple(range(bounds.capacity))
    return state._replace(
        slots=(FREE_SLOT,) * bounds.capacity,
        free=everything,
        fresh=bounds.capacity,
        holds=(),
        boundary=Boundary("loading", actor, ()),
        left=NOTHING,
    )


def restored(bounds: Bounds, state: State, actor: str) -> State:
    """Let the records and batches of the snapshot be there."""
    saved = state.saved
    assert saved is not None
    return state._replace(
        slots=saved.slots,
        free=saved.free,
        fresh=saved.fresh,
        holds=queue_of(saved, bounds.process(actor)),
        boundary=NO_BOUNDARY,
        left=saved.left,
    )


def queue_of(saved: Saved, process: str) -> Holds:
    """Return the queue of a snapshot as holds of a process."""
    return tuple(
        Hold(process, "prefetched", slots, stamps, "ready") for slots, stamps in saved.queue
    )


def _is_queued(hold: Hold, process: str) -> bool:
    return (hold.owner, hold.kind, hold.state) == (process, "prefetched", "ready")
