"""The library's own monitor, on a stage: every access to what threads share is a choice point.

The algorithms of sleeping and waking are those of `ThreadMonitor`. What is replaced is what they
are made of: the lock, the sequence, the row of sleepers and their bells. So the scheduler also
judges how `wait` and `wake` do without a lock.
"""

import threading
from collections import deque
from typing import Final, cast

from forebay._monitor import ThreadMonitor

from forebay_models.scheduling.stage import Failure, Stage, Status

ENTER: Final = "enter"
LOCKED_OUT: Final = "locked out"

NAP: Final = 3600.0
"""Seconds; no sleep is that long, so no nap hides a lost wake-up."""


class ScheduledMonitor(ThreadMonitor):
    """A monitor for the players of one stage.

    Args:
        stage: whose choices they are.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._live = True
        self._seen = [0] * len(stage.players)
        super().__init__(nap=NAP)
        self._sleepers = _Sleepers(self)

    @property
    def _sequence(self) -> int:
        self.reach("reads the sequence")
        me = self._stage.current
        if me is not None:
            self._seen[me.index] = self._number
        return self._number

    @_sequence.setter
    def _sequence(self, number: int) -> None:
        self.reach("changes the sequence")
        self._number = number

    def enter(self) -> None:
        stage = self._stage
        self.reach(ENTER)
        me = stage.current
        if me is None or stage.over:
            return
        if stage.holder is me:
            raise Failure(f"{me.name} enters the critical section that it is in")
        while stage.holder is not None:
            stage.block(Status.LOCKED_OUT, LOCKED_OUT)
            me.status = Status.READY
        stage.holder = me

    def leave(self) -> None:
        stage = self._stage
        self.reach("leave")
        stage.holder = None

    def clock(self) -> float:
        me = self._stage.current
        return 0.0 if me is None else me.ahead

    def point(self, label: str) -> None:
        self.reach(label)

    def reach(self, label: str) -> None:
        """Come to a choice point."""
        if self._live:
            self._stage.reach(label)

    def retire(self) -> None:
        """Have no more to do with the stage: finalisers may come after the end of the run."""
        self._live = False

    def digest(self) -> int:
        """Return a number for the state of everything here; equal states have equal numbers.

        Of the sequence it matters only whether it is still what somebody has seen.
        """
        owners = [cast(_Bell, bell).owner for bell in self._sleepers]
        fresh = [seen == self._number for seen in self._seen]
        return hash((tuple(fresh), tuple(owners)))

    def _bell(self) -> threading.Lock:
        return cast(threading.Lock, _Bell(self, self._stage))


class _Bell:
    """A lock that one player sleeps on and another one releases."""

    def __init__(self, monitor: ScheduledMonitor, stage: Stage) -> None:
        self._monitor = monitor
        self._stage = stage
        self._locked = False
        self._sleeper: int | None = None
        self.owner = None if stage.current is None else stage.current.index

    def acquire(self, timeout: float = -1) -> bool:
        stage = self._stage
        me = stage.current
        if self._locked and me is not None:
            self._sleeper = me.index
            stage.block(Status.ASLEEP, "asleep", timeout if 0 < timeout < NAP else None)
            self._sleeper = None
        rung = not self._locked
        self._locked = True
        return rung

    def release(self) -> None:
        self._monitor.reach("rings")
        self._locked = False
        if self._sleeper is not None:
            self._stage.players[self._sleeper].status = Status.READY


class _Sleepers(deque[threading.Lock]):
    """The bells of the sleepers; every look at them is a choice point."""

    def __init__(self, monitor: ScheduledMonitor) -> None:
        super().__init__()
        self._monitor = monitor

    def __len__(self) -> int:
        self._monitor.reach("counts the sleepers")
        return super().__len__()

    def append(self, bell: threading.Lock) -> None:
        self._monitor.reach("puts up its bell")
        super().append(bell)

    def popleft(self) -> threading.Lock:
        self._monitor.reach("takes down a bell")
        return super().popleft()

    def remove(self, bell: threading.Lock) -> None:
        self._monitor.reach("takes down its bell")
        super().remove(bell)
