"""Mistakes planted in the library show in what concurrent calls return.

Only those that show reliably are here. Lost wake-ups and the like do not: whoever oversleeps one
looks again after a nap, and is late, not wrong. `forebay campaign stateful` is there for those.
"""

import pytest
from forebay_models.linear.run import run_linear_local
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.outcome import Verdict

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
HISTORIES = 60
POINTS = 20_000


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_a_planted_fault_is_found(name: str) -> None:
    with LOCAL_MUTANTS[name].plant():
        outcome = run_linear_local(
            seconds=None, seed=0, histories=HISTORIES, limit=POINTS, patience=30.0
        )
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert "no order of their steps explains" in outcome.detail
