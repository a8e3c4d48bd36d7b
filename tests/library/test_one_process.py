"""What belongs to one process stays there: handles have no copies and no pickles, and forks none.

A buffer itself can be pickled where its records can be saved, see `test_restore_pickle`.
"""

import copy
import gc
import multiprocessing
import pickle
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest
from forebay import BlockingReplayBuffer, CancelToken, Lease
from forebay._base import Batch

from tests.library.support import PATIENCE, Stage, make, patience, result

pytestmark = pytest.mark.filterwarnings("error")
FORK = multiprocessing.get_context("fork")


def handles(buffer: BlockingReplayBuffer) -> dict[str, object]:
    """Return one handle of each kind of a buffer with two records, and the buffer."""
    buffer.extend([1, 2])
    return {
        "BlockingReplayBuffer": buffer,
        "Writer": buffer.writer(),
        "CancelToken": buffer.cancel_token(),
        "Lease": buffer.lease(1),
    }


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_nothing_is_copied_or_pickled(duplicate: Callable[[object], object]) -> None:
    buffer = make(4)
    own = handles(buffer)
    for name, handle in own.items():
        with pytest.raises(TypeError, match=f"a {name}( over a Slots)? can be neither copied nor "):
            duplicate(handle)
    gc.collect()
    lease = own["Lease"]
    assert isinstance(lease, Lease)
    lease.commit()
    assert buffer.sample(1) == [2]


@pytest.mark.parametrize("kind", [CancelToken, Lease])
def test_a_handle_that_was_never_finished_is_dropped_in_silence(kind: type[object]) -> None:
    """An interrupt may come before `__init__`; what is raised in `__del__` fails the test."""
    kind.__new__(kind)
    gc.collect()


CALLS: dict[str, Callable[[BlockingReplayBuffer], object]] = {
    "extend": lambda buffer: buffer.extend([3]),
    "add": lambda buffer: buffer.add(3),
    "sample": lambda buffer: buffer.sample(1, timeout=0),
    "lease": lambda buffer: buffer.lease(1),
    "available": lambda buffer: list(buffer.available(1)),
    "iteration": lambda buffer: next(iter(buffer)),
    "can_extend": lambda buffer: buffer.can_extend(),
    "can_sample": lambda buffer: buffer.can_sample(1),
    "wait_until_sampleable": lambda buffer: buffer.wait_until_sampleable(1, timeout=0),
    "len": len,
    "stats": lambda buffer: buffer.stats(),
    "describe": lambda buffer: buffer.describe(),
    "cancel_token": lambda buffer: buffer.cancel_token(),
    "empty": lambda buffer: buffer.empty(),
    "shutdown": lambda buffer: buffer.shutdown(),
    "fail": lambda buffer: buffer.fail(OSError()),
    "state_dict": lambda buffer: buffer.state_dict(),
    "load_state_dict": lambda buffer: buffer.load_state_dict({}),
    "dumps": lambda buffer: buffer.dumps("nowhere"),
}


def outcome(work: Callable[[], object]) -> str:
    """Return the error of a piece of work, in words."""
    try:
        return f"returned {work()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def in_fork(work: Callable[[], list[str]]) -> list[str]:
    """Return what a piece of work says in a forked child."""
    ours, theirs = FORK.Pipe(duplex=False)

    def body(answer: Connection) -> None:
        answer.send(work())

    child = FORK.Process(target=body, args=(theirs,))
    child.start()
    try:
        assert ours.poll(PATIENCE), "the child does not answer"
        said = ours.recv()
    finally:
        child.kill()
        child.join(PATIENCE)
        ours.close()
        theirs.close()
    assert isinstance(said, list)
    return said


def assert_refused(said: list[str], count: int) -> None:
    assert len(said) == count
    for words in said:
        assert words.startswith("RuntimeError: this buffer belongs to the process that made it"), (
            words
        )


def test_a_forked_child_is_refused_by_every_call() -> None:
    buffer = make(4, batch_size=1)
    buffer.extend([1, 2])
    said = in_fork(lambda: [outcome(lambda call=call: call(buffer)) for call in CALLS.values()])  # type: ignore[misc]  # a default that binds
    assert_refused(said, len(CALLS))
    assert buffer.sample(2) == [1, 2]


def test_handles_that_a_forked_child_inherits_are_inert() -> None:
    buffer = make(4)
    own = handles(buffer)
    token, lease = own["CancelToken"], own["Lease"]
    assert isinstance(token, CancelToken)
    assert isinstance(lease, Lease)

    def enter() -> Batch:
        with lease as batch:
            return batch

    def use() -> list[str]:
        return [
            outcome(work) for work in (enter, lease.commit, lease.release, token.set, token.is_set)
        ]

    def drop() -> list[str]:
        nonlocal token, lease
        said: list[str] = []
        sys.unraisablehook = lambda hook: said.append(repr(hook.exc_value))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            own.clear()
            del token, lease
            gc.collect()
        return [*said, *(str(warning.message) for warning in caught)]

    assert_refused(in_fork(use), 5)
    assert "of another process" in in_fork(lambda: [repr(token)])[0]
    assert in_fork(drop) == []
    assert lease.active
    assert not token.is_set()
    lease.commit()
    assert buffer.sample(1) == [2]


def test_a_child_that_is_forked_inside_a_critical_section_does_not_hang() -> None:
    """L10: the lock that another thread held at the fork is held in the child for ever."""
    buffer = make(4)
    buffer.extend([1, 2])
    with buffer._core.section:
        said = in_fork(lambda: [outcome(lambda: buffer.sample(1)), outcome(buffer.stats)])
    assert_refused(said, 2)


def test_a_forked_child_can_make_buffers_of_its_own() -> None:
    inherited = make(4)

    def work() -> list[str]:
        buffer = make(4)
        buffer.extend([1, 2])
        return [repr(buffer.sample(2)), *in_fork(lambda: [outcome(lambda: len(buffer))])]

    said = in_fork(work)
    assert said[0] == "[1, 2]"
    assert_refused(said[1:], 1)
    inherited.extend([1])
    assert inherited.sample(1) == [1]


def test_the_parent_goes_on_while_its_calls_wait_across_a_fork() -> None:
    stage = Stage()
    buffer = make(4, stage)
    with patience() as start:
        reading = start(lambda: buffer.sample(1))
        stage.await_sleepers(1)
        assert_refused(in_fork(lambda: [outcome(lambda: buffer.extend([1]))]), 1)
        buffer.extend([7])
        assert result(reading) == [7]
