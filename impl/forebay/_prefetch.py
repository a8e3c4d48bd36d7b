"""Batches that are drawn and gathered before somebody asks for them.

The queue of a buffer is in the ledger: rows of the kind `PREFETCHED` whose actor is the queue's
owner, oldest first by their numbers. Here is only what belongs to a number: the gathered batch, or
the error that gathering it raised. So whatever happens to a row, by whatever process, is true at
once: a payload whose row is gone is worth nothing and is dropped when somebody comes across it.

A call takes the oldest row in its first critical section. Then it fills the queue up again, one
section for each batch, and hands the gathering to a pool. Then it waits for its own batch, outside
of everything. Payloads are entered before their row is drawn, and submitted after; should an
exception come between, the next call submits them. A payload is gathered once however often it is
submitted.

A forked child has a life of its own (`Peers.life`): another owner, another pool, and no payload,
since none of its parent's rows are its own.

**For captures and restores**, in the critical section unless said otherwise:

- `owner()` (outside) is the actor whose rows the queue is;
- `settled_queue()` lists `(row, number)` of what does not gather, oldest first, and whether one is
  ready or failed is `ledger.batches.state(row)`;
- `payload(number)` is the batch of one that is ready: the object that a reader will get, so what
  has to last is a copy, made before a reader can have it;
- `adopt(entries, event)` returns the stores that enter gathered batches for rows that the same
  commit makes; from then on they are taken like any others. Numbers must never have been used
  before;
- `forget()` drops all payloads, for rows that are gone;
- `wait_settled(deadline)` (outside) waits until nothing of the queue gathers, stale ones included;
- `emptied()` (outside) is a block in which the queue is empty and stays so.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Final

from forebay_spec.kernel import Closing

from forebay._batches import HoldState
from forebay._calls import BATCH, NUMBER, Call
from forebay._core import SETTLING, Core
from forebay._hand_over import HandOver
from forebay._layout import NEXT_BATCH, NONE
from forebay._pool import Executor, GatherPool
from forebay._storage import Storage
from forebay._stores import Ints, Store
from forebay._streams import Event
from forebay._tickets import Kind
from forebay._transforms import Transforms

if TYPE_CHECKING:
    from forebay._base import Batch

THREADS: Final = 4
"""How many threads a pool has at most."""

_CLAIM: Final = "claim"
_ALL: Final = slice(0, None)
_END: Final = slice(2**62, 2**62)


class Payload:
    """What one batch that is drawn ahead came to.

    Attributes:
        call: whose `places` say which row and number the batch has, once it is drawn.
        submitted: it was handed to the pool.
        done: gathering has ended, and the ledger says so.
        batch: what was gathered.
        event: what whoever uses the batch has to wait for on its device, if anything.
        error: what gathering raised.
        claims: who gathers it, after the life of its process and its thread, under one name.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.submitted = False
        self.done = False
        self.batch: object = None
        self.event: Event | None = None
        self.error: BaseException | None = None
        self.claims: dict[str, tuple[int, int]] = {}


class Prefetcher:
    """The queue of one handle of a buffer; pickled it is another, empty queue.

    Args:
        core: the buffer's calls.
        storage: where the records are.
        transforms: what batches go through.
        size: how many records a batch has.
        depth: how many batches are drawn ahead.
    """

    def __init__(
        self, core: Core, storage: Storage, transforms: Transforms, size: int, depth: int
    ) -> None:
        self.size: Final = size
        self.depth: Final = depth
        self._core = core
        self._storage = storage
        self._transforms = transforms
        self._hand_over = HandOver(storage)
        self._payloads: list[Payload] = []
        self._calls: list[Call] = []  # theirs; what a payload knows may know this queue
        self._owners: dict[int, int] = {}
        self._pools: dict[int, Executor] = {}
        self._waiting: set[object] = set()
        self._holding: set[tuple[int, object]] = set()
        finalizer = weakref.finalize(self, _let_go, core, self._calls, self._pools)
        finalizer.atexit = False

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        parts = (self._core, self._storage, self._transforms, self.size, self.depth)
        return Prefetcher, parts

    def owner(self) -> int:
        """Return the actor whose rows the queue is; the process takes part from now on."""
        life = self._core.peers.life
        known = self._owners.get(life)
        return self._owners.setdefault(life, self._core.task_actor()) if known is None else known

    def obtain(self, call: Call, gather: Callable[[], "Batch"]) -> "Batch":
        """Return the batch of a call that was served: taken from the queue, or gathered now.

        The queue is filled up again first.

        Raises:
            RuntimeError: a restore of the buffer has come between.
        """
        taken = None
        try:
            if call.taken:
                taken = self._pick(call.places[NUMBER])
            self._refill()
        except BaseException:
            self._tend_at_last()
            raise
        if not call.taken:
            return gather()
        if taken is None:
            raise RuntimeError("a restore of the buffer has made the batch void that was taken")
        self._wait_for(taken, call)
        if taken.error is None:
            return self._hand_over.receive(taken.batch, taken.event)
        try:
            raise taken.error
        finally:
            del taken  # else the traceback would keep itself

    def gather(self, payload: Payload) -> None:
        """Gather a batch, unless somebody did or does; what that raises stays with the batch."""
        core, call, me = self._core, payload.call, self._me()
        if payload.done or payload.claims.setdefault(_CLAIM, me) != me:
            return
        try:
            try:
                core.gathering.add(me)
                with self._hand_over.aside():
                    try:
                        payload.batch = self._transforms.sample(self._storage.read(call.slots))
                    finally:
                        payload.event = self._hand_over.mark()
            except BaseException as error:
                # Without this frame, which knows the payload: an error must not keep itself.
                trace = error.__traceback__
                payload.error = error.with_traceback(None if trace is None else trace.tb_next)
                del trace
            finally:
                core.gathering.discard(me)
            for _ in range(SETTLING):
                try:
                    core.settle_ahead(call, failed=payload.error is not None)
                    break
                except BaseException as error:
                    payload.error = error
        finally:
            payload.done = True
            if self._waiting:
                core.monitor.wake()

    def settled_queue(self) -> list[tuple[int, int]]:
        """Return row and number of all batches of the queue that do not gather, oldest first."""
        batches = self._core.ledger.batches
        rows = batches.queue(self.owner())
        settled = [row for row in rows if batches.state(row) is not HoldState.GATHERING]
        return [(row, batches.number(row)) for row in settled]

    def payload(self, number: int) -> "Batch":
        """Return the batch of a number that is ready, as it will be handed out."""
        found = self._find(number)
        if found is None or found.error is not None:
            raise KeyError(f"no batch of number {number} is ready")
        return self._hand_over.receive(found.batch, found.event)

    def adopt(
        self, entries: Sequence[tuple[int, int, Ints, "Batch"]], event: Event | None
    ) -> list[Store]:
        """Return the stores that enter gathered batches: row, number, slots and batch of each.

        Whoever is handed one waits for the event on its device.
        """
        payloads = []
        for row, number, slots, batch in entries:
            payload = Payload(self._new_call())
            payload.call.places[:] = [NONE, row, 0, number]
            payload.call.slots = slots
            payload.batch = batch
            payload.event = event
            payload.submitted = payload.done = True
            payloads.append(payload)
        return [(self._payloads, _END, payloads)]

    def forget(self) -> None:
        """Drop all payloads."""
        self._payloads[_ALL] = []
        self._calls[_ALL] = []
        self._hand_over.begin_here()

    def wait_settled(self, deadline: float | None) -> bool:
        """Wait until nothing of the queue gathers; False if the deadline passes first."""
        core, batches = self._core, self._core.ledger.batches
        owner, monitor = self.owner(), core.monitor
        core.demand_outside()

        def gathers() -> bool:
            rows = batches.prefetched(owner)
            return any(batches.state(row) is HoldState.GATHERING for row in rows)

        me = object()
        try:
            self._waiting.add(me)
            while True:
                seen = monitor.sequence()
                self._tend()
                if not core.look(gathers):
                    self._hand_over.catch_up()
                    return True
                if deadline is not None and monitor.clock() >= deadline:
                    return False
                monitor.wait(seen, deadline)
        finally:
            self._waiting.discard(me)

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Settle and return what is queued, and draw nothing ahead within the block."""
        me = (self._core.peers.life, object())
        try:
            self._holding.add(me)
            self.wait_settled(None)
            for payload in reversed(list(self._payloads)):
                self._core.flush(payload.call)
            self._tend()
            yield
        finally:
            self._holding.discard(me)

    def rest(self) -> None:
        """Let the pool's threads end when nothing is left to gather; safe in signal handlers."""
        pool = self._pools.get(self._core.peers.life)
        if pool is not None:
            pool.rest()

    def use(self, pool: Executor) -> None:
        """Gather with this pool from now on; for tests and schedulers."""
        self.rest()
        self._pools[self._core.peers.life] = pool

    def _refill(self) -> None:
        """Refill: draw ahead as long as there is room in the queue, and have it gathered."""
        self._tend()
        while sum(map(self._is_drawn, list(self._payloads))) < self._depth_now():
            payload = Payload(self._new_call())
            self._payloads.append(payload)
            try:
                drawn = self._core.refill(payload.call, self._depth_now)
            finally:
                if not self._is_drawn(payload):
                    self._drop(payload)
            if not drawn:
                if self._core.ledger.closing is not Closing.OPEN:
                    self.rest()
                return
            self._submit(payload)

    def _tend(self) -> None:
        """Drop the payloads of rows that are gone, and submit what an exception has left."""
        for payload in list(self._payloads):
            if self._is_gone(payload):
                self._drop(payload)
            elif payload.done:
                self._note(payload)
            elif payload.claims.get(_CLAIM) == self._me():  # an exception has ended that
                self.gather(payload)
            elif not payload.submitted and self._is_drawn(payload):
                self._submit(payload)

    def _note(self, payload: Payload) -> None:
        """Let the ledger know of a batch that is gathered, unless it does."""
        batches, call = self._core.ledger.batches, payload.call
        if batches.state(call.places[BATCH]) is HoldState.GATHERING:
            self._core.settle_ahead(call, failed=payload.error is not None)

    def _tend_at_last(self) -> None:
        """Tend though interrupts may go on; the first one is on its way to the caller."""
        for _ in range(SETTLING):
            with suppress(BaseException):
                self._tend()
                return

    def _submit(self, payload: Payload) -> None:
        life = self._core.peers.life
        pool = self._pools.get(life)
        if pool is None:
            pool = self._pools.setdefault(life, GatherPool(min(self.depth, THREADS)))
        pool.submit(partial(_gather, weakref.ref(self), payload))
        payload.submitted = True

    def _wait_for(self, payload: Payload, call: Call) -> None:
        """Wait until a batch is gathered; exceptions may end that, and then the call is settled."""
        monitor = self._core.monitor
        me = object()
        try:
            self._waiting.add(me)
            while not payload.done:
                seen = monitor.sequence()
                self._core.demand_own(call)
                if not payload.done:
                    monitor.wait(seen, None)
        finally:
            self._waiting.discard(me)

    def _pick(self, number: int) -> Payload | None:
        """Return the payload of a number that was taken, and see that somebody gathers it."""
        payload = self._find(number)
        if payload is not None:
            if not payload.submitted:
                self._submit(payload)
            self._drop(payload)
        return payload

    def _find(self, number: int) -> Payload | None:
        mine = (payload for payload in list(self._payloads) if self._is_drawn(payload))
        return next((payload for payload in mine if payload.call.places[NUMBER] == number), None)

    def _drop(self, payload: Payload) -> None:
        with suppress(ValueError):  # another thread has dropped it
            self._payloads.remove(payload)
        with suppress(ValueError):
            self._calls.remove(payload.call)

    def _new_call(self) -> Call:
        life = self._core.peers.life
        call = Call(Kind.PREFETCHED, self.owner(), self.size, self.size, life=life)
        self._calls.append(call)
        return call

    def _is_drawn(self, payload: Payload) -> bool:
        return self._core.has_batch(payload.call)

    def _is_gone(self, payload: Payload) -> bool:
        """Tell whether a payload had a row, and has it no more."""
        number = payload.call.places[NUMBER]
        return 0 < number < self._core.ledger.cells[NEXT_BATCH] and not self._is_drawn(payload)

    def _me(self) -> tuple[int, int]:
        return self._core.peers.life, get_ident()

    def _depth_now(self) -> int:
        life = self._core.peers.life
        return 0 if any(life == holding for holding, _ in list(self._holding)) else self.depth


def _gather(prefetcher: "weakref.ref[Prefetcher]", payload: Payload) -> None:
    """Gather a batch for a queue that may be gone by now."""
    alive = prefetcher()
    if alive is not None:
        alive.gather(payload)


def _let_go(core: Core, calls: list[Call], pools: dict[int, Executor]) -> None:
    """Give back what a queue has whose handle is gone; nothing of it is being gathered."""
    for pool in pools.values():
        pool.rest()
    if core.forked:
        return
    drawn = [call for call in calls if core.has_batch(call)]
    if drawn:
        core.leave_to_others(partial(_return_all, drawn))


def _return_all(calls: list[Call], core: Core) -> None:
    for call in reversed(calls):
        core.flush(call, force=True)
