"""What the specification calls the calls of a history, and the constants that they need."""

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, ReaderKind, Request
from forebay_spec.kernel import Closing, Verdict
from forebay_spec.state import Ticket, TicketKind

from forebay_models.linear.history import CALLS, READS, Ending, History, Operation

ENDINGS: dict[Verdict, Ending] = {
    Verdict.WAIT: "timeout",
    Verdict.SHUT_DOWN: "shut down",
    Verdict.CANCELLED: "cancelled",
    Verdict.MUTUAL_WAIT: "mutual wait",
}
"""How a call ends by each verdict; one that would have to wait may have run out of time."""

LEAVING = {
    "timeout": "Expire",
    "cancelled": "Cancel",
    "shut down": "Refuse",
    "mutual wait": "Refuse",
}
"""The action by which the ticket of a call leaves that ends so."""


def no_such_ending(op: Operation) -> str:
    """Say that the specification has no such ending for an operation at all; nothing if it has."""
    if op.ended == "unexpected":
        return "no operation ends with such an error"
    never_fails = op.kind == "extend" and op.ended == "failed"  # it has no transform
    at_once = op.kind not in CALLS  # so it is done when it returns, or was interrupted
    if never_fails or (at_once and op.ended not in ("done", "interrupted", "pending")):
        return f"no {op.kind} ends with: {op.ended}"
    return ""


def reader_kind(op: Operation) -> ReaderKind:
    """Return what kind of reader a read is."""
    return "lease" if op.kind == "take" else "plain"


def ticket_for(op: Operation) -> Ticket:
    """Return the ticket with which a call waits."""
    kind: TicketKind = "write" if op.kind == "extend" else reader_kind(op)
    return Ticket(kind, op.actor, op.n, op.m)


def arrival(op: Operation) -> Label:
    """Return the first step of a call."""
    if op.kind == "extend":
        return Label("Arrive", (op.actor, op.n))
    return Label("Ask", (op.actor, reader_kind(op), op.n, op.m))


def bounds_of(history: History) -> Bounds:
    """Return the constants; each actor has its own name for a token, standing for its call's."""
    setting, actors = history.setting, history.actors
    calls = [op for op in history.operations if op.kind in CALLS]
    return Bounds(
        name=f"history {setting.line()}",
        capacity=setting.capacity,
        uses=setting.uses,
        order=setting.order,
        producers=actors,
        readers=actors,
        write_sizes=tuple(sorted({op.n for op in calls if op.kind == "extend"})),
        requests=tuple(
            sorted({Request(reader_kind(op), op.n, op.m) for op in calls if op.kind in READS})
        ),
        token_of=tuple((actor, actor) for actor in actors),
        features=frozenset({"Abandon", "Fail", "Expire", "Empty", "Kill"}),
        closings=(Closing.DRAINING, Closing.STOPPED),
    )
