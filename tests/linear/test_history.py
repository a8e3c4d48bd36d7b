"""A history is what a run can give, and can be written down and read again."""

from dataclasses import replace
from pathlib import Path

import pytest
from forebay_models.linear.history import (
    History,
    Operation,
    Setting,
    as_lines,
    from_lines,
    read,
    write,
)

from tests.linear.scripts import Script

SETTING = Setting(capacity=2)


def example() -> History:
    """Return a history with every kind of operation and several endings."""
    script = Script(3, uses=2, order="random")
    write_two = script.begin_write("p1", 1, 2, token="p1.1")
    script.at_once("o1", "cancel", token="p1.1")
    script.end(write_two, slots=(0, 1))
    lease = script.read("x1", 2, kind="take")
    script.at_once("x1", "release", lease=lease)
    lease = script.read("x1", 2, 1, kind="take")
    script.at_once("x1", "commit", lease=lease)
    script.end(script.begin("o1", "len"), length=2)
    script.at_once("o1", "empty")
    script.end(script.begin_read("c1", 2, m=1, waits="some time"), "timeout")
    script.at_once("o1", "shutdown", mode="draining")
    script.begin_write("p1", 7)
    script.end(script.begin_write("p2", 8), "unexpected", error="KeyError('x')")
    return script.history()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    history = example()
    write(history, tmp_path / "history.jsonl")
    assert read(tmp_path / "history.jsonl") == history


def test_lines_leave_out_what_does_not_apply() -> None:
    head, first, *_ = as_lines(example()).splitlines()
    assert head == '{"history": 1, "capacity": 3, "uses": 2, "order": "random", "source": ""}'
    assert first == (
        '{"actor": "p1", "kind": "extend", "call": 1, "returned": 4, "n": 2, "m": 2, '
        '"records": [1, 2], "slots": [0, 1], "token": "p1.1"}'
    )


def test_operations_are_said_in_words() -> None:
    operations = example().operations
    assert operations[0].line() == (
        "p1 extend(1 2) with p1.1, called at 1, returned at 4: done, slots 0 1"
    )
    assert operations[3].line() == (
        "x1 release of the lease taken at 5, called at 7, returned at 8: done"
    )
    assert operations[8].line() == (
        "c1 sample(2, at_least=1), called at 17, returned at 18: timeout"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lines of JSON objects"),
        ("[1]\n", "lines of JSON objects"),
        ('{"capacity": 2}\n', "the first line of a history"),
        ('{"history": 2, "capacity": 2}\n', "the first line of a history"),
        ('{"history": 1}\n', "missing or unknown"),
        ('{"history": 1, "capacity": 2}\n{"actor": "p1", "colour": 3}\n', "missing or unknown"),
        ("no json\n", "Expecting value"),
    ],
)
def test_other_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_lines(text)


WRITE = Operation(actor="p1", kind="extend", call=1, returned=4, n=1, m=1, records=(1,))


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([replace(WRITE, n=3, m=3, records=(1, 2, 3))], "sizes lie in"),
        ([replace(WRITE, records=(1, 2))], "names its records"),
        ([replace(WRITE, returned=None)], "have not returned"),
        ([replace(WRITE, call=5)], "before it was called"),
        ([replace(WRITE, records=(0,))], "a number of its own"),
        ([WRITE, replace(WRITE, actor="p2", call=2, returned=3)], "a number of its own"),
        ([WRITE, replace(WRITE, call=2, returned=3)], "one call at a time"),
        ([WRITE, replace(WRITE, actor="p2", call=2)], "one counter"),
        ([replace(WRITE, call=3), replace(WRITE, actor="p2", call=1, returned=2)], "in order"),
        ([Operation(actor="x1", kind="commit", call=1, returned=2)], "names no lease"),
        ([Operation(actor="o1", kind="shutdown", call=1, returned=2)], "has a mode"),
    ],
)
def test_what_no_run_can_give_is_refused(operations: list[Operation], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        History(SETTING, tuple(operations))
