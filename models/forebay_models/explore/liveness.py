"""Checks the liveness properties of an explored machine: nobody is owed for ever on a fair run.

The fairness is the property's own (`BufferGoesOn` or `CallersGoOn`), weak as on the page about the
state machine, or strong on request. Actions that come to an end by the property's own words lead
into a round but are no part of it. A counterexample is a lasso: a path, and a round that can be
repeated for ever while somebody is owed; an empty round means that everything stands still.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from forebay_spec.named import Choice, Fairness, Liveness
from forebay_spec.properties import fair_choice

from forebay_models.explore.fairness import Arrow, fair_components, fair_round, possible
from forebay_models.explore.graph import Graph, Move


@dataclass(frozen=True)
class Starvation:
    """A run on which `actor` is owed for ever: `path` leads into `round`, which is repeated."""

    actor: str
    path: tuple[Move, ...]
    round: tuple[Move, ...]


@dataclass(frozen=True)
class Answer:
    """What was found for one property; `owed` counts the states in which somebody is owed."""

    name: str
    owed: int
    starvation: Starvation | None


def answer(graph: Graph, prop: Liveness, *, strong: bool = False) -> Answer:
    """Check one property on a whole graph whose edges were kept.

    Raises `ValueError` for a graph that is not whole: what it lacks might be what helps.
    """
    if graph.stopped or graph.edge_count != len(graph.edges):
        raise ValueError("liveness needs a whole graph with its edges")
    arrows = fair_arrows(graph, prop.fairness, end=prop.end)
    offered = possible(arrows)
    owed: dict[str, set[int]] = {}
    for number, state in enumerate(graph.states):
        for actor in prop.owed(graph.bounds, state):
            owed.setdefault(actor, set()).add(number)
    debts = len(set().union(*owed.values()))
    for actor, states in sorted(owed.items()):
        found = list(fair_components(states, arrows, offered, strong=strong))
        if found:
            component = min(found, key=min)
            start = min(component)
            walk = fair_round(component, arrows, offered, start, strong=strong)
            return Answer(prop.name, debts, _starvation(graph, actor, start, walk))
    return Answer(prop.name, debts, None)


def fair_arrows(
    graph: Graph, fairness: Fairness, *, end: frozenset[str] = frozenset()
) -> dict[int, list[Arrow[Choice]]]:
    """Return the steps that change something, each with the fair choice that it takes.

    Steps of the actions in `end` are left out: a run takes them only so many times.
    """
    arrows: dict[int, list[Arrow[Choice]]] = {number: [] for number in range(len(graph.states))}
    for index, (source, label, target) in enumerate(graph.edges):
        if source != target and label.name not in end:
            choice = fair_choice(fairness, graph.states[source], label)
            arrows[source].append(Arrow(choice, target, index))
    return arrows


def _starvation(graph: Graph, actor: str, start: int, walk: Sequence[Arrow[Choice]]) -> Starvation:
    moves = tuple(
        Move(graph.edges[arrow.index].label, graph.states[arrow.target]) for arrow in walk
    )
    return Starvation(actor, tuple(graph.path_to(start)), moves)
