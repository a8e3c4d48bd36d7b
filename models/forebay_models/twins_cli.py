"""`forebay campaign twins`: does a restored buffer go on exactly as the one that was saved?

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

RUNS: Final = 500
"""How many there are unless it is said."""


def twins(
    target: TargetOption = Target.LOCAL,
    runs: Annotated[int, typer.Option(min=1, help="How many programs are run.")] = RUNS,
    budget: Annotated[str, typer.Option(help="How long to go on at most, such as 5m.")] = "10m",
    seed: Annotated[
        int, typer.Option(min=0, help="Of all random choices: equal seeds give equal programs.")
    ] = 0,
    plant: PlantOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Save a buffer in the middle of a random program, restore it, and let both go on.

    The twin is restored from a `state_dict`, from files or from a pickle; here or in a new process;
    into a new buffer or a used one, on threads or shared, on a device or off it; and is saved again
    itself. Both then do the same, and every index, bit, gradient, error and counter is compared.
    Where a batch had failed, or somebody had a lease and records are used up, each record is
    accounted for instead. Half of the buffers overwrite their oldest records.

    Example: `forebay campaign twins --target shared --runs 2000 --seed 7`
    """
    seconds = budget_seconds(budget)
    fault = "" if plant is None else _known_fault(target, plant)
    with bar() as observer:
        outcome = run_twins(
            target, runs=runs, seconds=seconds, seed=seed, fault=fault, observer=observer
        )
    verdict = report([outcome], command="campaign twins", as_json=as_json, save=save)
    raise typer.Exit(int(verdict))


def run_twins(
    target: Target,
    *,
    runs: int = RUNS,
    seconds: float | None,
    seed: int,
    fault: str = "",
    observer: Observer,
) -> Outcome:
    """Run programs and return the outcome.

    Args:
        target: whose storages the originals have.
        runs: how many are wanted; fewer within the budget are inconclusive.
        seconds: the budget, or None for no limit.
        seed: of all random choices.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far the campaign has come.
    """
    from forebay_models.twins.run import run_programs

    name = f"twins {target.value}"
    observer.expects(1)
    observer.begins(name)
    outcome = run_programs(
        target,
        runs=runs,
        seconds=seconds,
        seed_number=seed,
        fault=fault,
        tell=lambda text: observer.says(name, text),
    )
    observer.ends(name, outcome)
    return outcome


def _known_fault(target: Target, name: str) -> str:
    """Return the name of a fault that can be planted, or say which there are."""
    from forebay_models.device.prompt import DEVICE_TARGETS
    from forebay_models.mutants.device import DEVICE_MUTANTS
    from forebay_models.mutants.resumes import RESUME_MUTANTS

    of_device = DEVICE_MUTANTS if target in DEVICE_TARGETS else ()
    return one_of([*RESUME_MUTANTS, *of_device], name)
