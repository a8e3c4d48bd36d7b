"""When an action may happen, but for what depends on the verdict of a judge.

Who is dead takes no step: every guard about an actor, or about a hold of its own or of its process,
asks for that, but that of Recover.
"""

from collections.abc import Callable

from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Closing
from forebay_spec.state import (
    Stage,
    State,
    filling_of,
    has_something,
    idle,
    is_ready_lease,
    is_settled,
    prefetched_by,
    sampleable,
    ticket_of,
)
from forebay_spec.verdicts import all_wait, head_of


def waits(state: State, x: str) -> bool:
    """Tell whether a living actor has a ticket."""
    return ticket_of(state, x) is not None and x not in state.dead


def may_call(bounds: Bounds, state: State, x: str, *call: str | int) -> bool:
    """Arrive, Ask: the actor is idle."""
    return idle(state, x)


def fills(bounds: Bounds, state: State, p: str) -> bool:
    """Publish: the producer fills."""
    return bool(filling_of(state, p)) and p not in state.dead


def may_abandon(bounds: Bounds, state: State, p: str) -> bool:
    """Abandon: the producer fills, and there is that feature."""
    return "Abandon" in bounds.features and fills(bounds, state, p)


def may_refill(bounds: Bounds, state: State, q: str) -> bool:
    """Refill: nobody waits for the records, and the process has not drawn enough ahead."""
    stage, actor, _ = state.boundary
    return (
        len(prefetched_by(state, q)) < bounds.prefetch
        and state.closing != Closing.STOPPED
        and head_of(state, False) is None
        and stage not in ("restoring", "loading")
        and not (stage == "capturing" and bounds.process(actor) == q)
        and bounds.batch_size <= len(sampleable(bounds, state))
        and not any(bounds.process(x) == q for x in state.dead)
    )


def gathers(bounds: Bounds, state: State, h: int) -> bool:
    """Ready: the hold gathers."""
    return _lives_with_hold(state, h) and state.holds[h].state == "gathering"


def may_fail(bounds: Bounds, state: State, h: int) -> bool:
    """Fail: the hold gathers, and there is that feature."""
    return "Fail" in bounds.features and gathers(bounds, state, h)


def may_deliver(bounds: Bounds, state: State, h: int) -> bool:
    """Deliver: the hold is ready, and somebody's own."""
    if not _lives_with_hold(state, h):
        return False
    hold = state.holds[h]
    return hold.state == "ready" and hold.kind != "prefetched"


def may_return(bounds: Bounds, state: State, h: int) -> bool:
    """Return: the hold failed or is a lease, or is flushed out of a queue."""
    if not _lives_with_hold(state, h):
        return False
    hold = state.holds[h]
    if hold.kind == "prefetched":
        return "Flush" in bounds.features and is_settled(hold)
    return hold.state == "failed" or is_ready_lease(hold)


def is_unset(bounds: Bounds, state: State, token: str) -> bool:
    """SetCancel: the flag is not set."""
    return token in bounds.tokens and token not in state.cancelled


def always(bounds: Bounds, state: State, *args: str | int) -> bool:
    """Close."""
    return True


def may_recall(bounds: Bounds, state: State) -> bool:
    """Recall: all wait for each other, and a prefetched batch can be given back."""
    return any(map(is_settled, state.holds)) and all_wait(bounds, state)


def may_empty(bounds: Bounds, state: State) -> bool:
    """Empty: there is that feature."""
    return "Empty" in bounds.features


def may_begin(feature: str) -> Callable[[Bounds, State, str], bool]:
    """CaptureAsk, RestoreAsk: the actor is idle, nobody captures or restores, and the feature."""

    def guard(bounds: Bounds, state: State, x: str) -> bool:
        return feature in bounds.features and state.boundary.stage == "none" and idle(state, x)

    return guard


def may_capture(bounds: Bounds, state: State, x: str) -> bool:
    """Capture: whoever is of the actor's process has gathered."""
    process = bounds.process(x)
    return is_at("capturing")(bounds, state, x) and not any(
        hold.state == "gathering"
        and process == (hold.owner if hold.kind == "prefetched" else bounds.process(hold.owner))
        for hold in state.holds
    )


def may_load(bounds: Bounds, state: State, x: str) -> bool:
    """Load: there is a snapshot, and nobody is in the middle of anything."""
    return (
        is_at("restoring")(bounds, state, x)
        and state.saved is not None
        and not state.filling
        and not state.dead
        and all(is_ready_lease(hold) or is_settled(hold) for hold in state.holds)
    )


def is_at(stage: Stage) -> Callable[[Bounds, State, str], bool]:
    """CaptureDone, Restore, Reject: a living actor is at this stage."""

    def guard(bounds: Bounds, state: State, x: str) -> bool:
        return state.boundary[:2] == (stage, x) and x not in state.dead

    return guard


def may_die(bounds: Bounds, state: State, x: str) -> bool:
    """Kill: the actor lives and has something, and there is that feature."""
    return "Kill" in bounds.features and x not in state.dead and has_something(state, x)


def is_dead(bounds: Bounds, state: State, x: str) -> bool:
    """Recover: the actor is dead."""
    return x in state.dead


def _lives_with_hold(state: State, h: int) -> bool:
    return h < len(state.holds) and state.holds[h].owner not in state.dead
