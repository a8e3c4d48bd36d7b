"""`forebay campaign linear` and `forebay check history`: are the results of real runs possible?

Torch is imported inside the commands, so that `forebay --help` stays quick.
"""

from pathlib import Path
from typing import Annotated

import typer

from forebay_models.campaign_cli import (
    PlantOption,
    TargetOption,
    budget_seconds,
    known_fault,
    local_only,
)
from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.targets import Target
from forebay_models.verdicts import report

HISTORIES = 200


def linear(
    target: TargetOption = Target.LOCAL,
    budget: Annotated[str, typer.Option(help="How long to go on at most, such as 5m.")] = "5m",
    seed: Annotated[
        int, typer.Option(min=0, help="Of what the threads ask for; who comes first is open.")
    ] = 0,
    histories: Annotated[int, typer.Option(min=1, help="How many are wanted.")] = HISTORIES,
    plant: PlantOption = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Save a history that fails in this file.", dir_okay=False),
    ] = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Record real runs of threads and search for an order of steps that explains each.

    Example: `forebay campaign linear --histories 1000 --seed 7 --keep failed.jsonl`
    """
    local_only(target, "linear")
    seconds = budget_seconds(budget)
    fault = "" if plant is None else known_fault(plant)
    with bar() as observer:
        outcome = run_linear(
            target,
            seconds=seconds,
            seed=seed,
            histories=histories,
            fault=fault,
            keep=keep,
            observer=observer,
        )
    verdict = report([outcome], command="campaign linear", as_json=as_json, save=save)
    raise typer.Exit(int(verdict))


def history(
    file: Annotated[
        Path, typer.Argument(help="A history as JSON lines.", dir_okay=False, exists=True)
    ],
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Judge a saved history: is there an order of steps that explains its results?

    Example: `forebay check history failed.jsonl`
    """
    from forebay_models.linear.run import check_history_file

    outcome = check_history_file(file)
    raise typer.Exit(int(report([outcome], command="check history", as_json=as_json, save=save)))


def run_linear(
    target: Target,
    *,
    seconds: float | None,
    seed: int,
    histories: int = HISTORIES,
    fault: str = "",
    keep: Path | None = None,
    observer: Observer,
) -> Outcome:
    """Record and judge histories and return the outcome.

    Args:
        target: what is run.
        seconds: the budget, or None for no limit.
        seed: the number of the first workload.
        histories: how many are wanted; fewer within the budget are inconclusive.
        fault: the name of a fault to plant, or nothing.
        keep: where to save a history that fails.
        observer: is told how far the campaign has come.
    """
    from forebay_models.linear.run import run_linear_local
    from forebay_models.runs.walk import planted

    name = f"linear {target.value}"
    observer.expects(1)
    observer.begins(name)
    with planted(fault):
        outcome = run_linear_local(
            seconds=seconds,
            seed=seed,
            histories=histories,
            keep=keep,
            tell=lambda text: observer.says(name, text),
        )
    observer.ends(name, outcome)
    return outcome
