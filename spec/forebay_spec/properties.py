"""The registry of named properties: each by name, as a sentence, and as a predicate.

The names are those of docs/state-machine.md, of the TLA+ model and of the tests. State properties
hold in every state, step properties of every step; a liveness property says who is owed an end and
which steps must go on for that; a witness must come up somewhere.

A check of a faulty machine takes `invariants(actions)`, since `NoSilentDeadlock` and
`NoFalseDeadlock` ask what the machine at hand can do next; `INVARIANTS` is that for the honest one.
"""

from collections.abc import Mapping
from typing import Final

from forebay_spec import boundary_steps as boundary_of
from forebay_spec import boundary_witnesses as seen_at
from forebay_spec import invariants as state_of
from forebay_spec import overwriting_steps as overwriting_of
from forebay_spec import overwriting_witnesses as seen_over
from forebay_spec import steps as step_of
from forebay_spec import witnesses as seen_in
from forebay_spec.actions import ACTIONS, Action, Label, actor_of
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Closing
from forebay_spec.named import (
    Choice,
    Fairness,
    Invariant,
    Liveness,
    StepProperty,
    Witness,
    anywhere,
    overwriting,
)
from forebay_spec.state import State


def invariants(actions: Mapping[str, Action] = ACTIONS) -> Mapping[str, Invariant]:
    """Return the state properties for a machine with these actions."""
    rows = (
        Invariant(
            "TypeOK",
            "Every variable has a value of its type, and the variables tell the same story.",
            state_of.type_ok,
        ),
        Invariant(
            "Bounded",
            "Free, filling, live and dropped slots are C together, and no batch is larger.",
            state_of.bounded,
        ),
        Invariant(
            "UseBound",
            "No record is used more than N times; none that is spent or dropped stays unless it is "
            "held or still to be copied.",
            state_of.use_bound,
        ),
        Invariant(
            "DistinctRows",
            "No batch, filling or held, names a slot twice, unless it is drawn with replacement.",
            state_of.distinct_rows,
        ),
        Invariant(
            "NoSilentDeadlock",
            "Whoever waits can be helped by a step or a call, or is told that nobody can.",
            state_of.no_silent_deadlock(actions),
        ),
        Invariant(
            "NoFalseDeadlock",
            "Nobody is told of a mutual wait while a step may still help, or somebody is dead.",
            state_of.no_false_deadlock(actions),
        ),
        Invariant(
            "CaptureAtomic",
            "A snapshot is a state in which nothing is going on but the queue of its process.",
            state_of.capture_atomic,
        ),
        Invariant(
            "NoMutualWait",
            "In an overwriting buffer nobody is told of a mutual wait.",
            state_of.no_mutual_wait(actions),
            overwriting,
        ),
    )
    return {row.name: row for row in rows}


INVARIANTS: Final = invariants()

_STEPS = (
    StepProperty(
        "NoOverwrite",
        "A record that may still be drawn, or is held or still to be copied, keeps its slot, but "
        "for evicted ones.",
        step_of.no_overwrite,
    ),
    StepProperty(
        "WholeBatches",
        "A batch becomes visible all at once, by Publish; all of a snapshot does so by Restore.",
        step_of.whole_batches,
    ),
    StepProperty(
        "Conservation",
        "Records come only by Publish and Restore and go only by being spent or evicted, by Empty "
        "or by Load; returned ones are sampleable again.",
        step_of.conservation,
    ),
    StepProperty(
        "LeavesNoTrace",
        "Calls that come to nothing change nothing but the tickets, or what they had reserved; "
        "Kill changes nothing but who is dead.",
        step_of.leaves_no_trace,
    ),
    StepProperty(
        "TakesTheOldest",
        "Who takes, takes the oldest batch of the queue, and changes nothing else but its ticket.",
        step_of.takes_the_oldest,
    ),
    StepProperty(
        "CaptureComplete",
        "A snapshot has every record, with the uses and the age that it has when all holds are "
        "given back but those of the queue.",
        boundary_of.capture_complete,
    ),
    StepProperty(
        "RejectUnchanged",
        "A restore that is rejected has changed nothing.",
        boundary_of.reject_unchanged,
    ),
    StepProperty(
        "Continuation",
        "Restore makes the buffer what the snapshot says, and leaves calls, flags and closing.",
        boundary_of.continuation,
    ),
    StepProperty(
        "DeadLoader",
        "Who dies while it loads leaves a buffer that is stopped and has no records.",
        boundary_of.dead_loader,
    ),
    StepProperty(
        "RecoversTheDead",
        "After Recover nothing of the dead actor is left, and all others have what they had.",
        step_of.recovers_the_dead,
    ),
    StepProperty(
        "FifoAdmission",
        "A writer is admitted only when no older writer waits.",
        step_of.fifo_admission,
    ),
    StepProperty(
        "FifoSampling",
        "A reader draws only when no older reader waits.",
        step_of.fifo_sampling,
    ),
    StepProperty(
        "FifoOrder",
        "Under fifo a draw takes the oldest sampleable records, oldest first; returned ones are as "
        "old as they were.",
        step_of.fifo_order,
    ),
    StepProperty(
        "ServedWhole",
        "A draw has at least m records, or draining has ended what could come; never more than k. "
        "A prefetched batch has B.",
        step_of.served_whole,
    ),
    StepProperty(
        "OldestEvicted",
        "Only a writer for whom the free slots do not do evicts, and only the oldest records that "
        "nobody gathers or has still to copy.",
        overwriting_of.oldest_evicted,
        overwriting,
    ),
    StepProperty(
        "OncePerEpoch",
        "No record is drawn twice in an epoch, unless it was given back in between.",
        overwriting_of.once_per_epoch,
        overwriting,
    ),
)
STEPS: Final[Mapping[str, StepProperty]] = {row.name: row for row in _STEPS}


def _who_wait(bounds: Bounds, state: State) -> frozenset[str]:
    return frozenset(ticket.actor for ticket in state.tickets)


def _who_wait_cancelled(bounds: Bounds, state: State) -> frozenset[str]:
    return frozenset(x for x in _who_wait(bounds, state) if bounds.token(x) in state.cancelled)


def _who_wait_closed(bounds: Bounds, state: State) -> frozenset[str]:
    return _who_wait(bounds, state) if state.closing != Closing.OPEN else frozenset()


def _who_wait_or_are_dead(bounds: Bounds, state: State) -> frozenset[str]:
    # While nobody is killed, no one goes from waiting to being dead or back without being out of
    # both in between, so the two debts can be one.
    return _who_wait(bounds, state) | state.dead


def _who_captures(bounds: Bounds, state: State) -> frozenset[str]:
    stage, actor, _ = state.boundary
    return frozenset((actor,)) if stage in ("capturing", "copying") else frozenset()


_LIVENESS = (
    Liveness(
        "EventuallyServed",
        "A ticket leaves, if the buffer and its callers go on.",
        "CallersGoOn",
        _who_wait,
    ),
    Liveness(
        "CancelEnds",
        "A ticket whose flag is set leaves, if the buffer goes on.",
        "BufferGoesOn",
        _who_wait_cancelled,
    ),
    Liveness(
        "CloseEnds",
        "After Close every ticket leaves, if the buffer goes on.",
        "BufferGoesOn",
        _who_wait_closed,
    ),
    Liveness(
        "CaptureEnds",
        "Whoever asks for a capture has it, and it ends, if the buffer goes on.",
        "BufferGoesOn",
        _who_captures,
        theme="captures",
    ),
    Liveness(
        "KillHeals",
        "Once nobody is killed any more, nobody stays dead and every ticket leaves, if all go on.",
        "CallersGoOn",
        _who_wait_or_are_dead,
        theme="heals",
        end=frozenset({"Kill"}),
    ),
)
LIVENESS: Final[Mapping[str, Liveness]] = {row.name: row for row in _LIVENESS}


_GOES_ON: Final = frozenset(
    {
        *("Admit", "Publish", "Draw", "Cancel", "Refuse"),
        *("Capture", "CaptureDone", "Load", "Restore"),
    }
)


def fair_choice(fairness: Fairness, state: State, label: Label) -> Choice | None:
    """Return the choice that a step belongs to and that is not put off for ever, or None.

    Under `BufferGoesOn` these are the steps of the buffer and of those who are in a call, under
    `CallersGoOn` also the calls of each producer and each reader, whatever their sizes.
    """
    name = label.name
    if name == "Recover":  # a step of the buffer, for each of the dead
        return name, str(label.args[0])
    if name == "Recall":
        return name, ""
    goes_on = name in _GOES_ON
    if name in ("Ready", "Deliver", "Return"):
        h = label.args[0]
        assert isinstance(h, int)
        hold = state.holds[h]
        if hold.kind == "prefetched":  # its process is nobody who is in a call
            return (name, f"process {hold.owner}") if name == "Ready" else None
        goes_on = {
            "Ready": True,
            "Deliver": hold.kind == "plain",
            "Return": hold.state == "failed",
        }[name]
    if name in ("Arrive", "Ask"):
        goes_on = fairness == "CallersGoOn"
    actor = actor_of(state, label)
    return (name, actor) if goes_on and actor is not None else None


_WITNESSES = (
    ("WriterWaitsThenAdmitted", seen_in.writer_waits_then_admitted, ("Admit",)),
    ("ReaderWaitsThenDraws", seen_in.reader_waits_then_draws, ("Draw",)),
    ("SmallBehindLarge", seen_in.small_behind_large, ()),
    ("MutualWaitFound", seen_in.mutual_wait_found, ("Arrive", "Ask", "Refuse")),
    ("OwnLeaseRefused", seen_in.own_lease_refused, ("Arrive", "Ask", "Refuse")),
    ("DrawReturned", seen_in.draw_returned, ("Return",)),
    ("LeaseReturned", seen_in.lease_returned, ("Return",)),
    ("ShortByLeast", seen_in.short_by_least, ("Ask", "Draw")),
    ("ShortByDraining", seen_in.short_by_draining, ("Ask", "Draw")),
    ("DroppedWhileHeld", seen_in.dropped_while_held, ("Empty",)),
    ("CancelAfterAdmit", seen_in.cancel_after_admit, ("SetCancel",)),
    ("PublishAfterClose", seen_in.publish_after_close, ("Publish",)),
    ("KilledWhileWaiting", seen_in.killed_while_waiting, ("Kill",)),
    ("KilledWhileFilling", seen_in.killed_while_filling, ("Kill",)),
    ("KilledWhileGathering", seen_in.killed_while_gathering, ("Kill",)),
    ("KilledWhileLeasing", seen_in.killed_while_leasing, ("Kill",)),
    ("RecoveredThenServed", seen_in.recovered_then_served, ("Recover",)),
)
_ABOUT_QUEUES = (
    ("TakenWhileGathering", seen_at.taken_while_gathering, ("Ask", "Draw")),
    ("TakenFailed", seen_at.taken_failed, ("Ask", "Draw")),
    ("TakenByWaiting", seen_at.taken_by_waiting, ("Draw",)),
    ("Recalled", seen_at.recalled, ("Recall",)),
    ("FlushedQueue", seen_at.flushed_queue, ("Return",)),
    ("StaleGathering", seen_at.stale_gathering, ("Empty",)),
    ("CaptureWhileWriterWaits", seen_at.capture_while_writer_waits, ("Capture",)),
    ("CaptureWhileFilling", seen_at.capture_while_filling, ("Capture",)),
    ("CaptureAskWhileGathering", seen_at.capture_ask_while_gathering, ("CaptureAsk",)),
    ("CaptureWithQueue", seen_at.capture_with_queue, ("Capture",)),
    ("SpentWhileCopied", seen_at.spent_while_copied, ("Deliver",)),
    ("DroppedWhileCopied", seen_at.dropped_while_copied, ("Empty",)),
    ("HeldOffByCapture", seen_at.held_off_by_capture, ()),
    ("RestoredWithQueue", seen_at.restored_with_queue, ("Restore",)),
    ("RestoredWhileWaiting", seen_at.restored_while_waiting, ("Load", "Restore")),
    ("LeaseMadeVoid", seen_at.lease_made_void, ("Load",)),
    ("Rejected", seen_at.rejected, ("Reject",)),
    ("KilledWhileCopying", seen_at.killed_while_copying, ("Kill",)),
    ("KilledWhileLoading", seen_at.killed_while_loading, ("Kill",)),
)
_ABOUT_OVERWRITING = (
    ("Evicted", seen_over.evicted, ("Arrive", "Admit")),
    ("EvictedPastPinned", seen_over.evicted_past_pinned, ("Arrive", "Admit")),
    ("EvictedWhileLeased", seen_over.evicted_while_leased, ("Arrive", "Admit")),
    ("EvictedWhileCopying", seen_over.evicted_while_copying, ("Arrive", "Admit")),
    ("WriterWaitsForGather", seen_over.writer_waits_for_gather, ()),
    ("DrawnTwice", seen_over.drawn_twice, ("Ask", "Draw", "Refill")),
    ("EpochEnds", seen_over.epoch_ends, ("Ask", "Draw", "Refill")),
    ("NewEpoch", seen_over.new_epoch, ("Ask", "Draw", "Refill")),
    ("BackInEpoch", seen_over.back_in_epoch, ("Return",)),
    ("TooLateForEpoch", seen_over.too_late_for_epoch, ("Return",)),
    ("LastDropped", seen_over.last_dropped, ("Ask", "Draw", "Refill")),
    ("RestoredLeft", seen_over.restored_left, ("Restore",)),
)
WITNESSES: Final[Mapping[str, Witness]] = {
    name: Witness(name, (predicate.__doc__ or "").strip(), predicate, actions, within)
    for rows, within in (
        ((*_WITNESSES, *_ABOUT_QUEUES), anywhere),
        (_ABOUT_OVERWRITING, overwriting),
    )
    for name, predicate, actions in rows
}
ABOUT_QUEUES: Final = frozenset(name for name, _, _ in _ABOUT_QUEUES)
"""The witnesses that need batches drawn ahead, captures or restores."""
