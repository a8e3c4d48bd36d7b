"""What a life asks of the inside of its buffer: its queue, and what is left of the epoch."""

from forebay import _layout as at
from forebay._batches import HoldState
from forebay._overwriting import OverwritingLedger

from forebay_models.device.prompt import awaited
from forebay_models.twins.buffers import Buffer
from forebay_models.twins.schemas import numbers_of


def ring_of(buffer: Buffer) -> OverwritingLedger | None:
    """Return the ledger, if it is one of an overwriting buffer."""
    ledger = buffer._core.ledger
    return ledger if isinstance(ledger, OverwritingLedger) else None


def epoch_of(buffer: Buffer) -> int:
    """Return a number that is another one in each epoch."""
    epoch: int = buffer._core.ledger.cells[at.EPOCH]
    return epoch


def has_failed(buffer: Buffer) -> bool:
    """Tell whether a batch has failed that was drawn ahead."""
    return bool(_queued(buffer, HoldState.FAILED))


def ahead_of(buffer: Buffer) -> dict[int, list[int]]:
    """Return of each batch that is drawn ahead and will be given the numbers of its records."""
    prefetcher = buffer._prefetcher
    if prefetcher is None:
        return {}
    ready = _queued(buffer, HoldState.READY)
    batches = {number: prefetcher.payload(number) for number in ready}
    return {number: numbers_of(awaited(buffer.storage, batch)) for number, batch in batches.items()}


def left_after_returns(ring: OverwritingLedger, ahead: dict[int, list[int]]) -> frozenset[int]:
    """Return the slots that are left once all is returned that will not be given."""
    left = set(ring.left())
    for hold in ring.holds():
        if hold.number not in ahead:
            pairs = zip(hold.slots, hold.stamps, strict=True)
            left.update(slot for slot, stamp in pairs if stamp)
    return frozenset(left)


def _queued(buffer: Buffer, state: HoldState) -> list[int]:
    """Return the numbers of the batches of the queue that are in a state."""
    prefetcher, batches = buffer._prefetcher, buffer._core.ledger.batches
    if prefetcher is None:
        return []
    return [number for row, number in prefetcher.settled_queue() if batches.state(row) is state]
