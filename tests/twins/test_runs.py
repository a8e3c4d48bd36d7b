"""Twin runs hold, and all that they claim to vary is varied."""

import json
from typing import get_args

import pytest
import torch
import typer
from forebay_models import twins_cli
from forebay_models.outcome import Verdict
from forebay_models.targets import StorageKind, Target
from forebay_models.twins.judge import Counts, judge
from forebay_models.twins.program import Place, Program, Recipe, Save, Step, Way
from forebay_models.twins.run import run_programs
from forebay_models.twins.schemas import SCHEMAS, TRANSFORMS, numbers_of, records
from forebay_models.twins.seen import difference, seen
from tensordict import TensorDict
from typer.testing import CliRunner

from tests.device.targets import EVERY_TARGET

STEPS = (Step("extend", 5), Step("batch", 1), Step("at_least", 3), Step("extend", 2))


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_a_few_runs_hold(target: Target) -> None:
    outcome = run_programs(target, runs=15, seconds=None, seed_number=4)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    assert outcome.figures["runs"] == 15
    assert outcome.figures["steps compared"] != 0


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("way", get_args(Way))
def test_every_schema_by_every_way_is_saved_twice(schema: str, way: Way) -> None:
    storage: StorageKind = "list" if schema == "objects" else "tensor"
    recipe = Recipe("random", 2, 2, 2, 9, storage, schema, "weighted", 1)
    save = Save(way, storage, used=way != "pickle", place="here")
    counts = Counts()
    judge(Program(recipe, (STEPS, STEPS, STEPS), (save, save)), "twins", counts)
    assert (counts.exact, counts.queued, counts.steps) == (2, 2, 12)


@pytest.mark.parametrize("place", get_args(Place))
def test_a_twin_in_every_place(place: Place) -> None:
    recipe = Recipe("fifo", 2, 1, 2, 9, "shared", "odd", "weighted", 1)
    counts = Counts()
    judge(Program(recipe, (STEPS, STEPS), (Save("pickle", "tensor", True, place),)), "x", counts)
    assert (counts.exact, counts.crossed, counts.elsewhere) == (1, 1, place != "here")


@pytest.mark.parametrize(
    ("transform", "steps"),
    [("", (Step("lease", 2),)), ("picky", ())],
)
def test_records_are_accounted_for_where_exactness_is_not_promised(
    transform: str, steps: tuple[Step, ...]
) -> None:
    recipe = Recipe("fifo", 2, 4, 2, 15, "tensor", "flat", transform, 1)
    counts = Counts()
    save = Save("state_dict", "tensor", False, "here")
    judge(Program(recipe, ((*STEPS, *steps), STEPS), (save,)), "twins", counts)
    assert (counts.exact, counts.accounted) == (0, 1)


def test_equal_seeds_give_equal_runs() -> None:
    first, second = (
        run_programs(Target.LOCAL, runs=8, seconds=None, seed_number=7).figures for _ in range(2)
    )
    assert first == second


def test_differences_are_seen() -> None:
    one = TensorDict({"x": torch.zeros(2), "y": torch.ones(2)}, [2])
    same = seen(one.clone())
    assert difference(seen(one), same) == ""
    for name, other in {
        "float64": one.double(),
        "requires a gradient": TensorDict({"x": torch.zeros(2, requires_grad=True)}, [2]),
        "[2, 1]": TensorDict({"x": torch.zeros(2, 1)}, [2]),
        "[-0.0, -0.0]": TensorDict({"x": -torch.zeros(2)}, [2]),
    }.items():
        other["y"] = one["y"] if name != "float64" else one["y"].double()
        assert name in difference(seen(one), seen(other))


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_numbers_stay_what_they_are(schema: str, transform: str) -> None:
    batch = records(schema, 20, 3)
    assert numbers_of(TRANSFORMS[transform]()(batch)) == [20, 21, 22]


def test_the_command_line() -> None:
    app = typer.Typer()
    app.command("twins")(twins_cli.twins)
    app.command("other")(lambda: None)
    result = CliRunner().invoke(app, ["twins", "--runs", "3", "--seed", "2", "--json"])
    document = json.loads(result.stdout)
    assert document["command"] == "campaign twins"
    assert document["outcomes"][0]["figures"]["runs"] == 3
    assert result.exit_code == Verdict.HOLDS
    cut = CliRunner().invoke(app, ["twins", "--budget", "1ms"])
    assert cut.exit_code == Verdict.INCONCLUSIVE
    assert "of 500 runs; give it more time" in cut.stdout
    unknown = CliRunner().invoke(app, ["twins", "--plant", "no such fault"])
    assert unknown.exit_code == Verdict.COULD_NOT_RUN
    of_device = CliRunner().invoke(app, ["twins", "--plant", "event_recorded_before_copy"])
    assert of_device.exit_code == Verdict.COULD_NOT_RUN


def test_a_fault_of_a_device_can_be_planted_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay_models.twins.run.SHRINKING", 0.0)
    app = typer.Typer()
    app.command("twins")(twins_cli.twins)
    app.command("other")(lambda: None)
    planted = ["--target", "simulated", "--plant", "event_recorded_before_copy"]
    result = CliRunner().invoke(app, ["twins", *planted])
    assert result.exit_code == Verdict.VIOLATED
