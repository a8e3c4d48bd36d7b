"""Registered producers of several processes: readers are told when all of them are gone."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType

import pytest
import torch
from forebay import BlockingReplayBuffer, PeerLost, ShutDown
from forebay._producer import Producer

from tests.library.interrupts import interrupted
from tests.library.support import make, patience, result
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    await_waiters,
    read,
    read_from,
    remotes,
    shared_buffer,
    write,
    write_to,
)
from tests.processes.support import FORKS

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def produce(hands: Hands, *values: int) -> None:
    """Register, write, and go on when told: by "end", or else by an error in the block."""
    with hands.buffer.producer():
        if values:
            write(hands, *values)
        hands.line.send("written")
        if hands.line.recv() != "end":
            raise ArithmeticError("in the block")


def iterate(hands: Hands) -> object:
    """Sample until the end, and say what came."""
    return [value for batch in hands.buffer for value in batch["x"].tolist()]


@pytest.mark.parametrize("method", FORKS)
def test_readers_drain_and_are_told_when_the_last_producer_was_killed(method: str) -> None:
    """L03."""
    buffer = shared_buffer(8, batch_size=2)
    with remotes(buffer, method) as start:
        first, last = start.start(), start.start()
        first.begins(produce, 1)
        first.reaches("written")
        last.begins(produce, 2, 3)
        last.reaches("written")
        first.child.line.send("end")
        assert first.ends().error == ""
        first.begins(iterate)
        await_waiters(buffer, readers=1)
        last.dies()
        outcome = first.ends()
        assert outcome.error == "PeerLost"
        assert "all registered producers are gone" in outcome.words
        assert "1 of them died or failed" in outcome.words
    stats = buffer.stats()
    assert (stats.delivered, stats.sampleable, stats.recoveries) == (3, 0, 1)


@pytest.mark.parametrize("last", ["end", "fail"])
def test_readers_are_told_when_all_producers_have_left(last: str) -> None:
    buffer = shared_buffer(8, batch_size=2)
    with remotes(buffer) as start:
        producers, reader = [start.start() for _ in range(3)], start.start()
        for number, producer in enumerate(producers):
            producer.begins(produce, number)
            producer.reaches("written")
        for producer in producers[1:]:
            producer.child.line.send("end")
            assert producer.ends().error == ""
        assert reader.does(read, 2) == [0, 1]
        reader.begins(iterate)
        await_waiters(buffer, readers=1)
        producers[0].child.line.send(last)
        assert producers[0].ends().error == ("" if last == "end" else "ArithmeticError")
        outcome = reader.ends()
        if last == "end":
            assert outcome.value == [2]
        else:
            assert outcome.error == "PeerLost"
            assert "1 of them died or failed" in outcome.words


def test_a_supervisor_that_is_registered_lets_readers_wait_for_the_next_worker() -> None:
    buffer = shared_buffer(8)
    with remotes(buffer) as start:
        worker, reader = start.start(), start.start()
        with buffer.producer():
            worker.begins(produce, 1)
            worker.reaches("written")
            reader.begins(read, 2)
            await_waiters(buffer, readers=1)
            worker.dies()
            next_one = start.start()
            next_one.does(write, 2)
            assert reader.ends().value == [1, 2]
            reader.begins(read, 1)
            await_waiters(buffer, readers=1)
        outcome = reader.ends()
        assert outcome.error == "PeerLost"
        assert "1 of them died" in outcome.words


def test_a_producer_that_registers_later_makes_readers_wait_again() -> None:
    buffer = shared_buffer(8)
    with remotes(buffer) as start:
        worker, reader = start.start(), start.start()
        with buffer.producer():
            pass
        reader.begins(read, 1)
        assert reader.ends().error == "ShutDown"
        worker.begins(produce)
        worker.reaches("written")
        reader.begins(read, 1)
        await_waiters(buffer, readers=1)
        write_to(buffer, 1)
        assert reader.ends().value == [1]


def fork_inside(hands: Hands) -> object:
    """Register, and have a forked child leave the same block."""
    with hands.buffer.producer() as producer:
        with remotes(hands.buffer, "fork") as start:
            start.start().does(leave_the_block_of, id(producer))
        kept.append(producer)
        return read(hands, 1, timeout=0.0) if len(hands.buffer) else "still there"


kept: list[object] = []


def leave_the_block_of(hands: Hands, number: int) -> None:
    import gc

    for thing in gc.get_objects():
        if id(thing) == number:
            thing.__exit__(None, None, None)
            thing.__del__()
            return
    raise AssertionError("the child has no copy of the producer")


def test_a_forked_child_leaves_its_parents_block_without_effect() -> None:
    buffer = shared_buffer(2)
    with remotes(buffer) as start:
        parent, reader = start.start(), start.start()
        reader.begins(read, 1)
        await_waiters(buffer, readers=1)
        assert parent.does(fork_inside) == "still there"
        assert reader.ends().error == "ShutDown"
    assert buffer.stats().recoveries == 0


def test_blocks_of_threads_and_blocks_in_blocks_are_counted_each() -> None:
    buffer = shared_buffer(2)
    outer = buffer.producer()
    with outer:
        with buffer.producer(), pytest.raises(RuntimeError, match="is registered already"):
            outer.__enter__()
        another = buffer.producer()
        thread = threading.Thread(target=another.__enter__)
        thread.start()
        thread.join(60.0)
        with pytest.raises(TimeoutError):
            read_from(buffer, 1, timeout=0)
    with pytest.raises(TimeoutError):
        read_from(buffer, 1, timeout=0)
    with outer:
        write_to(buffer, 1)
    assert read_from(buffer, 1) == [1]
    another.__exit__(None, None, None)
    with pytest.raises(ShutDown):
        read_from(buffer, 1, timeout=0)


@pytest.mark.parametrize("shared", [False, True])
def test_an_interrupt_at_any_place_leaves_no_producer_behind(shared: bool) -> None:
    """Through all places of entering and leaving; afterwards nobody is registered."""
    place, reached = 0, 1
    while reached:
        buffer = shared_buffer(2) if shared else make(2)
        with buffer.producer():
            reached = interrupted(_register(buffer), place)
        with pytest.raises(RuntimeError, match="all registered producers are gone"):
            buffer.sample(1, timeout=0)
        place += 1
    assert place > 20


def _register(buffer: BlockingReplayBuffer) -> Callable[[], None]:
    def work() -> None:
        with buffer.producer():
            pass

    return work


def _interrupt_exit(frame: FrameType, event: str, argument: object) -> None:
    if frame.f_code is Producer.__exit__.__code__:
        raise KeyboardInterrupt


@pytest.mark.parametrize("shared", [False, True])
def test_an_interrupt_before_the_first_step_of_leaving_leaves_no_producer_behind(
    shared: bool,
) -> None:
    buffer = shared_buffer(2) if shared else make(2)
    before = sys.gettrace()
    with suppress(KeyboardInterrupt):
        try:
            with buffer.producer():
                sys.settrace(_interrupt_exit)
        finally:
            sys.settrace(before)
    with pytest.raises(PeerLost, match="1 of them died or failed"):
        buffer.sample(1, timeout=0)


def test_readers_that_wait_are_told_when_a_producer_is_dropped_in_its_block() -> None:
    buffer = shared_buffer(2)
    kept = [buffer.producer().__enter__()]
    with remotes(buffer) as start:
        reader = start.start()
        reader.begins(read, 1)
        await_waiters(buffer, readers=1)
        kept.clear()
        assert reader.ends().error == "PeerLost"


def _produce_for_ever(buffer: BlockingReplayBuffer) -> Iterator[None]:
    with buffer.producer():
        while True:
            yield


def _leave_in_a_cycle(buffer: BlockingReplayBuffer) -> None:
    """Leave a generator that is in a producer's block to the next garbage collection."""
    producing = _produce_for_ever(buffer)
    next(producing)
    cycle: list[object] = [producing]
    cycle.append(cycle)


@pytest.mark.parametrize("shared", [False, True])
def test_a_generator_that_is_collected_inside_the_section_leaves_no_producer_behind(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = shared_buffer(2) if shared else make(2)
    buffer.add({"x": torch.tensor(1)})
    ledger = buffer._core.ledger
    draw = ledger.draw
    gc.disable()
    try:
        _leave_in_a_cycle(buffer)
        monkeypatch.setattr(ledger, "draw", lambda call: (gc.collect(), draw(call)))
        with patience() as begin:
            result(begin(lambda: buffer.sample(1)))
    finally:
        gc.enable()
    with pytest.raises(ShutDown, match="all of them ended their blocks"):
        buffer.sample(1, timeout=0)


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (SystemExit(), ShutDown),
        (SystemExit(0), ShutDown),
        (GeneratorExit(), ShutDown),
        (SystemExit(1), PeerLost),
        (SystemExit("0"), PeerLost),
        (KeyboardInterrupt(), PeerLost),
    ],
)
def test_a_program_or_generator_that_just_ends_in_its_block_has_not_failed(
    end: BaseException, error: type[Exception]
) -> None:
    buffer = shared_buffer(2)
    with pytest.raises(type(end)), buffer.producer():
        raise end
    with pytest.raises(error, match="all registered producers are gone"):
        read_from(buffer, 1, timeout=0)
