"""A buffer between real processes: what one writes another samples, and who waits is released."""

from multiprocessing.synchronize import Event

import pytest
from forebay import BlockingReplayBuffer

from tests.library.support import assert_consistent, snapshot
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    Remote,
    await_waiters,
    read,
    read_from,
    remotes,
    shared_buffer,
    write,
    write_to,
    write_with_token,
)
from tests.processes.support import METHODS, Line, context, family

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


@pytest.mark.parametrize("method", METHODS)
def test_sampling_in_a_third_process_releases_a_worker_that_waits_to_write(method: str) -> None:
    """A7 and A10: observed from this process, which neither writes nor samples."""
    buffer = shared_buffer(2)
    with remotes(buffer, method) as start:
        worker, learner = start.start(), start.start()
        assert worker.does(write, 1, 2) == [0, 1]
        assert buffer.stats().blocked_calls == 0
        worker.begins(write, 3, 4)
        await_waiters(buffer, writers=1)
        stats = buffer.stats()
        assert (stats.blocked_calls, stats.admitted, stats.sampleable) == (1, 2, 2)
        assert learner.does(read, 2) == [1, 2]
        assert worker.ends().value == [0, 1]
        assert learner.does(read, 2) == [3, 4]
        await_waiters(buffer)
        stats = buffer.stats()
        assert (stats.admitted, stats.delivered, stats.spent, stats.free) == (4, 4, 4, 2)
    assert_consistent(buffer)


@pytest.mark.parametrize("method", METHODS)
def test_setting_the_cancel_event_ends_a_workers_write_and_changes_nothing(method: str) -> None:
    """A8."""
    buffer = shared_buffer(2)
    token = buffer.cancel_token()
    with remotes(buffer, method) as start:
        worker = start.start(token)
        worker.does(write, 1)
        before = snapshot(buffer)
        worker.begins(write_with_token, 2, 3)
        await_waiters(buffer, writers=1)
        token.set()
        outcome = worker.ends()
        assert outcome.error == "Cancelled"
        assert "a write of 2 records was cancelled" in outcome.words
        assert snapshot(buffer) == before
        assert buffer.stats().cancellations == 1
        worker.begins(write_with_token, 2)
        assert worker.ends().error == "Cancelled"
        assert worker.does(write, 4) == [1]
        assert read_from(buffer, 2) == [1, 4]


def write_until(line: Line, buffer: BlockingReplayBuffer, event: Event) -> None:
    remote = Hands(line, buffer)
    try:
        write(remote, 2, cancel_event=event)
    except Exception as error:
        line.send(type(error).__name__)


def test_an_event_of_multiprocessing_cancels_too() -> None:
    buffer = shared_buffer(1)
    write_to(buffer, 1)
    event = context("forkserver").Event()
    with family() as children:
        worker = children.start(write_until, buffer, event)
        await_waiters(buffer, writers=1)
        event.set()
        assert worker.says() == "Cancelled"
        assert worker.end() == 0
    assert read_from(buffer, 1) == [1]


@pytest.mark.parametrize("first", ["here", "there"])
def test_it_does_not_matter_who_uses_the_buffer_first(first: str) -> None:
    """R7: everything is there from construction on, not from the first write."""
    buffer = shared_buffer(2, batch_size=2)
    with remotes(buffer) as start:
        one, other = start.start(), start.start()
        if first == "here":
            write_to(buffer, 1, 2)
            assert one.does(read, 2) == [1, 2]
        one.does(write, 3, 4)
        other.begins(write, 5, 6)
        await_waiters(buffer, writers=1)
        assert read_from(buffer, 2) == [3, 4]
        assert other.ends().error == ""
        assert one.does(read, 2) == [5, 6]


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_uses_are_counted_once_for_all_processes(order: str) -> None:
    """A5 and R6: a record that three processes have sampled once each is spent."""
    buffer = shared_buffer(2, consume_after_n_samples=3, order=order, seed=1)
    with remotes(buffer) as start:
        readers = [start.start() for _ in range(3)]
        writer = start.start()
        writer.does(write, 1, 2)
        writer.begins(write, 3, 4)
        for reader in readers:
            await_waiters(buffer, writers=1)
            values = reader.does(read, 2)
            assert isinstance(values, list)
            assert sorted(values) == [1, 2]
        assert writer.ends().error == ""
        stats = buffer.stats()
        assert (stats.spent, stats.delivered, stats.sampleable) == (2, 6, 2)
    assert_consistent(buffer)


def everything(buffer: BlockingReplayBuffer, hands: list[Remote | None]) -> list[object]:
    """Write and sample, each time by the next of these hands; None is this process."""
    seen: list[object] = []
    for turn in range(12):
        remote = hands[turn % len(hands)]
        values = (2 * turn, 2 * turn + 1)
        if remote is None:
            write_to(buffer, *values)
            seen.append(read_from(buffer, 3, at_least=1))
        else:
            remote.does(write, *values)
            seen.append(remote.does(read, 3, at_least=1))
    return seen


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_equal_seeds_give_equal_batches_whichever_process_calls(order: str) -> None:
    options = {"order": order, "seed": 7, "consume_after_n_samples": 2}
    alone, together = shared_buffer(16, **options), shared_buffer(16, **options)
    with remotes(together) as start:
        hands = [None, start.start(), start.start()]
        assert everything(together, hands) == everything(alone, [None])
    assert snapshot(together) == snapshot(alone)


def test_a_batch_in_another_process_is_whole_or_absent() -> None:
    """A3: each of the batches that three processes write is one value throughout."""
    buffer = shared_buffer(12, batch_size=4)
    rounds = 50
    with remotes(buffer) as start:
        writers = [start.start() for _ in range(3)]
        for number, writer in enumerate(writers):
            writer.begins(write_many, number, rounds)
        batches = [read_from(buffer, 4) for _ in range(3 * rounds)]
        assert all(writer.ends().error == "" for writer in writers)
    assert all(len(set(batch)) == 1 for batch in batches)
    for number in range(3):
        mine = [batch[0] for batch in batches if batch[0] // rounds == number]
        assert mine == [number * rounds + turn for turn in range(rounds)]
    assert_consistent(buffer)


def write_many(hands: Hands, number: int, rounds: int) -> None:
    for turn in range(rounds):
        write(hands, *4 * [number * rounds + turn])


def test_a_process_hands_the_buffer_on_to_children_of_its_own() -> None:
    """By another start method than the one by which it got it."""
    buffer = shared_buffer(2)
    with remotes(buffer) as start:
        assert start.start().does(ask_a_child) == [0]
        assert read_from(buffer, 1) == [7]


def ask_a_child(hands: Hands) -> object:
    with remotes(hands.buffer, "fork") as start:
        return start.start().does(write, 7)
