"""The ledger of a buffer, read as a state of the specification.

The specification has names for actors and ranks for ages where the ledger has threads and counters;
everything else is the same. Nothing is repaired or left out on the way: a ledger that contradicts
itself gives a state that no specification reaches.
"""

from collections.abc import Callable, Mapping
from typing import Final

from forebay._batches import HoldState as LedgerHoldState
from forebay._batches import HoldView
from forebay._ledger import Ledger
from forebay._tickets import Kind, TicketView
from forebay_spec.bounds import ReaderKind
from forebay_spec.kernel import Phase
from forebay_spec.state import Hold, HoldState, Slot, State, Ticket, TicketKind, ranked

_KINDS: Final[Mapping[Kind, TicketKind]] = {
    Kind.WRITE: "write",
    Kind.PLAIN: "plain",
    Kind.LEASE: "lease",
}
_READERS: Final[Mapping[Kind, ReaderKind]] = {Kind.PLAIN: "plain", Kind.LEASE: "lease"}
_STATES: Final[Mapping[LedgerHoldState, HoldState]] = {
    LedgerHoldState.GATHERING: "gathering",
    LedgerHoldState.READY: "ready",
    LedgerHoldState.FAILED: "failed",
}
_PHASES: Final = tuple(Phase)


def state_of(
    ledger: Ledger, name_of: Callable[[int], str], tokens: Mapping[int, str], *, fifo: bool
) -> State:
    """Return a ledger's state; to be called while nobody changes it.

    Args:
        ledger: the ledger.
        name_of: gives an actor's name for its number in the ledger.
        tokens: the names of the tokens by their rows.
        fifo: whether ages count; without it the specification has none.
    """
    stamps = ledger.stamp.tolist() if fifo else [0] * ledger.capacity
    slots = [
        Slot(_PHASES[phase], uses, pins, stamp)
        for phase, uses, pins, stamp in zip(
            ledger.phase.tolist(), ledger.uses.tolist(), ledger.pins.tolist(), stamps, strict=True
        )
    ]
    holds = tuple(_hold(view, name_of, fifo) for view in ledger.holds())
    ranks = ranked(slots, holds) if fifo else (tuple(slots), holds)
    return State(
        slots=ranks[0],
        free=tuple(ledger.free_order()),
        fresh=ledger.fresh,
        filling=tuple(
            sorted((name_of(actor), tuple(rows)) for actor, rows in ledger.fillings().items())
        ),
        tickets=tuple(_ticket(view, name_of) for view in ledger.tickets()),
        holds=ranks[1],
        closing=ledger.closing,
        cancelled=frozenset(tokens.get(row, f"?{row}") for row in ledger.cancelled_tokens()),
    )


def _ticket(view: TicketView, name_of: Callable[[int], str]) -> Ticket:
    return Ticket(_KINDS[view.kind], name_of(view.actor), view.n, view.m)


def _hold(view: HoldView, name_of: Callable[[int], str], fifo: bool) -> Hold:
    stamps = tuple(view.stamps) if fifo else (0,) * len(view.slots)
    return Hold(
        name_of(view.owner), _READERS[view.kind], tuple(view.slots), stamps, _STATES[view.state]
    )
