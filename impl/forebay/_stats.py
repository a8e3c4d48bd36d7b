"""What a buffer counts, as one record taken in one critical section."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from forebay import _layout as at
from forebay._core import Core
from forebay._ledger import Ledger


@dataclass(frozen=True, eq=False, kw_only=True)
class BufferStats(Mapping[str, int | float]):
    """The state of a buffer at one moment, and what has happened so far.

    Also a mapping from these names to the values. Sizes are in records unless the name says
    batches or calls; all counts are exact.

    Attributes:
        capacity: the number of slots.
        sampleable: records that can be sampled now.
        filling: slots that are being filled.
        pinned: slots that some reader holds; in a `ReplayBuffer`, while it gathers only.
        free: slots that can be written to; those that can be overwritten do not count.
        waiting_writers: writers that wait now.
        waiting_readers: readers that wait now.
        waiting_observers: calls that wait now without a place in line: `wait_until_sampleable`,
            and whoever waits to save or to restore the buffer.
        blocked_calls: calls that have ever had to wait.
        admitted: records that were written, and so on in batches.
        delivered: records that callers were given.
        returned: records that were given back after being drawn.
        spent: records that left since they had been used as often as they may be.
        dropped: records that `empty` removed.
        evicted: records that were overwritten.
        timeouts: calls that ended by their timeout.
        cancellations: calls that were cancelled.
        refusals: calls that found the buffer closed or had to give way in a mutual wait.
        recoveries: participants that died and were cleaned up after.
        prefetched: batches that are drawn ahead, in the queues of all processes.
        advisory_calls: questions that asked without writing or reading.
        size: the same as `sampleable`, TorchRL's name.
        write_count: the same as `admitted`, TorchRL's name.
        utilization: `sampleable` as a share of the capacity.
    """

    capacity: int
    sampleable: int
    filling: int
    pinned: int
    free: int
    waiting_writers: int
    waiting_readers: int
    waiting_observers: int
    blocked_calls: int
    admitted: int
    admitted_batches: int
    delivered: int
    delivered_batches: int
    returned: int
    returned_batches: int
    spent: int
    spent_batches: int
    dropped: int
    dropped_batches: int
    evicted: int
    evicted_batches: int
    timeouts: int
    cancellations: int
    refusals: int
    recoveries: int
    prefetched: int
    advisory_calls: int
    size: int
    write_count: int
    utilization: float

    def __getitem__(self, name: str) -> int | float:
        if name not in _NAMES:
            raise KeyError(name)
        value: int | float = getattr(self, name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


_NAMES = {field.name: None for field in fields(BufferStats)}


def take_stats(core: Core) -> BufferStats:
    """Return what the ledger says now."""
    return core.look(lambda: _counted(core.ledger))


def _counted(ledger: Ledger) -> BufferStats:
    cells = ledger.cells
    return BufferStats(
        capacity=ledger.capacity,
        sampleable=cells[at.SAMPLEABLE],
        filling=cells[at.FILLING],
        pinned=cells[at.PINNED],
        free=ledger.free.count(),
        waiting_writers=cells[at.WRITERS],
        waiting_readers=cells[at.READERS],
        waiting_observers=cells[at.OBSERVERS],
        blocked_calls=cells[at.BLOCKED_CALLS],
        admitted=cells[at.ADMITTED],
        admitted_batches=cells[at.ADMITTED_BATCHES],
        delivered=cells[at.DELIVERED],
        delivered_batches=cells[at.DELIVERED_BATCHES],
        returned=cells[at.RETURNED],
        returned_batches=cells[at.RETURNED_BATCHES],
        spent=cells[at.SPENT],
        spent_batches=cells[at.SPENT_BATCHES],
        dropped=cells[at.DROPPED],
        dropped_batches=cells[at.DROPPED_BATCHES],
        evicted=cells[at.EVICTED],
        evicted_batches=cells[at.EVICTED_BATCHES],
        timeouts=cells[at.TIMEOUTS],
        cancellations=cells[at.CANCELLATIONS],
        refusals=cells[at.REFUSALS],
        recoveries=cells[at.RECOVERIES],
        prefetched=len(ledger.batches.queue()),
        advisory_calls=cells[at.ADVISORY_CALLS],
        size=cells[at.SAMPLEABLE],
        write_count=cells[at.ADMITTED],
        utilization=cells[at.SAMPLEABLE] / ledger.capacity,
    )
