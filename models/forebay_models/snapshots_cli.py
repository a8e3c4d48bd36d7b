"""`forebay campaign snapshots`: is what is saved at full speed one moment of the buffer?

Torch is imported inside the functions, so that `forebay --help` stays quick.
"""

from typing import Annotated, Final

import typer

from forebay_models.campaign_cli import PlantOption, TargetOption, budget_seconds, one_of
from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.targets import Target
from forebay_models.verdicts import report

COUNT: Final = 4000
"""How many there are unless it is said."""


def snapshots(
    target: TargetOption = Target.LOCAL,
    count: Annotated[int, typer.Option(min=1, help="How many are taken.")] = COUNT,
    budget: Annotated[str, typer.Option(help="How long to go on at most, such as 5m.")] = "10m",
    seed: Annotated[int, typer.Option(min=0, help="Of the settings; who comes first is open.")] = 0,
    plant: PlantOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Take snapshots while others write and read at full speed, and judge each of them.

    As a state of the specification; by its counters; by each of its records, which has to be whole,
    and there as often as its writer and its readers say; or, where the buffer overwrites, in every
    second round, one of the newest. Some are restored and taken out again.

    Example: `forebay campaign snapshots --target shared --count 1000 --seed 7`
    """
    seconds = budget_seconds(budget)
    fault = "" if plant is None else _known_fault(target, plant)
    with bar() as observer:
        outcome = run_snapshots(
            target, count=count, seconds=seconds, seed=seed, fault=fault, observer=observer
        )
    verdict = report([outcome], command="campaign snapshots", as_json=as_json, save=save)
    raise typer.Exit(int(verdict))


def run_snapshots(
    target: Target,
    *,
    count: int = COUNT,
    seconds: float | None,
    seed: int,
    fault: str = "",
    observer: Observer,
) -> Outcome:
    """Take snapshots and return the outcome.

    Args:
        target: what they are taken of.
        count: how many are wanted; fewer within the budget are inconclusive.
        seconds: the budget, or None for no limit.
        seed: of the settings.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far the campaign has come.
    """
    from forebay_models.snapshots.run import run_rounds

    name = f"snapshots {target.value}"
    observer.expects(1)
    observer.begins(name)
    outcome = run_rounds(
        target,
        count=count,
        seconds=seconds,
        seed=seed,
        fault=fault,
        tell=lambda text: observer.says(name, text),
    )
    observer.ends(name, outcome)
    return outcome


def _known_fault(target: Target, name: str) -> str:
    """Return the name of a fault that can be planted, or say which there are."""
    from forebay_models.device.prompt import DEVICE_TARGETS
    from forebay_models.mutants.device import DEVICE_MUTANTS
    from forebay_models.mutants.resumes import RESUME_MUTANTS, SNAPSHOT_MUTANTS

    of_device = DEVICE_MUTANTS if target in DEVICE_TARGETS else ()
    return one_of([*SNAPSHOT_MUTANTS, *RESUME_MUTANTS, *of_device], name)
