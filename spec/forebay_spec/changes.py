"""What a step is about: the call that it serves or ends, and the holds that it draws or ends.

The predicates behind the step properties and the witnesses find it out here, from the two states
and the label.
"""

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.state import Hold, State, Ticket, is_settled, is_stale, ticket_of


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
    if label.name == "Recall":
        return next((hold for hold in reversed(before.holds) if is_settled(hold)), None)
    if label.name in ("Deliver", "Return", "Ready", "Fail"):
        h = label.args[0]
        assert isinstance(h, int)
        hold = before.holds[h]
        return hold if label.name in ("Deliver", "Return") or is_stale(before, hold) else None
    return None


def returned_holds(bounds: Bounds, before: State, label: Label) -> tuple[Hold, ...]:
    """Return the holds whose records a step returns, in draw order."""
    if label.name == "Recover":
        who = owners(bounds, str(label.args[0]))
        return tuple(hold for hold in before.holds if hold.owner in who)
    hold = ended_hold(before, label) if label.name != "Deliver" else None
    return () if hold is None else (hold,)


def drawn_hold(before: State, label: Label, after: State) -> Hold | None:
    """Return the hold that a step has drawn, or None; what Restore brings is not drawn."""
    if label.name == "Restore" or len(after.holds) <= len(before.holds):
        return None
    return after.holds[-1]


def taken_hold(before: State, after: State) -> Hold | None:
    """Return the prefetched hold, as it was, that a step has made somebody's own, or None."""
    if before.holds is after.holds or len(before.holds) != len(after.holds):
        return None
    for old, new in zip(before.holds, after.holds, strict=True):
        if old.kind == "prefetched" != new.kind:
            return old
    return None


def queue(state: State, process: str) -> list[Hold]:
    """Return the queue of a process, oldest first."""
    return [
        hold
        for hold in state.holds
        if hold.kind == "prefetched" and hold.owner == process and not is_stale(state, hold)
    ]


def owners(bounds: Bounds, actor: str) -> tuple[str, str]:
    """Return whom the holds belong to that go with an actor who is a process of its own."""
    return actor, bounds.process(actor)


def admitted_actors(before: State, after: State) -> set[str]:
    """Return who fills after a step and did not before."""
    return {owner for owner, _ in after.filling} - {owner for owner, _ in before.filling}
