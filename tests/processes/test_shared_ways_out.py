"""Ways out that reach every process: closing, failing, cancelling, interrupts, deadlines."""

import os
import signal
import time
from typing import NoReturn

import pytest
from forebay import BlockingReplayBuffer

from tests.library.support import assert_consistent, snapshot
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    Outcome,
    Remote,
    Remotes,
    all_values,
    await_waiters,
    read,
    read_from,
    remotes,
    shared_buffer,
    write,
    write_to,
    write_with_token,
)
from tests.processes.support import until

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def shut_down(hands: Hands, immediate: bool) -> None:
    hands.buffer.shutdown(immediate)


def blocked_writers(buffer: BlockingReplayBuffer, start: Remotes, count: int) -> list[Remote]:
    """Return processes that wait to write to a buffer, which is full."""
    writers = []
    for number in range(count):
        writer = start.start()
        writer.begins(write, number)
        writers.append(writer)
    await_waiters(buffer, writers=count)
    return writers


@pytest.mark.parametrize("immediate", [False, True])
@pytest.mark.parametrize("where", ["here", "there"])
def test_a_shutdown_reaches_all_who_wait_in_all_processes(where: str, immediate: bool) -> None:
    """R9. Whoever reads gets what is left, unless the shutdown is immediate."""
    buffer = shared_buffer(2)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        writers = blocked_writers(buffer, start, 2)
        closer, reader = start.start(), start.start()
        if where == "here":
            buffer.shutdown(immediate)
        else:
            closer.does(shut_down, immediate)
        for writer in writers:
            outcome = writer.ends()
            assert (outcome.error, outcome.cause) == ("ShutDown", "")
            assert "the buffer is closed; a write of 1 record was refused" in outcome.words
        reader.begins(read, 2)
        outcome = reader.ends()
        if immediate:
            assert outcome.error == "ShutDown"
            assert "the buffer was stopped" in outcome.words
        else:
            assert outcome.value == [1, 2]
            reader.begins(read, 2)
            assert reader.ends().error == "ShutDown"
    assert buffer.stats().sampleable == (2 if immediate else 0)
    assert_consistent(buffer)


def test_a_shutdown_reaches_readers_who_wait_and_those_who_look_on() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        reader, observer, closer = start.start(), start.start(), start.start()
        reader.begins(read, 3)
        observer.begins(look_on, 3)
        await_waiters(buffer, readers=1)
        until(lambda: buffer.stats().waiting_observers == 1)
        closer.does(shut_down, immediate=False)
        assert reader.ends().value == [1]
        outcome = observer.ends()
        assert outcome == Outcome(True) or outcome.error == "ShutDown"
    assert waiting(buffer) == 0


def look_on(hands: Hands, rows: int) -> bool:
    return hands.buffer.wait_until_sampleable(rows)


def fail_with(hands: Hands, kind: str) -> None:
    """Fail with an error of this kind."""
    errors: dict[str, BaseException] = {
        "picklable": ValueError("the disk", 7),
        "unpicklable": RuntimeError(lambda: None),
        "local": type("Local", (Exception,), {})("of this function"),
        "huge": OSError("x" * 100_000),
        "stubborn": Stubborn(),
        "surrogates": ValueError(os.fsdecode(b"name \xff")),
        "exit": SystemExit(3),
    }
    hands.buffer.fail(errors[kind])


class Stubborn(Exception):
    """An exception that says nothing and does not travel."""

    def __str__(self) -> str:
        raise ArithmeticError

    def __reduce__(self) -> NoReturn:
        raise ArithmeticError


CAUSES = {
    "picklable": "ValueError('the disk', 7)",
    "unpicklable": "RuntimeError: <function fail_with.<locals>.<lambda>",
    "local": "Local: of this function (in process ",
    "huge": "OSError: " + 1000 * "x",
    "stubborn": "Stubborn: an exception that cannot say what it is (in process ",
    "surrogates": "ValueError('name \\udcff')",
    "exit": "SystemExit(3)",
}


@pytest.mark.parametrize("kind", CAUSES)
def test_a_failure_in_one_process_is_the_cause_in_all(kind: str) -> None:
    buffer = shared_buffer(1)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        (writer,) = blocked_writers(buffer, start, 1)
        failing = start.start()
        failing.does(fail_with, kind)
        outcome = writer.ends()
        assert outcome.error == "PeerLost"
        assert CAUSES[kind] in outcome.cause
        for work in (write, read):
            writer.begins(work, 1)
            assert writer.ends().cause == outcome.cause
        failing.begins(write, 1)
        assert failing.ends().error == "PeerLost"
    with pytest.raises(RuntimeError, match="the buffer has failed") as caught:
        read_from(buffer, 1)
    assert repr(caught.value.__cause__) == outcome.cause
    assert outcome.cause in buffer.describe()


def test_the_first_failure_is_the_cause_and_a_shutdown_does_not_hide_it() -> None:
    buffer = shared_buffer(1)
    with remotes(buffer) as start:
        first, second = start.start(), start.start()
        first.does(shut_down, immediate=True)
        first.does(fail_with, "picklable")
        second.does(fail_with, "huge")
        second.begins(read, 1)
        assert second.ends().cause == CAUSES["picklable"]


def set_by_signal(hands: Hands) -> object:
    """Write, and set the token in a signal handler that interrupts the wait."""
    assert hands.token is not None
    token = hands.token
    signal.signal(signal.SIGUSR1, lambda number, frame: token.set())
    return write_with_token(hands, 2)


def test_a_signal_handler_cancels_the_wait_that_it_interrupts() -> None:
    """L04: and that of another process with the same token."""
    buffer = shared_buffer(1)
    token = buffer.cancel_token()
    write_to(buffer, 1)
    with remotes(buffer) as start:
        handler, other = start.start(token), start.start(token)
        before = snapshot(buffer)
        handler.begins(set_by_signal)
        await_waiters(buffer, writers=1)
        other.begins(write_with_token, 3)
        await_waiters(buffer, writers=2)
        os.kill(handler.child.pid, signal.SIGUSR1)
        assert handler.ends().error == "Cancelled"
        assert other.ends().error == "Cancelled"
        assert token.is_set()
    assert snapshot(buffer) == before
    assert buffer.stats().cancellations == 2


def close_inside_an_action(hands: Hands) -> None:
    """Shut down in a signal handler that comes in the middle of an action of this thread."""
    ledger = hands.buffer._core.ledger
    publish = ledger.publish
    signal.signal(signal.SIGUSR1, lambda number, frame: hands.buffer.shutdown())

    def interrupted(call: object) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        publish(call)  # type: ignore[arg-type]  # passed on as it came

    ledger.publish = interrupted  # type: ignore[method-assign]  # only in this process
    write(hands, 1)
    hands.line.send("written")
    hands.line.recv()


def test_a_shutdown_in_a_handler_that_interrupts_an_action_reaches_other_processes() -> None:
    """Though its own process does nothing with the buffer any more."""
    buffer = shared_buffer(4)
    with remotes(buffer) as start:
        closer, reader = start.start(), start.start()
        reader.begins(read, 3)
        await_waiters(buffer, readers=1)
        closer.begins(close_inside_an_action)
        closer.reaches("written")
        assert reader.ends().value == [1]
        reader.begins(read, 1)
        assert reader.ends().error == "ShutDown"


def interrupted(hands: Hands, kind: str) -> object:
    """Wait, and let SIGINT raise KeyboardInterrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if kind == "write":
        return write(hands, 2)
    if kind == "observe":
        return look_on(hands, 2)
    if kind == "lease":
        return hands.buffer.lease(2)
    return read(hands, 2)


@pytest.mark.parametrize("kind", ["write", "read", "lease", "observe"])
def test_an_interrupt_during_a_wait_leaves_nothing(kind: str) -> None:
    buffer = shared_buffer(1 if kind == "write" else 2)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        waiter = start.start()
        before = snapshot(buffer)
        waiter.begins(interrupted, kind)
        until(lambda: waiting(buffer) == 1)
        waiter.child.interrupt()
        assert waiter.ends().error == "KeyboardInterrupt"
        assert waiting(buffer) == 0
        assert snapshot(buffer) == before
        assert waiter.does(read, 1) == [1]
    assert buffer.stats().recoveries == 0


def waiting(buffer: BlockingReplayBuffer) -> int:
    stats = buffer.stats()
    return stats.waiting_writers + stats.waiting_readers + stats.waiting_observers


def wait_under_signals(hands: Hands, timeout: float) -> tuple[int, float]:
    """Wait for records while signals come; return how many came, and how long it took."""
    count = 0

    def tick(number: int, frame: object) -> None:
        nonlocal count
        count += 1

    signal.signal(signal.SIGALRM, tick)
    began = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        read(hands, 1, timeout=timeout)
    except TimeoutError:
        return count, time.monotonic() - began
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise AssertionError("there was nothing to read")


def test_a_deadline_is_one_deadline_however_many_signals_come() -> None:
    """L07: were it restarted by each signal, the call would never end."""
    buffer = shared_buffer(1)
    with remotes(buffer) as start:
        said = start.start().does(wait_under_signals, 1.0)
    assert isinstance(said, tuple)
    count, took = said
    assert count > 1
    assert took >= 1.0


def test_a_timeout_in_one_process_is_counted_in_all() -> None:
    buffer = shared_buffer(1)
    write_to(buffer, 1)
    with remotes(buffer) as start:
        waiter = start.start()
        waiter.begins(write, 2, timeout=0.05)
        assert waiter.ends().error == "AdmissionTimeout"
        assert buffer.stats().timeouts == 1
        waiter.begins(read, 1, timeout=1e300)
        assert waiter.ends().value == [1]


def drop_a_lease(hands: Hands) -> object:
    """Take a lease, drop it, and do nothing more."""
    with pytest.warns(ResourceWarning, match="neither committed nor released"):
        values: list[int] = hands.buffer.lease(2).batch["x"].tolist()
    hands.line.send("dropped")
    hands.line.recv()
    return values


def test_a_lease_that_is_dropped_in_an_idle_process_returns() -> None:
    buffer = shared_buffer(2)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        idle, reader = start.start(), start.start()
        idle.begins(drop_a_lease)
        idle.reaches("dropped")
        reader.begins(read, 2)
        assert reader.ends().value == [1, 2]
    assert buffer.stats().returned == 2


def iterate(hands: Hands) -> list[list[int]]:
    """Sample until the end."""
    return [batch["x"].tolist() for batch in hands.buffer]


def test_iteration_in_every_process_ends_with_the_buffer() -> None:
    """L23: the last producer finishes, and what is left is shared out before the end."""
    buffer = shared_buffer(16, batch_size=3)
    with remotes(buffer) as start:
        readers = [start.start() for _ in range(3)]
        for reader in readers:
            reader.begins(iterate)
        await_waiters(buffer, readers=3)
        for turn in range(10):
            write_to(buffer, 2 * turn, 2 * turn + 1)
        buffer.shutdown()
        batches: list[list[int]] = []
        for reader in readers:
            outcome = reader.ends()
            assert isinstance(outcome.value, list)
            batches += outcome.value
    assert sorted(value for batch in batches for value in batch) == list(range(20))
    assert all(batch == sorted(batch) for batch in batches)
    assert all_values(buffer) == []
