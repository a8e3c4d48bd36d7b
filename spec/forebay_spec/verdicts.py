"""What a waiting call gets: the state of a buffer turned into the arguments of the kernel.

The kernel decides from a dozen numbers; this module counts them. It is apart from the actions
because every action about tickets has the same guard, "the verdict is this one", and because a
planted fault in a decision is a different `Judge` under the same actions.
"""

from collections.abc import Callable

from forebay_spec.bounds import Bounds
from forebay_spec.kernel import (
    Verdict,
    lease_blocks,
    mutual_wait,
    never_fits,
    reader_verdict,
    writer_gives_way,
    writer_verdict,
)
from forebay_spec.state import (
    State,
    Ticket,
    front_of_queue,
    is_ready_lease,
    is_settled,
    room,
    sampleable,
)

# Decides for the actor's ticket, which is in the state; the last argument: its deadline has passed.
Judge = Callable[[Bounds, State, str, bool], Verdict]


def verdict(bounds: Bounds, state: State, actor: str, expired: bool = False) -> Verdict:
    """Return what an actor's waiting call gets; `expired` tells whether its deadline has passed.

    Raises `LookupError` when the actor does not wait.
    """
    ticket = waiting(state, actor)
    writes = ticket.kind == "write"
    head = ticket is head_of(state, writes)
    cancelled = bounds.token(actor) in state.cancelled
    filling = filling_slots(state)
    off = held_off(bounds, state, ticket)
    queued = takes(bounds, state, ticket) is not None

    def decide(victim: bool) -> Verdict:
        if writes:
            space = room(bounds, state)
            return writer_verdict(
                state.closing, cancelled, head, ticket.n, space, off, victim, expired
            )
        rows = len(sampleable(bounds, state))
        return reader_verdict(
            state.closing, cancelled, head, queued, ticket.m, rows, filling, off, victim, expired
        )

    # Whether it is a victim is long to find out and matters only where nothing better is due.
    found = decide(False)
    if found in (Verdict.WAIT, Verdict.TIMEOUT) and (
        mutual_wait_victim(bounds, state) is ticket or misfit(bounds, state, ticket)
    ):
        return decide(True)
    return found


def waiting(state: State, actor: str) -> Ticket:
    """Return the ticket of an actor; `LookupError` when it has none."""
    for ticket in state.tickets:
        if ticket.actor == actor:
            return ticket
    raise LookupError(f"{actor} does not wait")


def head_of(state: State, writes: bool) -> Ticket | None:
    """Return the oldest waiting writer, or reader, or None."""
    for ticket in state.tickets:
        if (ticket.kind == "write") == writes:
            return ticket
    return None


def takes(bounds: Bounds, state: State, call: Ticket) -> int | None:
    """Return the position of the prefetched batch that a call would take, or None."""
    if not bounds.prefetch or call.kind == "write" or call.n != bounds.batch_size:
        return None
    return front_of_queue(state, bounds.process(call.actor))


def held_off(bounds: Bounds, state: State, call: Ticket) -> bool:
    """Tell whether a capture or a restore keeps a call from being served."""
    stage, actor, _ = state.boundary
    if stage == "capturing":
        return call.kind != "write" and bounds.process(actor) == bounds.process(call.actor)
    return stage in ("restoring", "loading")


def filling_slots(state: State) -> int:
    """Count the slots that are being filled."""
    return sum(len(slots) for _, slots in state.filling)


def mutual_wait_victim(bounds: Bounds, state: State) -> Ticket | None:
    """Return the call that must give way because all wait for each other, or None.

    While there is a prefetched batch that can be given back, nobody must.
    """
    if not all_wait(bounds, state) or any(map(is_settled, state.holds)):
        return None
    writer, reader = head_of(state, True), head_of(state, False)
    n, m = writer.n if writer else 0, reader.m if reader else 0
    position = {ticket: place for place, ticket in enumerate(state.tickets)}
    writer_place = position[writer] if writer else 0
    reader_place = position[reader] if reader else 0
    return writer if writer_gives_way(n, m, writer_place, reader_place) else reader


def all_wait(bounds: Bounds, state: State) -> bool:
    """Tell whether there is a mutual wait.

    A hold of somebody who does not wait may still end by itself, so it is busy, and so is a batch
    that is being prefetched; only a lease that is in the hands of a caller who waits is not. What
    the dead have comes back, and may help.
    """
    if state.dead:
        return False
    writer, reader = head_of(state, True), head_of(state, False)
    n = writer.n if writer else 0
    m = reader.m if reader else 0
    busy = 0
    if state.holds:
        who_wait = {ticket.actor for ticket in state.tickets}
        busy = sum(
            not is_settled(hold) and (not is_ready_lease(hold) or hold.owner not in who_wait)
            for hold in state.holds
        )
    leaving = any(
        head is not None and bounds.token(head.actor) in state.cancelled
        for head in (writer, reader)
    )
    if bounds.prefetch and not leaving:
        leaving = any(takes(bounds, state, ticket) is not None for ticket in state.tickets)
    return mutual_wait(
        state.closing,
        n,
        room(bounds, state),
        m,
        len(sampleable(bounds, state)),
        filling_slots(state),
        busy,
        leaving,
        state.boundary.stage != "none",
    )


def misfit(bounds: Bounds, state: State, ticket: Ticket) -> bool:
    """Tell whether a call can never be served beside the leases of its own actor.

    Those of an overwriting buffer pin nothing.
    """
    if bounds.overwriting:
        return False
    own: dict[int, int] = {}  # how often its leases pin each slot
    for hold in state.holds:
        if hold.owner == ticket.actor and hold.kind != "prefetched":
            for number in hold.slots:
                own[number] = own.get(number, 0) + 1
    if ticket.kind == "write":
        return never_fits(ticket.n, bounds.capacity, len(own))
    blocked = 0
    for number, pins in own.items():
        slot = state.slots[number]
        blocked += lease_blocks(slot.phase, slot.uses, bounds.uses, slot.pins, pins)
    return never_fits(ticket.m, bounds.capacity, blocked)
