"""`forebay campaign`: drives an implementation against the specification.

Torch and hypothesis are imported inside the commands, so that `forebay --help` stays quick.
"""

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.verdicts import report

if TYPE_CHECKING:
    from forebay_models.campaign.driver import Exercise

app = typer.Typer(
    no_args_is_help=True, help="Drive an implementation against the specification, step by step."
)

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Target(StrEnum):
    """What can be driven."""

    LOCAL = "local"


@app.callback()
def campaign() -> None:
    """Drive an implementation against the specification, step by step."""


@app.command()
def stateful(
    target: Annotated[
        Target, typer.Option(help="The implementation: local is the buffer on threads.")
    ] = Target.LOCAL,
    budget: Annotated[str, typer.Option(help="How long to search, such as 60s or 5m.")] = "60s",
    seed: Annotated[
        int, typer.Option(min=0, help="Of all random choices: equal seeds give equal examples.")
    ] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Steps of an example.")] = 40,
    examples: Annotated[
        int | None, typer.Option(min=1, help="Stop after that many examples, not by the budget.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Take random steps of the specification and compare the state after each of them.

    Example: `forebay campaign stateful --budget 5m --seed 7`
    """
    seconds = None if examples is not None else budget_seconds(budget)
    with bar() as observer:
        outcome = run_stateful(
            target,
            seconds=seconds,
            seed=seed,
            steps=steps,
            examples=examples,
            full=as_json,
            observer=observer,
        )
    raise typer.Exit(int(report([outcome], command="campaign stateful", as_json=as_json)))


def run_stateful(
    target: Target,
    *,
    seconds: float | None,
    seed: int,
    steps: int,
    examples: int | None = None,
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
        full: put the count of every action and witness among the figures.
        observer: is told how far the campaign has come.
    """
    from forebay_models.adapters.local import LocalAdapter
    from forebay_models.campaign.report import counts, outcome_of
    from forebay_models.campaign.run import run
    from forebay_models.campaign.session import Session

    name = f"stateful {target.value}"

    def tell(exercise: "Exercise", share: float) -> None:
        done = f"{exercise.examples:,} examples, {exercise.steps:,} steps"
        observer.says(name, f"{share:.0%}, {done}")

    observer.expects(1)
    observer.begins(name)
    session = Session(
        lambda setting: LocalAdapter(setting.bounds, setting.storage, setting.seed),
        seconds=seconds,
        examples=examples,
        tell=tell,
    )
    run(session, seed_number=seed, steps=steps)
    repeat = f"forebay campaign stateful --target {target.value} --seed {seed} --steps {steps}"
    outcome = outcome_of(session, target=target.value, repeat=repeat, steps=steps)
    observer.ends(name, outcome)
    if not full:
        return outcome
    figures = {**outcome.figures, **counts(session.exercise)}
    return Outcome(
        name=outcome.name,
        verdict=outcome.verdict,
        bounds=outcome.bounds,
        figures=figures,
        seconds=outcome.seconds,
        detail=outcome.detail,
    )


def budget_seconds(text: str) -> float:
    """Return the seconds of a budget such as `60s`, `1.5m`, `500ms` or `2h`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*", text)
    seconds = 0.0 if match is None else float(match[1]) * _UNITS[match[2] or "s"]
    if not seconds:
        raise typer.BadParameter(
            f"{text!r} is no time; write for example 60s, 5m or 1h", param_hint="--budget"
        )
    return seconds
