"""`forebay campaign all`: every campaign, with one table."""

import time
from functools import partial
from typing import Annotated, Final

import typer

from forebay_models.campaign_cli import TargetOption, budget_seconds, run_stateful
from forebay_models.check_cli import JsonOption, SaveOption, Tier, TierOption
from forebay_models.cover_cli import run_cover
from forebay_models.faults_cli import run_faults
from forebay_models.linear_cli import run_linear
from forebay_models.parts import Part, run_parts
from forebay_models.progress import bar
from forebay_models.schedule_cli import run_schedule
from forebay_models.snapshots_cli import COUNT, run_snapshots
from forebay_models.targets import SCOPES, Target
from forebay_models.twins_cli import RUNS, run_twins
from forebay_models.verdicts import report

BudgetOption = Annotated[str, typer.Option(help="How long the random walks search.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Of the campaigns' random choices.")]

WIDEST: Final = ("cancel", "copies", "restores", "ring", "epochs", "droplast", "resumed")
"""Graphs that together have every action and witness of those without deaths, in a third of the
steps. On a device the quick tier covers these, since what the ledger does is as on threads."""

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
    began = time.monotonic()
    parts = every_campaign(target, tier=tier, seconds=budget_seconds(budget), seed=seed)
    with bar() as observer:
        outcomes = run_parts(parts, observer)
    took = time.monotonic() - began
    verdict = report(outcomes, command="campaign all", as_json=as_json, save=save, took=took)
    raise typer.Exit(int(verdict))


def every_campaign(
    target: Target = Target.LOCAL, *, tier: Tier = Tier.QUICK, seconds: float, seed: int = 0
) -> list[Part]:
    """Return all campaigns, in the order of the verification ladder.

    Args:
        target: what is driven.
        tier: how much is tried.
        seconds: the budget of the random walks; the other campaigns run to their end.
        seed: of all random choices.
    """
    graphs = _graphs(target, tier)
    runs, count = (RUNS, COUNT) if tier is Tier.FULL else (FEW_RUNS, FEW_SNAPSHOTS)
    campaigns = {
        "cover": partial(run_cover, target, graphs=graphs, seconds=None),
        "stateful": partial(run_stateful, target, seconds=seconds, seed=seed, steps=40),
        "schedule": partial(run_schedule, target, tier=tier, seed=seed),
        "linear": partial(run_linear, target, seconds=None, seed=seed),
        "twins": partial(run_twins, target, runs=runs, seconds=None, seed=seed),
        "snapshots": partial(run_snapshots, target, count=count, seconds=None, seed=seed),
    }
    if target is Target.SHARED:
        del campaigns["schedule"]
    parts = [
        Part(name=f"{name} {target.value}", run=run, alone=name == "cover")
        for name, run in campaigns.items()
    ]
    if target is Target.SHARED:
        faults = partial(run_faults, tier=tier, seed=seed)
        parts += [
            Part(name="faults points", run=partial(faults, kills=0, files=False)),
            Part(name="faults random", run=partial(faults, points=False, files=False)),
            Part(name="faults files", run=partial(faults, points=False, kills=0)),
        ]
    return parts


def _graphs(target: Target, tier: Tier) -> list[str]:
    """Return the graphs to cover: of a shared buffer at first those in which somebody is killed.

    The others are those of the buffer on threads, and take as long once more. For a device see
    `WIDEST`.
    """
    graphs = SCOPES[target].graphs
    if target is Target.LOCAL or tier is Tier.FULL:
        return list(graphs)
    if target is Target.SHARED:
        return [name for name, bounds in graphs.items() if "Kill" in bounds.features]
    return list(WIDEST)
