"""Judges a machine: every state property in every state, every step property of every step.

It looks while the exploration goes on and stops at the first violation, which in breadth-first
order has a shortest counterexample. What a state or step violates is reported in full, since one
fault often breaks several promises at once. Actions and witnesses are noted on the way: a model
in which a situation never comes up has shown nothing about it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forebay_spec.actions import Machine
from forebay_spec.bounds import Bounds
from forebay_spec.named import Witness
from forebay_spec.properties import STEPS, WITNESSES, invariants
from forebay_spec.state import State

from forebay_models.coverage import state_class
from forebay_models.explore.graph import Edge, Graph, Limits, Move, Tally, explore


@dataclass(frozen=True)
class Violation:
    """What is violated, by name, and a shortest path; its last move is the one that does it."""

    properties: tuple[str, ...]
    path: tuple[Move, ...]


@dataclass(frozen=True)
class Report:
    """What a check found. The graph is whole unless it says why it stopped.

    `actions` counts the edges of each action that occurs, `heat` does so by the class of the state
    that they start in; `witnesses` are those that came up.
    """

    graph: Graph
    violation: Violation | None
    actions: Mapping[str, int]
    heat: Mapping[tuple[str, str], int]
    witnesses: frozenset[str]


class Judge:
    """Looks at states and steps as they are found, and remembers the first violation."""

    def __init__(self, machine: Machine) -> None:
        self._bounds = machine.bounds
        bounds = machine.bounds
        rows = invariants(machine.actions)
        self._invariants = [
            (name, row.predicate) for name, row in rows.items() if row.within(bounds)
        ]
        self._steps = [(name, row.predicate) for name, row in STEPS.items() if row.within(bounds)]
        wanted = [row for row in WITNESSES.values() if row.within(bounds)]
        self._missing = {
            action: [row for row in wanted if not row.actions or action in row.actions]
            for action in machine.actions
        }
        self.broken: tuple[str, ...] = ()
        self.at: int = 0  # the number of the bad state, or of the state before the bad step
        self.by: Move | None = None  # the bad step
        self.actions: Counter[str] = Counter()
        self.heat: Counter[tuple[str, str]] = Counter()
        self._source, self._class = -1, ""
        self.reached: set[str] = set()

    def sees_state(self, number: int, state: State) -> bool:
        """Check the state properties."""
        broken = [name for name, holds in self._invariants if not holds(self._bounds, state)]
        if broken:
            self.broken, self.at = tuple(broken), number
        return bool(broken)

    def sees_step(self, edge: Edge, before: State, after: State) -> bool:
        """Check the step properties and note the witnesses."""
        bounds, label = self._bounds, edge.label
        self.actions[label.name] += 1
        if edge.source != self._source:
            self._source, self._class = edge.source, state_class(before)
        self.heat[label.name, self._class] += 1
        for witness in self._missing[label.name]:
            if witness.predicate(bounds, before, label, after):
                self._reach(witness)
        broken = [name for name, holds in self._steps if not holds(bounds, before, label, after)]
        if broken and not self.broken:
            self.at, self.by = edge.source, Move(label, after)
        self.broken += tuple(broken)
        return bool(broken)

    def _reach(self, witness: Witness) -> None:
        """Note that a witness has come up; nobody looks for it any more."""
        self.reached.add(witness.name)
        self._missing = {
            action: [row for row in rows if row is not witness]
            for action, rows in self._missing.items()
        }

    def violation(self, graph: Graph) -> Violation | None:
        """Return the violation with its path through the graph, or None."""
        if not self.broken:
            return None
        path = graph.path_to(self.at)
        return Violation(self.broken, (*path, self.by) if self.by else tuple(path))


class Lookout:
    """Looks for one witness, and has seen enough when it comes up."""

    def __init__(self, bounds: Bounds, witness: Witness) -> None:
        self._bounds = bounds
        self._comes_up = witness.predicate
        self.found = False

    def sees_state(self, number: int, state: State) -> bool:
        """Look at no state: witnesses are about steps."""
        return False

    def sees_step(self, edge: Edge, before: State, after: State) -> bool:
        """Note whether the witness comes up."""
        self.found = self.found or self._comes_up(self._bounds, before, edge.label, after)
        return self.found


def check(
    machine: Machine,
    *,
    limits: Limits | None = None,
    progress: Callable[[Tally], None] | None = None,
    keep_edges: bool = False,
) -> Report:
    """Explore a machine and judge everything that is found, up to the first violation."""
    judge = Judge(machine)
    graph = explore(machine, limits=limits, progress=progress, watch=judge, keep_edges=keep_edges)
    violation, reached = judge.violation(graph), frozenset(judge.reached)
    return Report(graph, violation, judge.actions, judge.heat, reached)
