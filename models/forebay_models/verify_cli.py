"""`forebay verify`: the main job, every check of the models and the campaigns, in one table."""

import time

import typer

from forebay_models.campaign_cli import budget_seconds
from forebay_models.check_cli import JsonOption, SaveOption, Tier, TierOption, every_check
from forebay_models.every_campaign_cli import BudgetOption, SeedOption, every_campaign
from forebay_models.parts import run_parts
from forebay_models.progress import bar
from forebay_models.targets import Target
from forebay_models.verdicts import report


def verify(
    tier: TierOption = Tier.QUICK,
    budget: BudgetOption = "60s",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Judge the models, their agreement, the kernel, and the library against them.

    This is `forebay check all`, and `forebay campaign all` on the targets that need no GPU, with
    one table of verdicts at the end and the exit code of the worst. Random walks on `shared` get
    half the time. What keeps one core busy runs beside others, so the order in which checks end is
    not theirs in the table.

    Example: `forebay verify --budget 5m --seed 7`
    """
    seconds = budget_seconds(budget)
    began = time.monotonic()
    parts = [
        *every_check(tier),
        *every_campaign(Target.LOCAL, tier=tier, seconds=seconds, seed=seed),
        *every_campaign(Target.SHARED, tier=tier, seconds=seconds / 2, seed=seed),
        *every_campaign(Target.SIMULATED, tier=tier, seconds=seconds, seed=seed),
    ]
    with bar() as observer:
        outcomes = run_parts(parts, observer)
    took = time.monotonic() - began
    verdict = report(outcomes, command="verify", as_json=as_json, save=save, took=took)
    raise typer.Exit(int(verdict))
