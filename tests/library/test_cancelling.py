"""Cancel tokens and foreign events: what ends a call, when, and from where."""

import signal
import threading
from types import FrameType

import pytest
from forebay import Cancelled, SampleTimeout

from tests.library.support import Stage, make, patience, result, snapshot


def test_a_token_ends_all_calls_that_carry_it_and_no_others() -> None:
    stage = Stage()
    buffer = make(2, stage)
    token, other = buffer.cancel_token(), buffer.cancel_token()
    with patience() as start:
        cancelled = [start(lambda: buffer.sample(1, cancel_event=token)) for _ in range(2)]
        stage.await_sleepers(2)
        going = start(lambda: buffer.sample(1, cancel_event=other))
        stage.await_sleepers(3)
        token.set()
        for call in cancelled:
            with pytest.raises(Cancelled):
                result(call)
        assert not going.done()
        buffer.extend([1])
        assert result(going) == [1]
    assert token.is_set()
    assert not other.is_set()
    assert buffer.stats().cancellations == 2


def test_a_token_does_not_touch_a_call_that_was_admitted_or_has_drawn() -> None:
    stage = Stage()
    buffer = make(2, stage)
    token = buffer.cancel_token()
    stage.at["admitted"] = token.set
    assert buffer.extend([1], cancel_event=token).tolist() == [0]
    later = buffer.cancel_token()
    stage.at["drawn"] = later.set
    assert buffer.sample(1, cancel_event=later) == [1]


def test_setting_a_token_takes_no_lock() -> None:
    """L04: the setter may be a handler in the thread that is inside the critical section."""
    stage = Stage()
    buffer = make(2, stage)
    token = buffer.cancel_token()
    with patience() as start:
        waiting = start(lambda: buffer.sample(1, cancel_event=token))
        stage.await_sleepers(1)
        with buffer._core.section:
            token.set()
        with pytest.raises(Cancelled):
            result(waiting)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signal handlers run in the main thread; run these tests there",
)
def test_a_signal_handler_cancels_the_wait_that_it_interrupts() -> None:
    """L04: the handler sets the token of the very call that it interrupts."""
    stage = Stage()
    buffer = make(2, stage)
    token = buffer.cancel_token()
    main = threading.main_thread().ident
    assert main is not None

    def handler(number: int, frame: FrameType | None) -> None:
        token.set()

    def interrupt() -> None:
        stage.await_sleepers(1)
        signal.pthread_kill(main, signal.SIGUSR1)

    previous = signal.signal(signal.SIGUSR1, handler)
    try:
        with patience() as start:
            start(interrupt)
            with pytest.raises(Cancelled):
                buffer.sample(1, cancel_event=token)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert buffer.stats().waiting_readers == 0


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signal handlers run in the main thread; run these tests there",
)
def test_signals_do_not_restart_a_timeout() -> None:
    """L07: a timeout of five seconds under ten signals a second takes five seconds."""
    stage = Stage()
    buffer = make(2, stage)
    main = threading.main_thread().ident
    assert main is not None
    handled: list[float] = []

    def handler(number: int, frame: FrameType | None) -> None:
        handled.append(stage.now)

    def interrupt() -> None:
        for _ in range(50):
            stage.await_sleepers(1)
            signal.pthread_kill(main, signal.SIGUSR1)
            stage.advance(0.1)

    previous = signal.signal(signal.SIGUSR1, handler)
    try:
        with patience() as start:
            signals = start(interrupt)
            with pytest.raises(SampleTimeout):
                buffer.sample(1, timeout=4.95)
            result(signals)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert handled
    assert stage.now == pytest.approx(5.0)


def test_a_foreign_event_is_polled_and_ends_a_wait() -> None:
    stage = Stage()
    buffer = make(2, stage)

    class Flag:
        looks = 0

        def is_set(self) -> bool:
            self.looks += 1
            return self.looks > 3

    flag = Flag()
    before = snapshot(buffer)
    with patience() as start:
        waiting = start(lambda: buffer.sample(1, cancel_event=flag))
        for _ in range(3):
            stage.advance(0.1)
        with pytest.raises(Cancelled):
            result(waiting)
    assert flag.looks == 4
    assert snapshot(buffer) == before


def test_a_foreign_event_that_raises_ends_the_call_with_its_error() -> None:
    class Broken:
        def is_set(self) -> bool:
            raise LookupError("gone")

    buffer = make(2)
    before = snapshot(buffer)
    with pytest.raises(LookupError, match="gone"):
        buffer.sample(1, cancel_event=Broken())
    assert snapshot(buffer) == before


def test_a_token_of_another_buffer_is_polled() -> None:
    buffer, other = make(2), make(2)
    token = other.cancel_token()
    with pytest.raises(SampleTimeout):
        buffer.sample(1, cancel_event=token, timeout=0)
    token.set()
    with pytest.raises(Cancelled):
        buffer.sample(1, cancel_event=token, timeout=0)


@pytest.mark.parametrize("event", ["now", 1, object(), threading.Lock()])
def test_what_cannot_be_asked_is_no_event(event: object) -> None:
    with pytest.raises(TypeError, match=r"must be a token of buffer\.cancel_token"):
        make(2).extend([1], cancel_event=event)  # type: ignore[arg-type]  # wrong on purpose


def test_a_token_row_is_used_again_without_its_old_flag() -> None:
    buffer = make(2)
    rows = set()
    for _ in range(2000):
        token = buffer.cancel_token()
        assert not token.is_set()
        token.set()
        rows.add(repr(token))
        del token
    assert buffer._core.ledger.cancelled_tokens() == []
    assert len(rows) <= 1024
