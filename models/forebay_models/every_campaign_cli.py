"""`forebay campaign all`: every campaign, one after the other, with one table."""

from typing import Annotated, Final

import typer

from forebay_models.campaign_cli import TargetOption, budget_seconds, run_stateful
from forebay_models.check_cli import JsonOption, SaveOption, Tier, TierOption
from forebay_models.cover_cli import run_cover
from forebay_models.faults_cli import run_faults
from forebay_models.linear_cli import run_linear
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.schedule_cli import run_schedule
from forebay_models.snapshots_cli import COUNT, run_snapshots
from forebay_models.targets import SCOPES, Target
from forebay_models.twins_cli import RUNS, run_twins
from forebay_models.verdicts import report

BudgetOption = Annotated[str, typer.Option(help="How long the random walks search.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Of the campaigns' random choices.")]

FEW_RUNS: Final = 40
FEW_SNAPSHOTS: Final = 300
"""As many of either as the quick tier takes, in some ten seconds; the full one takes all."""


def everything(
    target: TargetOption = Target.LOCAL,
    tier: TierOption = Tier.QUICK,
    budget: BudgetOption = "60s",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Run every campaign and end with one table.

    Example: `forebay campaign all --budget 5m --seed 7`
    """
    with bar() as observer:
        outcomes = every_campaign(
            observer, target, tier=tier, seconds=budget_seconds(budget), seed=seed
        )
    verdict = report(outcomes, command="campaign all", as_json=as_json, save=save)
    raise typer.Exit(int(verdict))


def every_campaign(
    observer: Observer,
    target: Target = Target.LOCAL,
    *,
    tier: Tier = Tier.QUICK,
    seconds: float,
    seed: int = 0,
) -> list[Outcome]:
    """Return the outcomes of all campaigns, in the order of the verification ladder.

    Args:
        observer: is told how far they have come.
        target: what is driven.
        tier: how much is tried.
        seconds: the budget of the random walks; the other campaigns run to their end.
        seed: of all random choices.
    """
    outcomes = [
        run_cover(target, graphs=_graphs(target, tier), seconds=None, observer=observer),
        run_stateful(target, seconds=seconds, seed=seed, steps=40, observer=observer),
    ]
    if target is Target.LOCAL:
        outcomes.append(run_schedule(target, tier=tier, seed=seed, observer=observer))
    outcomes.append(run_linear(target, seconds=None, seed=seed, observer=observer))
    runs, count = (RUNS, COUNT) if tier is Tier.FULL else (FEW_RUNS, FEW_SNAPSHOTS)
    outcomes += [
        run_twins(target, runs=runs, seconds=None, seed=seed, observer=observer),
        run_snapshots(target, count=count, seconds=None, seed=seed, observer=observer),
    ]
    if target is Target.SHARED:
        outcomes += run_faults(tier=tier, seed=seed, observer=observer)
    return outcomes


def _graphs(target: Target, tier: Tier) -> list[str]:
    """Return the graphs to cover: of a shared buffer at first those in which somebody is killed.

    The others are those of the buffer on threads, and take as long once more.
    """
    graphs = SCOPES[target].graphs
    if target is Target.LOCAL or tier is Tier.FULL:
        return list(graphs)
    return [name for name, bounds in graphs.items() if "Kill" in bounds.features]
