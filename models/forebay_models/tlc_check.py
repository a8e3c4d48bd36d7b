"""Runs TLC over the models of `tla/manifest.toml` and judges each run.

A run that names a graph prints it while it explores it; its lines are read as they come. Only the
graph of a run that holds is passed on, since one that has found a violation has stopped half way.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from forebay_models.graphs import LabelledGraph
from forebay_models.outcome import Outcome, Verdict, could_not_run
from forebay_models.pool import run_with
from forebay_models.progress import Observer, Quiet
from forebay_models.tlc.edges import BadGraph, EdgeReader
from forebay_models.tlc.java import ToolMissing, find_tools
from forebay_models.tlc.judge import judge
from forebay_models.tlc.manifest import (
    ManifestError,
    Run,
    bounds_of,
    find_models,
    load_runs,
    select,
)
from forebay_models.tlc.messages import Report
from forebay_models.tlc.runner import TlcRunner

MANY: Final = 20
"""Runs; to prepare for them costs as much as ten of them save."""

Printed = Callable[[str, LabelledGraph], None]
"""Is told the name of a graph and the graph, whole, in one of several threads."""


def check_tlc(
    *,
    tier: str = "quick",
    names: Sequence[str] = (),
    models: Path | None = None,
    show: bool = False,
    observer: Observer | None = None,
    printed: Printed | None = None,
) -> list[Outcome]:
    """Run the manifest's runs of a tier, or the named ones, and return an outcome for each.

    Args:
        tier: of the runs, if none is named.
        names: of the runs.
        models: the directory of the models if it is not the usual one.
        show: asks for the counterexamples of expected failures too.
        observer: is told how far it has come.
        printed: gets each graph that a run prints, once that run has ended and holds.
    """
    observer = observer or Quiet()
    try:
        directory = find_models(models)
        runs = select(load_runs(directory), tier=tier, names=names)
        tools = find_tools()
    except (ManifestError, ToolMissing) as error:
        return [could_not_run("tlc", error)]
    observer.expects(len(runs))
    checks = [_check(run, directory, show, observer, printed) for run in runs]
    return run_with(TlcRunner(tools, directory, example_of(runs)), checks)


def example_of(runs: Sequence[Run]) -> Run | None:
    """Return one of the quick runs that end early, if so many follow that preparing pays."""
    quick = [run for run in runs if run.tier == "quick"]
    short = [run for run in quick if run.expect != "holds"]
    return short[0] if short and len(quick) >= MANY else None


def _check(
    run: Run, directory: Path, show: bool, observer: Observer, printed: Printed | None
) -> Callable[[TlcRunner], Outcome]:
    """Return the check of one run."""
    name = f"tlc {run.name}"

    def progress(report: Report) -> None:
        if report.distinct:
            observer.says(name, f"{report.distinct:,} states")

    def check(runner: TlcRunner) -> Outcome:
        observer.begins(name)
        reader = EdgeReader()

        def take(line: str) -> bool:
            return run.graph is not None and reader.take(line)

        try:
            result = runner.run(run, progress=progress, take=take)
        except BadGraph as error:
            outcome = could_not_run(name, f"TLC printed what cannot be read: {error}")
        except OSError as error:
            outcome = could_not_run(name, error)
        else:
            outcome = judge(
                run,
                result,
                bounds=bounds_of(run, directory),
                show=show,
                labels_of=reader.labels,
            )
        observer.ends(name, outcome)
        whole = outcome.verdict is Verdict.HOLDS and run.expect == "holds"
        if printed is not None and run.graph is not None and whole:
            printed(run.graph, reader.graph())
        return outcome

    return check
