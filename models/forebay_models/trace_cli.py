"""`forebay check trace`: judges what a buffer has written down of a real run."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.verdicts import report


class Judges(StrEnum):
    """Who judges."""

    SPEC = "spec"
    TLC = "tlc"
    BOTH = "both"


def trace(
    file: Annotated[
        Path, typer.Argument(help="What a buffer wrote that was given trace=forebay.Trace(FILE).")
    ],
    judges: Annotated[
        Judges, typer.Option("--with", help="The specification in Python, TLC, or both.")
    ] = Judges.BOTH,
    unobserved: Annotated[
        list[str] | None,
        typer.Option(
            "--unobserved",
            metavar="ACTOR",
            help="An actor of whom events are missing; ACTOR:write, ACTOR:plain,lease and so on "
            "say of which calls only. May be given several times.",
        ),
    ] = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Judge a trace of a real run: is every event in it a step of both models?

    A rejected trace ends with the first event that is no step, the steps before it, and what could
    have happened instead.

    Example: `forebay check trace run.jsonl --unobserved 'actor 2:write'`
    """
    with bar() as observer:
        outcomes = run_trace(file, judges=judges, unobserved=unobserved or (), observer=observer)
    raise typer.Exit(int(report(outcomes, command="check trace", as_json=as_json, save=save)))


def run_trace(
    path: Path,
    *,
    judges: Judges = Judges.BOTH,
    unobserved: Sequence[str] = (),
    models: Path | None = None,
    observer: Observer,
) -> list[Outcome]:
    """Judge a trace and return an outcome for each judge, and one more if they disagree.

    Args:
        path: the trace.
        judges: who judges.
        unobserved: actors of whom events are missing, as `ACTOR` or `ACTOR:KIND,...`.
        models: the directory of the TLA+ models, if not the usual one.
        observer: is told how far the judges have come.
    """
    from forebay_models.tracing.files import BadTrace, read_trace
    from forebay_models.tracing.setting import Unobserved, setting_of
    from forebay_models.tracing.verdicts import (
        agreement,
        could_not_read,
        judge_with_spec,
        judge_with_tlc,
    )

    observer.expects(1 if judges is not Judges.BOTH else 2)
    try:
        setting = setting_of(read_trace(path), [Unobserved.parse(text) for text in unobserved])
    except BadTrace as error:
        return [could_not_read(error)]
    outcomes = []
    if judges is not Judges.TLC:
        outcomes.append(judge_with_spec(setting, observer=observer))
    if judges is not Judges.SPEC:
        outcomes.append(judge_with_tlc(setting, models=models, observer=observer))
    if len(outcomes) == 2:
        outcomes += agreement(*outcomes)
    return outcomes
