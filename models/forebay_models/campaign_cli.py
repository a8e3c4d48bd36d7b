"""`forebay campaign`: drives an implementation against the specification.

Torch and hypothesis are imported inside the commands, so that `forebay --help` stays quick.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.targets import SCOPES, Target
from forebay_models.verdicts import report

if TYPE_CHECKING:
    from forebay_models.campaign.driver import Exercise

app = typer.Typer(
    no_args_is_help=True, help="Drive an implementation against the specification, step by step."
)

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


TargetOption = Annotated[
    Target,
    typer.Option(
        help="The implementation: on threads (local), shared by processes (shared), on threads "
        "with records on a simulated device (simulated) or on a CUDA device (cuda)."
    ),
]
PlantOption = Annotated[
    str | None,
    typer.Option(help="Plant a fault of this name, which the campaign then has to find."),
]


@app.callback()
def campaign() -> None:
    """Drive an implementation against the specification, step by step."""


@app.command()
def stateful(
    target: TargetOption = Target.LOCAL,
    budget: Annotated[str, typer.Option(help="How long to search, such as 60s or 5m.")] = "60s",
    seed: Annotated[
        int, typer.Option(min=0, help="Of all random choices: equal seeds give equal examples.")
    ] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Steps of an example.")] = 40,
    examples: Annotated[
        int | None, typer.Option(min=1, help="Stop after that many examples, not by the budget.")
    ] = None,
    plant: PlantOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Take random steps of the specification and compare the state after each of them.

    Example: `forebay campaign stateful --budget 5m --seed 7`
    """
    seconds = None if examples is not None else budget_seconds(budget)
    fault = "" if plant is None else known_fault(plant, target)
    with bar() as observer:
        outcome = run_stateful(
            target,
            seconds=seconds,
            seed=seed,
            steps=steps,
            examples=examples,
            fault=fault,
            full=as_json,
            observer=observer,
        )
    raise typer.Exit(
        int(report([outcome], command="campaign stateful", as_json=as_json, save=save))
    )


def run_stateful(
    target: Target,
    *,
    seconds: float | None,
    seed: int,
    steps: int,
    examples: int | None = None,
    fault: str = "",
    full: bool = False,
    observer: Observer,
) -> Outcome:
    """Run the stateful campaign and return its outcome.

    Args:
        target: what is driven.
        seconds: the budget, or None for no limit.
        seed: of all random choices.
        steps: of an example at most.
        examples: stop after that many, or None for the budget alone.
        fault: the name of a fault to plant, or nothing.
        full: put the count of every action and witness among the figures.
        observer: is told how far the campaign has come.
    """
    from forebay_models.adapters.start import start
    from forebay_models.campaign.report import counts, outcome_of
    from forebay_models.campaign.run import run
    from forebay_models.campaign.session import Session
    from forebay_models.device.prompt import without_device
    from forebay_models.runs.walk import planted

    name = f"stateful {target.value}"
    if (cannot := without_device(target, name)) is not None:
        return cannot

    def tell(exercise: "Exercise", share: float) -> None:
        done = f"{exercise.examples:,} examples, {exercise.steps:,} steps"
        observer.says(name, f"{share:.0%}, {done}")

    observer.expects(1)
    observer.begins(name)
    session = Session(
        start,
        SCOPES[target],
        seconds=seconds,
        examples=examples,
        tell=tell,
    )
    repeat = f"forebay campaign stateful --target {target.value} --seed {seed} --steps {steps}"
    if fault:
        repeat += f" --plant {fault}"
    with planted(fault):
        run(session, seed_number=seed, steps=steps)
    outcome = outcome_of(session, repeat=repeat, steps=steps, fault=fault)
    observer.ends(name, outcome)
    if not full:
        return outcome
    return replace(outcome, figures={**outcome.figures, **counts(session.exercise, session.scope)})


def one_of_targets(targets: Sequence[Target], target: Target, campaign: str) -> None:
    """Refuse a target that a campaign cannot drive."""
    if target not in targets:
        drives = ", ".join(it.value for it in targets)
        raise typer.BadParameter(
            f"the campaign {campaign} drives {drives}, not {target.value}", param_hint="--target"
        )


def known_fault(name: str, target: Target = Target.LOCAL) -> str:
    """Return the name of a fault that can be planted for a target, or say which there are."""
    from forebay_models.device.prompt import DEVICE_TARGETS
    from forebay_models.mutants.device import DEVICE_MUTANTS
    from forebay_models.mutants.local import LOCAL_MUTANTS

    of_device = DEVICE_MUTANTS if target in DEVICE_TARGETS else ()
    return one_of([*LOCAL_MUTANTS, *of_device], name)


def one_of(faults: Collection[str], name: str) -> str:
    """Return the name of a fault that is among these, or say which there are."""
    if name not in faults:
        raise typer.BadParameter(
            f"no fault is called {name!r}; there are: {', '.join(faults)}", param_hint="--plant"
        )
    return name


def budget_seconds(text: str) -> float:
    """Return the seconds of a budget such as `60s`, `1.5m`, `500ms` or `2h`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*", text)
    seconds = 0.0 if match is None else float(match[1]) * _UNITS[match[2] or "s"]
    if not seconds:
        raise typer.BadParameter(
            f"{text!r} is no time; write for example 60s, 5m or 1h", param_hint="--budget"
        )
    return seconds
