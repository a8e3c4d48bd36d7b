"""`forebay campaign faults`: processes of a shared buffer are killed, and it has to heal.

Dumps of checkpoints are killed as well, and checkpoints damaged: see `file_faults_cli`.

Torch is imported inside the command, so that `forebay --help` stays quick.
"""

import time
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from forebay_models.campaign_cli import budget_seconds, one_of
from forebay_models.check_cli import JsonOption, SaveOption, Tier, TierOption
from forebay_models.file_faults_cli import run_files
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
    files: Annotated[
        bool, typer.Option(help="Kill dumps at every step, and damage checkpoints.")
    ] = True,
    damages: Annotated[
        int | None,
        typer.Option(min=0, help="Random damages of a checkpoint, instead of the tier's number."),
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="A scenario by its name; all unless given.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="One kill, as a failure names it, such as writer/v/half/2."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="End kills of either kind after that time, such as 60s.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random kills and damages.")] = 0,
    plant: Annotated[
        str | None, typer.Option(help="Plant a fault of this name, which then has to be found.")
    ] = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Kill processes of a shared buffer, and see that nothing is lost, doubled or stuck.

    First at labelled points, in small scenes that the specification judges; then at random moments
    under load, with an account of every record. Then dumps of checkpoints, which are killed, fail
    and lose power at every step and have to leave the old or the new one; and damaged checkpoints,
    which have to be refused.

    Examples:

    - `forebay campaign faults --tier full` - every point, and 1,000 random kills

    - `forebay campaign faults --no-points --no-files --kills 5000 --seed 7`
    """
    chosen = _known_methods(methods)
    fault = "" if plant is None else known_fault(plant)
    if only is not None and _is_of_files(fault):
        raise typer.BadParameter(
            f"{fault} is a fault of checkpoints, and --only names the kill of a process of a shared"
            " buffer",
            param_hint="--plant",
        )
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
                files=files,
                damages=damages,
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
    files: bool = True,
    damages: int | None = None,
    scenarios: Sequence[str] = (),
    seconds: float | None = None,
    seed: int = 0,
    fault: str = "",
    observer: Observer,
) -> list[Outcome]:
    """Run the kills and return the outcomes: of labelled points, random moments, and files.

    With a planted fault only those run that have to do with what it is planted in.

    Args:
        tier: whether every point is taken, and how many random kills there are.
        methods: of starting processes; the first one is taken for all kills.
        points: whether there are kills at labelled points.
        kills: random kills, or None for as many as the tier has.
        files: whether dumps are killed and checkpoints damaged.
        damages: random damages, or None for as many as the tier has.
        scenarios: names of those whose points are taken; none means all.
        seconds: the budget of each of the two, or None for as long as it takes.
        seed: of the random kills and damages.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far it has come.
    """
    kills = KILLS[tier] if kills is None else kills
    if fault:
        in_files = _is_of_files(fault)
        points, kills, files = points and not in_files, 0 if in_files else kills, in_files
    observer.expects(points + (kills > 0) + 2 * files)
    outcomes = []
    if points:
        outcomes.append(_run_points(tier, methods, scenarios, seconds, fault, observer))
    if kills:
        outcomes.append(_run_random(methods[0], kills, seconds, seed, fault, observer))
    if files:
        outcomes += run_files(
            tier=tier,
            method=methods[0],
            damages=damages,
            seed=seed,
            fault=fault,
            observer=observer,
        )
    return outcomes


def known_fault(name: str) -> str:
    """Return the name of a fault of recovery or of checkpoints, or say which there are."""
    from forebay_models.mutants.files import FILE_MUTANTS
    from forebay_models.mutants.shared import SHARED_MUTANTS

    return one_of([*SHARED_MUTANTS, *FILE_MUTANTS], name)


def _is_of_files(fault: str) -> bool:
    """Tell whether a fault is planted in how checkpoints are written or read."""
    from forebay_models.mutants.files import FILE_MUTANTS

    return fault in FILE_MUTANTS


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
        again = f"--no-points --no-files --methods {method} --kills {kills} --seed {seed}{plant}"
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
