"""The campaign: honest buffers pass it, planted faults do not, equal seeds give equal runs."""

import threading
from collections.abc import Mapping
from typing import get_args

import pytest
from forebay_models.adapters.adapter import USUAL, Adapter, Observation
from forebay_models.adapters.local import LocalAdapter
from forebay_models.campaign.driver import Exercise
from forebay_models.campaign.machine import machine_for
from forebay_models.campaign.report import RARE
from forebay_models.campaign.run import STEPS, run
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import Setting, bounds_of
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.targets import LOCAL
from forebay_spec.actions import Label
from forebay_spec.bounds import FEATURES, Order
from hypothesis.stateful import RuleBasedStateMachine

# At the default budget of a minute there are several times as many, on a slow machine too.
WITHIN = 400
EXERCISED = 300
"""Examples in which everything is exercised; the last of it comes before the 200th."""
SEED = 0


def start(setting: Setting) -> Adapter:
    return LocalAdapter(setting.bounds, setting.storage, setting.seed, patience=5.0)


def campaign(examples: int, seed: int, shrinking: float = 0.0) -> Session:
    """Return a campaign of so many examples, after its end."""
    session = Session(start, seconds=None, examples=examples, shrinking=shrinking)
    run(session, seed_number=seed, steps=STEPS)
    return session


@pytest.mark.slow
def test_the_library_passes_and_everything_is_exercised() -> None:
    session = campaign(EXERCISED, SEED)
    assert session.failure is None
    assert session.exercise.examples == EXERCISED
    assert set(session.exercise.actions) == set(LOCAL.actions)
    assert set(LOCAL.witnesses) >= set(session.exercise.witnesses) >= set(LOCAL.witnesses) - RARE
    assert 1000 < len(session.exercise.edges.edges) < session.exercise.steps


# Found by the cover, in tests/cover/test_mutants.py. A large write at the head has to expire while
# a smaller one behind it fits: an edge of the graphs, but of the seeds 0, 1 and 2 the first does
# not come to it in so many examples, and the others at the 12th and the 373rd.
#
# A capture has an older record still to copy than the one to be overwritten: an edge of the graph
# `orphaned`, which no walk of these comes to.
ONLY_BY_THE_COVER = frozenset({"expired_head_wakes_nobody", "evicted_before_copied"})

# Found by the scheduler, in tests/scheduling/test_mutants.py: it is wrong only when another thread
# comes between two instructions of one step, which here run undisturbed.
ONLY_BY_THE_SCHEDULER = frozenset({"checked_outside_lock"})

NOT_HERE = ONLY_BY_THE_COVER | ONLY_BY_THE_SCHEDULER

SEEDS: Mapping[str, int] = {
    "all_left_restored": 1,
    "cancel_after_admission": 7,
    "cancel_after_publish": 7,
    "capture_before_quiet": 1,
    "close_wakes_nobody": 2,
    "draining_wants_all": 15,
    "emptied_still_left": 1,
    "ended_gathering_stays_pinned": 5,
    "epoch_forgets_oldest": 4,
    "expired_write_left_in_queue": 4,
    "failed_batch_swallowed": 1,
    "gathered_wakes_nobody": 1,
    "own_lease_unnoticed": 8,
    "pinned_for_each_place": 2,
    "pinned_record_evicted": 1,
    "queue_stands_behind_head": 2,
    "recalled_oldest": 1,
    "returned_at_tail": 10,
}
"""Where `SEED` comes late to a fault: a seed that comes to it within 40 examples."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(LOCAL_MUTANTS) - NOT_HERE))
def test_a_planted_fault_is_found(name: str) -> None:
    with LOCAL_MUTANTS[name].plant():
        session = campaign(WITHIN, SEEDS.get(name, SEED))
    assert session.failure is not None, LOCAL_MUTANTS[name].sentence
    assert session.failure.steps[-1].after is None
    assert session.failed_example <= WITHIN


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    def exercise(seed: int) -> Exercise:
        session = campaign(12, seed)
        assert session.failure is None
        return session.exercise

    first = exercise(5)
    assert first == exercise(5)
    assert first != exercise(6)


def test_a_failure_is_found_again_at_the_same_example_and_shrunk() -> None:
    with LOCAL_MUTANTS["lost_wakeup"].plant():
        rough = campaign(WITHIN, SEED)
        fine = campaign(rough.failed_example, SEED, shrinking=5.0)
    assert rough.failure is not None
    assert fine.failure is not None
    assert fine.failed_example == rough.failed_example
    assert len(fine.failure.steps) <= min(5, len(rough.failure.steps))
    assert "lost wake-up" in fine.failure.what[0]


def test_a_used_up_budget_ends_the_campaign_at_once() -> None:
    session = Session(start, seconds=0.0)
    run(session, seed_number=SEED)
    assert session.exercise == Exercise()


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_a_request_to_end_is_obeyed_and_is_no_failure(end: type[BaseException]) -> None:
    class Asked(LocalAdapter):
        def apply(self, label: Label, manner: str = USUAL) -> Observation:
            raise end("by a signal")

    def start_asked(setting: Setting) -> Adapter:
        return Asked(setting.bounds)

    session = Session(start_asked, seconds=None, examples=5)
    with pytest.raises(end, match="by a signal"):
        run(session, seed_number=SEED)
    assert session.failure is None
    assert session.exercise.examples == 1
    assert not any(thread.name.startswith("stepped-") for thread in threading.enumerate())


def test_every_action_has_rules() -> None:
    machine = machine_for(Session(start, seconds=None, examples=1))
    assert issubclass(machine, RuleBasedStateMachine)
    rules = {name: made for name, made in vars(machine).items() if name[-1].isdigit()}
    assert {name.split("_")[1] for name in rules} == set(LOCAL.actions)
    # One name, so that hypothesis switches none of them off for a whole run.
    assert {made.__name__ for made in rules.values()} == {"step"}


def test_the_nine_faults_that_have_to_be_found_are_among_the_mutants() -> None:
    assert set(LOCAL_MUTANTS) >= {
        "partial_publish",
        "overwrite_sampleable",
        "lost_wakeup",
        "use_count_off_by_one",
        "cancel_after_publish",
        "expired_write_left_in_queue",
        "waiter_count_not_decreased_on_exception",
        "records_lost_when_transform_raises",
        "mutual_wait_unnoticed",
    }


def test_a_fault_is_gone_after_its_block() -> None:
    honest = campaign(4, SEED).exercise
    for mutant in LOCAL_MUTANTS.values():
        with mutant.plant():
            pass
    assert campaign(4, SEED).exercise == honest


def test_the_bounds_reach_every_feature() -> None:
    features = frozenset[str]().union(*(bounds.features for bounds in bounds_of(LOCAL)))
    assert features == FEATURES - {"Kill"}
    assert {bounds.order for bounds in bounds_of(LOCAL)} == set(get_args(Order))
    assert any(bounds.drop_last for bounds in bounds_of(LOCAL))
    assert any(set(bounds.producers) & set(bounds.readers) for bounds in bounds_of(LOCAL))
    assert any(len(bounds.token_of) > len(bounds.tokens) for bounds in bounds_of(LOCAL))
    assert any(bounds.token_of == () for bounds in bounds_of(LOCAL))
