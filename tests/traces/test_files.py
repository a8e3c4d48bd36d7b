"""What is no trace is named as such, with the line; a torn end is left out."""

from pathlib import Path

import pytest
from forebay_models.outcome import Verdict
from forebay_models.progress import Quiet
from forebay_models.trace_cli import Judges, run_trace
from forebay_models.tracing.files import BadTrace, read_trace, shown
from forebay_models.tracing.setting import KINDS, Unobserved
from forebay_spec.events import Event, Header

HEADER = Header(capacity=4, uses=1, order="fifo").to_line()
ARRIVAL = Event(name="Arrive", actor="a", args=(1,), outcome="SERVE", slots=(0,))
PUBLISH = Event(name="Publish", actor="a", slots=(0,))


def file(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def line(**fields: object) -> str:
    return Event(**{"name": "Publish", "actor": "a", **fields}).to_line()  # type: ignore[arg-type]  # bad ones too


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "line 1: "),
        (('{"forebay_trace":9}',), "line 1: this reads traces of version 1, not 9"),
        ((ARRIVAL.to_line(),), "line 1: a trace begins with its header"),
        ((HEADER, "nonsense"), "line 2: Expecting value"),
        ((HEADER, line(name="Publsh")), "line 2: there is no action 'Publsh'"),
        ((HEADER, line(), line(outcome="SERVE")), "line 3: Publish comes to DONE, not 'SERVE'"),
        ((HEADER, line(args=(1,))), r"Publish does not have the arguments \[1\]"),
        ((HEADER, line(name="Arrive", outcome="WAIT", args=("x",))), "does not have the arguments"),
        ((HEADER, line(name="Close", args=("ajar",), actor=None)), "does not have the arguments"),
        ((HEADER, line(actor=None)), "Publish needs an actor"),
        ((HEADER, line(name="Empty")), "Empty has no actor"),
        ((HEADER, line(token="t")), "Publish has no token; Arrive and Ask say what a call has"),
        ((HEADER, line(name="SetCancel", args=("t",), token="t")), "SetCancel has no token"),
        (("[" * 200_000,), "line 1: "),
        ((HEADER, "[" * 200_000), "line 2: "),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(
    lines: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    path = file(tmp_path / "trace.jsonl", *lines)
    with pytest.raises(BadTrace, match=message):
        read_trace(path)
    (outcome,) = run_trace(path, observer=Quiet())
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert str(path) in outcome.detail


def test_a_missing_file_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(BadTrace, match="has no header"):
        read_trace(tmp_path / "empty.jsonl")


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    whole = (HEADER, ARRIVAL.to_line(), PUBLISH.to_line()[:20])
    path = file(tmp_path / "torn.jsonl", *whole, end="")
    trace = read_trace(path)
    assert trace.events == (ARRIVAL,)
    assert trace.torn
    (outcome,) = run_trace(path, judges=Judges.SPEC, observer=Quiet())
    assert outcome.verdict is Verdict.HOLDS
    assert outcome.figures["torn lines"] == 1
    assert "has no end" in outcome.detail


@pytest.mark.parametrize(
    ("text", "actor", "kinds"),
    [
        ("writer 1", "writer 1", KINDS),
        ("writer 1:write", "writer 1", ("write",)),
        ("a:b:plain,lease", "a:b", ("plain", "lease")),
        ("a:b", "a:b", KINDS),
    ],
)
def test_who_is_not_observed_is_named_with_kinds_or_without(
    text: str, actor: str, kinds: tuple[str, ...]
) -> None:
    absent = Unobserved.parse(text)
    assert (absent.actor, absent.kinds) == (actor, kinds)
    assert str(absent) == text


def test_an_event_is_shown_as_people_read_it() -> None:
    assert shown(ARRIVAL) == "Arrive(a,1) = SERVE, slots 0"
    assert shown(Event(name="Empty")) == "Empty"
    ready = Event(name="Ready", actor="c", args=(0,), slots=(0, 1))
    assert shown(ready) == "Ready(0), slots 0 1, of c"
