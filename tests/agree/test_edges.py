"""Printed steps become the states and labels of the Python specification, or are refused."""

import pytest
from forebay_models.tlc.edges import BadGraph, EdgeReader, to_label
from forebay_models.tlc.values import parse
from forebay_spec.kernel import Closing, Phase
from forebay_spec.state import Boundary, Hold, Saved, Slot, State, Ticket

START = (
    '[slots |-> <<[phase |-> "free", uses |-> 0, pins |-> 0, stamp |-> 0]>>, free |-> <<0>>, '
    "fresh |-> 1, filling |-> [p1 |-> <<>>], tickets |-> <<>>, holds |-> <<>>, "
    'closing |-> "open", cancelled |-> {}, dead |-> {}, '
    'boundary |-> [stage |-> "none", actor |-> "nobody", slots |-> <<>>], left |-> {}, '
    "saved |-> <<>>]"
)
SNAPSHOT = (
    '[slots |-> <<[phase |-> "live", uses |-> 1, pins |-> 1, stamp |-> 1]>>, free |-> <<2, 1>>, '
    "fresh |-> 1, queue |-> <<[stamps |-> <<3>>, slots |-> <<0>>]>>, left |-> {1}]"
)
FULL = (
    '[slots |-> <<[phase |-> "live", uses |-> 1, pins |-> 1, stamp |-> 2]>>, free |-> << >>, '
    "fresh |-> 0, filling |-> [p1 |-> <<3, 1>>, p0 |-> <<2>>], "
    'tickets |-> <<[n |-> 2, m |-> 1, kind |-> "plain", actor |-> "c1"]>>, '
    'holds |-> <<[owner |-> "c2", kind |-> "lease", slots |-> <<0>>, stamps |-> <<1>>, '
    'state |-> "ready"], [owner |-> "q1", kind |-> "prefetched", slots |-> <<0>>, '
    'stamps |-> <<2>>, state |-> "failed"]>>, closing |-> "draining", cancelled |-> {"t1", "t2"}, '
    'dead |-> {"c2"}, boundary |-> [stage |-> "copying", actor |-> "c3", slots |-> <<0>>], '
    f"left |-> {{2, 0}}, saved |-> <<{SNAPSHOT}>>]"
)
FULL_STATE = State(
    slots=(Slot(Phase.LIVE, 1, 1, 2),),
    free=(),
    fresh=0,
    filling=(("p0", (2,)), ("p1", (3, 1))),
    tickets=(Ticket("plain", "c1", 2, 1),),
    holds=(
        Hold("c2", "lease", (0,), (1,), "ready"),
        Hold("q1", "prefetched", (0,), (2,), "failed"),
    ),
    closing=Closing.DRAINING,
    cancelled=frozenset({"t1", "t2"}),
    dead=frozenset({"c2"}),
    boundary=Boundary("copying", "c3", (0,)),
    saved=Saved((Slot(Phase.LIVE, 1, 1, 1),), (2, 1), 1, (((0,), (3,)),), frozenset({1})),
    left=frozenset({0, 2}),
)


def printed(text: str) -> str:
    """Return the line that TLC prints for the string of a value."""
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'


def edge(source: str, labels: str, target: str) -> str:
    return printed(f'<<"EDGE", {source}, {labels}, {target}>>')


def test_states_and_labels_are_read() -> None:
    reader = EdgeReader()
    assert reader.take(printed(f'<<"INIT", {START}>>'))
    assert reader.take(edge(START, '{<<"Arrive", "p1", 1>>, <<"Empty">>}', FULL))
    graph = reader.graph()
    assert graph.states[1] == FULL_STATE
    assert isinstance(graph.states[0], State)
    assert (graph.states[0].boundary, graph.states[0].saved) == (Boundary("none", "", ()), None)
    assert graph.initial == {0}
    assert graph.edges == {(0, "Arrive(p1,1)", 1), (0, "Empty", 1)}


def test_the_labels_between_two_states_are_told() -> None:
    reader = EdgeReader()
    reader.take(edge(START, '{<<"Empty">>}', FULL))
    reader.take(edge(START, '{<<"Arrive", "p1", 1>>}', FULL))
    start = reader.graph().states[0]
    assert isinstance(start, State)
    assert reader.labels(start, FULL_STATE) == ("Arrive(p1,1)", "Empty")
    assert reader.labels(FULL_STATE, start) == ()


def test_one_state_printed_in_two_ways_is_one_state() -> None:
    reader = EdgeReader()
    other = START.replace("<<>>", "<< >>").replace(
        "uses |-> 0, pins |-> 0", "pins |-> 0, uses |-> 0"
    )
    assert other != START
    reader.take(edge(START, '{<<"Empty">>}', other))
    assert len(reader.graph().states) == 1
    assert reader.graph().edges == {(0, "Empty", 0)}


def test_a_repeated_step_is_one_edge() -> None:
    reader = EdgeReader()
    for _ in range(2):
        reader.take(edge(START, '{<<"Empty">>}', FULL))
    assert reader.edges == 1


def test_other_lines_are_left_alone() -> None:
    reader = EdgeReader()
    assert not reader.take('<<"WITNESS", "Rare">>')
    assert not reader.take(printed('<<"WITNESS", "Rare">>'))
    assert reader.graph().states == ()


def test_a_step_without_a_label_is_an_error() -> None:
    with pytest.raises(BadGraph, match="no label explains"):
        EdgeReader().take(edge(START, "{}", FULL))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('phase |-> "free"', 'phase |-> "gone"'),
        ("fresh |-> 1", "fresh |-> TRUE"),
        ("fresh |-> 1", "rotten |-> 1"),
        ("free |-> <<0>>", "free |-> {0}"),
        ("tickets |-> <<>>", "tickets |-> <<3>>"),
        ("cancelled |-> {}", "cancelled |-> <<>>"),
        ("dead |-> {}", "dead |-> {1}"),
        ('closing |-> "open"', 'closing |-> "ajar"'),
        (", uses |-> 0", ""),
        ("free |-> <<0>>", "free |-> <<0>"),
        ('stage |-> "none"', 'stage |-> "halting"'),
        ('actor |-> "nobody"', "actor |-> 0"),
        ("left |-> {}", "left |-> <<>>"),
        ("left |-> {}", 'left |-> {"p1"}'),
        ("saved |-> <<>>", "saved |-> {}"),
        ("saved |-> <<>>", f"saved |-> <<{SNAPSHOT}, {SNAPSHOT}>>"),
        ("saved |-> <<>>", f"saved |-> <<{SNAPSHOT.replace('queue', 'stack')}>>"),
    ],
)
def test_what_is_no_state_is_an_error(old: str, new: str) -> None:
    assert old in START
    with pytest.raises(BadGraph):
        EdgeReader().take(printed(f'<<"INIT", {START.replace(old, new)}>>'))


def test_a_line_that_is_cut_short_is_an_error() -> None:
    with pytest.raises(BadGraph):
        EdgeReader().take(printed(f'<<"EDGE", {START}>>'))
    with pytest.raises(BadGraph):
        EdgeReader().take(edge(START, '{<<"Empty">>}', FULL[:40]))


def test_labels_read_as_on_the_page() -> None:
    assert to_label(parse('<<"Ask", "c1", "lease", 2, 1>>')) == "Ask(c1,lease,2,1)"
    assert to_label(parse('<<"Deliver", 0>>')) == "Deliver(0)"
    assert to_label(parse('<<"Close", "draining">>')) == "Close(draining)"
    assert to_label(parse('<<"Empty">>')) == "Empty"
    assert to_label(parse('<<"Refill", "q1">>')) == "Refill(q1)"
    with pytest.raises(BadGraph):
        to_label(parse("<<>>"))
