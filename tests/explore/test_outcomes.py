"""The explorer's outcomes: what holds, what does not, and what could not be told."""

from dataclasses import replace

import pytest
from forebay_models.coverage import STATE_CLASSES
from forebay_models.explore import outcomes
from forebay_models.explore.graph import Limits
from forebay_models.explore.outcomes import (
    explore_outcome,
    liveness_outcome,
    mutual_wait_expected,
    mutual_wait_outcome,
    tier,
)
from forebay_models.mutants.spec import SPEC_MUTANTS
from forebay_models.outcome import Verdict
from forebay_models.runs.spec import SpecRun
from forebay_models.tokens import Token, read_token
from forebay_spec.actions import ACTIONS, Action, Machine
from forebay_spec.bounds import FULL, QUICK, Bounds, mutual_wait_bounds
from forebay_spec.state import State

from tests.spec.walking import label

LIVENESS = QUICK["liveness"]
TINY = mutual_wait_bounds(1, 1, 1)


def test_a_graph_that_keeps_every_promise_holds_within_its_bounds() -> None:
    outcome = explore_outcome(LIVENESS)
    assert outcome.verdict is Verdict.HOLDS
    assert (outcome.name, outcome.bounds) == ("explore liveness", LIVENESS.line())
    assert dict(outcome.figures) == {
        "states": 3132,
        "edges": 17447,
        "depth": 19,
        "actions": 11,
        "witnesses": 5,
    }
    assert outcome.detail == ""


def test_a_broken_promise_comes_with_its_counterexample() -> None:
    machine = SPEC_MUTANTS["overwrite_sampleable"].machine(TINY)
    outcome = explore_outcome(TINY, machine=machine, fault="overwrite_sampleable")
    assert outcome.verdict is Verdict.VIOLATED
    found = outcome.counterexample
    assert found is not None
    assert outcome.detail == found.as_text()
    assert found.what[0].startswith("NoOverwrite is violated: A record that may still be drawn")
    assert "3    | Arrive(p1,1) | slots[0] = filling" in outcome.detail
    token = read_token(found.token)
    labels = tuple(map(label, ("Arrive(p1,1)", "Publish(p1)", "Arrive(p1,1)")))
    assert token == Token(SpecRun(TINY, labels, "NoOverwrite"), "overwrite_sampleable")


def test_the_heat_counts_every_edge_by_its_action_and_the_class_of_its_state() -> None:
    outcome = explore_outcome(LIVENESS)
    assert sum(sum(row.values()) for row in outcome.heat.values()) == outcome.figures["edges"]
    assert {name for row in outcome.heat.values() for name in row} <= set(STATE_CLASSES)
    # Eight empty states, in each of which two producers may write in two sizes.
    assert outcome.heat["Arrive"]["empty"] == 8 * 2 * 2


def test_a_limit_makes_it_inconclusive() -> None:
    outcome = explore_outcome(LIVENESS, limits=Limits(states=50))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.detail == "The exploration was ended beyond 50 states."
    outcome = liveness_outcome(limits=Limits(states=50))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    outcome = mutual_wait_outcome(2, limits=Limits(states=5))
    assert outcome.verdict is Verdict.INCONCLUSIVE


def test_a_witness_that_never_comes_up_is_a_violation() -> None:
    # Nobody ever waits: whoever would have to is turned away.
    impatient = {**ACTIONS, "Arrive": turning_away("Arrive"), "Ask": turning_away("Ask")}
    outcome = explore_outcome(LIVENESS, machine=Machine(LIVENESS, impatient))
    assert outcome.verdict is Verdict.VIOLATED
    assert "ReaderWaitsThenDraws never comes up: A reader waited and draws." in outcome.detail
    outcome = explore_outcome(
        LIVENESS, machine=Machine(LIVENESS, impatient), witnesses=frozenset({"PublishAfterClose"})
    )
    assert outcome.verdict is Verdict.HOLDS


def turning_away(name: str) -> Action:
    """Return an action that changes nothing where the right one makes a call wait."""
    right = ACTIONS[name]

    def apply(bounds: Bounds, state: State, *args: str | int) -> tuple[State, ...]:
        found = right.apply(bounds, state, *args)
        return (state,) if found[0].tickets != state.tickets else found

    return replace(right, apply=apply)


def test_full_graphs_owe_the_witnesses_of_their_theme() -> None:
    bounds = replace(QUICK["writers"], name="writers-full", closings=())
    outcome = explore_outcome(bounds)
    assert outcome.verdict is Verdict.VIOLATED
    assert "PublishAfterClose never comes up" in outcome.detail


@pytest.mark.parametrize("strong", [False, True])
def test_liveness_holds_under_the_fairness_that_is_named(strong: bool) -> None:
    outcome = liveness_outcome(strong=strong)
    assert outcome.verdict is Verdict.HOLDS
    assert outcome.bounds.endswith("strong fairness" if strong else "weak fairness")
    assert outcome.figures["EventuallyServed owed in states"] == 2874


def test_whoever_dies_is_recovered_and_hinders_nobody_for_ever() -> None:
    outcome = liveness_outcome(QUICK["heals"])
    assert (outcome.name, outcome.verdict) == ("explore heals-for-ever", Verdict.HOLDS)
    assert outcome.figures["KillHeals owed in states"] == 3360
    assert "EventuallyServed owed in states" not in outcome.figures


def test_whoever_captures_has_a_snapshot_and_ends() -> None:
    outcome = liveness_outcome(QUICK["captures"])
    assert (outcome.name, outcome.verdict) == ("explore captures-end", Verdict.HOLDS)
    assert outcome.figures["CaptureEnds owed in states"] == 3457


def test_one_who_never_captures_is_shown() -> None:
    bounds = QUICK["captures"]
    machine = SPEC_MUTANTS["capture_waits_for_all"].machine(bounds)
    outcome = liveness_outcome(bounds, machine=machine)
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert outcome.counterexample.what[0].startswith("CaptureEnds is violated: Whoever asks")


def test_one_who_stays_dead_is_shown() -> None:
    bounds = replace(QUICK["heals"], producers=("p1",), readers=("r1",))
    machine = SPEC_MUTANTS["dead_never_recovered"].machine(bounds)
    outcome = liveness_outcome(bounds, machine=machine)
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert outcome.counterexample.what[0].startswith("KillHeals is violated: Once nobody is killed")
    assert "p1 stays dead" in outcome.counterexample.what[1]


def test_a_graph_that_no_liveness_property_is_about_is_refused() -> None:
    with pytest.raises(KeyError, match="writers"):
        liveness_outcome(QUICK["writers"])


def test_a_starved_call_is_shown_with_what_goes_on_meanwhile() -> None:
    machine = SPEC_MUTANTS["barging_writer"].machine(LIVENESS)
    outcome = liveness_outcome(machine=machine)
    assert outcome.verdict is Verdict.VIOLATED
    found = outcome.counterexample
    assert found is not None
    assert outcome.detail.startswith(found.as_text())
    assert found.what[0].startswith("EventuallyServed is violated: A ticket leaves")
    assert "these steps can be repeated for ever" in found.what[1]
    assert "again and again from step" in outcome.detail
    assert "CloseEnds" not in outcome.detail


def test_a_call_that_stands_still_for_ever_is_shown() -> None:
    outcome = liveness_outcome(machine=SPEC_MUTANTS["close_forgets_readers"].machine(LIVENESS))
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert outcome.counterexample.what[1] == (
        "Then nothing more has to happen, and c1 waits for ever."
    )
    assert "again and again" not in outcome.detail


def test_liveness_that_is_about_nobody_shows_nothing() -> None:
    outcome = liveness_outcome(replace(LIVENESS, token_of=()))
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.detail == "CancelEnds is about nobody: no state owes anything to anyone."


def test_the_bound_on_mutual_waits_is_confirmed_for_small_buffers() -> None:
    outcome = mutual_wait_outcome(4)
    assert outcome.verdict is Verdict.HOLDS
    assert outcome.figures["graphs"] == 1 + 4 + 9 + 16
    expected = sum(
        mutual_wait_expected(c, n, k)
        for c in range(1, 5)
        for n in range(1, c + 1)
        for k in range(1, c + 1)
    )
    assert outcome.figures["mutual waits"] == expected == 4


def test_a_wrong_bound_on_mutual_waits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "mutual_wait_expected", lambda c, n, k: n + k > c + 1)
    outcome = mutual_wait_outcome(4)
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.detail == (
        "C = 2, n = 2, k = 2: a mutual wait is not reached, against n + k > C + gcd(n, k)"
    )
    monkeypatch.setattr(outcomes, "mutual_wait_expected", lambda c, n, k: False)
    assert "C = 3, n = 2, k = 3: a mutual wait is reached" in mutual_wait_outcome(3).detail


def test_progress_is_told_in_words() -> None:
    heard: list[str] = []
    explore_outcome(LIVENESS, progress=heard.append)
    assert heard[0] == "1 states, 0 edges, depth 1, 1 to look at"
    heard.clear()
    mutual_wait_outcome(2, progress=heard.append)
    assert heard[-1] == "4 of 5 graphs, capacity 2"


def test_a_tier_is_quick_or_full() -> None:
    assert (tier("quick"), tier("full")) == (QUICK, FULL)
    with pytest.raises(KeyError):
        tier("nightly")
