"""Every fault planted in the specification is found, with the property that it is said to break."""

import pytest
from forebay_models.explore.check import check
from forebay_models.explore.graph import explore
from forebay_models.explore.liveness import answer
from forebay_models.mutants.spec import SPEC_MUTANTS, SpecMutant
from forebay_spec.actions import ACTIONS
from forebay_spec.bounds import QUICK
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS

MUTANTS = list(SPEC_MUTANTS.values())
ISSUE = {
    *("partial_publish", "overwrite_sampleable", "use_count_off_by_one", "cancel_after_admit"),
    *("expired_ticket_left", "barging_writer", "barging_reader", "failed_draw_lost"),
    *("returned_at_tail", "mutual_wait_unnoticed", "mutual_wait_needs_both_kinds"),
    *("close_forgets_readers", "cancel_unseen", "draining_wants_all"),
    *("dead_ticket_left", "dead_filling_left", "dead_batch_published", "dead_hold_delivered"),
    *("dead_hold_at_tail", "dead_never_recovered", "mutual_wait_beside_the_dead"),
    *("captured_before_gathered", "filling_captured", "loaded_while_filling"),
    *("loaded_before_validation", "queue_order_lost", "stale_batch_ready", "youngest_taken"),
    *("copied_slot_freed", "dead_loader_leaves_open", "refill_past_a_reader"),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_the_explorer_finds_the_fault(mutant: SpecMutant) -> None:
    machine = mutant.machine(QUICK[mutant.graph])
    if mutant.breaks in LIVENESS:
        found = answer(explore(machine), LIVENESS[mutant.breaks])
        assert found.starvation is not None
    else:
        violation = check(machine).violation
        assert violation is not None
        assert mutant.breaks in violation.properties


def test_the_faults_that_were_asked_for_are_there() -> None:
    assert set(SPEC_MUTANTS) >= ISSUE


def test_a_fault_goes_by_its_id_and_says_a_sentence() -> None:
    for name, mutant in SPEC_MUTANTS.items():
        assert mutant.id == name
        assert mutant.sentence.endswith(".")
        assert set(mutant.actions) == set(ACTIONS)


def test_every_property_that_a_fault_can_break_is_broken_by_one() -> None:
    broken = {mutant.breaks for mutant in MUTANTS}
    # Bounded follows from TypeOK as long as a state has C slots, so no action breaks it alone;
    # EventuallyServed is broken in test_liveness.
    assert {*INVARIANTS, *STEPS, *LIVENESS} - broken == {"Bounded", "EventuallyServed"}
