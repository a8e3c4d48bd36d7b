"""Every fault that is planted in the library is found on the way through one of the graphs."""

import gc
from collections.abc import Mapping
from functools import lru_cache
from unittest.mock import patch

import pytest
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.quiet import quiet_library
from forebay_models.cover.plan import paths
from forebay_models.cover.share import Share
from forebay_models.explore.graph import Graph, explore
from forebay_models.mutants.device import DEVICE_MUTANTS
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.outcome import Verdict
from forebay_models.runs.walk import WalkRun
from forebay_models.stepping.worker import Hands
from forebay_models.targets import LOCAL, SHARED, SIMULATED, Scope
from forebay_models.tokens import read_token, token_of
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK

USUAL = "liveness"
GRAPHS: Mapping[str, str] = {
    "abandoned_last": "writers",
    "barging_reader": "leases",
    "batch_reversed": "writers",
    "deadline_overslept": "cancel",
    "draining_wants_all": "writers",
    "dropped_never_freed": "cancel",
    "expired_head_wakes_nobody": "cancel",
    "expired_write_left_in_queue": "cancel",
    "mutual_wait_unnoticed": "writers",
    "own_lease_unnoticed": "leases",
    "capture_before_quiet": "captures",
    "copied_slot_freed_at_once": "captures",
    "copied_spent_slot_lost": "captures",
    "counters_not_restored": "restores",
    "crossing_wakes_nobody": "captures",
    "failed_batch_swallowed": "prefetch",
    "filling_captured_as_live": "captures",
    "gathered_ahead_wakes_nobody": "prefetch",
    "held_off_while_copied": "captures",
    "admitted_while_restoring": "restores",
    "lease_not_void": "restores",
    "queue_not_captured": "captures",
    "queue_reversed": "copies",
    "queue_stands_behind_head": "threads",
    "recall_missing": "copies",
    "recalled_oldest": "copies",
    "refill_past_waiting_reader": "prefetch",
    "refill_while_restoring": "captures",
    "restore_before_quiet": "restores",
    "restored_without_validation": "restores",
    "stale_batch_taken": "prefetch",
    "taken_not_oldest": "copies",
    "records_lost_when_transform_raises": "readers",
    "returned_at_tail": "readers",
    "waiter_count_not_decreased_on_exception": "cancel",
    "pinned_record_evicted": "ring",
    "evicted_before_copied": "orphaned",
    "youngest_evicted": "ring",
    "gathered_gives_no_room": "ring",
    "draw_leaves_room": "ring",
    "capture_leaves_room": "resumed",
    "pinned_for_each_place": "orphaned",
    "gathered_wakes_nobody": "ring",
    "abandoned_comes_back": "ring",
    "evictions_not_counted": "ring",
    "evicted_still_left": "epochs",
    "emptied_still_left": "epochs",
    "drawn_still_left": "epochs",
    "returned_into_later_epoch": "epochs",
    "epoch_forgets_oldest": "droplast",
    "drop_last_ignored": "droplast",
    "overwritten_returned": "resumed",
    "all_left_in_snapshot": "resumed",
    "epoch_not_in_snapshot": "resumed",
    "all_left_restored": "resumed",
    "ended_gathering_stays_pinned": "orphaned",
    "generator_rewound": "resumed",
}
"""The graph that has what a fault needs, where `USUAL` has not; one with deaths needs `shared`."""

ONLY_BY_THE_SCHEDULER = frozenset({"checked_outside_lock"})
"""Found in tests/scheduling/test_mutants.py. These are wrong only when another thread comes between
two instructions of one step; here a thread runs from one labelled point to the next undisturbed."""

SHOWN_BY_THE_SCHEDULER = frozenset({"sequence_read_after_check"})
"""Here the thread sleeps in earnest, and each replay would take as long as the patience for it."""

DEVICE_GRAPHS: Mapping[str, str] = {
    "ahead_not_kept": "copies",
    "ahead_without_event": "copies",
    "captured_before_copied": "restores",
    "copied_without_last_copys_event": "writers",
    "reads_of_one_stream_noted": "restores",
    "restored_without_event": "restores",
}
"""The same for a fault in the order that a device keeps."""

WITHIN = 12_000
"""Steps; the most that any of them needs is about 2,000, on a device about 9,000."""


@lru_cache
def graph_called(name: str) -> Graph:
    graph = explore(Machine(QUICK[name]))
    # Else a collection of garbage that looks through it all may take as long as the patience.
    gc.freeze()
    return graph


def first_failure(name: str, scope: Scope | None = None) -> Divergence | None:
    """Return the first failure on the way through a graph."""
    graph, exercise = graph_called(name), Exercise()
    scope = scope or (SHARED if "Kill" in graph.bounds.features else LOCAL)
    # A replay compares the counters after every step, and has to fail at the same one.
    with Hands() as hands, quiet_library(), patch("forebay_models.cover.share.COUNTED", 1):
        share = Share(graph, hands, exercise, scope, patience=3.0)
        for number, path in enumerate(paths(graph)):
            failure = share.walk(number, path, lambda: True)
            if failure is not None or exercise.steps > WITHIN:
                return failure
    return None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases left
@pytest.mark.parametrize("name", sorted(set(LOCAL_MUTANTS) - ONLY_BY_THE_SCHEDULER))
def test_a_planted_fault_is_found_and_its_token_shows_it_each_time(name: str) -> None:
    with LOCAL_MUTANTS[name].plant():
        failure = first_failure(GRAPHS.get(name, USUAL))
    assert failure is not None, LOCAL_MUTANTS[name].sentence
    assert failure.steps[-1].after is None or "wake-up" in failure.what[0]
    if name in SHOWN_BY_THE_SCHEDULER:
        return
    token = read_token(token_of(WalkRun.of(failure), fault=name))
    for _ in range(10):
        again = token.run.again(token.fault)
        assert again.verdict is Verdict.VIOLATED
        assert again.counterexample is not None
        assert again.counterexample.what == failure.what
    assert token.run.again("").verdict is Verdict.HOLDS


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DEVICE_MUTANTS))
def test_a_fault_of_a_device_is_found_and_its_token_shows_it_each_time(name: str) -> None:
    with DEVICE_MUTANTS[name].plant():
        failure = first_failure(DEVICE_GRAPHS.get(name, USUAL), SIMULATED)
    assert failure is not None, DEVICE_MUTANTS[name].sentence
    token = read_token(token_of(WalkRun.of(failure), fault=name))
    for _ in range(3):
        again = token.run.again(token.fault)
        assert again.counterexample is not None
        assert again.counterexample.what == failure.what
    assert token.run.again("").verdict is Verdict.HOLDS


@pytest.mark.slow
def test_the_head_that_expires_and_wakes_nobody_is_a_lost_wakeup() -> None:
    with LOCAL_MUTANTS["expired_head_wakes_nobody"].plant():
        failure = first_failure("cancel")
    assert failure is not None
    assert failure.steps[-1].label.name == "Expire"
    assert "lost wake-up" in failure.what[0]
