"""Outcomes, the verdict of several together, and the tables that show them."""

import json
from itertools import product

import pytest
from forebay_models.outcome import Outcome, Verdict, worst
from forebay_models.tables import Step, changes, steps_table, text_table
from forebay_models.verdicts import report


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
    document = json.loads(captured.out)
    assert document["command"] == "check toy"
    assert (document["verdict"], document["exit_code"]) == ("inconclusive", 3)
    assert document["outcomes"][0] == {
        "name": "toy",
        "verdict": "holds",
        "bounds": "C=2 [p1]",
        "figures": {"states": 6354, "rate": 0.5, "found": "NoOverwrite"},
        "seconds": 1.26,
        "detail": "",
    }
    assert captured.err == ""


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
