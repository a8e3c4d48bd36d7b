"""Killed participants: the others find out, repair once, and go on."""

import random
import threading

import pytest
from forebay._errors import PeerLost

from tests.processes.support import (
    BUSY,
    CHANGED,
    COUNTER,
    FORKS,
    REPAIRS,
    Child,
    Family,
    Line,
    Shared,
    family,
    make,
    until,
)
from tests.processes.workers import await_change, change_without_wake, enter, hammer, hold

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
KILLS = 120


def kill_a_holder(shared: Shared, children: Family) -> None:
    holder = children.start(hold, shared)
    assert holder.says() == "inside"
    holder.kill()


@pytest.mark.parametrize("method", FORKS)
def test_the_death_of_a_holder_is_repaired_once(method: str) -> None:
    shared = make()
    with family(method) as children:
        kill_a_holder(shared, children)
        assert shared.cells[REPAIRS] == 0
        for _ in range(3):
            with shared.monitor.section():
                assert shared.cells[REPAIRS] == 1


def test_a_process_that_waits_for_the_section_gets_it_by_the_holders_death() -> None:
    shared = make()
    with family() as children:
        holder = children.start(hold, shared)
        assert holder.says() == "inside"
        waiter = children.start(enter, shared)
        assert waiter.says() == "entering"
        waiter.await_sleep()
        holder.kill()
        assert waiter.says() == "inside"
        assert waiter.end() == 0
    assert shared.cells[REPAIRS] == 1


def test_a_thread_that_ends_inside_is_a_dead_holder_too() -> None:
    shared = make()
    thread = threading.Thread(target=shared.monitor.enter)
    thread.start()
    thread.join(60.0)
    with shared.monitor.section():
        assert shared.cells[REPAIRS] == 1


def test_a_failed_repair_is_everybodys_error_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = make()
    with family() as children:
        kill_a_holder(shared, children)
        monkeypatch.setattr(shared.monitor, "_recover", _fail)
        for _ in range(2):
            with pytest.raises(PeerLost, match="repairing its work failed") as caught:
                shared.monitor.enter()
            assert isinstance(caught.value.__cause__, ArithmeticError)
        other = children.start(enter, shared)
        assert other.says() == "entering"
        assert other.says() == "inside"
        assert other.end() == 0
    assert shared.cells[REPAIRS] == 1
    monkeypatch.undo()
    with shared.monitor.section():
        assert shared.cells[REPAIRS] == 1


def _fail() -> None:
    raise ArithmeticError


def test_a_repairer_that_is_killed_leaves_the_repair_to_the_next() -> None:
    shared = make()
    with family() as children:
        kill_a_holder(shared, children)
        repairer = children.start(repair_slowly, shared)
        assert repairer.says() == "repairing"
        repairer.kill()
    with shared.monitor.section():
        assert shared.cells[REPAIRS] == 1
    with shared.monitor.section():
        assert shared.cells[REPAIRS] == 1


def repair_slowly(line: Line, shared: Shared) -> None:
    def repair() -> None:
        line.send("repairing")
        line.recv()

    shared.monitor._recover = repair
    shared.monitor.enter()


def test_a_change_whose_maker_died_before_its_wake_is_seen_a_nap_later() -> None:
    shared = make(nap=0.05)
    with family() as children:
        sleeper = children.start(await_change, shared)
        assert sleeper.says() == "asleep"
        sleeper.await_sleep()
        changer = children.start(change_without_wake, shared)
        assert changer.says() == "changed"
        changer.kill()
        assert isinstance(sleeper.says(), tuple)
    assert shared.monitor.sequence() == 0


@pytest.mark.slow
def test_any_number_of_kills_under_load_is_survived() -> None:
    """Three processes hammer, one of them dies at a random moment, a new one comes, and so on.

    After each death the survivors and the test itself still enter, sleep and wake.
    """
    choice = random.Random(0)
    shared = make(nap=0.05)
    with family() as children:
        workers = [_hammer(children, shared) for _ in range(3)]
        for _ in range(KILLS):
            before = shared.cells[COUNTER]
            goal = before + choice.randrange(1, 20)
            until(lambda goal=goal: shared.cells[COUNTER] >= goal)  # type: ignore[misc]  # the goal of this round
            workers.pop(choice.randrange(3)).kill()
            with shared.monitor.section():
                reached = shared.cells[COUNTER]
                shared.cells[BUSY] = 0
            shared.monitor.wake()
            until(lambda reached=reached: shared.cells[COUNTER] > reached)  # type: ignore[misc]  # the state of this round
            workers.append(_hammer(children, shared))
        for worker in workers:
            worker.kill()
    with shared.monitor.section():
        assert shared.cells[COUNTER] > KILLS
        assert shared.cells[CHANGED] == 0


def _hammer(children: Family, shared: Shared) -> Child:
    child = children.start(hammer, shared)
    assert child.says() == "ready"
    return child
