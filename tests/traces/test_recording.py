"""What a buffer writes down: each action once, with its outcome, whatever comes in between."""

import asyncio
import itertools
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import forebay._trace
import pytest
from forebay import BlockingReplayBuffer, ListStorage, Trace
from forebay._records import Rows
from forebay._stores import Ints
from forebay._tickets import Kind
from forebay_models.tracing.files import TraceFile, read_trace, shown
from forebay_models.tracing.replay import replay
from forebay_models.tracing.setting import setting_of
from forebay_spec.events import Header

from tests.library.interrupts import Interrupts, interrupted
from tests.library.support import Slots
from tests.library.test_cost import calls_of
from tests.library.test_interrupts import ACTIONS, Plain

ME = threading.current_thread().name


def traced(path: Path, capacity: int = 4, uses: int = 1) -> tuple[BlockingReplayBuffer, Trace]:
    trace = Trace(path)
    buffer = BlockingReplayBuffer(
        Slots(capacity), consume_after_n_samples=uses, seed=0, monitor=Plain(), trace=trace
    )
    return buffer, trace


def texts(trace: TraceFile) -> list[str]:
    return [shown(event).replace(ME, "me") for event in trace.events]


def accepted(path: Path) -> TraceFile:
    """Return a trace that the specification accepts."""
    trace = read_trace(path)
    found = replay(setting_of(trace))
    assert not found.rejected, (texts(trace), found.judged, found.allowed)
    assert found.judged == len(trace.events)
    return trace


def test_every_action_is_an_event_with_its_outcome_and_slots(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    buffer, trace = traced(path)
    with trace:
        token = buffer.cancel_token()
        buffer.extend([1, 2])
        with pytest.raises(forebay.AdmissionTimeout):
            buffer.extend([1, 2, 3], timeout=0.0)
        with pytest.raises(forebay.AdmissionTimeout):
            buffer.extend([1, 2, 3], timeout=2.0)
        with buffer.lease(1):
            buffer.sample(1)
        buffer.extend([3])
        with suppress(LookupError), buffer.lease(2, at_least=1):
            raise LookupError
        with pytest.raises(forebay.SampleTimeout):
            buffer.sample(2, timeout=0.0)
    assert accepted(path).header == Header(capacity=4, uses=1, order="fifo")
    token.set()
    token.set()
    with pytest.raises(forebay.Cancelled):
        buffer.extend([1], cancel_event=token)
    buffer.extend([4])
    buffer.empty()
    buffer.shutdown()
    with pytest.raises(forebay.ShutDown):
        buffer.sample(1)
    trace.flush()
    assert texts(accepted(path)) == [
        "Arrive(me,2) = SERVE, slots 0 1",
        "Publish(me), slots 0 1",
        "Arrive(me,3) = TIMEOUT",
        "Arrive(me,3) = WAIT",
        "Expire(me) = TIMEOUT",
        "Ask(me,lease,1,1) = SERVE, slots 0",
        "Ready(0), slots 0, of me",
        "Ask(me,plain,1,1) = SERVE, slots 1",
        "Ready(1), slots 1, of me",
        "Deliver(1), slots 1, of me",
        "Deliver(0), slots 0, of me",
        "Arrive(me,1) = SERVE, slots 1",
        "Publish(me), slots 1",
        "Ask(me,lease,2,1) = SERVE, slots 1",
        "Ready(0), slots 1, of me",
        "Return(0), slots 1, of me",
        "Ask(me,plain,2,2) = TIMEOUT",
        "SetCancel(token 0)",
        "Arrive(me,1) = CANCELLED",
        "Arrive(me,1) = SERVE, slots 0",
        "Publish(me), slots 0",
        "Empty, slots 0 1",
        "Close(draining)",
        "Ask(me,plain,1,1) = SHUT_DOWN",
    ]


def test_a_batch_that_fails_is_returned_and_a_copy_that_fails_abandoned(tmp_path: Path) -> None:
    class Breaking(Slots):
        broken = False

        def write(self, slots: Ints, rows: Rows) -> None:
            if self.broken:
                raise ArithmeticError
            super().write(slots, rows)

        def read(self, slots: Ints) -> object:
            raise ArithmeticError

    path = tmp_path / "trace.jsonl"
    trace, storage = Trace(path), Breaking(4)
    buffer = BlockingReplayBuffer(storage, trace=trace)
    buffer.extend([1])
    storage.broken = True
    with pytest.raises(ArithmeticError):
        buffer.extend([2])
    with pytest.raises(ArithmeticError):
        buffer.sample(1)
    trace.flush()
    assert texts(accepted(path))[2:] == [
        "Arrive(me,1) = SERVE, slots 1",
        "Abandon(me), slots 1",
        "Ask(me,plain,1,1) = SERVE, slots 0",
        "Fail(0), slots 0, of me",
        "Return(0), slots 0, of me",
    ]


def test_tokens_and_actors_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path)
    buffer = BlockingReplayBuffer(Slots(4), limits=forebay.Limits(tokens=1), trace=trace)
    for _ in range(2):  # the second token gets the row of the first one
        token = buffer.cancel_token()
        token.set()
        with pytest.raises(forebay.Cancelled):
            buffer.extend([1], cancel_event=token)
        del token
    threads = [threading.Thread(target=buffer.extend, args=([1],), name="same") for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join(60.0)
    trace.flush()
    events = accepted(path).events
    arrivals = [event for event in events if event.name == "Arrive"]
    assert [event.token for event in arrivals] == ["token 0", "token 0 (2)", None, None]
    assert [event.actor for event in arrivals] == [ME, ME, "same", "same (2)"]


def test_a_foreign_event_is_a_flag_of_the_call_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    buffer, trace = traced(path, capacity=1)
    event = threading.Event()
    event.set()
    with pytest.raises(forebay.Cancelled):
        buffer.extend([1], cancel_event=event)
    buffer.extend([1])
    trace.flush()
    assert texts(accepted(path)) == [
        "SetCancel(me,me, call 1)",
        "Arrive(me,1) = CANCELLED",
        "Arrive(me,1) = SERVE, slots 0",
        "Publish(me), slots 0",
    ]


def test_a_cancelled_task_is_cancelled_in_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path)
    buffer = BlockingReplayBuffer(ListStorage(1), batch_size=1, trace=trace)

    async def cancel() -> None:
        await buffer.extend_async([1])
        task = asyncio.create_task(buffer.extend_async([2]))
        while not buffer.stats().waiting_writers:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await buffer.sample_async()) == 1

    asyncio.run(asyncio.wait_for(cancel(), 60.0))
    trace.flush()
    assert texts(accepted(path)) == [
        "Arrive(task 1,1) = SERVE, slots 0",
        "Publish(task 1), slots 0",
        "Arrive(task 2,1) = WAIT",
        "SetCancel(task 2,task 2, call 1)",
        "Cancel(task 2) = CANCELLED",
        "Ask(task 3,plain,1,1) = SERVE, slots 0",
        "Ready(0), slots 0, of task 3",
        "Deliver(0), slots 0, of task 3",
    ]


def test_a_dropped_batch_that_was_ready_fails_late(tmp_path: Path) -> None:
    """As that of a coroutine that nobody awaits any more, which the next call gives back."""
    path = tmp_path / "trace.jsonl"
    buffer, trace = traced(path)
    buffer.extend([1])
    core = buffer._core
    call = buffer._request(Kind.PLAIN, 1, None, None, None)
    core.gather(call, lambda slots: None)
    core.orphan(call)
    assert len(buffer) == 1
    trace.flush()
    assert texts(accepted(path))[2:] == [
        "Ask(me,plain,1,1) = SERVE, slots 0",
        "Ready(0), slots 0, of me",
        "Fail(0) = INTERRUPTED, slots 0, of me",
        "Return(0), slots 0, of me",
    ]


def interrupted_trace(
    path: Path, action: Callable[[BlockingReplayBuffer], object], *at: int
) -> int:
    """Record an action with interrupts at these places, and what can still be done after it."""
    buffer, trace = traced(path)
    buffer.extend([1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        reached = interrupted(partial(action, buffer), *at)
    for call in (lambda: buffer.extend([9], timeout=0.0), lambda: buffer.sample(1, timeout=0.0)):
        with suppress(forebay.AdmissionTimeout, forebay.SampleTimeout, forebay.ShutDown):
            call()
    trace.flush()
    return reached


@pytest.mark.parametrize("action", ACTIONS)
def test_an_interrupt_at_any_place_leaves_a_true_trace(action: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for place in itertools.count():
        reached = interrupted_trace(path, ACTIONS[action], place)
        accepted(path)
        if not reached:
            break
    assert place > 5


@pytest.mark.parametrize("rows", [1, 4], ids=["served", "waiting"])
def test_a_token_set_in_a_handler_at_any_place_is_in_the_trace(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    endings = set()
    for place in itertools.count():
        buffer, trace = traced(path)
        buffer.extend([1, 2])
        token = buffer.cancel_token()
        with (
            suppress(forebay.Cancelled, forebay.AdmissionTimeout),
            Interrupts([place], token.set) as handler,
        ):
            buffer.extend([0] * rows, timeout=2, cancel_event=token)
        trace.flush()
        events = accepted(path).events
        assert [event.name for event in events].count("SetCancel") == handler.raised
        endings.add((events[-1].name, events[-1].outcome))
        if not handler.raised:
            break
    assert place > 5
    assert endings >= {("Arrive", "CANCELLED")}
    if rows == 4:
        assert ("Cancel", "CANCELLED") in endings


def test_many_events_are_written_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forebay._trace, "PENDING", 6)
    path = tmp_path / "trace.jsonl"
    buffer, _ = traced(path)
    for count, there in ((1, 0), (2, 0), (3, 0), (4, 6)):
        buffer.extend([count])
        assert len(read_trace(path).events) == there


def test_what_cannot_be_written_is_said_and_harms_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(forebay._trace, "PENDING", 2)
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "trace.jsonl"
    buffer, trace = traced(path)
    buffer.extend([1])
    path.unlink()
    (tmp_path / "sub").rmdir()
    buffer.extend([2])
    assert "a trace is incomplete" in caplog.text
    (tmp_path / "sub").mkdir()
    with pytest.raises(OSError, match="was cut short"):
        trace.flush()
    assert len(buffer) == 2


def test_a_path_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        Trace(tmp_path / "none" / "trace.jsonl")


def test_a_trace_belongs_to_one_buffer(tmp_path: Path) -> None:
    _, trace = traced(tmp_path / "trace.jsonl")
    with pytest.raises(ValueError, match="belongs to another buffer"):
        BlockingReplayBuffer(ListStorage(1), trace=trace)
    with pytest.raises(TypeError, match="must be a Trace or None"):
        BlockingReplayBuffer(ListStorage(1), trace="trace.jsonl")  # type: ignore[arg-type]  # wrong


def test_a_trace_that_was_given_to_no_buffer_is_empty(tmp_path: Path) -> None:
    with Trace(tmp_path / "trace.jsonl"):
        pass
    assert (tmp_path / "trace.jsonl").read_text() == ""


def test_without_a_trace_a_cycle_makes_one_empty_call_an_action() -> None:
    """And so nothing is recorded, and nothing worth measuring is spent."""
    made = []

    def counting(name: str) -> Callable[..., tuple[()]]:
        def method(*args: object) -> tuple[()]:
            made.append(name)
            return ()

        return method

    def cycle(buffer: BlockingReplayBuffer) -> None:
        buffer.extend([1])
        buffer.sample(1)

    buffer = BlockingReplayBuffer(Slots(4), seed=0)
    assert type(buffer._core.ledger.trace) is forebay._trace.NoTrace
    cycle(buffer)
    calls = calls_of(lambda: cycle(buffer))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("acts", "served", "waits", "ended", "relieve"):
            patch.setattr(forebay._trace.NoTrace, name, counting(name))
        cycle(buffer)
    assert made == ["relieve", "served", "acts", "relieve", "served", "acts", "acts"]
    assert len(made) < 0.1 * calls
