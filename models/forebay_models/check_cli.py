"""`forebay check`: judges the models.

Each command prints a table of verdicts with their bounds, or one JSON document, and ends with the
exit code of the worst verdict. What a command needs is imported when it runs, so that `--help` is
quick and a missing extra is named by the command that needs it.
"""

import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from forebay_models.outcome import Outcome
from forebay_models.parts import Part, run_parts
from forebay_models.progress import Observer, bar
from forebay_models.verdicts import report

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


class Tier(StrEnum):
    """How large the bounds are."""

    QUICK = "quick"
    FULL = "full"


TierOption = Annotated[
    Tier,
    typer.Option(help="The bounds: quick takes minutes; full is wider and takes an hour or more."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")
]
SaveOption = Annotated[
    Path | None,
    typer.Option(
        help="Write the verdicts to this file, too, for `forebay report`.", dir_okay=False
    ),
]
ModelsOption = Annotated[
    Path | None,
    typer.Option(
        "--models",
        help="The directory of the TLA+ models and their manifest.toml, if not the usual one.",
        file_okay=False,
        exists=True,
    ),
]


@app.callback()
def check() -> None:
    """Judge the models: TLA+ by TLC, Python by an explorer, one against the other, the kernel.

    Every verdict comes with the bounds that it holds within. Exit codes: 0 holds, 1 violated,
    2 could not run, 3 inconclusive; with several checks 1 beats 2, 2 beats 3 and 3 beats 0.

    Examples:

    - `forebay check all` - everything, in a few minutes

    - `forebay check tlc --show` - TLC, with the counterexamples of the planted faults

    - `forebay check agree writers` - compare one graph

    - `forebay check all --json | jq .verdict` - for programs
    """


@app.command()
def kernel(
    as_json: JsonOption = False,
    save: SaveOption = None,
    seconds: Annotated[int, typer.Option(min=1, help="How long to try each condition.")] = 20,
) -> None:
    """Confirm the contracts of the decision kernel over all paths, with CrossHair.

    Every `post:` line of forebay_spec/kernel.py must be confirmed; one that CrossHair gives up on
    is inconclusive.

    Example: `forebay check kernel --seconds 60`
    """
    _run("check kernel", as_json, save, lambda observer: _kernel(observer, seconds))


@app.command()
def tlc(
    names: Annotated[
        list[str] | None, typer.Argument(help="Runs of manifest.toml; all of the tier if none.")
    ] = None,
    tier: TierOption = Tier.QUICK,
    show: Annotated[
        bool, typer.Option(help="Print the counterexamples of planted faults, too.")
    ] = False,
    models: ModelsOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Run TLC over the TLA+ models and over the planted faults, which must be found.

    Example: `forebay check tlc writers` runs one entry of tla/manifest.toml.
    """
    _run(
        "check tlc", as_json, save, lambda observer: _tlc(observer, tier, names or (), models, show)
    )


@app.command()
def explore(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Graphs, for-ever, captures-end, heals-for-ever (liveness) or mutual-wait; or all."
        ),
    ] = None,
    tier: TierOption = Tier.QUICK,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Explore the Python specification breadth first: invariants, steps, witnesses, liveness.

    Example: `forebay check explore leases mutual-wait`
    """
    _run("check explore", as_json, save, lambda observer: _explore(observer, tier, names or ()))


@app.command()
def agree(
    names: Annotated[
        list[str] | None, typer.Argument(help="Quick graphs, such as writers; all if none.")
    ] = None,
    models: ModelsOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Show that TLC and the explorer find the same states and the same labelled steps.

    Example: `forebay check agree writers`
    """
    _run("check agree", as_json, save, lambda observer: _agree(observer, names or (), models))


@app.command("all")
def everything(
    tier: TierOption = Tier.QUICK,
    models: ModelsOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Do all of the above and end with one table.

    Agreement is always about the quick graphs, which TLC prints while it checks them.

    Example: `forebay check all --tier full`
    """
    _run(
        "check all", as_json, save, lambda observer: run_parts(every_check(tier, models), observer)
    )


def every_check(tier: Tier = Tier.QUICK, models: Path | None = None) -> list[Part]:
    """Return all checks, in the order of the verification ladder."""
    return [
        Part(name="kernel", run=partial(_kernel, seconds=None)),
        Part(name="explore", run=partial(_explore, tier=tier, names=())),
        Part(name="tlc", run=partial(_tlc_and_agree, tier=tier, models=models), alone=True),
    ]


def _run(
    command: str,
    as_json: bool,
    save: Path | None,
    checks: Callable[[Observer], Sequence[Outcome]],
) -> None:
    """Run checks under a progress bar, report them and exit with their verdict."""
    began = time.monotonic()
    with bar() as observer:
        outcomes = checks(observer)
    took = time.monotonic() - began
    verdict = report(outcomes, command=command, as_json=as_json, save=save, took=took)
    raise typer.Exit(int(verdict))


def _kernel(observer: Observer, seconds: int | None) -> list[Outcome]:
    from forebay_models.kernel_check import SECONDS_PER_CONDITION, check_kernel

    observer.expects(1)
    patience = seconds or SECONDS_PER_CONDITION
    return [check_kernel(seconds_per_condition=patience, observer=observer)]


def _tlc(
    observer: Observer, tier: Tier, names: Sequence[str], models: Path | None, show: bool
) -> list[Outcome]:
    from forebay_models.tlc_check import check_tlc

    return check_tlc(tier=tier.value, names=names, models=models, show=show, observer=observer)


def _explore(observer: Observer, tier: Tier, names: Sequence[str]) -> list[Outcome]:
    from forebay_models.explore_check import check_explore

    return check_explore(tier_name=tier.value, names=names, observer=observer)


def _agree(observer: Observer, names: Sequence[str], models: Path | None) -> list[Outcome]:
    from forebay_models.agree_check import check_agree

    return check_agree(names=names, models=models, observer=observer)


def _tlc_and_agree(observer: Observer, tier: Tier, models: Path | None) -> list[Outcome]:
    from forebay_models.agree_check import check_tlc_and_agree

    return check_tlc_and_agree(tier=tier.value, models=models, observer=observer)
