"""The schedule campaign: what it says at its end, and the command."""

import pytest
from forebay_models.cli import main
from forebay_models.outcome import Verdict
from forebay_models.progress import Quiet
from forebay_models.scheduling.campaign import Campaign, Settings
from forebay_models.scheduling.scenarios import QUICK, Plan


def run(plan: Plan, *, seconds: float | None = None, random: int = 5) -> Campaign:
    campaign = Campaign(
        Settings(plans=[plan], random=random, seconds=seconds), Quiet(), "schedule local"
    )
    campaign.run()
    return campaign


def test_a_campaign_that_ran_everything_holds_and_says_what_it_ran() -> None:
    outcome = run(Plan(QUICK["smallest"].scenario, bound=1)).outcome()
    assert outcome.verdict is Verdict.HOLDS
    schedules = outcome.figures["schedules"]
    assert isinstance(schedules, int)
    assert schedules > 30
    assert outcome.heat["Publish"]["filling"] > 0
    assert "at most 1 preemptions" in outcome.bounds


def test_a_budget_that_ends_early_is_inconclusive() -> None:
    outcome = run(QUICK["crowd"], seconds=0.0).outcome()
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "crowd" in outcome.detail


def test_actions_that_were_never_taken_are_inconclusive() -> None:
    settings = Settings(
        plans=[Plan(QUICK["smallest"].scenario, bound=0)], random=0, actions=["Publish", "Empty"]
    )
    campaign = Campaign(settings, Quiet(), "schedule local")
    campaign.run()
    outcome = campaign.outcome()
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "no scenario has taken: Empty" in outcome.detail


def test_steps_count_as_edges_of_a_quick_graph_with_the_same_constants() -> None:
    counted = run(Plan(QUICK["dice"].scenario, bound=0)).exercised.edges
    assert counted.edges
    assert {name for name, *_ in counted.edges} == {"random"}
    assert not run(Plan(QUICK["smallest"].scenario, bound=0)).exercised.edges.edges


def test_the_command_runs_a_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["campaign", "schedule", "--scenario", "smallest", "--bound", "1", "--random", "2"]
    assert main(command) == int(Verdict.HOLDS)
    assert "schedule local" in capsys.readouterr().out


def test_the_command_finds_a_planted_fault(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["campaign", "schedule", "--scenario", "smallest", "--plant", "lost_wakeup"]
    assert main(command) == int(Verdict.VIOLATED)
    assert "forebay replay forebay1." in capsys.readouterr().out


def test_the_command_names_the_scenarios_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "schedule", "--scenario", "huge"]) == int(Verdict.COULD_NOT_RUN)
    assert "smallest" in capsys.readouterr().err
