"""Ends, forks and errors in the middle of a call, where a shared buffer is easily broken."""

import copy
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest
import torch
from forebay import BlockingReplayBuffer, PeerLost, SharedStorage, ShutDown
from forebay._base import Batch
from forebay._tickets import Kind

from tests.processes.remote import FORK_WARNING, lease, remotes, shared_buffer, write_to
from tests.processes.support import METHODS, Line, family, until

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def forked(work: Callable[[], object]) -> int:
    """Do some work in a forked child that ends at once, and return the code that it ends with."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() is None else 2
        except BaseException:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_shutdown_in_a_handler_is_not_lost_with_a_process_that_ends_at_once() -> None:
    """The handler interrupts an action, so it cannot enter; the process is gone right after it."""
    buffer = shared_buffer(4)
    buffer.stats()

    def end(number: int, frame: FrameType | None) -> None:
        buffer.shutdown(immediate=True)
        os._exit(0)

    def work() -> None:
        signal.signal(signal.SIGUSR1, end)
        ledger = buffer._core.ledger
        join = ledger.join

        def interrupted(call: object) -> None:
            os.kill(os.getpid(), signal.SIGUSR1)
            join(call)  # type: ignore[arg-type]  # passed on as it came

        ledger.join = interrupted  # type: ignore[method-assign]  # only in the child
        buffer.sample(1)

    assert forked(work) == 0
    with pytest.raises(ShutDown):
        buffer.sample(1)


@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.PLAIN])
def test_a_child_that_was_forked_in_a_call_does_not_end_its_parents_call(kind: Kind) -> None:
    parent = os.getpid()
    codes: list[int] = []

    def fork_here(batch: Batch) -> Batch:
        if os.getpid() == parent and not codes:
            child = os.fork()
            if child:
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return batch

    place = "write_transform" if kind is Kind.WRITE else "transform"
    storage = SharedStorage(4, example={"number": 0})
    buffer = BlockingReplayBuffer(storage, batch_size=2, **{place: fork_here})  # type: ignore[arg-type]  # one of two names
    outcome: object = None
    try:
        index = buffer.extend({"number": torch.tensor([1, 2])})
        outcome = index.tolist()
        if kind is Kind.PLAIN:
            outcome = buffer.sample(timeout=60.0)["number"].tolist()
    except RuntimeError as error:
        outcome = str(error)
    if os.getpid() != parent:
        os._exit(
            7 if isinstance(outcome, str) and "forked in the middle of a call" in outcome else 8
        )
    assert codes == [7]
    assert outcome == ([0, 1] if kind is Kind.WRITE else [1, 2])
    stats = buffer.stats()
    assert (stats.filling, stats.pinned, stats.delivered) == (0, 0, 2 * (kind is Kind.PLAIN))


class Curious(Exception):
    """An exception that asks the buffer what to say."""

    def __init__(self, buffer: BlockingReplayBuffer) -> None:
        super().__init__("curious")
        self.buffer = buffer

    def __str__(self) -> str:
        return f"{len(self.buffer)} records were left"


class Leaving(Exception):
    """An exception that ends the process when it is to be pickled."""

    def __reduce__(self) -> str:
        sys.exit(5)


def test_an_error_that_calls_the_buffer_is_asked_outside_the_critical_section() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    buffer.fail(Curious(buffer))
    with pytest.raises(PeerLost, match="Curious: 2 records were left"):
        buffer.sample(1)


def test_an_error_that_cannot_be_pickled_at_all_fails_the_buffer_in_words() -> None:
    buffer = shared_buffer(4)
    buffer.fail(Leaving("leaving"))
    with pytest.raises(PeerLost, match="Leaving: leaving"):
        buffer.sample(1)


def test_a_buffer_that_could_not_be_made_leaves_its_storage_to_the_next() -> None:
    storage = SharedStorage(2, example={"number": 0})
    with pytest.raises(TypeError, match="transform must be callable"):
        BlockingReplayBuffer(storage, transform=3)  # type: ignore[arg-type]  # wrong on purpose
    BlockingReplayBuffer(storage)


def test_who_only_asks_finds_the_dead_too() -> None:
    buffer = shared_buffer(2)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        holder = start.start()
        holder.does(lease, 2)
        holder.child.kill()
        until(partial(buffer.can_sample, 2))
    assert buffer.stats().recoveries == 1


def use_both(line: Line, one: BlockingReplayBuffer, other: BlockingReplayBuffer) -> None:
    """Write through one handle and look through the other."""
    write_to(one, 1, 2)
    line.send(len(other))


@pytest.mark.parametrize("method", METHODS)
def test_two_handles_travel_with_one_new_process(method: str) -> None:
    buffer = shared_buffer(4)
    with family(method) as children:
        child = children.start(use_both, buffer, copy.copy(buffer))
        assert child.says() == 2
    assert len(buffer) == 2
