"""Differences of every kind between two graphs are found, counted and told apart."""

from collections.abc import Hashable

import pytest
from forebay_models.agree import Comparison, Kind, compare
from forebay_models.graphs import Edge, LabelledGraph

# 0 -Arrive(p1,1)-> 1 -Publish(p1)-> 2 -Ask(c1,plain,1,1)-> 3, and Close from 2 to 4 and 4 to 4.
STATES = ("start", "filling", "live", "held", "closed")
EDGES: frozenset[Edge] = frozenset(
    {
        (0, "Arrive(p1,1)", 1),
        (1, "Publish(p1)", 2),
        (2, "Ask(c1,plain,1,1)", 3),
        (2, "Close(draining)", 4),
        (4, "Close(draining)", 4),
    }
)
GRAPH = LabelledGraph(STATES, frozenset({0}), EDGES)


def describe(state: Hashable) -> dict[str, str]:
    return {"name": str(state)}


def compared(other: LabelledGraph) -> Comparison:
    return compare(GRAPH, other, names=("TLA+", "Python"), describe=describe)


def found(other: LabelledGraph) -> dict[Kind, int]:
    """Return the kinds of difference that are there, with their counts."""
    return {kind: count for kind, count in compared(other).counts.items() if count}


def test_equal_graphs_have_no_difference() -> None:
    assert compared(GRAPH).equal
    assert compared(GRAPH).text() == ""


def test_the_order_in_which_states_are_numbered_does_not_matter() -> None:
    last = len(STATES) - 1
    turned = LabelledGraph(
        STATES[::-1],
        frozenset({last}),
        frozenset((last - source, label, last - target) for source, label, target in EDGES),
    )
    assert compared(turned).equal


def test_a_missing_state_is_found_with_the_step_that_leads_there() -> None:
    other = LabelledGraph(
        STATES[:4], GRAPH.initial, frozenset(edge for edge in EDGES if 4 not in edge)
    )
    assert found(other) == {Kind.STATE: 1, Kind.EDGE: 1}
    text = compared(other).text()
    assert "only TLA+ reaches this state:\n    name = closed" in text
    assert "only TLA+ makes the step Close(draining)\n  from\n    name = live" in text
    assert "where Python does not allow Close(draining)" in text


def test_an_additional_state_is_found_too() -> None:
    other = LabelledGraph(
        (*STATES, "extra"), GRAPH.initial, EDGES | {(3, "Deliver(0)", 5), (5, "Empty", 0)}
    )
    assert found(other) == {Kind.STATE: 1, Kind.EDGE: 1}
    assert "only Python reaches this state:\n    name = extra" in compared(other).text()


def test_a_state_that_nothing_leads_to_is_found() -> None:
    other = LabelledGraph((*STATES, "island"), GRAPH.initial, EDGES)
    assert found(other) == {Kind.STATE: 1}


@pytest.mark.parametrize("edge", sorted(EDGES))
def test_each_missing_edge_is_found(edge: Edge) -> None:
    other = LabelledGraph(STATES, GRAPH.initial, EDGES - {edge})
    assert found(other) == {Kind.EDGE: 1}
    assert f"only TLA+ makes the step {edge[1]}" in compared(other).text()


def test_an_additional_edge_is_found() -> None:
    other = LabelledGraph(STATES, GRAPH.initial, EDGES | {(3, "Empty", 0)})
    assert found(other) == {Kind.EDGE: 1}
    text = compared(other).text()
    assert "only Python makes the step Empty" in text
    assert "where TLA+ does not allow Empty" in text


@pytest.mark.parametrize("edge", sorted(EDGES))
def test_each_wrong_label_is_found(edge: Edge) -> None:
    source, label, target = edge
    other = LabelledGraph(STATES, GRAPH.initial, EDGES - {edge} | {(source, "Wrong", target)})
    assert found(other) == {Kind.LABEL: 1}
    assert f"TLA+ says {label} and Python says Wrong" in compared(other).text()


def test_a_second_label_on_a_step_is_found() -> None:
    other = LabelledGraph(STATES, GRAPH.initial, EDGES | {(4, "Close(stopped)", 4)})
    assert found(other) == {Kind.LABEL: 1}
    assert "TLA+ says nothing more and Python says Close(stopped)" in compared(other).text()


def test_another_effect_of_one_label_is_told_side_by_side() -> None:
    other = LabelledGraph(
        STATES,
        GRAPH.initial,
        EDGES - {(2, "Ask(c1,plain,1,1)", 3)} | {(2, "Ask(c1,plain,1,1)", 1)},
    )
    counts = found(LabelledGraph(STATES, other.initial, other.edges))
    assert counts == {Kind.EDGE: 2}
    assert "Python leads by Ask(c1,plain,1,1) to\n    name = filling" in compared(other).text()


def test_a_wrong_initial_state_is_found() -> None:
    other = LabelledGraph(STATES, frozenset({1}), EDGES)
    assert found(other) == {Kind.INITIAL_STATE: 2}
    text = compared(other).text()
    assert "only TLA+ starts in this state:\n    name = start" in text
    assert "only Python starts in this state:\n    name = filling" in text


def test_an_additional_initial_state_is_found() -> None:
    assert found(LabelledGraph(STATES, frozenset({0, 4}), EDGES)) == {Kind.INITIAL_STATE: 1}


def test_the_differences_closest_to_the_start_are_told_and_all_are_counted() -> None:
    chain = tuple(range(20))
    whole = frozenset((i, f"Step({i})", i + 1) for i in range(19))
    one = LabelledGraph(chain, frozenset({0}), whole)
    other = LabelledGraph(
        chain, frozenset({0}), frozenset((i, f"Wrong({i})", i + 1) for i in range(19))
    )
    comparison = compare(one, other, names=("TLA+", "Python"), describe=describe, show=2)
    assert comparison.counts[Kind.LABEL] == 19
    assert [entry.text.partition("\n")[0] for entry in comparison.first] == [
        "one step has different labels: TLA+ says Step(0) and Python says Wrong(0)",
        "one step has different labels: TLA+ says Step(1) and Python says Wrong(1)",
    ]
    assert comparison.text().startswith("the graphs differ: 19 labels\n")
