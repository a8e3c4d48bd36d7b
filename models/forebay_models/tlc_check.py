"""Runs TLC over the models of `tla/manifest.toml` and judges each run.

Runs that print a state graph belong to `agree_check`, which compares it; they run here only when
they are asked for by name.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from forebay_models.outcome import Outcome, Verdict
from forebay_models.pool import run_with
from forebay_models.progress import Observer, Quiet
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


def check_tlc(
    *,
    tier: str = "quick",
    names: Sequence[str] = (),
    models: Path | None = None,
    show: bool = False,
    observer: Observer | None = None,
) -> list[Outcome]:
    """Run the manifest's runs of a tier, or the named ones, and return an outcome for each.

    `models` is the directory of the models if it is not the usual one. `show` asks for the
    counterexamples of expected failures too.
    """
    observer = observer or Quiet()
    try:
        directory = find_models(models)
        runs = select(load_runs(directory), tier=tier, names=names)
        tools = find_tools()
    except (ManifestError, ToolMissing) as error:
        return [could_not_run("tlc", error)]
    if not names:
        runs = tuple(run for run in runs if run.graph is None)
    observer.expects(len(runs))
    checks = [_check(run, directory, show, observer) for run in runs]
    return run_with(TlcRunner(tools, directory), checks)


def _check(
    run: Run, directory: Path, show: bool, observer: Observer
) -> Callable[[TlcRunner], Outcome]:
    """Return the check of one run."""
    name = f"tlc {run.name}"

    def progress(report: Report) -> None:
        if report.distinct:
            observer.says(name, f"{report.distinct:,} states")

    def check(runner: TlcRunner) -> Outcome:
        observer.begins(name)
        try:
            result = runner.run(run, progress=progress)
        except OSError as error:
            outcome = could_not_run(name, error)
        else:
            outcome = judge(run, result, bounds=bounds_of(run, directory), show=show)
        observer.ends(name, outcome)
        return outcome

    return check


def could_not_run(name: str, reason: Exception) -> Outcome:
    """Return the outcome of a check that lacks something that it needs."""
    return Outcome(
        name=name,
        verdict=Verdict.COULD_NOT_RUN,
        bounds="-",
        figures={},
        seconds=0.0,
        detail=str(reason),
    )
