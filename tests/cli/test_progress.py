"""Progress goes to standard error: a bar on a terminal, a line for each check elsewhere."""

import io

import pytest
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Bar, bar
from rich.console import Console
from rich.progress import Progress


def outcome(name: str) -> Outcome:
    return Outcome(name=name, verdict=Verdict.HOLDS, bounds="-", figures={}, seconds=2.04)


def test_without_a_terminal_each_check_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with bar() as observer:
        observer.expects(1)
        observer.begins("one")
        observer.says("one", "3 states")
        observer.ends("one", outcome("one"))
        observer.expects(2)
        observer.ends("two", outcome("two"))
    captured = capsys.readouterr()
    assert captured.err == "[1/1] one: holds (2.0 s)\n[2/3] two: holds (2.0 s)\n"
    assert captured.out == ""


def test_the_bar_shows_what_runs_and_how_many_have_ended() -> None:
    display = Progress(console=Console(file=io.StringIO()), disable=True)
    shown = Bar(display)
    shown.expects(2)
    shown.begins("one")
    shown.begins("two")
    (task,) = display.tasks
    assert task.fields["now"] == "one; two"
    shown.says("two", "3 states")
    shown.ends("one", outcome("one"))
    assert task.fields["now"] == "two 3 states"
    assert (task.completed, task.total) == (1, 2)
