"""`forebay verify`: the main job, every check of the models and the campaigns, in one table."""

from typing import Annotated

import typer

from forebay_models.campaign_cli import Target, budget_seconds, run_stateful
from forebay_models.check_cli import JsonOption, SaveOption, Tier, TierOption, every_check
from forebay_models.progress import bar
from forebay_models.verdicts import report


def verify(
    tier: TierOption = Tier.QUICK,
    budget: Annotated[str, typer.Option(help="How long each campaign searches.")] = "60s",
    seed: Annotated[int, typer.Option(min=0, help="Of the campaigns' random choices.")] = 0,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Judge the models, their agreement, the kernel, and the library against them.

    This is `forebay check all` and then `forebay campaign stateful --target local`, with one table
    of verdicts at the end and the exit code of the worst.

    Example: `forebay verify --budget 5m --seed 7`
    """
    seconds = budget_seconds(budget)
    with bar() as observer:
        outcomes = [
            *every_check(observer, tier),
            run_stateful(Target.LOCAL, seconds=seconds, seed=seed, steps=40, observer=observer),
        ]
    raise typer.Exit(int(report(outcomes, command="verify", as_json=as_json, save=save)))
