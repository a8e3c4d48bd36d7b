"""Walks the paths of one graph on the implementation, and notes which edges were really taken.

What a step has to show is worked out by the campaign's driver, from facts that are read off the
graph: what is allowed are the targets of its edges. The graph's states and steps have been judged
by `forebay check explore`, so the named properties are not asked again; everything else is
compared as in the stateful campaign, after every step.

Where draws are at random, an edge is one of several with the same label. The step is steered to
its target; an edge counts as taken only if the buffer is then in exactly that state.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from forebay_spec.actions import Label
from forebay_spec.kernel import Verdict
from forebay_spec.state import State

from forebay_models.adapters.adapter import DRAWS, MANNERS, USUAL, drawing
from forebay_models.adapters.start import start
from forebay_models.campaign.driver import Divergence, Driver, Exercise, said
from forebay_models.campaign.facts import Facts
from forebay_models.campaign.replay import Move
from forebay_models.campaign.settings import Setting
from forebay_models.cover.plan import Path
from forebay_models.explore.graph import Graph
from forebay_models.stepping.board import PATIENCE
from forebay_models.stepping.worker import Hands
from forebay_models.targets import LOCAL, Scope

ROUND: Final = 4
"""One path in so many runs over a `TensorStorage`, which takes longer than a list."""
COUNTED: Final = 4
"""After so many steps the counters are compared, and at the end of each path."""


class GraphFacts(Facts):
    """The facts of a model, with what may come out of a step taken from its graph.

    Args:
        graph: the whole graph, whose states and steps have been judged before.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.bounds, kept=None)
        targets: dict[tuple[State, Label], tuple[State, ...]] = {}
        for source, label, target in graph.edges:
            step = graph.states[source], label
            targets[step] = (*targets.get(step, ()), graph.states[target])
        self.allowed = lambda state, label: targets[state, label]

    def _broken(self, before: State, label: Label, after: State) -> tuple[str, ...]:
        return ()

    def _witnesses(self, before: State, label: Label, after: State) -> tuple[str, ...]:
        return ()


class Share:
    """Some paths of one graph's plan.

    Args:
        graph: the whole graph.
        hands: lends the threads of all paths.
        exercise: where to count what was exercised.
        scope: what is driven.
        patience: seconds within which a thread has to come to a stop.

    Attributes:
        exercise: what was exercised so far.
        taken: for each edge of the graph, whether a step was taken along it and was as it should.
        seen: for each state of the graph, whether the buffer was in it.
    """

    def __init__(
        self,
        graph: Graph,
        hands: Hands,
        exercise: Exercise,
        scope: Scope = LOCAL,
        patience: float = PATIENCE,
    ) -> None:
        self._graph = graph
        self._hands = hands
        self.exercise = exercise
        self._scope = scope
        self._patience = patience
        self._facts = GraphFacts(graph)
        self.taken = bytearray(len(graph.edges))
        self.seen = bytearray(len(graph.states))
        self.seen[graph.initial[0]] = 1

    def walk(self, number: int, path: Path, go_on: Callable[[], bool]) -> Divergence | None:
        """Walk a path and return how the buffer left it, or None.

        Args:
            number: of the path in the plan; it decides about the storage and the manners.
            path: the path.
            go_on: is asked before each step whether to take it.
        """
        setting = setting_of(self._graph, number, self._scope)
        self.exercise.examples += 1
        adapter = start(setting, patience=self._patience, hands=self._hands)
        driver = Driver(setting, adapter, self.exercise, self._facts, COUNTED)
        failure: Divergence | None = None
        try:
            for edge, move in zip(path, self.moves(number, path), strict=True):
                if not go_on():
                    break
                driver.step(*move)
                self._note(edge, driver)
            driver.check_counts()
        except Divergence as found:
            failure = found
        except BaseException:
            # Whatever ends the walk must not be hidden by what it has left behind.
            with suppress(Exception):
                adapter.close()
            raise
        try:
            adapter.close()
        except Exception as left_over:
            failure = failure or driver.divergence([said(left_over)])
        return failure

    def moves(self, number: int, path: Path) -> Iterator[Move]:
        """Yield the steps of a path of that number, each with its manner."""
        for position, edge in enumerate(path):
            source, label, target = self._graph.edges[edge]
            before, after = self._graph.states[source], self._graph.states[target]
            yield Move(label, self._manner(number + position, before, label, after))

    def _manner(self, turn: int, before: State, label: Label, after: State) -> str:
        if label.name in DRAWS and len(self._facts.allowed(before, label)) > 1:
            return drawing(after.holds[-1].slots)
        manners = MANNERS.get(label.name, (USUAL,))
        if label.name in ("Arrive", "Ask") and (
            self._facts.verdict(before, label) is not Verdict.WAIT
        ):
            return USUAL
        return manners[turn % len(manners)]

    def _note(self, edge: int, driver: Driver) -> None:
        """Note that a step was taken along an edge, if it has led where that edge leads."""
        target = self._graph.edges[edge].target
        if driver.state is not self._graph.states[target]:
            raise driver.divergence(["the draw went elsewhere than it was steered to"])
        self.taken[edge] = self.seen[target] = 1


def setting_of(graph: Graph, number: int, scope: Scope = LOCAL) -> Setting:
    """Return what the path of that number runs with."""
    first, last = scope.storages[0], scope.storages[-1]
    return Setting(graph.bounds, first if number % ROUND == 0 else last, number)
