"""A history is what a run can give, and can be written down and read again."""

from dataclasses import replace
from pathlib import Path

import pytest
from forebay_models.linear.history import History, Kind, Operation, Setting
from forebay_models.linear.lines import as_lines, from_lines, read, write

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
    script.at_once("k1", "kill", victim="p1")
    script.at_once("o1", "recover")
    return script.history()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    history = example()
    write(history, tmp_path / "history.jsonl")
    assert read(tmp_path / "history.jsonl") == history


def test_lines_leave_out_what_does_not_apply() -> None:
    head, first, *_ = as_lines(example()).splitlines()
    assert head == '{"history": 2, "capacity": 3, "uses": 2, "order": "random", "source": ""}'
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
    assert operations[-2].line() == "k1 kill(p1), called at 24, returned at 25: done"


def test_files_of_before_there_were_kills_are_read() -> None:
    line = '{"actor": "p1", "kind": "extend", "call": 1, "n": 1, "m": 1, "records": [1]}'
    lines = '{"history": 1, "capacity": 2}\n' + line.replace('"n"', '"ended": "pending", "n"')
    assert from_lines(lines) == from_lines(lines.replace('"history": 1', '"history": 2'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lines of JSON objects"),
        ("[1]\n", "line 1: expected an object, got a list"),
        ('{"capacity": 2}\n', "the first line of a history"),
        ('{"history": 3, "capacity": 2}\n', "the first line of a history"),
        ('{"history": 1}\n', "line 1: 'capacity' is missing"),
        ('{"history": 1, "capacity": 0}\n', "line 1: capacity and uses are at least 1"),
        ('{"history": 1, "capacity": 2, "order": "any"}\n', "line 1: the order is one of fifo"),
        ("no json\n", "line 1: this is not JSON: Expecting value"),
    ],
)
def test_other_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_lines(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"kind": "len"', "'call' is missing"),
        ('"kind": "len", "call": 1, "colour": 3', "nothing is known of colour"),
        ('"kind": "len", "call": "1"', "'call' should be a whole number, got a text"),
        ('"kind": "len", "call": 1, "returned": null', "should be a whole number, got null"),
        ('"kind": "extend", "call": 1, "n": 1, "m": 1, "records": [true]', "only whole numbers"),
        ('"kind": "extend", "call": 1, "n": 1, "m": 1, "records": 1', "a list, got a whole"),
        ('"kind": "shutdown", "call": 1, "returned": 2, "mode": "closed"', "the modes are"),
        (f'"kind": "len", "call": {"[" * 100_000}', "this is not JSON"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^line 3: .*{message}"):
        from_lines(f'{{"history": 1, "capacity": 2}}\n\n{{"actor": "p1", {line}}}\n')


def test_what_cannot_follow_the_lines_before_is_said_with_its_number() -> None:
    head, *rest = as_lines(example()).splitlines(keepends=True)
    with pytest.raises(ValueError, match=r"^line 4: .* numbered by one counter"):
        from_lines("".join([head, *rest[:2], rest[1]]))


WRITE = Operation(actor="p1", kind="extend", call=1, returned=4, n=1, m=1, records=(1,))
READ = Operation(actor="c1", kind="sample", call=1, returned=4, n=2, m=1, waits="some time")
TAKE = replace(READ, kind="take")
PENDING = replace(READ, returned=None, ended="pending")


def wrote(**fields: object) -> Operation:
    """Return the write with some words changed."""
    return replace(WRITE, **fields)  # type: ignore[arg-type]  # History checks the values


def once(kind: Kind, call: int = 1, actor: str = "c1", **fields: object) -> Operation:
    """Return an operation that nobody else is beside."""
    op = Operation(actor=actor, kind=kind, call=call, returned=call + 1)
    return replace(op, **fields)  # type: ignore[arg-type]  # History checks the values


def kill(call: int, victim: str = "c1", **fields: object) -> Operation:
    """Return the death of c1."""
    return once("kill", call, actor="k1", victim=victim, **fields)


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
        ([wrote(waits="x")], "one waits for ever, some time"),
        ([wrote(kind="put")], "there is no operation 'put'"),
        ([wrote(ended="lost")], "there is no ending 'lost'"),
        ([replace(WRITE, n=2, records=(1, 2))], "of one size"),
        ([replace(WRITE, error="KeyError()")], "only an unexpected ending has an error"),
        ([replace(WRITE, ended="shut down", slots=(0,))], "ended shut down gives no slots"),
        ([replace(READ, ended="timeout", records=(1,))], "ended timeout gives no records"),
        ([replace(READ, ended="failed", records=(1,), slots=(0,))], "ended failed gives no slots"),
        ([replace(READ, ended="unexpected", records=(1,))], "ended unexpected gives no records"),
        ([replace(READ, returned=None, ended="pending", slots=(1,))], "pending gives no slots"),
        ([replace(READ, length=1)], "gives no length"),
        ([replace(READ, lease=1)], "sample is of no lease"),
        ([replace(READ, mode="draining")], "sample has no mode"),
        ([once("len")], "gives a length"),
        ([once("len", ended="interrupted", length=1)], "ended interrupted gives no length"),
        ([once("len", length=0, n=1)], "len has no size"),
        ([once("len", length=0, waits="some time")], "len does not wait"),
        ([once("empty", token="t")], "empty has no token"),
        ([once("empty", records=(1,))], "ended done gives no records"),
        ([once("cancel")], "cancel names its token"),
        ([once("commit")], "names no lease"),
        ([once("shutdown")], "has a mode"),
        ([once("shutdown", mode="closed")], "the modes are draining and stopped"),
        ([once("commit", lease=9)], "who ends a lease has taken it before"),
        ([READ, once("commit", 5, lease=1)], "who ends a lease has taken it before"),
        ([TAKE, once("release", 5, actor="c2", lease=1)], "who ends a lease has taken it before"),
        ([once("kill")], "a kill names another as its victim"),
        ([kill(1, victim="k1")], "a kill names another as its victim"),
        ([once("recover", victim="c1")], "recover has no victim"),
        ([kill(1), kill(3)], "one dies once"),
        ([kill(1), once("empty", 3)], "who was killed calls nothing"),
        ([kill(1), replace(PENDING, call=3)], "who was killed calls nothing"),
        ([replace(READ, returned=9), kill(5)], "who was killed gets nothing afterwards"),
        ([kill(1, returned=5), replace(READ, call=2, returned=9)], "and gets nothing afterwards"),
    ],
)
def test_what_no_run_can_give_is_refused(operations: list[Operation], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        History(SETTING, tuple(operations))
