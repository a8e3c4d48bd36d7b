"""The steps of batches that are drawn ahead: who draws, gathers, takes and gives back which.

The library fills a queue up inside of a reader's call. Here that is turned off, and a queue is told
to draw one batch when there is a step for it. What is drawn ahead is gathered by the driver itself,
in the place of a pool; whoever has taken a batch that still gathers sleeps meanwhile.

Between two steps each queue that must not draw now tries to, and must leave everything as it is.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from forebay._core import Core
from forebay._pool import Job
from forebay._prefetch import Payload, Prefetcher
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Verdict

from forebay_models.adapters.adapter import IN_TRANSFORM, Mismatch, Observation
from forebay_models.adapters.callers import Callers
from forebay_models.adapters.driven import READ, TRANSFORM, WOKEN, Found, Held, Injected
from forebay_models.adapters.handles import Handle
from forebay_models.stepping.board import Asleep, Parked, Stop
from forebay_models.stepping.monitor import ROUSED
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

_FOR_READERS: Final = ("plain", "lease")


class Jobs:
    """Keeps what a pool would do."""

    def __init__(self) -> None:
        self.left: list[Job] = []

    def submit(self, job: Job) -> None:
        """Keep a job."""
        self.left.append(job)

    def rest(self) -> None:
        """There are no threads that could end."""


class SteppedQueue(Prefetcher):
    """A queue that draws when it is told to, one batch at a time."""

    def __init__(self, handle: Handle, core: Core) -> None:
        old = handle._prefetcher
        assert old is not None, "the buffer draws ahead"
        super().__init__(core, handle._storage, handle._transforms, old.size, old.depth)
        self.jobs = Jobs()
        self._limit = 0
        self.use(self.jobs)

    def draw_one(self) -> Payload | None:
        """Draw a batch ahead if there is room for it, and return what is known of it."""
        before = list(self._payloads)
        self._limit = 1 + sum(map(self._is_drawn, before))
        try:
            self._refill()
        finally:
            self._limit = 0
        return next((payload for payload in self._payloads if payload not in before), None)

    def payloads(self) -> list[Payload]:
        """Return what is known of the batches, oldest first."""
        return list(self._payloads)

    def end(self) -> None:
        """Know nothing of any batch any more."""
        self.forget()

    def _depth_now(self) -> int:
        return min(super()._depth_now(), self._limit)


class Ahead(Callers):
    """Moves what is drawn ahead; see `DrivenBuffer`."""

    def __init__(
        self,
        bounds: Bounds,
        storage: StorageKind,
        seed: int,
        patience: float,
        hands: Hands | None,
    ) -> None:
        super().__init__(bounds, storage, seed, patience, hands)
        self._queues: dict[str, SteppedQueue] = {}

    def rest(self, due: Collection[str]) -> Observation:
        """Send those back to sleep who have nothing to do; see `Adapter.rest`."""
        seen = super().rest(due)
        if not self._queues:
            return seen
        for process, queue in self._living_queues().items():
            if str(Label("Refill", (process,))) not in due and queue.draw_one() is not None:
                raise Mismatch(f"{process} draws a batch ahead though it must not")
        return self._observation(Found())

    def close(self) -> None:
        """End all calls and threads; see `Adapter.close`."""
        super().close()
        for queue in self._queues.values():
            queue.end()

    def _steps(self) -> dict[str, Callable[..., Found]]:
        return {**super()._steps(), "Refill": self._refill, "Recall": self._recall}

    def _open_queue(self, process: str, handle: Handle) -> SteppedQueue:
        """Give a process a queue; to be called in a thread of it."""
        queue = SteppedQueue(handle, self._core)
        handle._prefetcher = self._queues[process] = queue
        self._owners[queue.owner()] = process
        return queue

    def _living_queues(self) -> Mapping[str, SteppedQueue]:
        """Return the queues whose processes read and are not dead."""
        return self._queues

    def _refill(self, manner: str, process: str) -> Found:
        queue = self._queues[process]
        self._steer(manner, self._bounds.batch_size)
        payload = queue.draw_one()
        if payload is None:
            raise Mismatch(f"{process} should have drawn a batch ahead")
        gather = queue.jobs.left.pop()
        self._holds.append(Held(process, "prefetched", payload=payload, gather=gather))
        return Found()

    def _recall(self, manner: str) -> Found:
        waiting = [ticket.actor for ticket in self._state().tickets]
        lenders = {held.owner for held in self._holds if held.lease is not None}
        # Who has a lease may have to give way to that.
        name = next((name for name in waiting if name not in lenders), waiting[0])
        self._is(name, self._crew.lie_down(name), WOKEN)
        if self._verdict(name, self._crew.go_on(name), None) is not Verdict.WAIT:
            raise Mismatch(f"{name} should have given a batch back and waited on")
        self._forget_gone()
        return Found()

    def _empty(self, manner: str) -> Found:
        found = super()._empty(manner)
        self._forget_gone()
        return found

    def _drawn(self, name: str, stop: Stop) -> Found:
        verdict = self._verdict(name, stop, "drawn")
        if verdict is not Verdict.SERVE or not self._queues:
            return super()._drawn(name, stop)
        holds = self._state().holds
        if len(holds) > len(self._holds):
            return super()._drawn(name, stop)
        mine = [
            (held, hold.state)
            for held, hold in zip(self._holds, holds, strict=True)
            if held.kind == "prefetched" and (hold.owner, hold.kind != held.kind) == (name, True)
        ]
        if len(mine) != 1:
            raise Mismatch(f"{name} was served, and has neither drawn nor taken a batch")
        held, state = mine[0]
        held.owner, held.kind = name, self._asking[name]
        self._crew.looks_outside(name)
        stop = self._crew.go_on(name)
        if state == "gathering":
            if not isinstance(stop, Asleep):
                raise Mismatch(f"{name} should wait for the batch that it has taken; it is {stop}")
            return Found(verdict)
        if state == "failed":
            self._is(name, stop, Parked("returning"))
            return Found(verdict, sections=2)
        return self._gathered(held, stop)._replace(verdict=verdict)

    def _ready(self, manner: str, h: int) -> Found:
        held = self._holds[h]
        if held.gather is None:
            return super()._ready(manner, h)
        self._gather(held)
        if held.kind in _FOR_READERS:
            return self._gathered(held, self._rouse_owner(held))
        if self._forget_gone():
            return Found()
        payload = held.payload
        assert payload is not None
        records = self._numbers_in(None, payload.batch)
        return Found(None, tuple(payload.call.slots.tolist()), records)

    def _fail(self, manner: str, h: int) -> Found:
        held = self._holds[h]
        if held.gather is None:
            return super()._fail(manner, h)
        held.error = Injected()
        self._ill[TRANSFORM if manner == IN_TRANSFORM else READ] = held.error
        self._gather(held)
        if held.payload is None or held.payload.error is not held.error:
            raise Mismatch(f"the error of a batch of {held.owner} does not stay with the batch")
        if held.kind in _FOR_READERS:
            self._is(held.owner, self._rouse_owner(held), Parked("returning"))
            return Found(sections=2)
        self._forget_gone()
        return Found()

    def _return(self, manner: str, h: int) -> Found:
        held = self._holds[h]
        if held.kind in _FOR_READERS:
            return super()._return(manner, h)
        assert held.payload is not None
        if not self._core.flush(held.payload.call):
            raise Mismatch(f"a batch of the queue of {held.owner} could not be given back")
        del self._holds[h]
        return Found()

    def _gather(self, held: Held) -> None:
        gather, held.gather = held.gather, None
        assert gather is not None
        gather()

    def _rouse_owner(self, held: Held) -> Stop:
        """Let a reader go on that has waited for the batch that it took."""
        self._expect(held.owner, Parked(ROUSED))
        return self._crew.go_on(held.owner)

    def _forget_gone(self) -> int:
        """Forget the prefetched batches that are in the ledger no more; returns how many."""
        kept = [
            held
            for held in self._holds
            if held.payload is None
            or held.kind in _FOR_READERS
            or self._core.ledger.holds_batch(held.payload.call)
        ]
        gone = len(self._holds) - len(kept)
        self._holds = kept
        return gone
