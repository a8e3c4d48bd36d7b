"""What processes tell becomes a history, in whatever order it comes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from forebay_models.linear.history import Operation
from forebay_models.linear.lines import operation_line
from forebay_models.linear.wire import LineRecorder, Transcript, now


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """Give a pipe that does not block its reader."""
    ends = os.pipe()
    os.set_blocking(ends[0], False)
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def look(actor: str, call: int, returned: int | None = None, **fields: object) -> Operation:
    """Return a question that was answered, or not."""
    op = Operation(actor=actor, kind="empty", call=call, returned=returned)
    op = replace(op, **fields)  # type: ignore[arg-type]  # History checks the values
    return replace(op, ended="pending") if returned is None else op


def told(*operations: Operation) -> Transcript:
    """Return what these lines tell."""
    transcript = Transcript()
    transcript.hear("".join(f"{operation_line(op)}\n" for op in operations).encode())
    return transcript


def test_a_call_is_told_before_it_is_made_and_a_return_afterwards() -> None:
    transcript = Transcript()
    with pipe() as (read, write):
        recorder = LineRecorder(write)
        during: list[Operation] = []

        def do() -> int:
            transcript.hear(os.read(read, 4096))
            during.append(transcript.under_way["o1"])
            return 7

        before = now()
        op = Operation(actor="o1", kind="len", call=0)
        recorder.perform(op, do, lambda op, length: replace(op, length=length))
        transcript.hear(os.read(read, 4096))
        after = now()
    assert during[0].ended == "pending"
    assert transcript.under_way == {}
    assert transcript.lines == {"o1": 2}
    (op,) = transcript.operations()
    assert (op.call, op.returned, op.ended, op.length) == (1, 2, "done", 7)
    assert recorder.count == transcript.count == 1
    assert before <= during[0].call <= after


def test_lines_that_come_in_pieces_are_put_together() -> None:
    line = (operation_line(look("a", 5)) + "\n").encode()
    transcript = Transcript()
    assert transcript.hear(line[:10]) == []
    assert transcript.hear(line[10:]) == [look("a", 5)]


def test_operations_are_numbered_in_the_order_of_their_times() -> None:
    b = look("b", 70), look("b", 70, 75)
    a = look("a", 10), look("a", 10, 72)
    last = look("a", 90)
    operations = told(*b, *a, last).operations()
    assert [(op.actor, op.call, op.returned) for op in operations] == [
        ("a", 1, 3),
        ("b", 2, 4),
        ("a", 5, None),
    ]


def test_a_call_and_a_return_at_the_same_time_overlap() -> None:
    operations = told(look("a", 10, 20), look("b", 20, 30)).operations()
    assert [(op.call, op.returned) for op in operations] == [(1, 3), (2, 4)]


def test_a_lease_is_that_of_its_own_actor() -> None:
    takes = [look(actor, 10, 20 + n, kind="take", n=1, m=1) for n, actor in enumerate("ab")]
    ends = look("b", 30, 40, kind="commit", lease=10)
    operations = told(*takes, ends).operations()
    (taken,) = (op for op in operations if op.actor == "b" and op.kind == "take")
    assert operations[-1].lease == taken.call


@pytest.mark.parametrize("text", ["x", "\n" * 3000, "\N{PILE OF POO}" * 900])
def test_a_text_of_any_length_comes_through(text: str) -> None:
    transcript = Transcript()
    with pipe() as (read, write):
        LineRecorder(write).say("p1", text)
        transcript.hear(os.read(read, 1 << 16))
    assert transcript.said == {"p1": text}


def test_a_long_error_is_cut() -> None:
    def fail() -> None:
        raise KeyError("\N{PILE OF POO}" * 5000)

    transcript = Transcript()
    with pipe() as (read, write):
        LineRecorder(write).perform(look("a", 0), fail, lambda op, _: op)
        transcript.hear(os.read(read, 1 << 16))
    (op,) = transcript.operations()
    assert op.ended == "unexpected"
    assert op.error.startswith("KeyError('")
