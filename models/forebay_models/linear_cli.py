"""`forebay campaign linear` and `forebay check history`: are the results of real runs possible?

Torch is imported inside the commands, so that `forebay --help` stays quick.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Protocol

import typer

from forebay_models.campaign_cli import (
    PlantOption,
    TargetOption,
    budget_seconds,
    one_of,
)
from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.targets import Target
from forebay_models.verdicts import report

HISTORIES = {Target.LOCAL: 200, Target.SHARED: 40, Target.SIMULATED: 200, Target.CUDA: 200}
"""How many are recorded unless it is said: as many as take half a minute."""


class Fault(Protocol):
    """A fault that can be planted."""

    @property
    def plant(self) -> Callable[[], AbstractContextManager[object]]:
        """Returns a context manager that plants it."""


def linear(
    target: TargetOption = Target.LOCAL,
    budget: Annotated[str, typer.Option(help="How long to go on at most, such as 5m.")] = "5m",
    seed: Annotated[
        int, typer.Option(min=0, help="Of what the threads ask for; who comes first is open.")
    ] = 0,
    histories: Annotated[
        int | None,
        typer.Option(min=1, help="How many are wanted; of processes fewer unless given."),
    ] = None,
    plant: PlantOption = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Save a history that fails in this file.", dir_okay=False),
    ] = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Record real runs and search for an order of steps that explains each.

    Of threads, with their records on the host or, with `--target simulated` or `cuda`, on a device;
    or with `--target shared` of processes, some of which are killed.

    Example: `forebay campaign linear --histories 1000 --seed 7 --keep failed.jsonl`
    """
    seconds = budget_seconds(budget)
    fault = "" if plant is None else _known_fault(target, plant)
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
    histories: int | None = None,
    fault: str = "",
    keep: Path | None = None,
    observer: Observer,
) -> Outcome:
    """Record and judge histories and return the outcome.

    Args:
        target: what is run.
        seconds: the budget, or None for no limit.
        seed: the number of the first workload.
        histories: how many are wanted, or None for the target's number; fewer within the budget
            are inconclusive.
        fault: the name of a fault to plant, or nothing.
        keep: where to save a history that fails.
        observer: is told how far the campaign has come.
    """
    from forebay_models.linear.run import run_histories

    name = f"linear {target.value}"
    observer.expects(1)
    observer.begins(name)
    with _faults(target)[fault].plant() if fault else nullcontext():
        outcome = run_histories(
            target,
            seconds=seconds,
            seed=seed,
            histories=HISTORIES[target] if histories is None else histories,
            keep=keep,
            tell=lambda text: observer.says(name, text),
        )
    observer.ends(name, outcome)
    return outcome


def _faults(target: Target) -> Mapping[str, Fault]:
    """Return what can be planted: in the library, and in what only a target of this kind has."""
    from forebay_models.device.prompt import DEVICE_TARGETS
    from forebay_models.mutants.device import DEVICE_MUTANTS
    from forebay_models.mutants.local import LOCAL_MUTANTS
    from forebay_models.mutants.shared import SHARED_MUTANTS

    more: Mapping[str, Fault] = {}
    if target in DEVICE_TARGETS:
        more = DEVICE_MUTANTS
    elif target is Target.SHARED:
        more = SHARED_MUTANTS
    return {**LOCAL_MUTANTS, **more}


def _known_fault(target: Target, name: str) -> str:
    """Return the name of a fault that can be planted, or say which there are."""
    return one_of(_faults(target), name)
