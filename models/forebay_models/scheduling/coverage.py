"""What all runs of a schedule campaign have exercised, put in terms of the specification."""

from collections import Counter
from functools import cache

from forebay_spec.actions import Label, Machine
from forebay_spec.bounds import QUICK, Bounds
from forebay_spec.state import State

from forebay_models.cover.edges import EdgeCoverage
from forebay_models.coverage import state_class
from forebay_models.scheduling.play import Run
from forebay_models.scheduling.scenario import Scenario
from forebay_models.targets import LOCAL


class Exercised:
    """Counts over the runs of one campaign.

    Attributes:
        actions: how often each action was taken.
        heat: how often each action was taken in each class of states.
        edges: the edges of the quick graphs that were taken. A run within other bounds takes edges
            of a graph up to its first step that the graph does not have.
    """

    def __init__(self) -> None:
        self.actions: Counter[str] = Counter()
        self.heat: Counter[tuple[str, str]] = Counter()
        self.edges = EdgeCoverage()
        self._class_of = cache(state_class)
        self._has = cache(_has)

    def see(self, scenario: Scenario, run: Run) -> None:
        """Count what a run did."""
        graphs = _graphs_for(scenario)
        before: State | None = None
        for it in run.slices:
            start, before = before, it.state
            if it.step is None:
                continue
            if start is None:
                start = Machine(scenario.bounds).initial()
            self.actions[it.step.name] += 1
            self.heat[it.step.name, self._class_of(start)] += 1
            graphs = tuple(name for name in graphs if self._has(name, start, it.step))
            for name in graphs:
                self.edges.add(QUICK[name], start, it.step, it.state)


@cache
def _graphs_for(scenario: Scenario) -> tuple[str, ...]:
    """Return the quick graphs whose constants are those of a scenario, for its actors."""
    return tuple(name for name, bounds in LOCAL.graphs.items() if _fits(bounds, scenario))


def _fits(bounds: Bounds, scenario: Scenario) -> bool:
    actors = scenario.actors
    tokens = {(actor, token) for actor, token in bounds.token_of if actor in actors}
    return (
        bounds.capacity == scenario.capacity
        and bounds.uses == scenario.uses
        and bounds.order == scenario.order
        and tokens == set(scenario.token_of)
    )


def _has(name: str, before: State, label: Label) -> bool:
    """Tell whether a graph has a step in a state that both have."""
    bounds = QUICK[name]
    action = Machine(bounds).actions[label.name]
    return label.args in action.instances(bounds, before) and action.enabled(
        bounds, before, *label.args
    )
