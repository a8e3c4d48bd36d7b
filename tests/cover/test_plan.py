"""Plans take every edge of a graph, begin at its initial state, and are the same each time."""

from itertools import pairwise

import pytest
from forebay_models.cover.plan import LONGEST, RESTART, paths
from forebay_models.explore.graph import Edge, Graph, explore
from forebay_models.targets import LOCAL
from forebay_spec.actions import Label, Machine
from forebay_spec.bounds import QUICK, Bounds, mutual_wait_bounds
from forebay_spec.state import initial

SMALL = [mutual_wait_bounds(2, 1, 1), mutual_wait_bounds(2, 2, 1), mutual_wait_bounds(3, 2, 2)]


def check(graph: Graph) -> int:
    """Check what has to hold of every plan, and return how many steps it has."""
    taken: set[int] = set()
    steps = 0
    for path in paths(graph):
        edges = [graph.edges[number] for number in path]
        assert edges[0].source == graph.initial[0]
        assert all(one.target == next_one.source for one, next_one in pairwise(edges))
        assert not taken.issuperset(path), "a path that takes nothing new"
        assert len(path) <= LONGEST + graph.depth + RESTART
        taken.update(path)
        steps += len(path)
    assert taken == set(range(len(graph.edges)))
    return steps


@pytest.mark.parametrize("bounds", SMALL, ids=lambda bounds: bounds.name)
def test_a_plan_takes_every_edge_of_a_small_graph(bounds: Bounds) -> None:
    graph = explore(Machine(bounds))
    check(graph)
    assert list(paths(graph)) == list(paths(explore(Machine(bounds))))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL.graphs)
def test_a_plan_takes_every_edge_of_a_quick_graph(name: str) -> None:
    graph = explore(Machine(QUICK[name]))
    assert check(graph) < 5 * len(graph.edges)


def graph_of(*edges: tuple[int, int]) -> Graph:
    """Return a graph with these edges; a state's parent is the first edge that leads to it."""
    count = 1 + max(max(edge) for edge in edges)
    parents: list[tuple[int, Label] | None] = [None] * count
    labelled = [Edge(one, Label(f"Step{k}"), other) for k, (one, other) in enumerate(edges)]
    for source, label, target in labelled:
        if target and parents[target] is None:
            parents[target] = source, label
    state = initial(SMALL[0])
    return Graph(
        bounds=SMALL[0],
        states=[state._replace(fresh=number) for number in range(count)],
        initial=(0,),
        edges=labelled,
        edge_count=len(edges),
        parents=parents,
    )


def test_what_changes_nothing_comes_first_and_a_walk_goes_on_to_what_is_left() -> None:
    graph = graph_of((0, 1), (0, 0), (1, 0), (1, 2), (2, 1))
    assert list(paths(graph)) == [(1, 0, 2, 0, 3, 4)]


def test_a_new_path_begins_where_no_way_leads_back() -> None:
    graph = graph_of((0, 1), (0, 2), (1, 3), (2, 3))
    assert list(paths(graph)) == [(0, 2), (1, 3)]


def test_two_steps_between_the_same_states_are_both_taken() -> None:
    graph = graph_of((0, 1), (0, 1), (1, 0))
    check(graph)
