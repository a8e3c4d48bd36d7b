"""Real runs: what is recorded of them can have happened, and hangs are noticed."""

import logging
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from forebay import BlockingReplayBuffer, SampleTimeout
from forebay_models.linear import run
from forebay_models.linear.actor import Actor
from forebay_models.linear.check import check
from forebay_models.linear.history import Operation
from forebay_models.linear.lines import as_lines, from_lines, read
from forebay_models.linear.record import Recording, Run, pressure, record
from forebay_models.linear.recorder import Recorder
from forebay_models.linear.run import Kit, judged, run_histories
from forebay_models.linear.workload import workload
from forebay_models.outcome import Verdict
from forebay_models.targets import Target

from tests.linear.scripts import edited, without

LEAST = 60  # operations of a history
RECORDED = Path(__file__).parent / "recorded"


@pytest.mark.parametrize("seed", range(6))
def test_a_recorded_history_is_explained(seed: int) -> None:
    recording = record(workload(seed))
    assert recording.hang == ""
    assert len(recording.history.operations) >= LEAST
    outcome = judged("a run", recording.history)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    assert from_lines(as_lines(recording.history)) == recording.history


def test_calls_overlap_and_end_in_several_ways() -> None:
    operations = [op for seed in range(10, 14) for op in overlapping(seed)]
    assert len(operations) > LEAST
    assert {"done", "timeout", "shut down"} <= {op.ended for op in operations}


def overlapping(seed: int) -> list[Operation]:
    """Return the operations of a run during which another one was called."""
    operations = record(workload(seed)).history.operations
    return [
        op
        for op in operations
        if any(op.call < other.call < (op.returned or 0) for other in operations)
    ]


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_changes_to_a_recorded_history_are_found(order: str) -> None:
    """The histories were recorded once, of runs with a capacity of 4 and one use of a record."""
    history = read(RECORDED / f"{order}.jsonl")
    assert check(history).verdict is Verdict.HOLDS
    reads = [op for op in history.operations if op.kind == "sample" and op.ended == "done"]
    read_first = reads[0]
    assert read_first.records is not None
    got = read_first.records[0]
    writes = [op for op in history.operations if op.kind == "extend"]
    (written,) = (op for op in writes if got in (op.records or ()))
    again = next(op for op in reads[1:] if op.n == read_first.n == op.m == len(op.records or ()))
    wrong = {
        "never written": without(history, written.call),
        "written and yet timed out": edited(
            history, written.call, ended="timeout", waits="some time", slots=None
        ),
        "delivered twice": edited(
            history, again.call, records=read_first.records, slots=read_first.slots
        ),
        "a torn row": edited(history, read_first.call, records=(0, *read_first.records[1:])),
        "a slot that it is not in": edited(history, written.call, slots=other_slots(written)),
    }
    for what, changed in wrong.items():
        assert check(changed).verdict is Verdict.VIOLATED, what


def other_slots(write: Operation) -> tuple[int, ...]:
    """Return as many slots, but others."""
    assert write.slots is not None
    return tuple((slot + 1) % 4 for slot in write.slots)


def test_the_numbers_stand_close_around_the_call() -> None:
    recorder = Recorder()
    inner: list[Operation] = []

    def do() -> int:
        op, _ = recorder.perform(look("inner"), lambda: 1, lambda op, _: op)
        inner.append(op)
        return 7

    op = Operation(actor="outer", kind="len", call=0)
    outer, value = recorder.perform(op, do, lambda op, got: replace(op, length=got))
    assert value == 7
    assert (outer.call, inner[0].call, inner[0].returned, outer.returned) == (1, 2, 3, 4)
    assert outer.length == 7
    assert [op.actor for op in recorder.operations()] == ["outer", "inner"]


def test_what_has_not_returned_is_pending() -> None:
    recorder = Recorder()
    during: list[tuple[Operation, ...]] = []
    recorder.perform(look("a"), lambda: during.append(recorder.operations()), lambda op, _: op)
    ((op,),) = during
    assert (op.call, op.returned, op.ended) == (1, None, "pending")


def test_an_error_that_nobody_expects_is_kept() -> None:
    def fail() -> None:
        raise KeyError("x")

    op, value = Recorder().perform(look("a"), fail, lambda op, _: op)
    assert value is None
    assert (op.ended, op.error) == ("unexpected", "KeyError('x')")


def test_a_value_that_cannot_be_read_is_an_error_that_nobody_expects() -> None:
    def unreadable(op: Operation, value: None) -> Operation:
        raise TypeError("nothing")

    recorder = Recorder()
    op, _ = recorder.perform(look("a"), lambda: None, unreadable)
    assert op.ended == "unexpected"
    assert op.error == "what it returned cannot be read: TypeError('nothing')"
    assert recorder.operations() == (op,)


def test_a_result_that_its_ending_cannot_have_is_an_error_that_nobody_expects() -> None:
    def late() -> None:
        raise SampleTimeout

    op = Operation(actor="c1", kind="sample", call=0, n=1, m=1)
    op, _ = Recorder().perform(op, late, lambda op, _: op, lambda op: replace(op, records=(1,)))
    assert (op.ended, op.records) == ("unexpected", None)
    assert op.error == "sample that ended timeout gives no records"


def test_a_call_by_which_its_thread_dies_has_returned() -> None:
    def leave() -> None:
        raise SystemExit(3)

    recorder = Recorder()
    with pytest.raises(SystemExit):
        recorder.perform(look("a"), leave, lambda op, _: op)
    (op,) = recorder.operations()
    assert (op.ended, op.error) == ("unexpected", "SystemExit(3)")


@pytest.mark.parametrize(
    ("method", "value"), [("sample", None), ("sample", (None, {})), ("extend", None)]
)
def test_what_cannot_be_read_in_a_run_is_found(
    monkeypatch: pytest.MonkeyPatch, method: str, value: object
) -> None:
    """The call is made as it should be, only what it returns is lost."""
    real = getattr(BlockingReplayBuffer, method)
    lost: list[object] = []
    turn = threading.Lock()

    def losing(*args: object, **kwargs: object) -> object:
        got = real(*args, **kwargs)
        with turn:
            if lost:
                return got
            lost.append(got)
            return value

    monkeypatch.setattr(BlockingReplayBuffer, method, losing)
    outcome = run_histories(seconds=None, seed=3, histories=1, limit=2_000)
    assert len(lost) == 1
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert "unexpected what it returned cannot be read" in outcome.counterexample.what[0]


@pytest.mark.parametrize("where", [Actor, Run])
def test_a_thread_that_dies_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, where: type[Actor | Run]
) -> None:
    """Its own code raises between two calls; nothing of that is in the history."""

    def fail(*_: object) -> None:
        raise KeyError("in the checker")

    monkeypatch.setattr(where, {Actor: "_token", Run: "_interfere"}[where], fail)
    before = threading.active_count()
    outcome = run_histories(seconds=None, seed=0, histories=2)
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.figures["histories"] == 1
    assert outcome.counterexample is not None
    first, second, *_ = outcome.counterexample.what
    assert first == "the run ended, but not every actor came to the end of its work"
    assert second.startswith("this one died of an error: ")
    assert second.endswith("KeyError: 'in the checker'")
    assert threading.active_count() == before


def test_a_call_that_never_returned_in_a_run_that_ended_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = read(RECORDED / "fifo.jsonl")
    last = history.operations[-1]
    pending = edited(history, last.call, returned=None, ended="pending", length=None)
    assert check(pending).verdict is Verdict.HOLDS  # as of an actor that was killed
    kit = Kit(lambda plan, patience: Recording(history=pending), "nobody")
    monkeypatch.setattr(run, "KITS", {Target.LOCAL: kit})
    outcome = run_histories(seconds=None, seed=0, histories=1)
    assert outcome.verdict is Verdict.VIOLATED
    assert f"calls that have not returned:\n- {last.actor} {last.kind}" in outcome.detail


def look(actor: str) -> Operation:
    return Operation(actor=actor, kind="empty", call=0)


def test_pressure_ends_with_its_block() -> None:
    logger = logging.getLogger("forebay")
    before = sys.getswitchinterval(), logger.level
    with pressure():
        assert sys.getswitchinterval() < before[0]
    assert (sys.getswitchinterval(), logger.level) == before


def test_no_thread_stays_behind() -> None:
    before = threading.active_count()
    record(workload(5))
    assert threading.active_count() == before


def test_a_run_that_does_not_end_is_a_failure_and_its_threads_are_freed() -> None:
    """It is never closed here, since nobody lives to see so many operations."""
    before = threading.active_count()
    outcome = run_histories(
        seconds=None,
        seed=0,
        histories=2,
        patience=0.3,
        plan=lambda seed, target: replace(workload(seed, target), operations=10**9),
    )
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.figures["histories"] == 1
    assert outcome.counterexample is not None
    assert outcome.counterexample.what[0].startswith("the run hangs")
    assert "\nthe buffer says of itself:\nbuffer of" in outcome.detail
    assert threading.active_count() == before
