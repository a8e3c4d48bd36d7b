"""Labelled points in a process that uses a shared buffer, and stops at them.

Between two points nothing happens that others can see, or one thing. They are: around entering and
leaving the critical section, around sleeping and waking, between the parts of every journalled
step (written down, marked, half of the list stored, all of it, the mark removed), the same in
whoever finishes the step of a dead one, around the repair, in the table of participants, and the
places that the library itself labels.

Nothing here changes what the library does. The monitor is wrapped; the journal hands its step to
`Stops.carry_out`, which carries out the same stores in the same order, only not in one call.
"""

import operator
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from forebay._core import Core
from forebay._layout import JOURNALED
from forebay._process_monitor import ProcessMonitor
from forebay._shared_peers import SharedPeers
from forebay._stores import Store

ASLEEP: Final = "asleep"


class Point(NamedTuple):
    """A labelled point, and the how-manieth time that its process has come to it, from 1."""

    label: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.label}#{self.occurrence}"


class Reached(NamedTuple):
    """A point that was reached, in what kind of call, and the how-manieth of its label there."""

    call: str
    place: int
    point: Point


def point_of(text: str) -> Point:
    """Read a point such as `half#2`; `ValueError` says what is wrong with any other text."""
    label, mark, number = text.rpartition("#")
    if not (label and mark and number.isdecimal() and int(number) > 0):
        raise ValueError(f"a point is written like half#2, got {text!r}")
    return Point(label, int(number))


def _is_mark(target: object, index: object) -> bool:
    return isinstance(target, memoryview) and index == JOURNALED


class Stops:
    """Counts the points that this process comes to, and holds it at one of them.

    Args:
        hold: called at the point where to stop; does not return, since the process is killed.
        announce: called at the point where to stop if that is in the kernel, before it goes there.
        doze: called before every sleep.

    Attributes:
        reached: the points in the order in which they were reached.
    """

    def __init__(
        self,
        hold: Callable[[], None],
        announce: Callable[[Point], None],
        doze: Callable[[], None],
    ) -> None:
        self._hold = hold
        self._announce = announce
        self._doze = doze
        self._armed = False
        self._target: Point | None = None
        self._counts: Counter[str] = Counter()
        self._redoing = ""
        self._call = ""
        self._here: Counter[str] = Counter()
        self.reached: list[Reached] = []

    def arm(self, target: Point | None) -> None:
        """Count from now on, and stop at this point."""
        self._armed, self._target = True, target

    def begin(self, call: str) -> None:
        """Say what kind of call comes next."""
        self._call = call
        self._here.clear()

    def disarm(self) -> None:
        """Count no more."""
        self._armed = False

    def reach(self, label: str) -> None:
        """Come to a point."""
        if self._armed and self._is_target(label):
            self._announce(self.reached[-1].point)
            self._hold()

    def asleep(self, sleep: Callable[[], None]) -> None:
        """Sleep in the kernel, which is a point too."""
        if not self._armed:
            sleep()
            return
        stop = self._is_target(ASLEEP)
        (self._announce(self.reached[-1].point) if stop else self._doze())
        sleep()
        if stop:
            self._hold()

    def carry_out(self, step: list[Store]) -> None:
        """Do a list of stores as the journal does, with points in between."""
        self.reach(f"{self._redoing}written")
        stores: list[tuple[Any, Any, Any]] = list(step)
        changes = sum(not _is_mark(target, index) for target, index, _ in stores)
        done = 0
        for target, index, value in stores:
            mark = _is_mark(target, index)
            if done == changes // 2 and not mark:
                self.reach(f"{self._redoing}half")
            operator.setitem(target, index, value)
            if mark:
                self.reach(self._redoing + ("marked" if value else "unmarked"))
                continue
            done += 1
            if done == changes:
                self.reach(f"{self._redoing}stored")

    def finishing(self, redo: Callable[[], None]) -> Callable[[], None]:
        """Return a redo of the journal whose points have names of their own."""

        def finish() -> None:
            self._redoing = "redo "
            redo()
            self._redoing = ""

        return finish

    def around(self, before: str, do: Callable[[], Any], after: str) -> Callable[[], Any]:
        """Return a call with a point before it and one after it."""

        def call() -> Any:
            self.reach(before)
            answer = do()
            self.reach(after)
            return answer

        return call

    def _is_target(self, label: str) -> bool:
        self._counts[label] += 1
        point = Point(label, self._counts[label])
        self._here[label] += 1
        self.reached.append(Reached(self._call, self._here[label], point))
        return point == self._target


class StoppingMonitor:
    """The monitor of this process, with points around all that it does."""

    def __init__(self, monitor: ProcessMonitor, stops: Stops) -> None:
        self._monitor = monitor
        self._stops = stops
        self.enter = stops.around("entering", monitor.enter, "inside")
        self.leave = stops.around("leaving", monitor.leave, "left")
        self.wake = stops.around("waking", monitor.wake, "woke")
        self.sequence = monitor.sequence
        self.clock = monitor.clock
        self.point = stops.reach

    def wait(self, seen: int, deadline: float | None) -> None:
        """Sleep, with a point before, in and after it."""
        self._stops.reach("sleeping")
        self._stops.asleep(lambda: self._monitor.wait(seen, deadline))
        self._stops.reach("awake")


class _Row:
    """The table of participants, with a point after each store."""

    def __init__(self, cells: memoryview, stops: Stops) -> None:
        self._cells = cells
        self._stops = stops

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: int) -> int:
        value: int = self._cells[index]
        return value

    def __setitem__(self, index: int, value: int) -> None:
        self._cells[index] = value
        self._stops.reach("row stored")


def install(core: Core, stops: Stops) -> None:
    """Put points into everything that this process does with a buffer; before its first call."""
    monitor, peers = core.monitor, core.peers
    assert isinstance(monitor, ProcessMonitor)
    assert isinstance(peers, SharedPeers)
    around = stops.around
    monitor._consistent = around("owner dead", monitor._consistent, "consistent")
    monitor._recover = around("repairing", monitor._recover, "repaired")
    core.use(StoppingMonitor(monitor, stops))
    journal = peers._journal
    journal.carry_out = stops.carry_out
    journal.redo = stops.finishing(journal.redo)  # type: ignore[method-assign]  # of this one only
    table = peers._participants
    table._cells = _Row(table._cells, stops)  # type: ignore[assignment]  # used like a memoryview
