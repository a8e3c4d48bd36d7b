"""The monitor of processes: one inside at a time, no lost wake-up, waits that cost nothing."""

import errno
import threading
from collections.abc import Callable

import pytest
from forebay import _native as native
from forebay._process_monitor import TRIES, ProcessMonitor
from forebay._shared_block import SharedBlock

from tests.processes.support import (
    BUSY,
    CHANGED,
    COUNTER,
    FORKS,
    REPAIRS,
    TURN,
    Line,
    Shared,
    family,
    make,
    until,
)
from tests.processes.workers import await_change, count, hold, sleep, take_turns

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60.0)
    assert not thread.is_alive()


@pytest.mark.parametrize("method", FORKS)
def test_processes_are_inside_one_at_a_time(method: str) -> None:
    shared = make()
    with family(method) as children:
        counters = [children.start(count, shared, 1000) for _ in range(3)]
        for counter in counters:
            assert counter.says() == "ready"
        for counter in counters:
            counter.line.send("go")
        for counter in counters:
            assert counter.says() == "done"
            assert counter.end() == 0
    assert shared.cells[COUNTER] == 3000
    assert shared.cells[BUSY] == 0


def test_threads_of_one_process_are_inside_one_at_a_time() -> None:
    shared = make()

    def add() -> None:
        for _ in range(500):
            with shared.monitor.section():
                before = shared.cells[COUNTER]
                shared.monitor.point("between")
                shared.cells[COUNTER] = before + 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert shared.cells[COUNTER] == 2000


def test_two_processes_hand_a_token_round_without_naps() -> None:
    """One lost wake-up in two thousand rounds would end this test."""
    shared = make(nap=1e6)
    with family() as children:
        pair = [children.start(take_turns, shared, me, 2000) for me in range(2)]
        for child in pair:
            assert child.says() == "done"
            assert child.end() == 0
    assert shared.cells[TURN] == 4000


def test_a_wake_reaches_the_sleepers_of_all_processes() -> None:
    shared = make(nap=1e6)
    with family() as children:
        sleepers = [children.start(await_change, shared) for _ in range(3)]
        for sleeper in sleepers:
            assert sleeper.says() == "asleep"
            sleeper.await_sleep()
        shared.cells[CHANGED] = 1
        shared.monitor.wake()
        for sleeper in sleepers:
            assert isinstance(sleeper.says(), tuple)


def test_a_wake_between_the_look_and_the_sleep_is_not_lost() -> None:
    monitor = make(nap=1e6).monitor
    seen = monitor.sequence()
    monitor.wake()
    monitor.wait(seen, None)
    assert monitor.sequence() != seen


def test_no_two_wakes_make_the_same_number() -> None:
    monitor = make().monitor

    def wake() -> None:
        for _ in range(1000):
            monitor.wake()

    threads = [threading.Thread(target=wake) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert monitor.sequence() == 4000


def test_the_sequence_goes_on_after_its_last_number() -> None:
    shared = make(nap=1e6)
    words = shared.block.cells("I", 1, 64)
    words[0] = 2**32 - 1
    seen = shared.monitor.sequence()
    assert seen == 2**32 - 1
    shared.monitor.wake()
    assert shared.monitor.sequence() == 0
    shared.monitor.wait(seen, None)


@pytest.mark.parametrize("late", [0.0, 1e9])
def test_a_deadline_that_has_passed_does_not_sleep(late: float) -> None:
    monitor = make(nap=1e6).monitor
    monitor.wait(monitor.sequence(), monitor.clock() - late)


def test_a_sleep_ends_with_its_deadline_and_not_before() -> None:
    monitor = make(nap=1e6).monitor
    deadline = monitor.clock() + 0.02
    while monitor.clock() < deadline:
        monitor.wait(monitor.sequence(), deadline)
    assert monitor.sequence() == 0


def test_a_sleep_without_a_deadline_ends_with_its_nap() -> None:
    monitor = make(nap=0.01).monitor
    monitor.wait(monitor.sequence(), None)
    monitor.wait(monitor.sequence(), 1e300)
    assert monitor.sequence() == 0


def test_clocks_of_processes_agree() -> None:
    """The child's look at the clock lies between two looks of the parent."""
    shared = make()
    before = shared.monitor.clock()
    with family() as children:
        child = children.start(tell_time, shared)
        told = child.says()
        assert isinstance(told, float)
        assert before <= told <= shared.monitor.clock()


def tell_time(line: Line, shared: Shared) -> None:
    line.send(shared.monitor.clock())


def test_a_waiting_process_hardly_uses_the_processor() -> None:
    """A ratio of one process's two clocks over three naps, of one nap a second."""
    shared = make(nap=1.0)
    with family() as children:
        sleeper = children.start(await_change, shared)
        assert sleeper.says() == "asleep"
        began = shared.monitor.clock()
        seen = shared.monitor.sequence()
        while shared.monitor.clock() < began + 2.0:
            shared.monitor.wait(seen, began + 2.0)
        shared.cells[CHANGED] = 1
        shared.monitor.wake()
        told = sleeper.says()
        assert isinstance(told, tuple)
        used, waited = told
        assert waited > 1.0
        assert used < 0.01 * waited


def test_the_section_cannot_be_nested_or_left_from_outside() -> None:
    monitor = make().monitor
    with monitor.section():
        with pytest.raises(RuntimeError, match="inside the critical section already"):
            monitor.enter()
        in_a_thread(lambda: _expect_not_inside(monitor))
    _expect_not_inside(monitor)
    with monitor.section():
        pass


def _expect_not_inside(monitor: ProcessMonitor) -> None:
    with pytest.raises(RuntimeError, match="not inside"):
        monitor.leave()


def test_the_section_passes_exceptions_on_and_is_left() -> None:
    shared = make()
    with pytest.raises(ArithmeticError, match="mine"), shared.monitor.section():
        raise ArithmeticError("mine")
    _expect_not_inside(shared.monitor)
    assert shared.cells[0] == 0


def test_a_forked_child_holds_nothing_and_frees_nothing() -> None:
    """A child forked inside the section cannot leave it; its parent still holds it."""
    shared = make()
    with family("fork") as children:
        with shared.monitor.section():
            child = children.start(leave_what_the_parent_holds, shared)
            assert child.says() == "not inside"
            assert child.says() == "waiting"
            child.await_sleep()
            assert not child.line.poll(0.0)
        assert child.says() == "inside"
        assert child.end() == 0
    assert shared.cells[0] == 0


def leave_what_the_parent_holds(line: Line, shared: Shared) -> None:
    try:
        shared.monitor.leave()
    except RuntimeError:
        line.send("not inside")
    line.send("waiting")
    with shared.monitor.section():
        line.send("inside")


def test_a_wait_for_the_section_lets_the_other_threads_run() -> None:
    shared = make()
    with family() as children:
        holder = children.start(hold, shared)
        assert holder.says() == "inside"
        entered = threading.Event()

        def enter() -> None:
            with shared.monitor.section():
                entered.set()

        thread = threading.Thread(target=enter)
        thread.start()
        try:
            assert not entered.wait(0.1)
        finally:
            holder.line.send("leave")
            thread.join(60.0)
        assert entered.is_set()
        assert holder.says() == "left"


@pytest.mark.parametrize("dead", [False, True])
def test_who_finds_the_section_taken_tries_again_before_sleeping(
    dead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last but one of the tries finds it free, or its holder dead."""
    shared = make()
    if dead:
        in_a_thread(shared.monitor.enter)
    taken, answers = [errno.EBUSY] * (TRIES - 1), list[int]()
    try_lock = shared.monitor._try_lock

    def busy() -> int:
        if taken:
            return taken.pop()
        until(answered)  # the thread may still be ending, for the kernel
        return answers[-1]

    def answered() -> bool:
        answers.append(try_lock())
        return answers[-1] != errno.EBUSY

    shared.monitor._try_lock, shared.monitor._first = busy, (busy,)
    monkeypatch.setattr(native, "lock_within", lambda *_: pytest.fail("it sleeps"))
    with shared.monitor.section():
        assert not taken
    _expect_not_inside(shared.monitor)
    assert shared.cells[REPAIRS] == dead


def test_a_monitor_that_was_not_made_is_refused() -> None:
    block = SharedBlock(4096)
    with pytest.raises(ValueError, match="no monitor has been made at byte 128"):
        ProcessMonitor(block, 128, _nothing)


def _nothing() -> None:
    pass


def test_a_sleeper_that_was_killed_is_missed_by_nobody() -> None:
    shared = make(nap=1e6)
    with family() as children:
        victim = children.start(sleep, shared)
        other = children.start(await_change, shared)
        for child in (victim, other):
            assert child.says() == "asleep"
            child.await_sleep()
        victim.kill()
        shared.cells[CHANGED] = 1
        shared.monitor.wake()
        assert isinstance(other.says(), tuple)
