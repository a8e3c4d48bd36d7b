"""Forked children of processes that use a shared buffer: the handle works, leases stay behind."""

import gc
import os
import pickle
import sys
import threading
import warnings
from types import FrameType

import pytest
from forebay import BlockingReplayBuffer, _shared_core

from tests.library.support import assert_consistent, patience, result
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    await_waiters,
    new_token,
    outcome_of,
    read,
    read_from,
    remotes,
    shared_buffer,
    write,
    write_to,
)
from tests.processes.support import Line, family

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def test_parent_and_child_sample_no_record_twice() -> None:
    """L39."""
    buffer = shared_buffer(64, order="random", seed=3)
    write_to(buffer, *range(64))
    with remotes(buffer, "fork") as start:
        child = start.start()
        seen: list[int] = []
        for _ in range(8):
            values = child.does(read, 4)
            assert isinstance(values, list)
            seen += values + read_from(buffer, 4)
    assert sorted(seen) == list(range(64))


def test_a_child_of_a_process_whose_threads_wait_can_use_the_buffer() -> None:
    """L10."""
    buffer = shared_buffer(2)
    with patience() as begin:
        readings = [begin(lambda: read_from(buffer, 1)) for _ in range(3)]
        await_waiters(buffer, readers=3)
        with remotes(buffer, "fork") as start:
            child = start.start()
            child.does(write, 1, 2)
            child.does(write, 3)
            assert sorted(result(reading) for reading in readings) == [[1], [2], [3]]
            child.begins(read, 1)
            await_waiters(buffer, readers=1)
            write_to(buffer, 4)
            assert child.ends().value == [4]
    assert buffer.stats().recoveries == 0
    assert_consistent(buffer)


def test_a_child_that_is_forked_while_a_thread_is_inside_the_section_waits_for_it() -> None:
    """L10: what the parent's thread holds is not the child's, and is given back by its holder."""
    buffer = shared_buffer(2)
    inside, go = threading.Event(), threading.Event()

    def stay() -> None:
        with buffer._core.section:
            inside.set()
            go.wait(60.0)

    with patience() as begin:
        staying = begin(stay)
        assert inside.wait(60.0)
        with family("fork") as children:
            child = children.start(write_and_tell, buffer)
            assert child.says() == "writing"
            child.await_sleep()
            go.set()
            result(staying)
            assert child.says() == [0]
            assert child.end() == 0
    assert read_from(buffer, 1) == [1]
    assert buffer.stats().recoveries == 0


def write_and_tell(line: Line, buffer: BlockingReplayBuffer) -> None:
    line.send("writing")
    line.send(write_to(buffer, 1))


def test_a_childs_copy_of_a_lease_is_inert() -> None:
    buffer = shared_buffer(2)
    write_to(buffer, 1, 2)
    leases = [buffer.lease(1)]

    def child(line: Line) -> None:
        lease = leases[0]
        line.send(lease.active)
        for use in (lease.commit, lease.release, lease.__enter__):
            line.send(outcome_of(use))
        lease.__exit__(None, None, None)
        said: list[str] = []
        sys.unraisablehook = lambda hook: said.append(repr(hook.exc_value))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            leases.clear()
            del lease, use
            gc.collect()
        line.send([*said, *(str(warning.message) for warning in caught)])
        line.send(read_from(buffer, 1))

    with family("fork") as children:
        forked = children.start(child)
        assert forked.says() is False
        for _ in range(3):
            outcome = forked.says()
            assert outcome[1:3] == (  # type: ignore[index]  # an Outcome
                "RuntimeError",
                "the lease belongs to the process that this one was forked off",
            )
        assert forked.says() == []
        assert forked.says() == [2]
        assert forked.end() == 0
    assert leases[0].active
    assert buffer.stats().pinned == 1
    leases[0].release()
    assert read_from(buffer, 1) == [1]
    assert_consistent(buffer)


def test_the_lease_of_a_parent_outlives_the_child_that_has_a_copy() -> None:
    """What is the child's own returns when it is killed, and nothing else."""
    buffer = shared_buffer(3)
    write_to(buffer, 1, 2, 3)
    with buffer.lease(1) as batch:
        with remotes(buffer, "fork") as start:
            child = start.start()
            child.does(take_lease)
            child.dies()
            assert read_from(buffer, 2) == [2, 3]
        assert batch["x"].tolist() == [1]
    stats = buffer.stats()
    assert (stats.recoveries, stats.returned, stats.delivered) == (1, 1, 3)


def take_lease(hands: Hands) -> None:
    hands.kept["lease"] = hands.buffer.lease(1)


def test_a_token_from_before_a_fork_works_in_both_and_its_row_is_not_used_again() -> None:
    buffer = shared_buffer(1)
    write_to(buffer, 0)
    tokens = [buffer.cancel_token()]

    def child(line: Line) -> None:
        line.send(outcome_of(lambda: write_to(buffer, 1, cancel_event=tokens[0])).error)
        line.send(tokens[0].is_set())
        tokens.clear()
        gc.collect()
        line.send("dropped")
        line.recv()

    with family("fork") as children:
        first, second = children.start(child), children.start(child)
        await_waiters(buffer, writers=2)
        tokens[0].set()
        for forked in (first, second):
            assert forked.says() == "Cancelled"
            assert forked.says() is True
            assert forked.says() == "dropped"
        fresh = buffer.cancel_token()
        assert not fresh.is_set()
        assert tokens[0].is_set()
        first.kill()
        tokens.clear()
        gc.collect()
        assert not buffer.cancel_token().is_set()
        assert buffer._core.ledger.cancelled_tokens() == [0]


def test_a_childs_token_is_its_own() -> None:
    buffer = shared_buffer(1)
    mine = buffer.cancel_token()
    with remotes(buffer, "fork") as start:
        child = start.start()
        child.does(new_token)
        child.does(set_token)
        assert not mine.is_set()
        assert child.does(token_is_set) is True


def set_token(hands: Hands) -> None:
    hands.kept["token"].set()  # type: ignore[attr-defined]  # a token


def token_is_set(hands: Hands) -> object:
    return hands.kept["token"].is_set()  # type: ignore[attr-defined]  # a token


def test_children_of_children_take_part_too() -> None:
    buffer = shared_buffer(4)
    with remotes(buffer) as start:
        assert start.start().does(have_children, 3) == 4
    assert read_from(buffer, 4) == [3, 2, 1, 0]
    assert_consistent(buffer)


def have_children(hands: Hands, depth: int) -> int:
    """Write in this process and in a line of children; return how many processes did."""
    write(hands, depth)
    if not depth:
        return 1
    with remotes(hands.buffer, "fork") as start:
        others = start.start().does(have_children, depth - 1)
        assert isinstance(others, int)
        return 1 + others


def test_a_fork_while_buffers_are_being_made_keeps_the_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each place where another thread can come in before the fork, a buffer is made."""
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: said.append(hook.exc_value))
    buffer = shared_buffer(1)
    token = buffer.cancel_token()
    made: list[BlockingReplayBuffer] = []
    parent, before = os.getpid(), sys.gettrace()

    def make_one(frame: FrameType, event: str, argument: object) -> object:
        if os.getpid() == parent and len(made) < 20:
            sys.settrace(None)
            made.append(shared_buffer(1))
            sys.settrace(make_one)  # type: ignore[arg-type]  # itself
        return make_one

    sys.settrace(make_one)  # type: ignore[arg-type]  # itself
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    sys.settrace(before)
    assert os.waitpid(pid, 0) == (pid, 0)
    assert len(made) > 3
    assert said == []
    row = token.row_for(buffer._core)
    assert row not in buffer._core.ledger.tokens.rows_of(0)


def load_again(line: Line, buffer: BlockingReplayBuffer) -> None:
    line.send(pickle.loads(pickle.dumps(buffer))._core is buffer._core)


def test_a_child_that_is_forked_while_a_thread_loads_a_handle_loads_others() -> None:
    buffer = shared_buffer(1)
    inside, go = threading.Event(), threading.Event()

    def stay() -> None:
        with _shared_core._finding:
            inside.set()
            go.wait(60.0)

    with patience() as begin:
        staying = begin(stay)
        try:
            assert inside.wait(60.0)
            with family("fork") as children:
                assert children.start(load_again, buffer).says() is True
        finally:
            go.set()
        result(staying)
