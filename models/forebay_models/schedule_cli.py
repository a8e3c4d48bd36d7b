"""`forebay campaign schedule`: the library's own threads under every order of their steps.

Torch is imported inside the command, so that `forebay --help` stays quick.
"""

from typing import Annotated

import typer

from forebay_models.campaign_cli import (
    PlantOption,
    TargetOption,
    budget_seconds,
    known_fault,
    one_of_targets,
)
from forebay_models.check_cli import JsonOption, SaveOption, Tier, TierOption
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.targets import Target
from forebay_models.verdicts import report


def schedule(
    target: TargetOption = Target.LOCAL,
    tier: TierOption = Tier.QUICK,
    scenario: Annotated[
        list[str] | None, typer.Option(help="A scenario by its name; all of the tier unless given.")
    ] = None,
    bound: Annotated[
        int | None,
        typer.Option(min=0, help="Preemptions, instead of each scenario's own bound."),
    ] = None,
    random: Annotated[
        int,
        typer.Option(min=0, help="Random schedules of each kind for every scenario afterwards."),
    ] = 50,
    depth: Annotated[
        int, typer.Option(min=1, help="Of the random schedules with priorities (PCT).")
    ] = 3,
    budget: Annotated[
        str | None, typer.Option(help="End after that time, such as 60s, though some are left.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random schedules.")] = 0,
    plant: PlantOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Run real threads one at a time, in every order with few preemptions, and judge each step.

    A preemption takes the turn from a thread that could go on, at an entry or exit of the critical
    section, a wait, a wake-up or a labelled point, or ends a sleep early. A failing schedule is
    made short and shown with a replay token. On a simulated device each stream takes its turns like
    a thread, a step of what is queued at a time.

    Example: `forebay campaign schedule --scenario smallest --bound 4`
    """
    one_of_targets((Target.LOCAL, Target.SIMULATED, Target.CUDA), target, "schedule")
    seconds = None if budget is None else budget_seconds(budget)
    fault = "" if plant is None else known_fault(plant, target)
    with bar() as observer:
        outcome = run_schedule(
            target,
            tier=tier,
            scenarios=scenario or [],
            bound=bound,
            random=random,
            depth=depth,
            seconds=seconds,
            seed=seed,
            fault=fault,
            observer=observer,
        )
    verdict = report([outcome], command="campaign schedule", as_json=as_json, save=save)
    raise typer.Exit(int(verdict))


def run_schedule(
    target: Target,
    *,
    tier: Tier = Tier.QUICK,
    scenarios: list[str] | None = None,
    bound: int | None = None,
    random: int = 50,
    depth: int = 3,
    seconds: float | None = None,
    seed: int = 0,
    fault: str = "",
    observer: Observer,
) -> Outcome:
    """Run the schedule campaign and return its outcome.

    Args:
        target: what is driven.
        tier: which scenarios there are.
        scenarios: their names; none means all.
        bound: preemptions, or None for each scenario's own bound.
        random: random schedules of each kind for every scenario.
        depth: of those with priorities.
        seconds: the budget, or None for as long as it takes.
        seed: of the random schedules.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far it has come.
    """
    from forebay_models.device.prompt import without_device
    from forebay_models.runs.walk import planted
    from forebay_models.scheduling.campaign import Campaign, Settings
    from forebay_models.scheduling.scenario import ACTIONS
    from forebay_models.scheduling.scenarios import plans_for

    name = f"schedule {target.value}"
    if (cannot := without_device(target, name)) is not None:
        return cannot
    plans = plans_for(target, full=tier is Tier.FULL)
    unknown = [name for name in scenarios or () if name not in plans]
    if unknown:
        raise typer.BadParameter(
            f"no scenario is called {', '.join(unknown)}; there are: {', '.join(plans)}",
            param_hint="--scenario",
        )
    chosen = [plans[name] for name in scenarios or plans]
    if bound is not None:
        chosen = [plan._replace(bound=bound) for plan in chosen]
    observer.expects(1)
    observer.begins(name)
    settings = Settings(
        plans=chosen,
        random=random,
        depth=depth,
        seconds=seconds,
        seed=seed,
        actions=() if scenarios else ACTIONS,
    )
    campaign = Campaign(settings, observer, name)
    with planted(fault):
        campaign.run()
        outcome = campaign.outcome(fault=fault)
    observer.ends(name, outcome)
    return outcome
