"""Faults of queues, captures and restores, planted in the Python specification."""

from typing import Final

from forebay_spec.actions import actions_under

from forebay_models.mutants import spec_faults as wrong
from forebay_models.mutants import spec_queue_faults as queues
from forebay_models.mutants.spec_mutant import SpecMutant, changed

QUEUE_MUTANTS: Final = (
    SpecMutant(
        "stale_batch_ready",
        "A prefetched batch whose records are dropped stays in the queue once it is gathered.",
        "prefetch",
        "TypeOK",
        changed("Ready", apply=queues.ready_though_stale),
    ),
    SpecMutant(
        "youngest_taken",
        "A call takes the youngest batch of the queue.",
        "threads",
        "TakesTheOldest",
        actions_under(take=queues.take_youngest),
    ),
    SpecMutant(
        "queue_passed_over",
        "A call draws although a batch of its size was drawn ahead for it.",
        "threads",
        "TakesTheOldest",
        changed("Ask", apply=queues.ask_past_the_queue),
    ),
    SpecMutant(
        "refill_past_a_reader",
        "A process draws ahead while a reader waits.",
        "threads",
        "FifoSampling",
        changed("Refill", enabled=queues.may_refill_past_readers),
    ),
    SpecMutant(
        "refill_short",
        "A process draws ahead what is there, even if it is less than a batch.",
        "restores",
        "ServedWhole",
        changed("Refill", enabled=queues.may_refill_with_less),
    ),
    SpecMutant(
        "oldest_recalled",
        "The oldest batch is given back instead of the youngest.",
        "threads",
        "Conservation",
        changed("Recall", apply=queues.recall_oldest),
    ),
    SpecMutant(
        "never_recalled",
        "Prefetched batches keep their records while all wait for each other.",
        "prefetch",
        "NoSilentDeadlock",
        changed("Recall", enabled=wrong.never),
    ),
    SpecMutant(
        "refused_beside_a_queue",
        "A call is told of a mutual wait although a prefetched batch can be given back.",
        "prefetch",
        "NoFalseDeadlock",
        actions_under(queues.blind_to_queues),
    ),
    SpecMutant(
        "queue_flushed_as_delivered",
        "The records of a queue that is flushed count as used.",
        "prefetch",
        "Conservation",
        changed("Return", apply=queues.flush_as_delivered),
    ),
    SpecMutant(
        "captured_before_gathered",
        "A snapshot is taken while its process gathers.",
        "captures",
        "CaptureComplete",
        changed("Capture", enabled=queues.may_capture_at_once),
    ),
    SpecMutant(
        "filling_captured",
        "A snapshot has the records of a batch that is still being written.",
        "captures",
        "CaptureComplete",
        changed("Capture", apply=queues.capture_filling),
    ),
    SpecMutant(
        "queue_order_lost",
        "A snapshot has its queue in another order.",
        "copies",
        "CaptureComplete",
        changed("Capture", apply=queues.capture_queue_reversed),
    ),
    SpecMutant(
        "captured_at_tail",
        "In a snapshot the records of others' batches are as young as they were drawn.",
        "captures",
        "CaptureComplete",
        changed("Capture", apply=queues.capture_ages_as_drawn),
    ),
    SpecMutant(
        "captured_pins",
        "A snapshot has the pins of holds that it does not have.",
        "captures",
        "CaptureAtomic",
        changed("Capture", apply=queues.capture_with_pins),
    ),
    SpecMutant(
        "capture_waits_for_all",
        "A snapshot is taken only when no call waits.",
        "captures",
        "CaptureEnds",
        changed("Capture", enabled=queues.may_capture_when_nobody_waits),
    ),
    SpecMutant(
        "copied_slot_freed",
        "A record that is spent while it is still to be copied makes room at once.",
        "captures",
        "NoOverwrite",
        changed("Deliver", apply=queues.deliver_though_not_copied),
    ),
    SpecMutant(
        "copied_slot_kept",
        "A record that was spent while it was still to be copied stays when it is copied.",
        "captures",
        "UseBound",
        changed("CaptureDone", apply=queues.copy_and_keep),
    ),
    SpecMutant(
        "loaded_while_filling",
        "A restore does not wait for batches that are being written.",
        "restores",
        "TypeOK",
        changed("Load", enabled=queues.may_load_while_filling),
    ),
    SpecMutant(
        "loaded_before_validation",
        "A restore that is rejected has thrown the records away before.",
        "restores",
        "RejectUnchanged",
        changed("Reject", apply=queues.reject_after_load),
    ),
    SpecMutant(
        "served_while_loading",
        "Writers are admitted while a buffer is restored.",
        "restores",
        "TypeOK",
        actions_under(queues.heedless_of_restores),
    ),
    SpecMutant(
        "queue_not_restored",
        "A restore leaves out the queue and gives its records back.",
        "restores",
        "Continuation",
        changed("Restore", apply=queues.restore_without_queue),
    ),
    SpecMutant(
        "dead_loader_leaves_open",
        "After the death of one who was loading the buffer stays open, without its records.",
        "lost",
        "DeadLoader",
        changed("Recover", apply=queues.recover_and_stay_open),
    ),
    SpecMutant(
        "dead_queue_left",
        "The queue of a dead process keeps its records.",
        "lost",
        "RecoversTheDead",
        changed("Recover", apply=queues.recover_and_leave_queue),
    ),
    SpecMutant(
        "dead_copy_left",
        "The capture of a dead actor stays in progress.",
        "lost",
        "RecoversTheDead",
        changed("Recover", apply=queues.recover_and_leave_boundary),
    ),
)
