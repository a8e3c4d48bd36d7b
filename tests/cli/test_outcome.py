"""Outcomes, the verdict of several together, and the tables that show them."""

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from forebay_models.counterexample import Counterexample, Row
from forebay_models.documents import DocumentError, Json
from forebay_models.outcome import Outcome, Verdict, worst
from forebay_models.tables import Step, changes, steps_table, text_table
from forebay_models.verdicts import document, report


def outcome(verdict: Verdict, name: str = "toy", detail: str = "") -> Outcome:
    return Outcome(
        name=name,
        verdict=verdict,
        bounds="C=2 [p1]",
        figures={"states": 6354, "rate": 0.5, "found": "NoOverwrite"},
        seconds=1.26,
        detail=detail,
    )


def test_a_violation_beats_all_and_nothing_is_no_pass() -> None:
    order = (Verdict.VIOLATED, Verdict.COULD_NOT_RUN, Verdict.INCONCLUSIVE, Verdict.HOLDS)
    for one, other in product(order, repeat=2):
        expected = min(one, other, key=order.index)
        assert worst([outcome(one), outcome(other)]) is expected
    assert worst([]) is Verdict.COULD_NOT_RUN


def test_the_values_are_the_exit_codes() -> None:
    assert [verdict.value for verdict in Verdict] == [0, 1, 2, 3]
    assert Verdict.COULD_NOT_RUN.words == "could not run"


def test_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [outcome(Verdict.HOLDS), outcome(Verdict.INCONCLUSIVE, "slow", "ran out of time")]
    assert report(outcomes, command="check toy", as_json=True) is Verdict.INCONCLUSIVE
    captured = capsys.readouterr()
    printed = json.loads(captured.out)
    assert (printed["format"], printed["command"]) == (1, "check toy")
    assert (printed["verdict"], printed["exit_code"]) == ("inconclusive", 3)
    assert printed["outcomes"][0] == {
        "name": "toy",
        "verdict": "holds",
        "bounds": "C=2 [p1]",
        "figures": {"states": 6354, "rate": 0.5, "found": "NoOverwrite"},
        "seconds": 1.26,
        "detail": "",
        "counterexample": None,
        "heat": {},
    }
    assert captured.err == ""


def test_an_outcome_comes_back_from_json_as_it_was() -> None:
    failure = Counterexample(
        name="toy",
        setting="C=2",
        rows=(
            Row(label="initially", state={"free": "2"}),
            Row(label="Arrive(p1,1)", actor="p1", notes=("late",)),
        ),
        what=("Bounded is violated",),
        token="forebay1.x.0",
        expected=({"free": "1"},),
        seen={"free": "3"},
    )
    one = replace(
        outcome(Verdict.VIOLATED, "toy", "a table"),
        counterexample=failure,
        heat={"Arrive": {"empty": 3}},
        seconds=1.25,
    )
    assert Outcome.from_json(json.loads(json.dumps(one.as_json()))) == one
    plain = replace(one, counterexample=None, heat={}, verdict=Verdict.COULD_NOT_RUN)
    assert Outcome.from_json(plain.as_json()) == plain


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("name", "", "outcome: 'name' is empty"),
        ("name", " ", "outcome: 'name' is empty"),
        ("verdict", "fine", "outcome: 'fine' is no verdict"),
        ("verdict", 0, "outcome: 'verdict' should be a text, got a whole number"),
        ("figures", {"states": True}, "the figure 'states' is neither a number nor a text"),
        ("figures", [], "outcome: 'figures' should be an object, got a list"),
        ("seconds", "1", "outcome: 'seconds' should be a number, got a text"),
        ("heat", {"Arrive": {"empty": 1.5}}, "heat of 'Arrive': 'empty' should be a whole number"),
        ("counterexample", {"name": "x"}, "counterexample: 'setting' is missing"),
        ("colour", "red", "outcome: nothing is known of colour"),
    ],
)
def test_a_document_that_is_no_outcome_is_refused(name: str, value: Json, complaint: str) -> None:
    with pytest.raises(DocumentError, match=re.escape(complaint)):
        Outcome.from_json({**outcome(Verdict.HOLDS).as_json(), name: value})


def test_a_document_that_lacks_something_is_refused() -> None:
    for name in outcome(Verdict.HOLDS).as_json():
        without = outcome(Verdict.HOLDS).as_json()
        del without[name]
        with pytest.raises(DocumentError, match=f"outcome: '{name}' is missing"):
            Outcome.from_json(without)
    with pytest.raises(DocumentError, match="outcome: expected an object, got null"):
        Outcome.from_json(None)


def test_a_document_can_be_saved_beside_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deep" / "run.json"
    outcomes = [outcome(Verdict.INCONCLUSIVE)]
    assert report(outcomes, command="check toy", as_json=False, save=file) is Verdict.INCONCLUSIVE
    assert json.loads(file.read_text()) == document(outcomes, command="check toy")
    assert "verdict: inconclusive" in capsys.readouterr().out
    assert list(file.parent.iterdir()) == [file]


def test_the_table_has_bounds_and_figures_and_counterexamples_come_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcomes = [outcome(Verdict.HOLDS), outcome(Verdict.VIOLATED, "bad", "step | p1\n0    | x")]
    assert report(outcomes, command="check toy", as_json=False) is Verdict.VIOLATED
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == ["bad: violated", "step | p1", "0    | x"]
    assert lines[4].split() == ["check", "verdict", "bounds", "figures", "seconds"]
    assert " ".join(lines[5].split()) == (
        "toy holds C=2 [p1] 6,354 states, 0.5 rate, found NoOverwrite 1.3"
    )
    assert lines[-1] == "1 of 2 hold within the bounds named; verdict: violated"


def test_a_table_of_steps_has_a_column_for_each_actor() -> None:
    steps = [
        Step("initially", None, ("free = 2", "live = 0")),
        Step("Arrive(p1,2)", "p1", ("free = 0",)),
        Step("Close(draining)", None, ("closing = draining",)),
        Step("Ask(c1,plain,1,1)", "c1", ()),
    ]
    assert steps_table(steps).splitlines() == [
        "step | p1           | outside         | c1                | state",
        "-----+--------------+-----------------+-------------------+-------------------",
        "0    | initially    |                 |                   | free = 2",
        "     |              |                 |                   | live = 0",
        "1    | Arrive(p1,2) |                 |                   | free = 0",
        "2    |              | Close(draining) |                   | closing = draining",
        "3    |              |                 | Ask(c1,plain,1,1) |",
    ]


def test_a_table_of_a_single_state_can_be_made() -> None:
    assert steps_table([Step("initially", None, ("x = 1",))]).splitlines()[-1] == (
        "0    | initially | x = 1"
    )


def test_only_what_changes_is_told() -> None:
    before = {"free": "2", "live": "0"}
    assert changes(None, before) == ("free = 2", "live = 0")
    assert changes(before, {"free": "1", "live": "0"}) == ("free = 1",)
    assert changes(before, dict(before)) == ("(nothing changes)",)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert text_table(["a", "b"], [["long", "x"], ["", "yy"]]) == (
        "a    | b\n-----+---\nlong | x\n     | yy"
    )


def test_the_time_of_several_kinds_is_told_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    def taken(name: str, seconds: float) -> Outcome:
        return replace(outcome(Verdict.HOLDS, name), seconds=seconds)

    walks = [taken("tlc readers", 2.4), taken("stateful local", 60.0), taken("tlc writers", 5.0)]
    report(walks, command="verify", as_json=False, took=61.2)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "took 61 s; seconds by kind, several of which run at once: stateful 60, tlc 7"
    )
    report(walks[:1], command="check tlc", as_json=False, took=2.5)
    assert "took" not in capsys.readouterr().out
