"""`forebay campaign faults`: processes of a shared buffer are killed, and it has to heal.

Torch is imported inside the command, so that `forebay --help` stays quick.
"""

import time
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from forebay_models.campaign_cli import budget_seconds
from forebay_models.check_cli import JsonOption, SaveOption, Tier, TierOption
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.progress import Observer, bar
from forebay_models.verdicts import report

METHODS: Final = "fork,forkserver,spawn"
POINTS: Final = "faults points"
RANDOM: Final = "faults random"
KILLS: Final = {Tier.QUICK: 100, Tier.FULL: 1000}
"""Random kills of each tier."""


def faults(
    tier: TierOption = Tier.QUICK,
    methods: Annotated[
        str,
        typer.Option(
            help="How processes are started; the first one is taken for all kills, the others for"
            " some."
        ),
    ] = METHODS,
    points: Annotated[bool, typer.Option(help="Kill at labelled points.")] = True,
    kills: Annotated[
        int | None, typer.Option(min=0, help="Random kills, instead of the tier's number.")
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="A scenario by its name; all unless given.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="One kill, as a failure names it, such as writer/v/half/2."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="End after that time, such as 60s, though some are left.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random kills.")] = 0,
    plant: Annotated[
        str | None, typer.Option(help="Plant a fault of this name, which then has to be found.")
    ] = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Kill processes of a shared buffer, and see that nothing is lost, doubled or stuck.

    First at labelled points, in small scenes that the specification judges; then at random moments
    under load, with an account of every record.

    Examples:

    - `forebay campaign faults --tier full` - every point, and 1,000 random kills

    - `forebay campaign faults --no-points --kills 5000 --seed 7`
    """
    chosen = _known_methods(methods)
    fault = "" if plant is None else known_shared_fault(plant)
    seconds = None if budget is None else budget_seconds(budget)
    with bar() as observer:
        if only is not None:
            outcomes = [_run_only(only, chosen[0], fault, observer)]
        else:
            outcomes = run_faults(
                tier=tier,
                methods=chosen,
                points=points,
                kills=kills,
                scenarios=scenario or [],
                seconds=seconds,
                seed=seed,
                fault=fault,
                observer=observer,
            )
    verdict = report(outcomes, command="campaign faults", as_json=as_json, save=save)
    raise typer.Exit(int(verdict))


def run_faults(
    *,
    tier: Tier = Tier.QUICK,
    methods: Sequence[str] = tuple(METHODS.split(",")),
    points: bool = True,
    kills: int | None = None,
    scenarios: Sequence[str] = (),
    seconds: float | None = None,
    seed: int = 0,
    fault: str = "",
    observer: Observer,
) -> list[Outcome]:
    """Run the kills and return the outcomes: of labelled points, and of random moments.

    Args:
        tier: whether every point is taken, and how many random kills there are.
        methods: of starting processes; the first one is taken for all kills.
        points: whether there are kills at labelled points.
        kills: random kills, or None for as many as the tier has.
        scenarios: names of those whose points are taken; none means all.
        seconds: the budget of each of the two, or None for as long as it takes.
        seed: of the random kills.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far it has come.
    """
    kills = KILLS[tier] if kills is None else kills
    observer.expects(points + (kills > 0))
    outcomes = []
    if points:
        outcomes.append(_run_points(tier, methods, scenarios, seconds, fault, observer))
    if kills:
        outcomes.append(_run_random(methods[0], kills, seconds, seed, fault, observer))
    return outcomes


def known_shared_fault(name: str) -> str:
    """Return the name of a fault that can be planted in recovery, or say which there are."""
    from forebay_models.mutants.shared import SHARED_MUTANTS

    if name not in SHARED_MUTANTS:
        raise typer.BadParameter(
            f"no fault is called {name!r}; there are: {', '.join(SHARED_MUTANTS)}",
            param_hint="--plant",
        )
    return name


def _run_points(
    tier: Tier,
    methods: Sequence[str],
    scenarios: Sequence[str],
    seconds: float | None,
    fault: str,
    observer: Observer,
) -> Outcome:
    from forebay_models.faults.campaign import Campaign, Settings
    from forebay_models.faults.scenarios import SCENARIOS

    if unknown := [name for name in scenarios if name not in SCENARIOS]:
        raise typer.BadParameter(
            f"no scenario is called {', '.join(unknown)}; there are: {', '.join(SCENARIOS)}",
            param_hint="--scenario",
        )
    observer.begins(POINTS)
    settings = Settings(
        scenarios=scenarios or list(SCENARIOS),
        methods=methods,
        full=tier is Tier.FULL,
        seconds=seconds,
        fault=fault,
    )
    campaign = Campaign(settings, observer, POINTS)
    campaign.run()
    outcome = campaign.outcome()
    observer.ends(POINTS, outcome)
    return outcome


def _run_only(only: str, method: str, fault: str, observer: Observer) -> Outcome:
    from forebay_models.faults.campaign import Campaign, Settings
    from forebay_models.faults.kills import kill_of

    try:
        kill = kill_of(only)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error
    observer.expects(1)
    observer.begins(POINTS)
    campaign = Campaign(Settings([kill.scenario], [method], fault=fault), observer, POINTS)
    campaign.run_one(kill, method)
    outcome = campaign.outcome()
    observer.ends(POINTS, outcome)
    return outcome


def _run_random(
    method: str, kills: int, seconds: float | None, seed: int, fault: str, observer: Observer
) -> Outcome:
    from forebay_models.faults.crew import Wrong
    from forebay_models.faults.load import CAPACITY, ROUND, WORKERS, Load

    observer.begins(RANDOM)
    began = time.monotonic()
    load = Load(
        method=method,
        kills=kills,
        seconds=seconds,
        seed=seed,
        fault=fault,
        tell=lambda text: observer.says(RANDOM, text),
    )
    verdict, detail = Verdict.HOLDS, ""
    try:
        load.run()
    except Wrong as error:
        plant = f" --plant {fault}" if fault else ""
        again = f"--no-points --methods {method} --kills {kills} --seed {seed}{plant}"
        verdict = Verdict.VIOLATED
        detail = (
            f"{error}\n\nto try again, though the moments differ: forebay campaign faults {again}"
        )
    if verdict is Verdict.HOLDS and load.kills < kills:
        verdict = Verdict.INCONCLUSIVE
        detail = f"the budget ended after {load.kills} of {kills} kills"
    took = time.monotonic() - began
    figures: dict[str, Figure] = {
        "kills": load.kills,
        "calls cut short": load.cut_short,
        "calls served": load.served,
        "kills a second": load.kills / took,
    }
    outcome = Outcome(
        name=RANDOM,
        verdict=verdict,
        bounds=(
            f"{WORKERS} processes at {CAPACITY} slots, started by {method}; seed {seed}; records"
            f" are accounted for after every {ROUND} kills"
        ),
        figures=figures,
        seconds=took,
        detail=detail,
    )
    observer.ends(RANDOM, outcome)
    return outcome


def _known_methods(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    known = METHODS.split(",")
    if not set(names) <= set(known) or len(set(names)) < len(names):
        raise typer.BadParameter(
            f"the methods are {', '.join(known)}, each once at most; got {text!r}",
            param_hint="--methods",
        )
    return names
