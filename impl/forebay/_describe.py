"""What a buffer is doing, in words, for whoever wonders why a program hangs."""

from typing import TYPE_CHECKING

from forebay import _layout as at
from forebay._batches import HoldView
from forebay._stages import Stage
from forebay._threads import number_in_process, thread_name
from forebay._tickets import Kind, TicketView

if TYPE_CHECKING:
    from forebay._core import Core


_HELD = {Kind.PLAIN: "a sample", Kind.LEASE: "a lease", Kind.PREFETCHED: "a batch"}


def describe(core: "Core") -> str:
    """Return who waits and for what, what is free and sampleable, and who holds what."""
    ledger = core.ledger
    tickets, holds, fillings, sizes, sampleable, filling, closing, last, now, crossing = core.look(
        lambda: (
            ledger.tickets(),
            ledger.holds(),
            ledger.fillings(),
            (ledger.free.count(), ledger.room),
            ledger.sampleable,
            ledger.filling,
            ledger.closing,
            ledger.cells[at.LAST_DELIVERY],
            core.monitor.clock(),
            (Stage(ledger.cells[at.STAGE]), ledger.cells[at.BOUNDARY_ACTOR]),
        )
    )

    def name(actor: int) -> str:
        process = core.peers.elsewhere(actor)
        number = number_in_process(actor)
        if process is not None:
            who = "a task" if number < 0 else f"thread {number}"
            return f"{who} of process {process}"
        return "a task" if number < 0 else thread_name(number)

    def queue(owner: int) -> str:
        process = core.peers.elsewhere(owner)
        where = "this process" if process is None else f"process {process}"
        return f"a prefetch queue of {where}"

    free, room = sizes
    overwritten = f"{room - free} that can be overwritten, " if ledger.overwrites else ""
    lines = [
        f"buffer of {ledger.capacity} records, {closing.name.lower()}: {free} free, {overwritten}"
        f"{sampleable} sampleable, {filling} being filled",
        "nothing was delivered yet" if last < 0 else f"last delivery {now - last / 1e9:.1f} s ago",
    ]
    lines += [f"{name(ticket.actor)} waits {_purpose(ticket)}" for ticket in tickets]
    lines += [f"{name(actor)} fills {len(slots)} slots" for actor, slots in fillings.items()]
    lines += [
        f"{queue(hold.owner) if hold.kind is Kind.PREFETCHED else name(hold.owner)} "
        f"holds {_held(hold)}"
        for hold in holds
    ]
    if crossing[0] is not Stage.NONE:
        lines.append(f"{name(crossing[1])} is {crossing[0].name.lower()} the buffer")
    if core.failure is not None:
        lines.append(f"failed with {core.failure!r}")
    return "\n".join(lines)


def _purpose(ticket: TicketView) -> str:
    if ticket.kind is Kind.WRITE:
        return f"to write {ticket.n} records"
    least = "" if ticket.m == ticket.n else f"at least {ticket.m} and at most "
    what = "lease" if ticket.kind is Kind.LEASE else "sample"
    return f"to {what} {least}{ticket.n} records"


def _held(hold: HoldView) -> str:
    what = _HELD[hold.kind]
    return f"{what} of {len(hold.slots)} records, {hold.state.name.lower()}"
