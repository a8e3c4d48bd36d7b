"""Mistakes planted in the library show in what concurrent calls return.

Only those that show reliably are here. Lost wake-ups and the like do not: whoever oversleeps one
looks again after a nap, and is late, not wrong. `forebay campaign stateful` is there for those.
Neither do mistakes in finishing what was half made inside a critical section, since few random
kills find anybody there; `forebay campaign faults` kills at each place in turn.
"""

import pytest
from forebay_models.linear.run import run_histories
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.mutants.shared import SHARED_MUTANTS
from forebay_models.outcome import Outcome, Verdict
from forebay_models.targets import Target

FOUND = (
    "overwrite_sampleable",
    "use_count_off_by_one",
    "records_lost_when_transform_raises",
    "own_lease_unnoticed",
    "returned_at_tail",
    "freed_first",
    "batch_reversed",
    "stats_raise",
)
HISTORIES = 200
"""At most; the search ends with the first history that nothing explains."""
POINTS = 100_000


def found(target: Target, patience: float) -> Outcome:
    """Return what comes of a campaign, which has to find something."""
    outcome = run_histories(
        target, seconds=None, seed=0, histories=HISTORIES, limit=POINTS, patience=patience
    )
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_a_planted_fault_is_found(name: str) -> None:
    with LOCAL_MUTANTS[name].plant():
        outcome = found(Target.LOCAL, patience=30.0)
    assert "no order of their steps explains" in outcome.detail


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dead_hold_delivered", "dead_write_published"])
def test_a_fault_planted_in_recovery_is_found(name: str) -> None:
    with SHARED_MUTANTS[name].plant():
        outcome = found(Target.SHARED, patience=30.0)
    assert "no order of their steps explains" in outcome.detail


@pytest.mark.slow
def test_a_dead_caller_that_stays_in_the_queue_is_found() -> None:
    """Whoever waits behind it hangs; there is nothing for the search to judge."""
    with SHARED_MUTANTS["ticket_of_the_dead_stays"].plant():
        outcome = found(Target.SHARED, patience=10.0)
    assert "the run hangs" in outcome.detail
