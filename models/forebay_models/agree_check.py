"""Compares, for each quick graph, what TLC prints with what the explorer finds.

One run of TLC prints the graph while it explores it; its lines are read as they come. The Python
side is explored when TLC is done, with nothing but the bounds in common.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from forebay_spec.actions import ACTIONS, Machine
from forebay_spec.bounds import QUICK, Bounds
from forebay_spec.state import State

from forebay_models.agree import compare
from forebay_models.describe import describe
from forebay_models.explore.graph import explore
from forebay_models.graphs import LabelledGraph
from forebay_models.outcome import Outcome, Verdict
from forebay_models.pool import run_with
from forebay_models.progress import Observer, Quiet
from forebay_models.tlc.edges import BadGraph, EdgeReader
from forebay_models.tlc.java import ToolMissing, find_tools
from forebay_models.tlc.judge import judge
from forebay_models.tlc.manifest import ManifestError, Run, find_models, load_runs
from forebay_models.tlc.runner import TlcRunner
from forebay_models.tlc_check import could_not_run


def check_agree(
    *,
    names: Sequence[str] = (),
    models: Path | None = None,
    observer: Observer | None = None,
) -> list[Outcome]:
    """Compare the named quick graphs, or all, and return an outcome for each."""
    observer = observer or Quiet()
    try:
        directory = find_models(models)
        by_graph = {run.graph: run for run in load_runs(directory) if run.graph is not None}
        for name in names or QUICK:
            if name not in QUICK:
                raise ManifestError(f"no graph is called {name!r}; there are: {', '.join(QUICK)}")
            if name not in by_graph:
                raise ManifestError(f"no run of {directory / 'manifest.toml'} prints graph {name}")
        tools = find_tools()
    except (ManifestError, ToolMissing) as error:
        return [could_not_run("agree", error)]
    wanted = [QUICK[name] for name in names or QUICK]
    observer.expects(len(wanted))
    actions: set[str] = set()
    checks = [_check(by_graph[bounds.name], bounds, actions, observer) for bounds in wanted]
    outcomes = run_with(TlcRunner(tools, directory), checks)
    return outcomes if names else [*outcomes, _together(outcomes, actions)]


def explored(machine: Machine) -> LabelledGraph:
    """Return the graph that the explorer finds, in the form for comparison."""
    graph = explore(machine)
    return LabelledGraph(
        tuple(graph.states),
        frozenset(graph.initial),
        frozenset((source, str(label), target) for source, label, target in graph.edges),
    )


def _together(outcomes: Sequence[Outcome], actions: set[str]) -> Outcome:
    """Say whether the graphs together have every action; agreeing about less shows little."""
    missing = sorted(ACTIONS.keys() - actions)
    ended = all(outcome.verdict in (Verdict.HOLDS, Verdict.VIOLATED) for outcome in outcomes)
    return Outcome(
        name="agree actions",
        verdict=Verdict.VIOLATED
        if missing and ended
        else Verdict.INCONCLUSIVE
        if missing
        else Verdict.HOLDS,
        bounds="all graphs together",
        figures={
            "states": sum(int(outcome.figures.get("states", 0)) for outcome in outcomes),
            "edges": sum(int(outcome.figures.get("edges", 0)) for outcome in outcomes),
            "actions": len(ACTIONS) - len(missing),
        },
        seconds=0.0,
        detail=f"on no edge of any graph: {', '.join(missing)}" if missing else "",
    )


def _check(
    run: Run, bounds: Bounds, actions: set[str], observer: Observer
) -> Callable[[TlcRunner], Outcome]:
    """Return the comparison of one graph, which adds the names of its actions to `actions`."""
    name = f"agree {bounds.name}"

    def check(runner: TlcRunner) -> Outcome:
        observer.begins(name)
        started = time.monotonic()
        reader = EdgeReader()

        def take(line: str) -> bool:
            taken = reader.take(line)
            observer.says(name, f"{reader.edges:,} edges")
            return taken

        def ended(verdict: Verdict, detail: str, **figures: int) -> Outcome:
            outcome = Outcome(
                name=name,
                verdict=verdict,
                bounds=bounds.line(),
                figures=figures,
                seconds=time.monotonic() - started,
                detail=detail,
            )
            observer.ends(name, outcome)
            return outcome

        try:
            result = runner.run(run, take=take)
        except BadGraph as error:
            return ended(Verdict.COULD_NOT_RUN, f"TLC printed what cannot be read: {error}")
        except OSError as error:
            return ended(Verdict.COULD_NOT_RUN, str(error))
        judged = judge(run, result, bounds=bounds.line())
        if judged.verdict is not Verdict.HOLDS:
            return ended(judged.verdict, judged.detail)
        observer.says(name, "exploring")
        printed, found = reader.graph(), explored(Machine(bounds))
        labels = {label for _, label, _ in printed.edges}
        actions.update(label.partition("(")[0] for label in labels)
        comparison = compare(printed, found, names=("TLA+", "Python"), describe=describe_state)
        return ended(
            Verdict.HOLDS if comparison.equal else Verdict.VIOLATED,
            comparison.text(),
            states=len(printed.states),
            edges=len(printed.edges),
            labels=len(labels),
        )

    return check


def describe_state(state: Hashable) -> dict[str, str]:
    """Return the variables of a state as texts."""
    assert isinstance(state, State)
    return describe(state)
