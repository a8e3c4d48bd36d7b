"""Compares, for each quick graph, what TLC prints with what the explorer finds.

The run of TLC that checks the properties of a graph prints it as well. The Python side is explored
when TLC is done, with nothing but the bounds in common. A graph whose run does not hold is not
compared, and is no graph that agrees.
"""

import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

from forebay_spec.actions import ACTIONS, Machine
from forebay_spec.bounds import QUICK
from forebay_spec.state import State

from forebay_models.agree import compare
from forebay_models.describe import describe
from forebay_models.explore.graph import explore
from forebay_models.graphs import LabelledGraph
from forebay_models.outcome import Outcome, Verdict, could_not_run
from forebay_models.progress import Observer, Quiet
from forebay_models.tlc.manifest import ManifestError, find_models, load_runs
from forebay_models.tlc_check import check_tlc


def check_agree(
    *,
    names: Sequence[str] = (),
    models: Path | None = None,
    observer: Observer | None = None,
) -> list[Outcome]:
    """Let TLC print the named quick graphs, or all, compare each, and return an outcome for each.

    Before them stand the outcomes of those runs of TLC that do not hold.
    """
    observer = observer or Quiet()
    try:
        runs = _runs_of(names or tuple(QUICK), models)
    except ManifestError as error:
        return [could_not_run("agree", error)]
    agreement = Agreement(runs, observer)
    said = check_tlc(
        names=tuple(runs.values()), models=models, observer=observer, printed=agreement.compare
    )
    outcomes = agreement.outcomes()
    if not names:
        outcomes.append(agreement.together())
    return [*(outcome for outcome in said if outcome.verdict is not Verdict.HOLDS), *outcomes]


def check_tlc_and_agree(
    *, tier: str = "quick", models: Path | None = None, observer: Observer | None = None
) -> list[Outcome]:
    """Run the manifest's runs of a tier, compare all quick graphs, and return the outcomes.

    This is `check_tlc` and then `check_agree`, but that TLC explores each graph only once.
    """
    observer = observer or Quiet()
    try:
        runs = _runs_of(tuple(QUICK), models)
    except ManifestError as error:
        return [
            *check_tlc(tier=tier, models=models, observer=observer),
            could_not_run("agree", error),
        ]
    agreement = Agreement(runs, observer)
    said = check_tlc(tier=tier, models=models, observer=observer, printed=agreement.compare)
    return [*said, *agreement.outcomes(), agreement.together()]


def explored(machine: Machine) -> LabelledGraph:
    """Return the graph that the explorer finds, in the form for comparison."""
    graph = explore(machine)
    return LabelledGraph(
        tuple(graph.states),
        frozenset(graph.initial),
        frozenset((source, str(label), target) for source, label, target in graph.edges),
    )


class Agreement:
    """Compares the quick graphs as TLC prints them; `compare` may be called from several threads.

    Args:
        runs: the names of the graphs, each with that of the run that prints it.
        observer: is told how far it has come.
    """

    def __init__(self, runs: Mapping[str, str], observer: Observer) -> None:
        self._runs = runs
        self._observer = observer
        self._lock = threading.Lock()
        self._actions: set[str] = set()
        self._compared: dict[str, Outcome] = {}
        observer.expects(len(runs))

    def compare(self, graph: str, printed: LabelledGraph) -> None:
        """Compare a whole graph that TLC has printed with the explorer's of that name."""
        if graph not in self._runs:
            return
        name = f"agree {graph}"
        self._observer.begins(name)
        started = time.monotonic()
        bounds = QUICK[graph]
        found = explored(Machine(bounds))
        comparison = compare(printed, found, names=("TLA+", "Python"), describe=describe_state)
        labels = {label for _, label, _ in printed.edges}
        outcome = Outcome(
            name=name,
            verdict=Verdict.HOLDS if comparison.equal else Verdict.VIOLATED,
            bounds=bounds.line(),
            figures={
                "states": len(printed.states),
                "edges": len(printed.edges),
                "labels": len(labels),
            },
            seconds=time.monotonic() - started,
            detail=comparison.text(),
        )
        with self._lock:
            self._actions.update(label.partition("(")[0] for label in labels)
            self._compared[graph] = outcome
        self._observer.ends(name, outcome)

    def outcomes(self) -> list[Outcome]:
        """Return an outcome for each graph, once TLC has ended."""
        for graph, run in self._runs.items():
            if graph not in self._compared:
                name = f"agree {graph}"
                reason = f"there is no whole graph to compare with, since tlc {run} does not hold"
                self._observer.begins(name)
                self._compared[graph] = could_not_run(name, reason)
                self._observer.ends(name, self._compared[graph])
        return [self._compared[graph] for graph in self._runs]

    def together(self) -> Outcome:
        """Say whether the graphs together have every action; agreeing about less shows little."""
        outcomes = self.outcomes()
        missing = sorted(ACTIONS.keys() - self._actions)
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


def _runs_of(names: Sequence[str], models: Path | None) -> dict[str, str]:
    """Return the names of the graphs, each with that of the run that prints it.

    Raises:
        ManifestError: A graph or its run does not exist.
    """
    directory = find_models(models)
    by_graph = {run.graph: run.name for run in load_runs(directory) if run.graph is not None}
    for name in names:
        if name not in QUICK:
            raise ManifestError(f"no graph is called {name!r}; there are: {', '.join(QUICK)}")
        if name not in by_graph:
            raise ManifestError(f"no run of {directory / 'manifest.toml'} prints graph {name}")
    return {name: by_graph[name] for name in names}


def describe_state(state: Hashable) -> dict[str, str]:
    """Return the variables of a state as texts."""
    assert isinstance(state, State)
    return describe(state)
