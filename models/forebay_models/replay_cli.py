"""`forebay replay`: runs a failure again, shows it as a page, or writes it down as a test."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Observer, bar
from forebay_models.verdicts import report


class Form(StrEnum):
    """As what a failure can be written down."""

    PYTEST = "pytest"


def replay(
    token: Annotated[str, typer.Argument(help="The token that stands beside a failure.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="With --as: where to write it; without it, standard output."),
    ] = None,
    times: Annotated[int, typer.Option(min=1, help="How often to run it.")] = 1,
    html: Annotated[
        Path | None, typer.Option(help="Write the failure as a page to this file.", dir_okay=False)
    ] = None,
    form: Annotated[
        Form | None,
        typer.Option("--as", help="Do not run it, but write it down as a regression test."),
    ] = None,
    keep_fault: Annotated[
        bool, typer.Option(help="With --as: plant the fault in the test, too, so that it fails.")
    ] = False,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Run a failure again from its token, at the level where it was found.

    The verdict is "violated" if the failure comes again, and "holds" if it does not. A fault that
    was planted when the token was made is planted again.

    Examples:

    - `forebay replay TOKEN --times 10` - does it come every time?

    - `forebay replay TOKEN --html failure.html` - step through it in a browser

    - `forebay replay TOKEN --as pytest tests/test_failure.py` - keep it
    """
    if form is None and (file is not None or keep_fault):
        raise typer.BadParameter("FILE and --keep-fault go with --as pytest", param_hint="--as")
    if form is not None:
        raise typer.Exit(int(_write_test(token, file, keep_fault)))
    with bar() as observer:
        outcome = run_replay(token, times=times, observer=observer)
    if html is not None:
        _write_page(outcome, html)
    raise typer.Exit(int(report([outcome], command="replay", as_json=as_json, save=save)))


def run_replay(token: str, *, times: int = 1, observer: Observer) -> Outcome:
    """Replay a token and return its outcome; a token that cannot be run could not run."""
    from forebay_models.replay import replay as again
    from forebay_models.tokens import TokenError

    try:
        return again(token, times=times, observer=observer)
    except TokenError as error:
        return Outcome(
            name="replay",
            verdict=Verdict.COULD_NOT_RUN,
            bounds="-",
            figures={},
            seconds=0.0,
            detail=str(error),
        )


def _write_page(outcome: Outcome, file: Path) -> None:
    """Write the counterexample of an outcome as a page, or say why there is none."""
    from forebay_models.pages.failure import failure_page

    if outcome.counterexample is None:
        typer.echo(f"{file} is not written: there is no failure to show", err=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(failure_page(outcome.counterexample), encoding="utf-8")
    typer.echo(f"the failure is in {file}", err=True)


def _write_test(token: str, file: Path | None, keep_fault: bool) -> Verdict:
    from forebay_models.replay import regression_test
    from forebay_models.tokens import TokenError

    try:
        text = regression_test(token, keep_fault=keep_fault)
    except TokenError as error:
        typer.echo(f"forebay replay: {error}", err=True)
        return Verdict.COULD_NOT_RUN
    if file is None:
        typer.echo(text, nl=False)
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        typer.echo(f"the test is in {file}; run it with: pytest {file}", err=True)
    return Verdict.HOLDS
