"""Faults planted in what is drawn ahead; see `forebay_models.mutants.local`."""

from collections.abc import Callable

from forebay import _layout as at
from forebay._actions import Actions
from forebay._batches import Batches
from forebay._calls import NUMBER, Call
from forebay._layout import NONE
from forebay._prefetch import Payload, Prefetcher
from forebay._rules import Rules
from forebay_spec.kernel import Closing

from forebay_models.mutants.planting import mutant

_is_queued = Rules.is_queued
_settled = Batches.settled


@mutant(
    "failed_batch_swallowed",
    Prefetcher,
    "obtain",
    "a batch that could not be gathered ahead is gathered again instead of raising its error",
)
def _try_again(self: Prefetcher, call: Call, gather: Callable[[], object]) -> object:
    taken = self._pick(call.places[NUMBER]) if call.taken else None
    self._refill()
    if taken is None:
        return gather()
    self._wait_for(taken, call)
    return taken.batch if taken.error is None else gather()


@mutant("taken_not_oldest", Rules, "is_queued", "a call takes the youngest batch of the queue")
def _the_youngest(self: Rules, call: Call) -> bool:
    found = _is_queued(self, call)
    if found:
        call.oldest = self._ledger.batches.queue(call.queue)[-1]
    return found


@mutant(
    "stale_batch_taken",
    Batches,
    "is_stale",
    "a call takes a batch whose records were thrown away while it was gathered ahead",
)
def _never_stale(self: Batches, row: int) -> bool:
    return False


@mutant(
    "refill_past_waiting_reader",
    Rules,
    "may_refill",
    "records are drawn ahead though a reader waits for them",
)
def _refill_past_readers(self: Rules, call: Call, depth: int) -> bool:
    ledger = self._ledger
    return (
        ledger.closing is not Closing.STOPPED
        and not self.is_held_off(call)
        and call.n <= ledger.sampleable
        and len(ledger.batches.prefetched(call.actor)) < depth
    )


@mutant(
    "refill_while_restoring",
    Rules,
    "may_refill",
    "records are drawn ahead though a restore waits for quiet",
)
def _refill_while_held_off(self: Rules, call: Call, depth: int) -> bool:
    ledger = self._ledger
    return (
        not ledger.cells[at.READERS]
        and ledger.closing is not Closing.STOPPED
        and call.n <= ledger.sampleable
        and len(ledger.batches.prefetched(call.actor)) < depth
    )


@mutant(
    "recall_missing",
    Actions,
    "_recall",
    "all wait for each other though a batch that was drawn ahead could be given back",
)
def _never_recall(self: Actions) -> bool:
    return False


@mutant("recalled_oldest", Batches, "settled", "Recall gives the oldest batch back")
def _settled_reversed(self: Batches) -> list[int]:
    return _settled(self)[::-1]


@mutant(
    "gathered_ahead_wakes_nobody",
    Prefetcher,
    "gather",
    "who waits for a batch that it has taken is not woken when that is gathered",
)
def _gather_silently(self: Prefetcher, payload: Payload) -> None:
    try:
        payload.batch = self._transforms.sample(self._storage.read(payload.call.slots))
    except BaseException as error:
        payload.error = error
    self._core.settle_ahead(payload.call, failed=payload.error is not None)
    payload.done = True


@mutant(
    "queue_stands_behind_head",
    Rules,
    "is_queued",
    "a call takes from the queue only when no older reader waits",
)
def _only_as_head(self: Rules, call: Call) -> bool:
    if self._ledger.queue.head(call.kind) not in (NONE, call.places[0]):
        call.oldest = NONE
        return False
    return _is_queued(self, call)
