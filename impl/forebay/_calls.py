"""One call of a writer or a reader, from its first critical section to its last.

Where a call has got to, its ticket or its batch, is kept in `places`, a list that the ledger stores
into together with everything else that an action changes. So after an exception at any instruction
a call knows exactly what it has to give back.
"""

from typing import Final, Protocol, runtime_checkable

import numpy as np
from forebay_spec.kernel import Verdict

from forebay._layout import NONE
from forebay._stores import Ints
from forebay._tickets import NO_QUEUE, NO_TOKEN, Kind

TICKET: Final = 0
BATCH: Final = 1
WATCHING: Final = 2
NUMBER: Final = 3


@runtime_checkable
class Event(Protocol):
    """Anything that can tell whether it is set: the events of `threading` and `multiprocessing`."""

    def is_set(self) -> bool:
        """Tell whether the event is set."""


class Call:
    """What a call wants, and where it is.

    What it does not say itself it has from its class: most calls end without any of that changing.

    Attributes:
        kind: what it wants.
        actor: who makes it, the number of its thread.
        n: how many records it writes, or at most reads.
        m: how many records will do; n for a writer.
        since: the clock's time when it was made.
        timeout: how many seconds it waits, or None.
        deadline: the clock's time at which it stops waiting, or None.
        token: the row of its cancel token, or `NO_TOKEN`.
        event: a foreign event that cancels it, looked at between waits.
        advisory: it only asks what is there now, so that its timeout is not counted.
        stopped: the foreign event, or the task that awaits the call, has cancelled it.
        places: its ticket's row and its batch's row, or `NONE`; 1 while it is an observer; and the
            number of its batch, which is in that row as long as the batch is the call's.
        slots: the slots of its batch, in batch order.
        warned: it has been reported as stalled.
        heads: what the two head tickets waited for when a mutual wait was found, 0 for nobody.
        blocked: how many slots its own leases keep from it.
        verdict: what its last look at the ledger came to.
        own_flag: what a trace calls its own flag, once it is `stopped`.
        life: the life of its process in which it was made; a forked child has another one.
        queue: the owner of the queue that it may take from, or `NO_QUEUE`.
        oldest: the row of the batch that it would take, or `NONE`, as its last look found it.
        taken: its batch was drawn ahead.
    """

    since = 0.0
    timeout: float | None = None
    deadline: float | None = None
    token = NO_TOKEN
    event: Event | None = None
    advisory = False
    stopped = False
    slots: Ints = np.empty(0, dtype=np.int64)
    warned = False
    heads = (0, 0)
    blocked = 0
    verdict = Verdict.WAIT
    own_flag: str | None = None
    queue: int = NO_QUEUE
    oldest: int = NONE
    taken = False

    def __init__(
        self,
        kind: Kind,
        actor: int,
        n: int,
        m: int,
        *,
        life: int = 0,
        places: list[int] | None = None,
    ) -> None:
        self.kind = kind
        self.actor = actor
        self.n = n
        self.m = m
        self.life = life
        self.places = [NONE, NONE, 0, 0] if places is None else places
