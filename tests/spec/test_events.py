"""An event is one line of JSON and comes back as it was."""

import pytest
from forebay_spec.events import Event


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Event(name="Arrive", actor="p1", args=(2,), outcome="SERVE"),
            '{"name":"Arrive","actor":"p1","args":[2],"outcome":"SERVE"}',
        ),
        (
            Event(name="Ask", actor="c1", args=("lease", 2, 1), outcome="WAIT"),
            '{"name":"Ask","actor":"c1","args":["lease",2,1],"outcome":"WAIT"}',
        ),
        (Event(name="Empty"), '{"name":"Empty","actor":null,"args":[],"outcome":"DONE"}'),
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
        ("[]", "has name, actor, args and outcome"),
        ('{"name":"Empty"}', "has name, actor, args and outcome"),
        ('{"name":1,"actor":null,"args":[],"outcome":"DONE"}', "name and outcome"),
        ('{"name":"Empty","actor":1,"args":[],"outcome":"DONE"}', "actor"),
        ('{"name":"Empty","actor":null,"args":[1.5],"outcome":"DONE"}', "whole numbers"),
        ('{"name":"Empty","actor":null,"args":[true],"outcome":"DONE"}', "whole numbers"),
        ("not json", "Expecting value"),
    ],
)
def test_anything_else_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Event.from_line(line)
