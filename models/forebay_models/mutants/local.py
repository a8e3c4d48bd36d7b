"""Faults planted in the implementation, each with a sentence that says what is wrong.

A campaign that finds nothing may be blind. Each entry here is a small, believable mistake; tests
show that the campaign finds every one of them at its default budget. Some leave the ledger right
and are wrong in a wake-up, in an outcome, in a counter, in the records that a reader gets, or in
taking two critical sections for one step; so each thing that the campaign compares is needed.

What is wrong with batches that are drawn ahead is in `forebay_models.mutants.queues`, with captures
and restores in `forebay_models.mutants.crossings`, and with overwriting buffers in
`forebay_models.mutants.overwriting`.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import forebay._ledger
import forebay._rules
import forebay._stats
from forebay import BlockingReplayBuffer
from forebay import _layout as at
from forebay._actions import Actions
from forebay._batches import HoldState
from forebay._calls import BATCH, TICKET, Call
from forebay._core import Core
from forebay._free import FreeOrder
from forebay._layout import NONE
from forebay._ledger import Ledger
from forebay._monitor import ThreadMonitor
from forebay._rules import Mutual, Rules
from forebay._stores import Flags, Ints, commit
from forebay._tickets import Kind
from forebay_spec.kernel import Closing, Phase, Verdict, reader_verdict

# Their faults are registered by being loaded.
from forebay_models.mutants import crossings as crossings
from forebay_models.mutants import overwriting as overwriting
from forebay_models.mutants import queues as queues
from forebay_models.mutants.planting import PLANTED, LocalMutant, mutant

LOCAL_MUTANTS: Final[Mapping[str, LocalMutant]] = PLANTED


_first = Actions._first
_publish = Actions.publish
_leave = Ledger.leave
_withdraw = Actions.withdraw
_give_back = Actions.give_back
_at_once = Rules.at_once
_is_head = Rules.is_head
_set_flag = Ledger.set_flag
_wait = ThreadMonitor.wait
_append = FreeOrder.append
_put_back = FreeOrder.put_back
_gather = BlockingReplayBuffer._gather


@mutant(
    "partial_publish", Actions, "publish", "the first record of a batch can be seen before the rest"
)
def _publish_in_parts(self: Actions, call: Call) -> None:
    ledger, cells, first, rest = self.ledger, self.ledger.cells, call.slots[:1], call.slots[1:]
    if not len(rest):
        _publish(self, call)
        return
    with self.section:
        ledger.order.prepare(len(call.slots))
        commit(
            [
                (ledger.phase, first, Phase.LIVE),
                *ledger.order.append(first),
                (cells, at.SAMPLEABLE, cells[at.SAMPLEABLE] + 1),
                (cells, at.FILLING, cells[at.FILLING] - 1),
                (cells, at.ADMITTED, cells[at.ADMITTED] + 1),
            ]
        )
    whole, call.slots = call.slots, rest
    _publish(self, call)
    call.slots = whole


@mutant(
    "overwrite_sampleable", Rules, "at_once", "a writer without room overwrites the oldest records"
)
def _evict(self: Rules, call: Call) -> Verdict:
    ledger, cells = self._ledger, self._ledger.cells
    missing = call.n - ledger.free.count()
    if call.kind is Kind.WRITE and 0 < missing <= ledger.sampleable:
        oldest = ledger.order.select(missing)
        if not ledger.pins[oldest].any():
            commit(
                [
                    *ledger.order.draw(oldest, False),
                    (cells, at.SAMPLEABLE, cells[at.SAMPLEABLE] - missing),
                    *ledger.freeing(oldest),
                ]
            )
    return _at_once(self, call)


@mutant("lost_wakeup", Actions, "publish", "a published batch wakes nobody")
def _publish_silently(self: Actions, call: Call) -> None:
    with self.section:
        self.ledger.publish(call)


@mutant("wakes_one", ThreadMonitor, "wake", "a change wakes one sleeper instead of all")
def _wake_one(self: ThreadMonitor) -> None:
    self._sequence = next(self._numbers)
    with suppress(IndexError):
        self._sleepers.popleft().release()


@mutant("close_wakes_nobody", Actions, "close", "closing the buffer wakes nobody")
def _close_silently(self: Actions, mode: Closing, failure: BaseException | None = None) -> None:
    with self.section:
        self.ledger.close(mode)


@mutant("cancel_wakes_nobody", Actions, "set_cancel", "setting a token wakes nobody")
def _set_cancel_silently(self: Actions, token: int) -> None:
    _set_flag(self.ledger, token)


@mutant(
    "sequence_read_after_check",
    ThreadMonitor,
    "wait",
    "a change between looking at the conditions and falling asleep is overslept",
)
def _oversleep(self: ThreadMonitor, seen: int, deadline: float | None) -> None:
    _wait(self, self._sequence, deadline)


@mutant(
    "sequence_read_after_decision",
    Core,
    "_await",
    "the sequence that a call waits on is read after it has decided to wait",
)
def _decide_and_read(self: Core, call: Call, label: str) -> None:
    self.monitor.point(label)
    verdict = self.arrive(call) if call.kind is Kind.WRITE else self.ask(call)
    while verdict is Verdict.WAIT:
        self._sleep(call, self.monitor.sequence())
        self.monitor.point("woken")
        verdict = self.look_again(call)
    if verdict is not Verdict.SERVE:
        raise self.error(call, verdict)


@mutant("deadline_overslept", Core, "_until", "a call sleeps on though its deadline passes")
def _until_woken(self: Core, call: Call) -> float | None:
    return None


@mutant(
    "two_sections", Actions, "publish", "publishing counts its records in a second critical section"
)
def _publish_and_count(self: Actions, call: Call) -> None:
    _publish(self, call)
    with self.section:
        pass


@mutant("stats_raise", forebay._stats, "BufferStats", "asking for statistics raises an error")
def _no_stats(**counts: int) -> None:
    raise KeyError("planted")


@mutant(
    "use_count_off_by_one",
    forebay._ledger,
    "are_sampleable",
    "a record is drawn once more than it may",
)
def _sampleable_once_more(phase: Ints, uses: Ints, limit: int) -> Flags:
    flags: Flags = (phase == Phase.LIVE) & (uses <= limit)
    return flags


@mutant("cancel_after_publish", Actions, "publish", "a published write is reported as cancelled")
def _publish_and_deny(self: Actions, call: Call) -> None:
    _publish(self, call)
    if self.rules.is_flagged(call):
        raise self.error(call, Verdict.CANCELLED)


@mutant(
    "cancel_after_admission",
    Actions,
    "publish",
    "a flag that is set after admission still stops the write",
)
def _publish_unless_flagged(self: Actions, call: Call) -> None:
    if self.rules.is_flagged(call):
        raise self.error(call, Verdict.CANCELLED)
    _publish(self, call)


@mutant(
    "expired_write_left_in_queue",
    Ledger,
    "leave",
    "the ticket of a write that timed out stays in the queue",
)
def _leave_the_expired(self: Ledger, call: Call, counter: int | None = None) -> None:
    if counter == at.TIMEOUTS and call.kind is Kind.WRITE:
        self.count(counter)
        call.places[TICKET] = NONE
        return
    _leave(self, call, counter)


@mutant(
    "waiter_count_not_decreased_on_exception",
    Actions,
    "withdraw",
    "a call that ends with an exception while it waits is still counted as waiting",
)
def _withdraw_uncounted(self: Actions, call: Call) -> None:
    _withdraw(self, call)
    with self.section:
        self.ledger.count(at.WRITERS if call.kind is Kind.WRITE else at.READERS)


@mutant(
    "records_lost_when_transform_raises",
    Actions,
    "give_back",
    "records whose gather or transform raised are consumed",
)
def _lose_the_failed(self: Actions, call: Call) -> bool:
    row = call.places[BATCH]
    failed = any(
        hold.state is HoldState.FAILED and hold.number == self.ledger.batches.number(row)
        for hold in self.ledger.holds()
    )
    return self.deliver(call) if failed else _give_back(self, call)


@mutant("mutual_wait_unnoticed", Rules, "mutual", "calls wait for each other for ever")
def _no_mutual(self: Rules, arriving: Call | None = None) -> Mutual | None:
    return None


@mutant(
    "own_lease_unnoticed",
    Rules,
    "never_fits",
    "a call waits for slots that its own thread's leases keep",
)
def _always_fits(self: Rules, call: Call) -> bool:
    return False


@mutant("barging_writer", Rules, "is_head", "a writer that fits is admitted before older ones")
def _every_writer_first(self: Rules, call: Call) -> bool:
    return call.kind is Kind.WRITE or _is_head(self, call)


@mutant("barging_reader", Rules, "is_head", "a reader that can be served goes before older ones")
def _every_reader_first(self: Rules, call: Call) -> bool:
    return call.kind is not Kind.WRITE or _is_head(self, call)


@mutant(
    "returned_at_tail",
    forebay._ledger,
    "returned_stamps",
    "a returned record keeps the age that it got by being drawn",
)
def _young_again(current: Ints, remembered: Ints) -> Ints:
    return current


@mutant("freed_first", FreeOrder, "append", "slots that were freed last are taken first")
def _free_at_front(self: FreeOrder, slots: Ints) -> object:
    return _put_back(self, slots)


@mutant("abandoned_last", FreeOrder, "put_back", "the slots of an abandoned batch are taken last")
def _put_at_back(self: FreeOrder, slots: Ints) -> object:
    return _append(self, slots)


@mutant(
    "dropped_never_freed",
    forebay._ledger,
    "become_free",
    "slots that were emptied while they were held never become free",
)
def _keep_the_dropped(phase: Ints, uses: Ints, limit: int, pins: Ints) -> Flags:
    flags: Flags = (pins == 0) & (phase == Phase.LIVE) & (uses == limit)
    return flags


@mutant(
    "draining_wants_all",
    forebay._rules,
    "reader_verdict",
    "while draining, a reader still waits for all that it wants",
)
def _wait_for_all(
    closing: Closing,
    cancelled: bool,
    head: bool,
    queued: bool,
    m: int,
    sampleable: int,
    *rest: object,
) -> Verdict:
    filling, held_off, victim, expired = rest
    assert isinstance(filling, int)
    short = closing is Closing.DRAINING and 0 < sampleable < m
    return reader_verdict(
        closing,
        cancelled,
        head,
        queued,
        m,
        sampleable,
        max(filling, 1) if short else filling,
        bool(held_off),
        bool(victim),
        bool(expired),
    )


@mutant("reopens", Ledger, "close", "closing a stopped buffer for draining opens it to readers")
def _reopen(self: Ledger, mode: Closing) -> None:
    self.cells[at.CLOSING] = mode


@mutant("batch_reversed", BlockingReplayBuffer, "_gather", "records come in the wrong order")
def _gather_reversed(self: BlockingReplayBuffer, slots: Ints) -> object:
    return _gather(self, slots[::-1].copy())


@mutant(
    "expired_head_wakes_nobody",
    Actions,
    "look_again",
    "a call at the head that expires wakes nobody behind it",
)
def _expire_silently(self: Actions, call: Call) -> Verdict:
    with self.section:
        call.verdict = verdict = self.rules.verdict(call)
        if verdict is Verdict.WAIT:
            return verdict
        if verdict is Verdict.SERVE:
            self._serve(call)
        else:
            self.ledger.leave(call, self._counter(call, verdict))
        others = self.anybody_waits() and verdict is not Verdict.TIMEOUT
    self.hand_on(others)
    return verdict


@mutant(
    "checked_outside_lock",
    Actions,
    "_first",
    "whether there is room, or a record, is looked at before the critical section is entered",
)
def _look_before_entering(self: Actions, call: Call) -> Verdict:
    if self.rules.verdict(call) is not Verdict.SERVE:
        return _first(self, call)
    with self.section:
        call.verdict = Verdict.SERVE
        self._serve(call)
    return call.verdict
