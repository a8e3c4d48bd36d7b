"""Single kills: some with every way to start processes, and the smallest for each planted fault."""

import pytest
from forebay_models.faults.campaign import Campaign, Settings
from forebay_models.faults.case import Case
from forebay_models.faults.crew import METHODS, crew
from forebay_models.faults.kills import Kill, kill_of
from forebay_models.faults.points import Point, point_of
from forebay_models.faults.scenarios import SCENARIOS
from forebay_models.faults.stage import PRELOAD, Stage
from forebay_models.mutants.shared import SHARED_MUTANTS
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Quiet

FOUND_BY = {
    "mutex_not_robust": "writer/v/inside/1",
    "mark_after_stores": "writer/v/half/1",
    "redo_of_slots_only": "writer/v/marked/1",
    "redo_unmarks_first": "writer/f@half#1/redo unmarked/1",
    "ticket_of_the_dead_stays": "writer-waits/v/sleeping/1",
    "observer_of_the_dead_counted": "observer/v/marked/1",
    "producer_of_the_dead_counted": "producer/v/marked/1",
    "dead_hold_delivered": "reader/v/marked/1",
    "dead_write_published": "writer/v/marked/1",
    "recovery_wakes_nobody": "writer-ahead/v/awake/2",
}
PATIENCE = 3.0
"""Seconds after which a planted fault counts as one that makes somebody hang."""


def outcome_of(kill: str, method: str = "fork", fault: str = "", patience: float = 20.0) -> Outcome:
    found = kill_of(kill)
    settings = Settings([found.scenario], [method], fault=fault, patience=patience)
    campaign = Campaign(settings, Quiet(), "faults points")
    campaign.run_one(found, method)
    return campaign.outcome()


@pytest.mark.parametrize("fault", SHARED_MUTANTS)
def test_a_planted_fault_is_found_by_one_kill(fault: str) -> None:
    kill = FOUND_BY[fault]
    outcome = outcome_of(kill, fault=fault, patience=PATIENCE)
    assert outcome.verdict is Verdict.VIOLATED
    assert f'--only "{kill}" --plant {fault}' in outcome.detail


@pytest.mark.parametrize("kill", sorted(set(FOUND_BY.values())))
def test_the_same_kill_is_healed_without_the_fault(kill: str) -> None:
    outcome = outcome_of(kill)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    assert outcome.figures["kills by fork"] == 1


@pytest.mark.parametrize("method", METHODS)
def test_every_way_to_start_processes_can_be_taken(method: str) -> None:
    outcome = outcome_of("writer-admitted/v/copied/1", method)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    assert outcome.figures[f"kills by {method}"] == 1


def test_those_who_wait_find_out_by_themselves() -> None:
    outcome = outcome_of("writer-waits/v/asleep/1/natural")
    assert outcome.verdict is Verdict.HOLDS, outcome.detail


def test_a_point_that_is_not_reached_is_no_success() -> None:
    outcome = outcome_of("writer/v/half/99")
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "writer/v/half/99 by fork" in outcome.detail


def test_a_run_without_a_kill_tells_all_points() -> None:
    kinds = {"victim": set[str](), "finder": set[str]()}
    with crew(PRELOAD) as members:
        stage = Stage(members)
        for kill in (
            Kill("writer-waits", None),
            Kill("reader-ahead", None),
            Kill("failing", None),
            Kill("writer", Point("half", 1), finder=Point("-", 1)),
        ):
            ran = Case(stage, SCENARIOS[kill.scenario], "fork", kill).run()
            kinds["victim"] |= {reached.point.label for reached in ran.points}
            kinds["finder"] |= {reached.point.label for reached in ran.finder_points}
    everywhere = {"entering", "inside", "written", "marked", "half", "stored", "unmarked"}
    everywhere |= {"leaving", "left", "row stored"}
    assert kinds["victim"] == everywhere | {
        *("waking", "woke", "sleeping", "asleep", "awake", "woken"),
        *("arriving", "admitted", "copied", "asking", "drawn", "gathered", "returning"),
    }
    assert kinds["finder"] == everywhere | {
        *("owner dead", "consistent", "repairing", "repaired", "waking", "woke"),
        *("redo written", "redo half", "redo stored", "redo unmarked"),
    }


def test_a_campaign_takes_each_place_once_and_goes_wrong_nowhere() -> None:
    campaign = Campaign(Settings(["closing"], ["fork", "forkserver"]), Quiet(), "faults points")
    campaign.run()
    outcome = campaign.outcome()
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    taken = outcome.figures["kills by fork"]
    assert isinstance(taken, int)
    assert 11 <= taken < outcome.figures["points"]  # type: ignore[operator]  # a number
    assert outcome.figures["kills by forkserver"] == 2


def test_the_budget_ends_a_campaign_as_inconclusive() -> None:
    settings = Settings(["tokens"], ["fork"], seconds=0.0)
    campaign = Campaign(settings, Quiet(), "faults points")
    campaign.run()
    assert campaign.outcome().verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "text",
    ["writer/v/half/2", "writer/f@half#1/redo half/3", "writer/v/asleep/1/natural"],
)
def test_a_kill_is_read_as_it_is_written(text: str) -> None:
    assert str(kill_of(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "nowhere/v/half/2", "writer/x/half/2", "writer/v/half", "writer/v/half/0", "writer/v//1"],
)
def test_other_texts_name_no_kill(text: str) -> None:
    with pytest.raises(ValueError, match=r"written like|is killed"):
        kill_of(text)


def test_a_point_is_read_as_it_is_written() -> None:
    assert point_of("redo half#3") == Point("redo half", 3)
