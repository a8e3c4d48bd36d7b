"""The explorer finds every state and every step, shortest paths first, and says when it stopped."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from forebay_models.explore.graph import EVERY, Edge, Graph, Limits, Tally, explore
from forebay_spec.actions import ACTIONS, Action, Label, Machine
from forebay_spec.bounds import QUICK, Bounds, mutual_wait_bounds
from forebay_spec.properties import STEPS
from forebay_spec.state import State

TINY = mutual_wait_bounds(1, 1, 1)


def names(graph: Graph, number: int) -> list[str]:
    return [str(move.label) for move in graph.path_to(number)[1:]]


def test_the_smallest_buffer_has_these_states_and_steps() -> None:
    graph = explore(Machine(TINY))
    # Fresh: nobody or the reader waits, 2. Filling: likewise, 2. Live: nobody, the writer, the
    # reader or both, 4. Gathering and ready: nobody or the writer, 2 each. Free again: nobody, the
    # reader, the writer, or both, 4.
    by_name = Counter(edge.label.name for edge in graph.edges)
    assert (len(graph.states), len(graph.edges), graph.depth) == (16, 24, 8)
    assert (by_name["Publish"], by_name["Admit"], by_name["Draw"]) == (2, 2, 2)
    assert graph.initial == (0,)
    assert graph.stopped == ""
    assert graph.edge_count == len(set(graph.edges))


def test_every_step_is_an_edge_and_every_edge_a_step() -> None:
    machine = Machine(QUICK["liveness"])
    graph = explore(machine)
    assert len(set(graph.states)) == len(graph.states)
    numbers = {state: number for number, state in enumerate(graph.states)}
    expected = {
        Edge(source, label, numbers[after])
        for source, state in enumerate(graph.states)
        for label, after in machine.successors(state)
    }
    assert set(graph.edges) == expected


def test_steps_that_change_nothing_are_edges_too() -> None:
    graph = explore(Machine(QUICK["liveness"]))
    loops = {edge.label.name for edge in graph.edges if edge.source == edge.target}
    assert loops == {"Arrive", "Ask", "Close"}


def test_paths_are_shortest_and_can_be_walked() -> None:
    machine = Machine(QUICK["liveness"])
    graph = explore(machine)
    depths = {0: 0}
    for edge in graph.edges:  # in order of discovery, so that sources are known
        depths.setdefault(edge.target, depths[edge.source] + 1)
        assert depths[edge.target] <= depths[edge.source] + 1
    assert graph.depth == 1 + max(depths.values())
    for number in range(0, len(graph.states), 97):
        path = graph.path_to(number)
        assert len(path) == depths[number] + 1
        assert path[0] == (None, machine.initial())
        for before, (label, after) in pairwise(path):
            assert label is not None
            assert after in machine.apply(before.state, label)


def test_a_limit_on_states_ends_the_exploration_and_is_named() -> None:
    graph = explore(Machine(QUICK["liveness"]), limits=Limits(states=100))
    assert graph.stopped == "beyond 100 states"
    assert 100 < len(graph.states) < 120
    assert explore(Machine(QUICK["liveness"]), limits=Limits(states=3132)).stopped == ""


def test_a_limit_of_time_ends_the_exploration_and_is_named() -> None:
    graph = explore(Machine(QUICK["liveness"]), limits=Limits(seconds=-1.0))
    assert graph.stopped == "after -1 seconds"
    assert len(graph.states) == 1


def test_progress_is_told_now_and_then() -> None:
    heard: list[Tally] = []
    graph = explore(Machine(QUICK["liveness"]), progress=heard.append)
    assert len(heard) == 1 + (len(graph.states) - 1) // EVERY
    assert heard[0] == Tally(states=1, edges=0, depth=1, waiting=1)
    assert str(Tally(12_345, 67_890, 9, 1_000)) == (
        "12,345 states, 67,890 edges, depth 9, 1,000 to look at"
    )


def test_edges_can_be_counted_without_being_kept() -> None:
    graph = explore(Machine(TINY), keep_edges=False)
    assert (graph.edges, graph.edge_count) == ([], 24)


def test_a_watch_sees_every_state_once_and_every_step_and_may_end_it() -> None:
    class Until:
        def __init__(self, last: int) -> None:
            self.last = last
            self.seen: list[int] = []
            self.steps: list[Edge] = []

        def sees_state(self, number: int, state: State) -> bool:
            self.seen.append(number)
            return number == self.last

        def sees_step(self, edge: Edge, before: State, after: State) -> bool:
            self.steps.append(edge)
            return False

    everything = Until(-1)
    graph = explore(Machine(TINY), watch=everything)
    assert everything.seen == list(range(16))
    assert everything.steps == graph.edges
    until = Until(5)
    graph = explore(Machine(TINY), watch=until)
    assert until.seen == [0, 1, 2, 3, 4, 5]
    assert graph.stopped == "by the watch"
    # The step into the last state is seen as well.
    assert until.steps[-1].target == 5
    assert explore(Machine(TINY), watch=Until(0)).stopped == "by the watch"


def test_one_step_with_several_outcomes_gives_several_edges() -> None:
    graph = explore(Machine(QUICK["random"]))
    outcomes = Counter((edge.source, edge.label) for edge in graph.edges)
    (most,) = {count for (_, label), count in outcomes.most_common(1)}
    assert most == 2  # two records, in either order, or either of two
    assert {label.name for (_, label), count in outcomes.items() if count > 1} == {"Ask", "Draw"}


def test_a_machine_can_have_other_actions() -> None:
    def once(bounds: Bounds, state: State) -> list[tuple[str | int, ...]]:
        return [()]

    def has_fresh(bounds: Bounds, state: State) -> bool:
        return state.fresh > 0

    def use_one(bounds: Bounds, state: State) -> tuple[State, ...]:
        return (state._replace(fresh=state.fresh - 1),)

    toy = {"Use": Action("Use", once, has_fresh, use_one)}
    graph = explore(Machine(mutual_wait_bounds(3, 1, 1), toy))
    assert [state.fresh for state in graph.states] == [3, 2, 1, 0]
    assert graph.edges == [Edge(n, Label("Use"), n + 1) for n in range(3)]
    assert names(graph, 3) == ["Use", "Use", "Use"]


def test_the_quick_graphs_cover_every_action_and_have_edges_enough() -> None:
    seen: set[str] = set()
    edges = 0
    for bounds in QUICK.values():
        graph = explore(Machine(bounds))
        seen |= {edge.label.name for edge in graph.edges}
        edges += len(graph.edges)
    assert seen == set(ACTIONS)
    assert edges >= 5_000


def test_the_honest_steps_of_a_graph_keep_every_step_property() -> None:
    # Here the states are those of the graph, not as they came out of a step: what a property
    # concludes from shared objects must not depend on their being shared.
    bounds = replace(QUICK["leases"], requests=QUICK["leases"].requests[:2])
    graph = explore(Machine(bounds))
    for source, label, target in graph.edges:
        before, after = graph.states[source], graph.states[target]
        for name, row in STEPS.items():
            assert row.predicate(bounds, before, label, after), (name, label)
