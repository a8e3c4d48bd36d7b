"""Where everything is in the ledger: one flat block of 64-bit integers.

The block is private memory for threads and a part of one shared mapping for processes; nothing
about a buffer's state is kept anywhere else. Scalars are read and stored through a memoryview,
which gives plain Python integers without numpy's cost for single cells; arrays are numpy views of
the same memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from forebay._errors import reserving
from forebay._stores import Ints, Store, commit

SCALARS: Final = 80
_scalars = iter(range(SCALARS))

CAPACITY: Final = next(_scalars)
USES_PER_RECORD: Final = next(_scalars)
CLOSING: Final = next(_scalars)

FREE_HEAD: Final = next(_scalars)
FREE_USED: Final = next(_scalars)
FRESH: Final = next(_scalars)

SAMPLEABLE: Final = next(_scalars)
FILLING: Final = next(_scalars)
PINNED: Final = next(_scalars)
AGE_HEAD: Final = next(_scalars)
AGE_TAIL: Final = next(_scalars)
NEXT_STAMP: Final = next(_scalars)
BACK_HEAD: Final = next(_scalars)
BACK_COUNT: Final = next(_scalars)

NEXT_TICKET: Final = next(_scalars)
FREE_TICKET: Final = next(_scalars)
WRITERS: Final = next(_scalars)
READERS: Final = next(_scalars)
OBSERVERS: Final = next(_scalars)
WRITER_HEAD: Final = next(_scalars)
WRITER_TAIL: Final = next(_scalars)
READER_HEAD: Final = next(_scalars)
READER_TAIL: Final = next(_scalars)

NEXT_BATCH: Final = next(_scalars)
FREE_BATCH: Final = next(_scalars)
BATCHES: Final = next(_scalars)
LEASES: Final = next(_scalars)
PREFETCHED: Final = next(_scalars)
POOL_TOP: Final = next(_scalars)

KEY_LOW: Final = next(_scalars)
KEY_HIGH: Final = next(_scalars)
DRAWS: Final = next(_scalars)

ADMITTED: Final = next(_scalars)
ADMITTED_BATCHES: Final = next(_scalars)
DELIVERED: Final = next(_scalars)
DELIVERED_BATCHES: Final = next(_scalars)
RETURNED: Final = next(_scalars)
RETURNED_BATCHES: Final = next(_scalars)
SPENT: Final = next(_scalars)
SPENT_BATCHES: Final = next(_scalars)
DROPPED: Final = next(_scalars)
DROPPED_BATCHES: Final = next(_scalars)
BLOCKED_CALLS: Final = next(_scalars)
TIMEOUTS: Final = next(_scalars)
CANCELLATIONS: Final = next(_scalars)
REFUSALS: Final = next(_scalars)
RECOVERIES: Final = next(_scalars)
ADVISORY_CALLS: Final = next(_scalars)
LAST_DELIVERY: Final = next(_scalars)

PRODUCERS: Final = next(_scalars)
REGISTERED: Final = next(_scalars)
LOST_PRODUCERS: Final = next(_scalars)
FAILURE: Final = next(_scalars)
LAST_LOOK: Final = next(_scalars)
ASKED_TO_DRAIN: Final = next(_scalars)
ASKED_TO_STOP: Final = next(_scalars)
JOURNALED: Final = next(_scalars)
REPAIRING: Final = next(_scalars)
UNCLAIMED: Final = next(_scalars)

STAGE: Final = next(_scalars)
BOUNDARY_ACTOR: Final = next(_scalars)
TO_COPY: Final = next(_scalars)

EVICTABLE: Final = next(_scalars)
AFTER_COPY: Final = next(_scalars)
LEFT: Final = next(_scalars)
EPOCH: Final = next(_scalars)
EVICTED: Final = next(_scalars)
EVICTED_BATCHES: Final = next(_scalars)

OWNER: Final = next(_scalars)

PARTICIPANT_FIELDS: Final = 3
TICKET_FIELDS: Final = 9
BATCH_FIELDS: Final = 7
NONE: Final = -1
"""A row number that names no row."""

MOST_USES: Final = 2**31 - 1
"""How often a record can be drawn at most."""

HELD_SHARE: Final = 4
"""How often a record may be held at one time unless a limit says otherwise.

The pool of held records takes 32 bytes for each time."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How large the tables of a ledger are; a full one is an error before any effect.

    Attributes:
        calls: calls that wait, copy or hold a batch at one time.
        tokens: cancel tokens that exist at one time.
        held: pairs of a batch and a record in it, over all batches that are being filled or held;
            0 means the capacity times `consume_after_n_samples`, more than which cannot occur, but
            not more than `HELD_SHARE` times the capacity, which an overwriting buffer has too.
        participants: processes that use a shared buffer at one time.
    """

    calls: int = 1024
    tokens: int = 1024
    held: int = 0
    participants: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"the limit {field.name} must be an int, got {value!r}")
            least = 0 if field.name == "held" else 1
            if value < least:
                raise ValueError(f"the limit {field.name} must be at least {least}, got {value}")


def sizes_of(
    capacity: int,
    uses_per_record: int,
    limits: Limits,
    participants: int,
    overwriting: bool = False,
) -> dict[str, int]:
    """Return how many integers each part of a ledger takes, in the order in which they lie."""
    held = held_limit(capacity, uses_per_record, limits, overwriting)
    return {
        "scalars": SCALARS,
        "participants": PARTICIPANT_FIELDS * participants,
        "counted": participants,
        "observers": participants,
        "producers": participants,
        "tickets": TICKET_FIELDS * limits.calls,
        "batches": BATCH_FIELDS * limits.calls,
        "tokens": limits.tokens,
        "token_owners": limits.tokens,
        "phase": capacity,
        "uses": capacity,
        "pins": capacity,
        "copying": capacity,
        "stamp": capacity,
        "entry": capacity,
        "free": capacity,
        "order": 2 * capacity,
        "back": 0 if overwriting else capacity,
        "dense": capacity if overwriting else 0,
        "places": capacity if overwriting else 0,
        "pool_slots": 2 * held,
        "pool_stamps": 2 * held,
    }


def held_limit(
    capacity: int, uses_per_record: int, limits: Limits, overwriting: bool = False
) -> int:
    """Return how many pairs of a batch and a record in it there may be."""
    share = HELD_SHARE if overwriting else min(uses_per_record, HELD_SHARE)
    return max(capacity, limits.held or capacity * share)


class Layout:
    """The named views of one block.

    Args:
        capacity: the number of slots.
        uses_per_record: how often a record is drawn before it is spent.
        limits: how large the tables are.
        participants: how many processes there may be.
        block: the memory, int64 of as many numbers as `sizes_of` says; else private zeros.
        overwriting: whether it is the ledger of an overwriting buffer.

    Attributes:
        commit: carries out the stores of one action, as one step.
    """

    def __init__(
        self,
        capacity: int,
        uses_per_record: int,
        limits: Limits,
        participants: int = 1,
        block: Ints | None = None,
        overwriting: bool = False,
    ) -> None:
        self._division = capacity, uses_per_record, limits, participants
        self._overwriting = overwriting
        sizes = sizes_of(*self._division, overwriting)
        if block is None:
            with reserving(f"a capacity of {capacity} records with {limits}"):
                block = np.zeros(sum(sizes.values()), dtype=np.int64)
        self.block = memory = block
        self.cells = block.data
        self.commit: Callable[[list[Store]], None] = commit
        starts: dict[str, int] = {}
        at = 0
        for name, size in sizes.items():
            starts[name] = at
            at += size

        def view(name: str) -> Ints:
            return memory[starts[name] : starts[name] + sizes[name]]

        self.calls = limits.calls
        self.held = held_limit(capacity, uses_per_record, limits, overwriting)
        self.participant_base = starts["participants"]
        self.counted_base = starts["counted"]
        self.observer_base = starts["observers"]
        self.producer_base = starts["producers"]
        self.ticket_base = starts["tickets"]
        self.batch_base = starts["batches"]
        self.token_base = starts["tokens"]
        self.slots_base = starts["phase"]
        self.participants = view("participants")
        self.tokens = view("tokens")
        self.token_owners = view("token_owners")
        self.tickets = view("tickets").reshape(TICKET_FIELDS, limits.calls)
        self.batches = view("batches").reshape(BATCH_FIELDS, limits.calls)
        self.phase = view("phase")
        self.uses = view("uses")
        self.pins = view("pins")
        self.copying = view("copying")
        self.stamp = view("stamp")
        self.entry = view("entry")
        self.free = view("free")
        self.order = view("order")
        self.back = view("back")
        self.dense = view("dense")
        self.places = view("places")
        self.pool_slots = view("pool_slots")
        self.pool_stamps = view("pool_stamps")

    def over(self, block: Ints) -> "Layout":
        """Return the same division of another block."""
        return Layout(*self._division, block, self._overwriting)
