"""The monitor of threads: no wake-up is lost, none is needed, and naps are bounded."""

import sys
import threading
from contextlib import AbstractContextManager
from functools import partial

import pytest
from forebay._monitor import Section, ThreadMonitor, section_of

from tests.library.support import patience, result


def test_a_wake_between_the_look_and_the_sleep_is_not_lost() -> None:
    monitor = ThreadMonitor(nap=1e9)
    seen = monitor.sequence()
    monitor.wake()
    monitor.wait(seen, None)
    assert monitor.sequence() != seen


def test_a_wake_ends_all_sleeps() -> None:
    monitor = ThreadMonitor(nap=1e6)
    seen = monitor.sequence()
    with patience() as start:
        sleepers = [start(lambda: monitor.wait(seen, None)) for _ in range(8)]
        monitor.wake()
        for sleeper in sleepers:
            assert result(sleeper) is None
    assert len(monitor._sleepers) == 0


def test_the_sequence_never_comes_back() -> None:
    monitor = ThreadMonitor()
    seen: list[int] = []

    def wake() -> None:
        for _ in range(500):
            monitor.wake()
            seen.append(monitor.sequence())

    with patience() as start:
        for future in [start(wake) for _ in range(4)]:
            result(future)
    assert monitor.sequence() >= 1500
    assert len(set(seen)) > 500


@pytest.mark.parametrize("deadline", [-1e9, 0.0])
def test_a_deadline_that_has_passed_does_not_sleep(deadline: float) -> None:
    monitor = ThreadMonitor(nap=1e6)
    monitor.wait(monitor.sequence(), monitor.clock() + deadline)
    assert len(monitor._sleepers) == 0


def test_a_sleep_ends_with_its_deadline_or_its_nap() -> None:
    monitor = ThreadMonitor(nap=1e-3)
    monitor.wait(monitor.sequence(), None)
    monitor.wait(monitor.sequence(), sys.float_info.max)
    patient = ThreadMonitor(nap=1e6)
    patient.wait(patient.sequence(), patient.clock() + 1e-3)
    assert len(monitor._sleepers) == len(patient._sleepers) == 0


def test_the_critical_section_of_threads_is_the_lock_itself() -> None:
    """No signal handler runs between taking a C lock and entering its block."""
    section: AbstractContextManager[object] = section_of(ThreadMonitor())
    assert isinstance(section, type(threading.Lock()))


def test_other_monitors_are_entered_and_left_by_their_methods() -> None:
    log: list[str] = []

    class Logging(ThreadMonitor):
        def enter(self) -> None:
            log.append("enter")
            super().enter()

        def leave(self) -> None:
            super().leave()
            log.append("leave")

    section = section_of(Logging())
    assert isinstance(section, Section)
    with pytest.raises(ArithmeticError), section:
        raise ArithmeticError
    assert log == ["enter", "leave"]


def test_many_threads_hand_a_token_round_without_naps() -> None:
    """Each of four threads waits for its turn; one lost wake-up would end this test."""
    monitor = ThreadMonitor(nap=1e6)
    turn = [0]

    def take_turns(me: int) -> int:
        for _ in range(200):
            while True:
                seen = monitor.sequence()
                with section_of(monitor):
                    if turn[0] % 4 == me:
                        turn[0] += 1
                        break
                monitor.wait(seen, None)
            monitor.wake()
        return me

    with patience() as start:
        futures = [start(partial(take_turns, me)) for me in range(4)]
        assert [result(future) for future in futures] == [0, 1, 2, 3]
    assert turn == [800]
