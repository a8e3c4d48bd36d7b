"""`forebay campaign stateful` on the command line."""

import json

import pytest
import typer
from forebay_models.campaign_cli import app, budget_seconds
from forebay_models.targets import LOCAL
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
