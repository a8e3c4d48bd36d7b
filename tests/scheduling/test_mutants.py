"""Planted faults are found by the scheduler, made short, and shown again by their tokens."""

import pytest
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.outcome import Verdict
from forebay_models.progress import Quiet
from forebay_models.scheduling.campaign import Campaign, Settings
from forebay_models.scheduling.scenarios import QUICK, Plan
from forebay_models.tokens import read_token

FOUND_BY = {
    "partial_publish": "batches",
    "overwrite_sampleable": "hand-over",
    "lost_wakeup": "smallest",
    "wakes_one": "leases",
    "close_wakes_nobody": "closing",
    "cancel_wakes_nobody": "cancelled",
    "sequence_read_after_check": "smallest",
    "sequence_read_after_decision": "smallest",
    "deadline_overslept": "head-expires",
    "two_sections": "smallest",
    "use_count_off_by_one": "smallest",
    "cancel_after_publish": "cancelled",
    "cancel_after_admission": "cancelled",
    "expired_write_left_in_queue": "head-expires",
    "records_lost_when_transform_raises": "failing",
    "mutual_wait_unnoticed": "mutual-wait",
    "own_lease_unnoticed": "own-lease",
    "barging_writer": "head-expires",
    "barging_reader": "crowd",
    "returned_at_tail": "failing",
    "freed_first": "batches",
    "dropped_never_freed": "emptied",
    "draining_wants_all": "draining",
    "reopens": "stopping",
    "batch_reversed": "batches",
    "expired_head_wakes_nobody": "head-expires",
    "checked_outside_lock": "crowd",
}
"""The faults that the scheduler finds, each with a scenario in which it shows. The others concern
what no scenario has: statistics, an interrupt while waiting, and the order of slots that are taken
after one was given back; the cover finds them."""


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "name"), FOUND_BY.items())
def test_a_planted_fault_is_found_and_its_token_shows_it_each_time(fault: str, name: str) -> None:
    plan = Plan(QUICK[name].scenario, bound=1)
    campaign = Campaign(Settings(plans=[plan], random=0), Quiet(), "schedule local")
    with LOCAL_MUTANTS[fault].plant():
        campaign.run()
        outcome = campaign.outcome(fault=fault)
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    token = read_token(outcome.counterexample.token)
    assert token.fault == fault
    for _ in range(10):
        again = token.run.again(token.fault)
        assert again.verdict is Verdict.VIOLATED
        assert again.counterexample is not None
        assert again.counterexample.what == outcome.counterexample.what
    assert token.run.again("").verdict is Verdict.HOLDS


def test_a_short_schedule_is_what_is_shown() -> None:
    plan = Plan(QUICK["hand-over"].scenario, bound=1)
    campaign = Campaign(Settings(plans=[plan], random=0), Quiet(), "schedule local")
    with LOCAL_MUTANTS["sequence_read_after_check"].plant():
        campaign.run()
        outcome = campaign.outcome(fault="sequence_read_after_check")
    assert outcome.counterexample is not None
    assert "p1: extend 1 | c1: sample 1" in outcome.counterexample.setting
    assert "lost wake-up" in outcome.counterexample.what[0]
