"""`forebay campaign linear` and `forebay check history` on the command line."""

import json
from pathlib import Path

import pytest
import torch
import typer
from forebay_models import linear_cli
from forebay_models.linear.lines import read
from forebay_models.outcome import Verdict
from typer.testing import CliRunner


@pytest.fixture
def app() -> typer.Typer:
    """Return an application with just these two commands."""
    commands = typer.Typer()
    commands.command("linear")(linear_cli.linear)
    commands.command("history")(linear_cli.history)
    return commands


def test_json_has_the_verdict_and_the_figures(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["linear", "--histories", "3", "--seed", "2", "--json"])
    document = json.loads(result.stdout)
    assert document["command"] == "campaign linear"
    (outcome,) = document["outcomes"]
    assert outcome["name"] == "linear local"
    assert outcome["verdict"] == "holds"
    assert outcome["figures"]["histories"] == 3
    assert outcome["figures"]["operations"] >= 180
    assert result.exit_code == Verdict.HOLDS


def test_records_may_be_on_a_simulated_device(app: typer.Typer) -> None:
    arguments = ["linear", "--target", "simulated", "--histories", "3", "--seed", "2", "--json"]
    result = CliRunner().invoke(app, arguments)
    (outcome,) = json.loads(result.stdout)["outcomes"]
    assert outcome["name"] == "linear simulated"
    assert outcome["verdict"] == "holds"
    assert outcome["figures"]["histories"] == 3
    assert result.exit_code == Verdict.HOLDS


def test_without_a_cuda_device_it_could_not_run(
    app: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = CliRunner().invoke(app, ["linear", "--target", "cuda"])
    assert result.exit_code == Verdict.COULD_NOT_RUN
    assert "torch finds no CUDA device" in result.stdout


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_records_may_be_on_a_cuda_device(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["linear", "--target", "cuda", "--histories", "20"])
    assert result.exit_code == Verdict.HOLDS, result.stdout


def test_fewer_histories_than_wanted_are_no_pass(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["linear", "--budget", "1ms"])
    assert result.exit_code == Verdict.INCONCLUSIVE
    assert "of 200 histories; give it more time" in result.stdout


def test_a_planted_fault_is_found_kept_and_judged_again(app: typer.Typer, tmp_path: Path) -> None:
    file = tmp_path / "failed.jsonl"
    result = CliRunner().invoke(app, ["linear", "--plant", "batch_reversed", "--keep", str(file)])
    assert result.exit_code == Verdict.VIOLATED
    assert "no order of their steps explains" in result.stdout
    assert len(read(file).operations) >= 60
    again = CliRunner().invoke(app, ["history", str(file), "--json"])
    assert again.exit_code == Verdict.VIOLATED
    assert json.loads(again.stdout)["command"] == "check history"


def test_a_fault_that_there_is_not_is_refused(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["linear", "--plant", "no such fault"])
    assert result.exit_code == 2
    of_shared = CliRunner().invoke(app, ["linear", "--plant", "dead_hold_delivered"])
    assert of_shared.exit_code == 2
    of_device = CliRunner().invoke(app, ["linear", "--plant", "published_without_event"])
    assert of_device.exit_code == 2


def test_processes_are_recorded_and_killed(app: typer.Typer) -> None:
    arguments = ["linear", "--target", "shared", "--histories", "2", "--seed", "3", "--json"]
    result = CliRunner().invoke(app, arguments)
    document = json.loads(result.stdout)
    (outcome,) = document["outcomes"]
    assert outcome["name"] == "linear shared"
    assert outcome["verdict"] == "holds"
    assert outcome["figures"]["histories"] == 2
    assert outcome["figures"]["kills"] >= 2
    assert result.exit_code == Verdict.HOLDS


@pytest.mark.slow
def test_a_fault_of_recovery_is_found_kept_and_judged_again(
    app: typer.Typer, tmp_path: Path
) -> None:
    file = tmp_path / "failed.jsonl"
    planted = ["--plant", "dead_hold_delivered", "--keep", str(file)]
    result = CliRunner().invoke(app, ["linear", "--target", "shared", *planted])
    assert result.exit_code == Verdict.VIOLATED
    assert "no order of their steps explains" in result.stdout
    assert read(file).kills
    again = CliRunner().invoke(app, ["history", str(file)])
    assert again.exit_code == Verdict.VIOLATED
