"""TLC's `-tool` output is understood; the outputs in `data` are from runs of the toys there."""

from pathlib import Path

import pytest
from forebay_models.tlc.messages import MessageReader, Report

DATA = Path(__file__).parent / "data"


def read(name: str) -> Report:
    """Return the report of a stored output."""
    reader = MessageReader()
    for line in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        reader.feed(line)
    return reader.report


@pytest.mark.parametrize(
    ("name", "violated", "named", "states"),
    [
        ("door_invariant", "invariant", "OneAtATime", 3),
        ("door_action", "action", "NeverBack", 3),
        ("door_deadlock", "deadlock", None, 5),
        ("lamp_temporal", "temporal", None, 4),
    ],
)
def test_a_violation_has_its_kind_its_name_and_its_trace(
    name: str, violated: str, named: str | None, states: int
) -> None:
    report = read(name)
    assert (report.violated, report.property) == (violated, named)
    assert [state.number for state in report.trace] == list(range(1, states + 1))
    assert report.errors == []
    assert not report.succeeded


def test_a_state_has_its_action_and_its_variables() -> None:
    first, second, _ = read("door_invariant").trace
    assert first.action == "Initial predicate"
    assert first.variables == {"inside": "{}", "passes": "[ann |-> 0, bob |-> 0]"}
    assert second.action == "Enter"
    assert second.variables["inside"] == '{"ann"}'


def test_a_single_variable_is_printed_without_a_bullet() -> None:
    assert read("lamp_temporal").trace[2].variables == {"lamp": "2"}


def test_a_temporal_trace_goes_back_or_stands_still() -> None:
    assert read("lamp_temporal").loop == 2
    stuttering = read("door_temporal")
    assert stuttering.loop == len(stuttering.trace)


@pytest.mark.parametrize("name", ["door_error", "door_unknown", "broken"])
def test_an_error_is_no_violation(name: str) -> None:
    report = read(name)
    assert report.violated is None
    assert not report.succeeded
    assert report.errors != []


def test_the_parser_of_tla_says_where_it_stopped() -> None:
    assert any('token "("' in line for line in read("broken").last_lines)


def test_success_and_counts() -> None:
    reader = MessageReader()
    for line in (
        "@!@!@STARTMSG 2193:0 @!@!@",
        "Model checking completed. No error has been found.",
        "@!@!@ENDMSG 2193 @!@!@",
        "@!@!@STARTMSG 2200:0 @!@!@",
        "Progress(5) at 2026-11-29: 1,752 states generated (752 s/min), 1,307 distinct states "
        "found (307 ds/min), 215 states left on queue.",
        "@!@!@ENDMSG 2200 @!@!@",
    ):
        assert reader.feed(line) is None
    assert reader.report.succeeded
    assert (reader.report.generated, reader.report.distinct) == (1752, 1307)
    for line in (
        "@!@!@STARTMSG 2199:0 @!@!@",
        "40147 states generated, 6354 distinct states found, 0 states left on queue.",
        "@!@!@ENDMSG 2199 @!@!@",
        "@!@!@STARTMSG 2194:0 @!@!@",
        "The depth of the complete state graph search is 16.",
        "@!@!@ENDMSG 2194 @!@!@",
    ):
        reader.feed(line)
    assert (reader.report.generated, reader.report.distinct) == (40147, 6354)
    assert reader.report.depth == 16


def test_an_initial_state_that_violates_is_the_whole_trace() -> None:
    reader = MessageReader()
    for line in (
        "@!@!@STARTMSG 2107:1 @!@!@",
        "Invariant Small is violated by the initial state:",
        "/\\ x = 5",
        "/\\ y = << 1,",
        "  2 >>",
        "@!@!@ENDMSG 2107 @!@!@",
    ):
        reader.feed(line)
    assert (reader.report.violated, reader.report.property) == ("invariant", "Small")
    assert reader.report.trace[0].variables == {"x": "5", "y": "<< 1, 2 >>"}


def test_a_printed_value_is_told_apart_even_inside_a_message() -> None:
    reader = MessageReader()
    reader.feed("@!@!@STARTMSG 2194:0 @!@!@")
    assert reader.feed('<<"WITNESS", "Rare">>') == '<<"WITNESS", "Rare">>'
    assert reader.feed('"<<\\"EDGE\\", 1>>"') == '"<<\\"EDGE\\", 1>>"'
    assert reader.feed("The depth of the complete state graph search is 7.") is None
    reader.feed("@!@!@ENDMSG 2194 @!@!@")
    assert reader.report.depth == 7
