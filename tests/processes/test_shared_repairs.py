"""A repair that is cut short, or finds less than there is: it counts once, and the living go on."""

import threading
from contextlib import ExitStack

import pytest
from forebay import SampleTimeout
from forebay import _layout as at

from tests.library.support import assert_consistent
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    all_values,
    lease,
    read,
    read_from,
    remotes,
    shared_buffer,
    stop_inside,
    write,
    write_to,
)
from tests.processes.support import no_descriptors

pytestmark = pytest.mark.filterwarnings(FORK_WARNING)


def end_inside(hands: Hands) -> None:
    """Take a lease, and have a thread end inside the critical section while the process lives."""
    lease(hands, 1)
    thread = threading.Thread(target=hands.buffer._core.section.__enter__)
    thread.start()
    thread.join()


def test_a_death_inside_is_counted_once_though_the_process_is_found_dead_later() -> None:
    """A process of many threads gives up its mutex some time before it counts as dead."""
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer) as start:
        victim, other = start.start(), start.start()
        victim.does(end_inside)
        assert buffer.stats().recoveries == 1
        victim.dies()
        assert read_from(buffer, 2) == [1, 2]
        assert buffer.stats().recoveries == 1
        write_to(buffer, 3)
        other.does(lease, 1)
        other.dies()
        assert read_from(buffer, 1) == [3]
    assert buffer.stats().recoveries == 2


def test_a_death_inside_is_counted_once_though_the_repair_starts_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with remotes(buffer) as start:
        victim = start.start()
        victim.begins(stop_inside, 1, 0, read, 1)
        victim.reaches("inside")
        victim.dies()
        with monkeypatch.context() as patch:
            patch.setattr(buffer._core.peers, "recover", interrupt)
            for _ in range(3):
                with pytest.raises(KeyboardInterrupt):
                    buffer.stats()
        assert buffer.stats().recoveries == 1
        assert read_from(buffer, 2) == [1, 2]
    assert buffer.stats().recoveries == 1


def test_who_looks_for_the_dead_and_can_open_no_file_just_waits() -> None:
    buffer = shared_buffer(2)
    with remotes(buffer) as start:
        start.start().does(write, 1)
        assert read_from(buffer, 1) == [1]
        buffer._core.ledger.cells[at.LAST_LOOK] = 0
        with no_descriptors(), pytest.raises(SampleTimeout):
            buffer.sample(1, timeout=0)


def test_a_batch_is_published_though_a_repair_can_open_no_file() -> None:
    buffer = shared_buffer(4)
    write_to(buffer, 1)
    with remotes(buffer) as start, ExitStack() as limits:
        victim = start.start()

        def point(label: str) -> None:
            if label == "copied":
                victim.begins(stop_inside, 0, 0, read, 1)
                victim.reaches("inside")
                victim.dies()
                limits.enter_context(no_descriptors())

        buffer._core.monitor.point = point  # type: ignore[method-assign]  # of a test
        write_to(buffer, 2, 3)
        limits.close()
        assert buffer.stats().filling == 0
        assert all_values(buffer) == [1, 2, 3]
    assert buffer.stats().recoveries == 1
    assert_consistent(buffer)
