"""Faults planted in the Python specification, each of which the explorer has to find.

A property that no fault can break says nothing. Each entry here is a mistake that a buffer of this
kind has been seen to make, as a machine with one entry of the table of actions replaced, or with
another judge. Every entry names the quick graph in which it shows and a property that it breaks.
Those about queues, captures and restores are in `spec_queues`, those about overwriting buffers in
`spec_overwriting`.
"""

from collections.abc import Mapping
from typing import Final

from forebay_spec.actions import actions_under

from forebay_models.mutants import spec_faults as wrong
from forebay_models.mutants.spec_mutant import SpecMutant, changed
from forebay_models.mutants.spec_overwriting import OVERWRITING_MUTANTS
from forebay_models.mutants.spec_queues import QUEUE_MUTANTS

__all__ = ["SPEC_MUTANTS", "SpecMutant"]

_MUTANTS = (
    SpecMutant(
        "partial_publish",
        "Publish makes the first record of a batch visible and the others later.",
        "writers",
        "WholeBatches",
        changed("Publish", apply=wrong.publish_first),
    ),
    SpecMutant(
        "overwrite_sampleable",
        "A writer that finds no free slot takes the oldest record that nobody holds.",
        "writers",
        "NoOverwrite",
        actions_under(wrong.overwriting, admit=wrong.admit_over_records),
    ),
    SpecMutant(
        "use_count_off_by_one",
        "A record may be drawn once more than it should be.",
        "readers",
        "UseBound",
        actions_under(wrong.counting_wrong, draw=wrong.draw_once_more),
    ),
    SpecMutant(
        "cancel_after_admit",
        "A flag that is set while its writer fills takes the reserved slots away.",
        "cancel",
        "LeavesNoTrace",
        changed(
            "Cancel",
            instances=wrong.who_wait_or_fill,
            enabled=wrong.cancelled_wherever,
            apply=wrong.leave_or_give_up,
        ),
    ),
    SpecMutant(
        "expired_ticket_left",
        "A call whose deadline has passed ends, but its ticket stays.",
        "writers",
        "LeavesNoTrace",
        changed("Expire", apply=wrong.no_effect),
    ),
    SpecMutant(
        "abandoned_slots_lost",
        "The slots of an abandoned batch never come back into the free order.",
        "writers",
        "LeavesNoTrace",
        changed("Abandon", apply=wrong.abandon_and_lose),
    ),
    SpecMutant(
        "barging_writer",
        "A writer that fits passes those who wait.",
        "writers",
        "FifoAdmission",
        actions_under(wrong.barging(True)),
    ),
    SpecMutant(
        "barging_reader",
        "A reader that can be served passes those who wait.",
        "readers",
        "FifoSampling",
        actions_under(wrong.barging(False)),
    ),
    SpecMutant(
        "failed_draw_lost",
        "The records of a draw that failed count as used.",
        "readers",
        "Conservation",
        changed("Return", apply=wrong.return_as_delivered),
    ),
    SpecMutant(
        "returned_at_tail",
        "Returned records are the youngest instead of as old as they were.",
        "readers",
        "FifoOrder",
        changed("Return", apply=wrong.return_to_tail),
    ),
    SpecMutant(
        "returned_pin_left",
        "A hold that is returned leaves its pins on the slots.",
        "readers",
        "TypeOK",
        changed("Return", apply=wrong.return_without_unpinning),
    ),
    SpecMutant(
        "freed_while_held",
        "A spent record is thrown away at the first delivery, though another hold has it.",
        "readers",
        "NoOverwrite",
        changed("Deliver", apply=wrong.deliver_and_free),
    ),
    SpecMutant(
        "youngest_first",
        "Under fifo a draw takes the youngest records.",
        "readers",
        "FifoOrder",
        actions_under(draw=wrong.draw_youngest),
    ),
    SpecMutant(
        "draw_with_replacement",
        "A draw at random may take one record twice.",
        "random",
        "DistinctRows",
        actions_under(draw=wrong.draw_with_replacement),
    ),
    SpecMutant(
        "least_ignored",
        "A reader gets what is there, even if it is less than will do.",
        "readers",
        "ServedWhole",
        actions_under(wrong.content_with_one),
    ),
    SpecMutant(
        "mutual_wait_unnoticed",
        "Calls that wait for each other are left to wait.",
        "writers",
        "NoSilentDeadlock",
        actions_under(wrong.overlooking),
    ),
    SpecMutant(
        "mutual_wait_needs_both_kinds",
        "A mutual wait is seen only when a writer and a reader wait.",
        "leases",
        "NoSilentDeadlock",
        actions_under(wrong.needing_both_kinds),
    ),
    SpecMutant(
        "close_forgets_readers",
        "Readers that wait are not told that the buffer was closed.",
        "liveness",
        "CloseEnds",
        changed("Refuse", enabled=wrong.refused_unless_reader_closed),
    ),
    SpecMutant(
        "cancel_unseen",
        "Nobody looks at the flags.",
        "liveness",
        "CancelEnds",
        actions_under(wrong.blind_to_flags),
    ),
    SpecMutant(
        "draining_wants_all",
        "A draining buffer lets readers wait for more than can ever come.",
        "writers",
        "CloseEnds",
        actions_under(wrong.wanting_all),
    ),
    SpecMutant(
        "dead_ticket_left",
        "The call of a dead actor goes on waiting after it was recovered.",
        "heals",
        "RecoversTheDead",
        changed("Recover", apply=wrong.recover_and_leave_ticket),
    ),
    SpecMutant(
        "dead_filling_left",
        "The slots that a dead actor was filling never come back.",
        "heals",
        "RecoversTheDead",
        changed("Recover", apply=wrong.recover_and_leave_filling),
    ),
    SpecMutant(
        "dead_batch_published",
        "What a dead actor had written of its batch is made visible.",
        "heals",
        "WholeBatches",
        changed("Recover", apply=wrong.recover_and_publish),
    ),
    SpecMutant(
        "dead_hold_delivered",
        "The records that a dead actor held count as used.",
        "heals",
        "Conservation",
        changed("Recover", apply=wrong.recover_as_delivered),
    ),
    SpecMutant(
        "dead_hold_at_tail",
        "The records that a dead actor held are the youngest instead of as old as they were.",
        "heals",
        "FifoOrder",
        changed("Recover", apply=wrong.recover_to_tail),
    ),
    SpecMutant(
        "mutual_wait_beside_the_dead",
        "A mutual wait is judged as if nobody were dead.",
        "crash",
        "NoFalseDeadlock",
        actions_under(wrong.heedless_of_the_dead),
    ),
    SpecMutant(
        "dead_never_recovered",
        "Nobody looks for the dead.",
        "heals",
        "KillHeals",
        changed("Recover", enabled=wrong.never),
    ),
)
SPEC_MUTANTS: Final[Mapping[str, SpecMutant]] = {
    mutant.id: mutant for mutant in (*_MUTANTS, *QUEUE_MUTANTS, *OVERWRITING_MUTANTS)
}
