"""KeyboardInterrupt at any place: the mutex is held within the block or not at all."""

import errno
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import forebay._native as native
import pytest

from tests.library.interrupts import Interrupts
from tests.processes.support import REPAIRS, Shared, family, make
from tests.processes.workers import enter, hold, sleep

PLACES = 200
"""More than there are places in any of these calls; the tests check that."""


def test_an_interrupt_ends_a_wait_for_the_section() -> None:
    shared = make()
    with family() as children:
        holder = children.start(hold, shared)
        assert holder.says() == "inside"
        waiter = children.start(enter, shared)
        assert waiter.says() == "entering"
        waiter.await_sleep()
        waiter.interrupt()
        assert waiter.says() == "interrupted"
        holder.line.send("leave")
        assert holder.says() == "left"
        waiter.line.send("try again")
        assert waiter.says() == "inside after all"
        assert waiter.end() == 0
    assert shared.cells[REPAIRS] == 0


def test_an_interrupt_ends_a_sleep() -> None:
    shared = make()
    with family() as children:
        sleeper = children.start(sleep, shared)
        assert sleeper.says() == "asleep"
        sleeper.await_sleep()
        sleeper.interrupt()
        assert sleeper.says() == "interrupted"
        assert sleeper.end() == 0


def die_inside(shared: Shared) -> None:
    """Have a thread end while it is inside."""
    thread = threading.Thread(target=shared.monitor.enter)
    thread.start()
    thread.join(60.0)


def held_by_another(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> Callable[[], None]:
    """Have a thread inside that leaves, or ends there, when somebody waits for the section.

    Returns what makes it do so in any case.
    """
    inside, go = threading.Event(), threading.Event()

    def work() -> None:
        shared.monitor.enter()
        inside.set()
        go.wait(60.0)
        if not dies:
            shared.monitor.leave()

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60.0)
    lock_within = native.lock_within

    def end() -> None:
        go.set()
        thread.join(60.0)

    def lock(address: int, seconds: float) -> Callable[[], int]:
        end()
        return lock_within(address, seconds)

    monkeypatch.setattr(native, "lock_within", lock)
    return end


@pytest.mark.parametrize("second", [None, 0, 1, 2])
@pytest.mark.parametrize(
    "before", ["free", "freed at once", "dead holder", "dead at once", "held", "held until death"]
)
def test_an_interrupt_at_any_place_leaves_the_section_whole(
    before: str, second: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through all places of entering, with a second interrupt soon after the first as well."""
    rest = [] if second is None else [second]
    for place in range(PLACES):
        shared = make()
        end: Callable[[], None] | None = None
        if before.startswith("dead"):
            die_inside(shared)
        elif before.startswith("held"):
            end = held_by_another(shared, monkeypatch, dies=before == "held until death")
        if before.endswith("at once"):  # taken at the first look, and not at the second
            shared.monitor._first = (partial(int, errno.EBUSY),)
        interrupts = Interrupts([place, *rest])
        section = shared.monitor.section()
        entered = False
        with suppress(KeyboardInterrupt), interrupts, section:
            entered = True
        monkeypatch.undo()
        if end is not None:
            end()
        with pytest.raises(RuntimeError, match="not inside"):
            shared.monitor.leave()
        with shared.monitor.section():
            assert (shared.cells[REPAIRS] > 0) == ("dea" in before)
        if interrupts.raised == 0:
            assert entered
            break
    assert 1 < place < PLACES - 1
