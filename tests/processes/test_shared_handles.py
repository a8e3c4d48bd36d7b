"""How a shared buffer, its tokens and its writers travel: always as handles, never as copies."""

import copy
import gc
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from typing import Any

import pytest
from forebay import BlockingReplayBuffer, CancelToken, LimitReached, Limits, PeerLost, _shared_core
from forebay._layout import Layout
from forebay._writer import Writer

from tests.library.support import assert_consistent, patience, result
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    all_values,
    await_waiters,
    blocks_here,
    read_from,
    remotes,
    shared_buffer,
    write,
    write_to,
)
from tests.processes.support import METHODS, PATIENCE, Line, context, family, until

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def write_what_comes(line: Line, handles: "Queue[BlockingReplayBuffer] | Connection") -> None:
    """Write one record through the buffer that comes, or tell why it cannot be had."""
    try:
        if isinstance(handles, Connection):
            buffer = handles.recv()
        else:
            buffer = handles.get(timeout=PATIENCE)
    except PeerLost as error:
        line.send(str(error))
        return
    line.send(write_to(buffer, 7))


def test_a_buffer_travels_through_a_queue() -> None:
    buffer = shared_buffer(2)
    queue: Queue[BlockingReplayBuffer] = context("forkserver").Queue()
    with family() as children:
        writer = children.start(write_what_comes, queue)
        queue.put(buffer)
        assert writer.says() == [0]
        assert writer.end() == 0
    queue.close()
    queue.join_thread()
    assert read_from(buffer, 1) == [7]


def test_a_buffer_travels_through_a_pipe() -> None:
    buffer = shared_buffer(2)
    ours, theirs = context("forkserver").Pipe()
    with family() as children, ours, theirs:
        writer = children.start(write_what_comes, theirs)
        ours.send(buffer)
        assert writer.says() == [0]
    assert read_from(buffer, 1) == [7]


def make_and_pickle(line: Line) -> None:
    """Make a buffer with a record, send it pickled, and keep it until told to go."""
    buffer = shared_buffer(2)
    write_to(buffer, 1)
    line.send(pickle.dumps(buffer))
    line.recv()


def test_a_handle_is_of_no_use_once_its_sender_is_gone() -> None:
    with family() as children:
        maker = children.start(make_and_pickle)
        pickled = maker.says()
        assert isinstance(pickled, bytes)
        kept = pickle.loads(pickled)
        assert read_from(kept, 1) == [1]
        maker.line.send("go")
        assert maker.end() == 0
        write_to(pickle.loads(pickled), 2)
        assert read_from(kept, 1) == [2]
        del kept
        with pytest.raises(PeerLost, match=rf"here process {maker.pid}\) lives"):
            pickle.loads(pickled)


def write_one(buffer: BlockingReplayBuffer, value: int) -> int:
    """Write one record; what a worker of a pool does for each task."""
    write_to(buffer, value)
    return os.getpid()


def test_workers_of_a_pool_get_the_buffer_with_each_task() -> None:
    """L08. They drop the handle after each, and stay one participant each for all that."""
    limits = Limits(participants=3)
    buffer = shared_buffer(64, limits=limits)
    with ProcessPoolExecutor(2, mp_context=context("forkserver")) as pool:
        done = [pool.submit(write_one, buffer, value) for value in range(40)]
        workers = {future.result(PATIENCE) for future in done}
    assert len(workers) <= 2
    assert sorted(all_values(buffer)) == list(range(40))
    assert_consistent(buffer)


def test_a_handle_that_comes_back_is_the_same_buffer() -> None:
    buffer = shared_buffer(2)
    token = buffer.cancel_token()
    again, token_again = pickle.loads(pickle.dumps((buffer, token)))
    assert again._core is buffer._core
    write_to(again, 1)
    assert read_from(buffer, 1) == [1]
    token_again.set()
    assert token.is_set()
    for target in (buffer, again):
        for flag in (token, token_again):
            assert flag.row_for(target._core) is not None


def keep_for_later(hands: Hands, pickled: bytes) -> bool:
    """Load a buffer and a token beside those that came first; tell whether they are the same."""
    buffer, token = pickle.loads(pickled)
    hands.kept["buffer"], hands.kept["token"] = buffer, token
    return buffer._core is hands.buffer._core and token.row_for(hands.buffer._core) is not None


def write_with_the_other_token(hands: Hands, value: int) -> object:
    return write(hands, value, cancel_event=hands.kept["token"])


def test_a_process_that_gets_two_handles_has_one_buffer() -> None:
    buffer = shared_buffer(1)
    token = buffer.cancel_token()
    write_to(buffer, 1)
    with remotes(buffer) as start:
        other = start.start()
        assert other.does(keep_for_later, pickle.dumps((buffer, token))) is True
        other.begins(write_with_the_other_token, 2)
        await_waiters(buffer, writers=1)
        token.set()
        assert other.ends().error == "Cancelled"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_is_a_handle_on_the_same_records(duplicate: Callable[[Any], Any]) -> None:
    buffer = shared_buffer(3)
    write_to(buffer, 1)
    other = duplicate(buffer)
    write_to(other, 2)
    assert read_from(other, 1) == [1]
    assert read_from(buffer, 1) == [2]
    token = duplicate(buffer.cancel_token())
    token.set()
    with pytest.raises(RuntimeError, match="cancelled"):
        write_to(buffer, 3, cancel_event=token)
    writer = duplicate(buffer.writer())
    writer.add({"x": 4})
    assert read_from(buffer, 1) == [4]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_lease_and_a_producer_do_not_travel(duplicate: Callable[[object], object]) -> None:
    buffer = shared_buffer(2)
    write_to(buffer, 1)
    lease = buffer.lease(1)
    with pytest.raises(TypeError, match="a Lease can be neither copied nor pickled"):
        duplicate(lease)
    lease.commit()
    with (
        buffer.producer() as producer,
        pytest.raises(TypeError, match="a Producer can be neither copied nor pickled"),
    ):
        duplicate(producer)
    assert buffer.stats().delivered == 1


def test_a_transform_that_cannot_be_pickled_says_so_itself() -> None:
    buffer = shared_buffer(2, transform=lambda batch: batch)
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(buffer)
    write_to(buffer, 1)
    assert read_from(buffer, 1) == [1]


def collect(line: Line, writer: Writer, token: CancelToken) -> None:
    """Write until the buffer is closed, as a collector's worker does; discard what comes after."""
    line.send("ready")
    total = 0
    while len(writer.extend([{"x": total}, {"x": total + 1}])):
        total += 2
    line.send((total, writer.add({"x": 0}), token.is_set()))


@pytest.mark.parametrize("method", METHODS)
def test_a_writer_travels_and_discards_what_comes_after_the_end(method: str) -> None:
    """R8: a worker that calls a bare `extend` comes to its own end."""
    buffer = shared_buffer(4)
    token = buffer.cancel_token()
    writer = buffer.writer(when_closed="discard", cancel_event=token)
    with family(method) as children:
        worker = children.start(collect, writer, token)
        assert worker.says() == "ready"
        await_waiters(buffer, writers=1)
        assert read_from(buffer, 2) == [0, 1]
        until(lambda: buffer.stats().blocked_calls == 2)
        buffer.shutdown()
        assert worker.says() == (6, None, False)
        assert worker.end() == 0
    assert buffer.stats().refusals == 2
    assert all_values(buffer) == [2, 3, 4, 5]


def test_memory_and_descriptors_go_with_the_last_handle() -> None:
    """At once, not with the next garbage collection."""
    gc.collect()
    before = blocks_here()
    gc.disable()
    try:
        buffer = shared_buffer(8)
        write_to(buffer, 1)
        assert blocks_here() == before + 2
        again = pickle.loads(pickle.dumps(buffer))
        assert read_from(again, 1) == [1]
        assert blocks_here() == before + 2
        del buffer, again
        assert blocks_here() == before
    finally:
        gc.enable()


def test_threads_that_load_one_handle_at_once_have_one_buffer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the first one makes it, the second gets time to come as far as it can."""
    with family() as children, patience() as begin:
        pickled = children.start(make_and_pickle).says()
        assert isinstance(pickled, bytes)
        second: list[Any] = []

        def make_slowly(*args: Any, **options: Any) -> Layout:
            if not second:
                second.append(begin(lambda: pickle.loads(pickled)))
                wait(second, 1.0)
            return Layout(*args, **options)

        monkeypatch.setattr(_shared_core, "Layout", make_slowly)
        first = pickle.loads(pickled)
        again = result(second[0])
        assert again._core is first._core
        assert read_from(again, 1) == [1]


def test_the_limit_of_tokens_says_that_tokens_that_travelled_are_counted() -> None:
    buffer = shared_buffer(1, limits=Limits(tokens=1))
    pickle.dumps(buffer.cancel_token())
    with pytest.raises(LimitReached) as caught:
        buffer.cancel_token()
    assert str(caught.value).startswith("1 cancel token exists, which is the limit; tokens that ")
    assert "pickled, or that existed when a process forked, count for as long" in str(caught.value)
