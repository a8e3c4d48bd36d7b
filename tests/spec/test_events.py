"""A header and an event are each one line of JSON and come back as they were."""

import pytest
from forebay_spec.events import Event, Header

EMPTY = '"outcome":"DONE","slots":[],"token":null}'


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Event(name="Arrive", actor="p1", args=(2,), outcome="SERVE", slots=(0, 3), token="t"),
            '{"name":"Arrive","actor":"p1","args":[2],"outcome":"SERVE","slots":[0,3],"token":"t"}',
        ),
        (
            Event(name="Ask", actor="c1", args=("lease", 2, 1), outcome="WAIT"),
            '{"name":"Ask","actor":"c1","args":["lease",2,1],"outcome":"WAIT","slots":[],'
            '"token":null}',
        ),
        (Event(name="Empty"), '{"name":"Empty","actor":null,"args":[],' + EMPTY),
    ],
)
def test_an_event_is_a_line_and_comes_back(event: Event, line: str) -> None:
    assert event.to_line() == line
    assert Event.from_line(line) == event


def test_a_line_has_no_newline_whatever_the_names_are() -> None:
    event = Event(name="Arrive", actor="a\nb", args=("ü",))
    assert "\n" not in event.to_line()
    assert Event.from_line(event.to_line()) == event


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "has name, actor, args, outcome, slots and token"),
        ('{"name":"Empty"}', "has name, actor, args, outcome, slots and token"),
        ('{"name":1,"actor":null,"args":[],' + EMPTY, "name and outcome"),
        ('{"name":"Empty","actor":1,"args":[],' + EMPTY, "actor and token"),
        (
            '{"name":"Empty","actor":null,"args":[],"outcome":"DONE","slots":[],"token":1}',
            "actor and token",
        ),
        ('{"name":"Empty","actor":null,"args":[1.5],' + EMPTY, "args .* whole numbers"),
        ('{"name":"Empty","actor":null,"args":[true],' + EMPTY, "args .* whole numbers"),
        (
            '{"name":"Empty","actor":null,"args":[],"outcome":"DONE","slots":["0"],"token":null}',
            "slots .* whole numbers",
        ),
        ("not json", "Expecting value"),
    ],
)
def test_anything_else_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Event.from_line(line)


def test_a_header_is_a_line_and_comes_back() -> None:
    header = Header(capacity=8, uses=2, order="random")
    line = '{"forebay_trace":1,"capacity":8,"consume_after_n_samples":2,"order":"random"}'
    assert header.to_line() == line
    assert Header.from_line(line) == header


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "begins with its header"),
        ('{"name":"Empty","actor":null,"args":[],' + EMPTY, "begins with its header"),
        ('{"forebay_trace":2}', "version 1, not 2"),
        ('{"forebay_trace":1,"capacity":0,"consume_after_n_samples":1,"order":"fifo"}', "from 1"),
        ('{"forebay_trace":1,"capacity":8,"order":"fifo"}', "whole numbers from 1"),
        (
            '{"forebay_trace":1,"capacity":8,"consume_after_n_samples":1,"order":"lifo"}',
            "fifo or random",
        ),
    ],
)
def test_any_other_header_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Header.from_line(line)
