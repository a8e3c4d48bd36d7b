"""The command line of the benchmarks: what it prints and writes, and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.__main__ import main
from benchmarks.cases import CASES
from benchmarks.plan import Case, Part, Plan
from benchmarks.results import Goal, Row, Unreadable, load
from benchmarks.timing import Spread


def row(median: float, goal: float | None = None, *, unit: str = "us") -> Row:
    return Row(
        case="P1",
        size="small, batch 32",
        ours=Spread(20.0, 10.0, 30.0),
        unit=unit,
        peer="a peer",
        theirs=Spread(20.0 * median, 1.0, 999.0),
        ratio=Spread(median, median / 2, median * 2),
        goal=None if goal is None else Goal("at least", goal),
    )


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Plan], list[Row]]], None]:
    """Put one case in the place of all, which measures nothing."""
    monkeypatch.setattr(command, "settle", lambda: "a machine")

    def put(measure: Callable[[Plan], list[Row]]) -> None:
        case = Case("something", lambda plan: [Part("a part", lambda: measure(plan))])
        monkeypatch.setattr(command, "CASES", {"P1": case})

    return put


def test_results_are_printed_and_kept(
    stand_in: Callable[[Callable[[Plan], list[Row]]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measure(plan: Plan) -> list[Row]:
        plan.note("a peer was not there")
        return [row(16.5, 15.0), row(3.0, 4.0), row(7.0)]

    stand_in(measure)
    file = tmp_path / "new" / "bench.json"
    assert main(["P1", "--repetitions", "3", "--json", str(file)]) == 0, "an unmet goal is no error"
    printed, said = capsys.readouterr()
    assert "P1: something" in printed
    assert "16.5" in printed
    assert "8.25 to 33.0" in printed
    assert "at least 15" in printed
    assert "note: a peer was not there" in printed
    assert "medians of 3 interleaved turns; a machine" in printed
    assert printed.rstrip().endswith("1 of 2 goals are met")
    assert "P1: a part, " in said
    whole = json.loads(file.read_text(encoding="utf-8"))
    assert whole["versions"]["torch"]
    assert [found["met"] for found in whole["rows"]] == [True, False, None]
    document = load(file)
    assert document.rows == [row(16.5, 15.0), row(3.0, 4.0), row(7.0)]
    assert (document.repetitions, document.quick) == (3, False)
    assert list(document.seconds) == ["P1"]


def test_a_part_that_fails_is_shown_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "settle", lambda: "a machine")

    def fails(plan: Plan) -> list[Row]:
        raise ArithmeticError("it did not run")

    broken = Case("broken", lambda plan: [Part("its part", lambda: fails(plan))])
    sound = Case("something", lambda plan: [Part("a part", lambda: [row(2.0)])])
    monkeypatch.setattr(command, "CASES", {"broken": broken, "P1": sound})
    assert main(["broken", "P1"]) == 2
    printed, said = capsys.readouterr()
    assert "could not be measured: broken, its part" in said
    assert "it did not run" in said
    assert "P1: something" in printed


def test_ctrl_c_writes_nothing(
    stand_in: Callable[[Callable[[Plan], list[Row]]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scratch: list[Path] = []

    def stop(plan: Plan) -> list[Row]:
        scratch.append(plan.scratch)
        assert plan.scratch.is_dir()
        raise KeyboardInterrupt

    stand_in(stop)
    file = tmp_path / "bench.json"
    assert main(["P1", "--json", str(file), "--place", str(tmp_path)]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert scratch[0].parent == tmp_path


def test_cases_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CASES)
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["P99"], "unknown case P99; there are P1, P2"),
        (["--repetitions", "0"], "--repetitions is at least 1"),
        (["--place", "no-such-folder"], "--place no-such-folder is no folder"),
    ],
)
def test_options_that_make_no_sense(
    wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(wrong)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("{", "no document"),
        ("[]", "no document"),
        ('{"format": 0}', "another format"),
        ('{"format": 1, "rows": [{}]}', "no document"),
    ],
)
def test_a_file_that_holds_no_results(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(Unreadable, match=message):
        load(file)


def test_a_goal_may_be_about_our_own_figure() -> None:
    ours = Spread(40.0, 30.0, 50.0)
    below = Goal("at most", 45.0, "ours")
    assert Row(case="P8", size="x", ours=ours, unit="us", goal=below).met
    assert not Row(case="P8", size="x", ours=ours.by(2), unit="us", goal=below).met
    assert Row(case="P8", size="x", ours=ours, unit="us", goal=Goal("at least", 1)).met is None
