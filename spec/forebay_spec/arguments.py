"""What the arguments of an action may be in a state.

Actions about a ticket, a filling batch, a hold or a boundary look at those that there are, the
others at the constants. Whether the action may happen with them is the matter of its guard.
"""

from collections.abc import Callable, Iterable

from forebay_spec.bounds import Bounds
from forebay_spec.state import State

Args = tuple[str | int, ...]
Instances = Callable[[Bounds, State], Iterable[Args]]


def writes(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return every call that writes."""
    return ((p, n) for p in bounds.producers for n in bounds.write_sizes)


def reads(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return every call that draws.

    Nothing of an overwriting buffer would bound how many leases an actor has, as they pin nothing;
    so there is no call for a second one.
    """
    if not bounds.overwriting:
        return ((c, *request) for c in bounds.readers for request in bounds.requests)
    lease = {hold.owner for hold in state.holds if hold.kind == "lease"}
    return (
        (c, *request)
        for c in bounds.readers
        for request in bounds.requests
        if request.kind != "lease" or c not in lease
    )


def who_wait(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return those who have a ticket."""
    return ((ticket.actor,) for ticket in state.tickets)


def who_wait_to_write(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return the writers who have a ticket."""
    return ((ticket.actor,) for ticket in state.tickets if ticket.kind == "write")


def who_wait_to_read(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return the readers who have a ticket."""
    return ((ticket.actor,) for ticket in state.tickets if ticket.kind != "write")


def who_fill(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return those who fill."""
    return ((p,) for p, _ in state.filling)


def holds(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return the positions of the holds."""
    return ((h,) for h in range(len(state.holds)))


def who_prefetch(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return the processes that may draw ahead."""
    return ((q,) for q in bounds.reading)


def tokens(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return the cancel tokens."""
    return ((token,) for token in bounds.tokens)


def modes(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return how far the buffer may be closed."""
    return ((mode.name.lower(),) for mode in bounds.closings)


def once(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return no arguments, once."""
    return ((),)


def who_act(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return every actor."""
    return ((x,) for x in bounds.actors)


def who_is_at_it(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return who captures or restores."""
    return ((state.boundary.actor,),) if state.boundary.actor else ()


def who_are_dead(bounds: Bounds, state: State) -> Iterable[Args]:
    """Return the dead."""
    return ((x,) for x in bounds.actors if x in state.dead)
