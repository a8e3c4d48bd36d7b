"""Faults of overwriting buffers planted in the Python specification.

As in `spec`, each with the quick graph in which it shows and a property that it breaks.
"""

from typing import Final

from forebay_spec.actions import actions_under

from forebay_models.mutants import spec_overwriting_faults as wrong
from forebay_models.mutants.spec_mutant import SpecMutant, changed

OVERWRITING_MUTANTS: Final = (
    SpecMutant(
        "pinned_evicted",
        "A writer overwrites the oldest records while they are gathered.",
        "ring",
        "OldestEvicted",
        actions_under(wrong.blind_to_pins, admit=wrong.admit_over_pinned),
    ),
    SpecMutant(
        "youngest_evicted",
        "A writer overwrites the youngest records.",
        "ring",
        "OldestEvicted",
        actions_under(admit=wrong.admit_over_youngest),
    ),
    SpecMutant(
        "copied_evicted",
        "A writer overwrites records that are still to be copied.",
        "orphaned",
        "OldestEvicted",
        actions_under(wrong.blind_to_copies, admit=wrong.admit_over_copied),
    ),
    SpecMutant(
        "evicted_brought_back",
        "When a batch is abandoned, the records are there again that it has overwritten.",
        "ring",
        "WholeBatches",
        changed("Abandon", apply=wrong.abandon_and_bring_back),
    ),
    SpecMutant(
        "evicted_slots_lost",
        "Of the slots of an abandoned batch only the first one is free again.",
        "ring",
        "LeavesNoTrace",
        changed("Abandon", apply=wrong.abandon_first_slot),
    ),
    SpecMutant(
        "evicted_left",
        "A record that is overwritten is left of the epoch still.",
        "epochs",
        "TypeOK",
        actions_under(admit=wrong.admit_and_leave),
    ),
    SpecMutant(
        "evicted_remembered",
        "A hold remembers the age of a record that is overwritten.",
        "epochs",
        "TypeOK",
        actions_under(admit=wrong.admit_and_remember),
    ),
    SpecMutant(
        "pinned_until_the_end",
        "A hold pins its records until it ends.",
        "ring",
        "TypeOK",
        changed("Ready", apply=wrong.ready_and_pinned),
    ),
    SpecMutant(
        "pinned_twice",
        "A batch that has a record twice pins it twice.",
        "ring",
        "TypeOK",
        actions_under(draw=wrong.draw_with_a_pin_each),
    ),
    SpecMutant(
        "no_more_than_there_are",
        "With replacement a batch is no larger than the number of records.",
        "ring",
        "ServedWhole",
        actions_under(draw=wrong.draw_what_is_there),
    ),
    SpecMutant(
        "own_leases_counted",
        "A reader is told that it never fits beside its own leases, which pin nothing.",
        "droplast",
        "NoMutualWait",
        actions_under(wrong.counting_own_leases),
    ),
    SpecMutant(
        "drawn_is_left",
        "What a draw takes is left of the epoch still.",
        "epochs",
        "OncePerEpoch",
        actions_under(draw=wrong.draw_and_leave),
    ),
    SpecMutant(
        "returned_to_later_epoch",
        "A batch that is returned after its epoch has ended is drawn again in the next.",
        "epochs",
        "OncePerEpoch",
        actions_under(draw=wrong.draw_and_remember),
    ),
    SpecMutant(
        "last_batch_drawn",
        "The last batch of an epoch is drawn though it is short and should be left out.",
        "droplast",
        "ServedWhole",
        actions_under(draw=wrong.draw_the_last),
    ),
    SpecMutant(
        "last_batch_dropped",
        "The last batch of an epoch is left out where it should be drawn.",
        "epochs",
        "ServedWhole",
        actions_under(draw=wrong.draw_no_short_batch),
    ),
    SpecMutant(
        "published_for_the_next",
        "What is published in the middle of an epoch is not drawn before the next.",
        "epochs",
        "OncePerEpoch",
        changed("Publish", apply=wrong.publish_for_the_next),
    ),
    SpecMutant(
        "returned_for_the_next",
        "What is returned in time is not drawn again in its epoch.",
        "epochs",
        "OncePerEpoch",
        changed("Return", apply=wrong.return_for_the_next),
    ),
    SpecMutant(
        "left_not_captured",
        "A snapshot forgets what is left of the epoch.",
        "resumed",
        "CaptureComplete",
        changed("Capture", apply=wrong.capture_without_left),
    ),
    SpecMutant(
        "left_not_restored",
        "A restore begins an epoch anew.",
        "resumed",
        "Continuation",
        changed("Restore", apply=wrong.restore_without_left),
    ),
)
