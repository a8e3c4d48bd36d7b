"""`forebay report`: turns saved verdicts of one or several runs into one page and one document."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from forebay_models.outcome import Verdict
from forebay_models.saved import SavedRun
from forebay_models.verdicts import save_document


def report_runs(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN.json...", help="What commands have written with --save.", dir_okay=False
        ),
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write the page to this file.", dir_okay=False)
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write the document to this file.", dir_okay=False)
    ] = None,
) -> None:
    """Collect the verdicts of one or several runs, with what they are limited to.

    The page has the verdicts with their bounds, what was covered in which situations, the times and
    the counterexamples. It is one file and needs no network. The exit code is that of the verdicts
    together.

    Example: `forebay verify --save run.json; forebay report run.json --html report.html`
    """
    from forebay_models.documents import DocumentError

    if html is None and as_json is None:
        raise typer.BadParameter("say what to write: --html FILE, --json FILE or both")
    try:
        runs = [read_run(file) for file in files]
    except (OSError, DocumentError) as error:
        typer.echo(f"forebay report: {error}", err=True)
        raise typer.Exit(int(Verdict.COULD_NOT_RUN)) from error
    verdict = write_report(runs, html=html, as_json=as_json)
    for file in (html, as_json):
        if file is not None:
            typer.echo(f"the report is in {file}", err=True)
    raise typer.Exit(int(verdict))


def read_run(file: Path) -> SavedRun:
    """Return a saved run.

    Raises:
        OSError: the file cannot be read.
        DocumentError: it holds something else than a saved run.
    """
    from forebay_models.documents import DocumentError

    try:
        return SavedRun.from_json(json.loads(file.read_text(encoding="utf-8")), source=file.name)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{file} is no saved run: {error}") from error


def write_report(runs: Sequence[SavedRun], *, html: Path | None, as_json: Path | None) -> Verdict:
    """Write the page and the document that are asked for; return the runs' verdict together."""
    from forebay_models.pages.report import report_page
    from forebay_models.saved import collected, verdict_of

    if as_json is not None:
        save_document(collected(runs), as_json)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(report_page(runs), encoding="utf-8")
    return verdict_of(runs)
