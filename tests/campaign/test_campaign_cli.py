"""`forebay campaign stateful`, and what targets there are, on the command line."""

import json

import pytest
import torch
import typer
from forebay_models import cli
from forebay_models.campaign.facts import facts_of
from forebay_models.campaign_cli import app, budget_seconds
from forebay_models.every_campaign_cli import WIDEST
from forebay_models.explore.graph import explore
from forebay_models.mutants_cli import mutants, run_mutants
from forebay_models.outcome import Verdict
from forebay_models.progress import Quiet
from forebay_models.targets import LOCAL, SIMULATED, Target
from forebay_spec.actions import Machine
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("1.5m", 90.0), ("500ms", 0.5), ("2h", 7200.0), ("7", 7.0)]
)
def test_budgets_are_times(text: str, seconds: float) -> None:
    assert budget_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "0s", "5 days"])
def test_other_budgets_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write for example 60s"):
        budget_seconds(text)


def test_json_has_the_verdict_and_counts_every_action() -> None:
    result = CliRunner().invoke(app, ["stateful", "--examples", "2", "--seed", "1", "--json"])
    document = json.loads(result.stdout)
    assert document["command"] == "campaign stateful"
    assert document["exit_code"] == result.exit_code
    (outcome,) = document["outcomes"]
    assert outcome["name"] == "stateful local"
    assert outcome["figures"]["examples"] == 2
    assert set(LOCAL.actions) <= set(outcome["figures"])
    # Two examples cannot reach everything, and partial is never a pass.
    assert result.exit_code in (1, 3)


def test_the_table_of_what_was_exercised_is_printed() -> None:
    result = CliRunner().invoke(app, ["stateful", "--examples", "1"])
    assert "exercised" in result.stdout
    assert "Publish" in result.stdout
    assert "stateful local" in result.stdout
    assert result.exit_code in (1, 3)


def test_a_simulated_device_is_driven() -> None:
    arguments = ["stateful", "--target", "simulated", "--examples", "1", "--json"]
    result = CliRunner().invoke(app, arguments)
    (outcome,) = json.loads(result.stdout)["outcomes"]
    assert outcome["name"] == "stateful simulated"
    assert outcome["figures"]["examples"] == 1
    assert result.exit_code in (1, 3)


def test_a_fault_of_a_device_can_be_planted_where_there_is_one() -> None:
    fault = ["--examples", "1", "--plant", "published_without_event"]
    assert CliRunner().invoke(app, ["stateful", "--target", "simulated", *fault]).exit_code in (
        1,
        3,
    )
    refused = CliRunner().invoke(app, ["stateful", *fault])
    assert refused.exit_code == 2
    assert "no fault is called 'published_without_event'" in refused.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("campaign", ["stateful", "cover"])
def test_without_a_cuda_device_nothing_is_run(
    campaign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["campaign", campaign, "--target", "cuda"]) == int(Verdict.COULD_NOT_RUN)
    said = capsys.readouterr()
    assert "torch finds no CUDA device" in said.out
    assert "Traceback" not in said.out + said.err


def test_mutants_are_of_a_target() -> None:
    with pytest.raises(typer.BadParameter, match="drives local, simulated, not shared"):
        mutants(None, Target.SHARED)
    with pytest.raises(typer.BadParameter, match="there are: published_without_event"):
        mutants(["lost_wakeup"], Target.SIMULATED)


@pytest.mark.slow
def test_a_fault_of_a_device_is_found_in_an_example() -> None:
    found = run_mutants(Target.SIMULATED, names=["event_recorded_before_copy"], observer=Quiet())
    assert found.verdict is Verdict.HOLDS
    assert "of stateful simulated" in found.detail


@pytest.mark.slow
def test_the_widest_graphs_have_every_action_and_witness() -> None:
    graphs = [explore(Machine(SIMULATED.graphs[name])) for name in WIDEST]
    seen = {label.name for graph in graphs for _, label, _ in graph.edges}
    for graph in graphs:
        facts = facts_of(graph.bounds)
        for source, label, target in graph.edges:
            seen |= set(facts.witnesses(graph.states[source], label, graph.states[target]))
    # In no graph without deaths there is a capture that still copies what is to be overwritten.
    assert {*SIMULATED.actions, *SIMULATED.witnesses} - seen == {"EvictedWhileCopying"}
