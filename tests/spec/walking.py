"""Walks a machine along labels, so that a test reads as the story that it tells."""

import re

from forebay_spec.actions import Label, Machine, verdict
from forebay_spec.bounds import FEATURES, Bounds, Order, Request
from forebay_spec.changes import call_of
from forebay_spec.kernel import Closing, Phase, Verdict
from forebay_spec.state import State, sampleable

ALL_REQUESTS = tuple(
    Request(kind, k, m)
    for kind in ("plain", "lease")
    for k in (1, 2, 3)
    for m in (1, 2, 3)
    if m <= k
)


def roomy(
    *,
    uses: int = 1,
    order: Order = "fifo",
    capacity: int = 3,
    prefetch: int = 0,
    batch_size: int = 1,
    together: bool = False,
    drop_last: bool = False,
) -> Bounds:
    """Return bounds in which nearly everything may happen: three slots, or so many.

    `together`: all actors are of one process, q1, and nobody is killed.
    """
    sizes = tuple(range(1, capacity + 1))
    return Bounds(
        name=f"roomy-{capacity}-{uses}-{order}-{prefetch}-{batch_size}-{together}-{drop_last}",
        capacity=capacity,
        uses=uses,
        order=order,
        drop_last=drop_last,
        producers=("p1", "p2", "x1"),
        readers=("c1", "c2", "x1"),
        write_sizes=sizes,
        requests=tuple(request for request in ALL_REQUESTS if request.k <= capacity),
        token_of=(("p1", "t1"), ("c1", "t1"), ("p2", "t2"), ("c2", "t2")),
        process_of=tuple((x, "q1") for x in ("p1", "p2", "x1", "c1", "c2")) if together else (),
        prefetch=prefetch,
        batch_size=batch_size,
        features=FEATURES - {"Kill"} if together else FEATURES,
        closings=(Closing.DRAINING, Closing.STOPPED),
    )


def label(text: str) -> Label:
    """Read a label as it is printed: `Arrive(p1,2)` or `Empty`."""
    match = re.fullmatch(r"(\w+)(?:\((.*)\))?", text)
    assert match is not None, text
    args = match[2].split(",") if match[2] else []
    return Label(match[1], tuple(int(arg) if arg.isdigit() else arg for arg in args))


def on(bounds: Bounds, state: State, *texts: str) -> State:
    """Walk on from a state along labels with one outcome each."""
    for text in texts:
        (state,) = Machine(bounds).apply(state, label(text))
    return state


def walk(bounds: Bounds, *texts: str) -> State:
    """Walk from the initial state along labels with one outcome each."""
    return on(bounds, Machine(bounds).initial(), *texts)


def enabled(bounds: Bounds, state: State) -> set[str]:
    """Return the labels of the steps that may happen."""
    return {str(found) for found in Machine(bounds).labels(state)}


def gets(bounds: Bounds, state: State, call: str, *, expired: bool = False) -> Verdict:
    """Return what a call gets that would arrive now: `Arrive(p1,2)` or `Ask(c1,lease,2,1)`."""
    ticket = call_of(state, label(call))
    assert ticket is not None
    queued = state._replace(tickets=(*state.tickets, ticket))
    return verdict(bounds, queued, ticket.actor, expired)


def ages(state: State) -> dict[int, int]:
    """Return the age rank of each live slot."""
    return {n: slot.stamp for n, slot in enumerate(state.slots) if slot.phase == Phase.LIVE}


def drawable(bounds: Bounds, state: State) -> list[int]:
    """Return the sampleable slots, oldest first."""
    return sorted(sampleable(bounds, state), key=lambda number: state.slots[number].stamp)
