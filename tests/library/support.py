"""What the tests of the library share: a plain storage, a monitor to steer, threads that end.

Nothing here sleeps to wait for something. `Stage` counts the calls that are asleep, so a test can
wait until a call really waits; time is a number that the test moves.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import pytest
import torch
from forebay import (
    BlockingReplayBuffer,
    RandomSampler,
    ReplayBuffer,
    SamplerWithoutReplacement,
)
from forebay._batches import HoldState, HoldView
from forebay._ledger import Ledger
from forebay._monitor import ThreadMonitor
from forebay._overwriting import OverwritingLedger
from forebay._records import Rows
from forebay._stores import Ints

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds after which a test gives up; reaching them is a failure."""
_made: "weakref.WeakSet[BlockingReplayBuffer | ReplayBuffer]" = weakref.WeakSet()


class ListRows(Rows):
    """Rows of `Slots`."""

    def __init__(self, values: list[object]) -> None:
        super().__init__(len(values))
        self.values = values


class Slots:
    """A storage of plain Python objects, one a slot."""

    device = torch.device("cpu")
    initialized = True

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.cells: list[object] = [None] * capacity

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        assert isinstance(batch, list)
        return ListRows(batch)

    def write(self, slots: Ints, rows: Rows) -> None:
        assert isinstance(rows, ListRows)
        for slot, row in zip(slots.tolist(), rows.values, strict=True):
            self.cells[slot] = row

    def read(self, slots: Ints) -> object:
        return [self.cells[slot] for slot in slots.tolist()]


class Stage(ThreadMonitor):
    """A monitor whose clock the test moves, and which knows who sleeps and what has been done."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.sections = 0
        self.wakes = 0
        self.points: list[str] = []
        self.at: dict[str, Callable[[], object]] = {}
        self._asleep: dict[int, int] = {}
        self._changed = threading.Condition()

    def enter(self) -> None:
        super().enter()
        self.sections += 1

    def wake(self) -> None:
        self.wakes += 1
        super().wake()

    def wait(self, seen: int, deadline: float | None) -> None:
        me = threading.get_ident()
        with self._changed:
            self._asleep[me] = seen
            self._changed.notify_all()
        try:
            super().wait(seen, None if deadline is None else max(deadline, self.now + 0.01))
        finally:
            with self._changed:
                del self._asleep[me]

    def clock(self) -> float:
        return self.now

    def point(self, label: str) -> None:
        self.points.append(label)
        self.at.get(label, _nothing)()

    def advance(self, seconds: float) -> None:
        """Move the clock on and let everybody look at it."""
        self.now += seconds
        super().wake()

    def await_sleepers(self, count: int) -> None:
        """Wait until this many calls sleep that have looked since the last wake."""

        def enough() -> bool:
            return list(self._asleep.values()).count(self.sequence()) >= count

        with self._changed:
            assert self._changed.wait_for(enough, PATIENCE)


def _nothing() -> None:
    pass


def make(capacity: int = 4, stage: Stage | None = None, **options: object) -> BlockingReplayBuffer:
    """Return a buffer over `Slots`."""
    buffer = BlockingReplayBuffer(Slots(capacity), monitor=stage, **options)  # type: ignore[arg-type]  # options of any type, so that wrong ones can be tried
    _made.add(buffer)
    return buffer


def make_ring(
    capacity: int = 4, stage: Stage | None = None, epochs: bool = False, **options: object
) -> ReplayBuffer:
    """Return an overwriting buffer over `Slots`."""
    options.setdefault("sampler", SamplerWithoutReplacement() if epochs else RandomSampler())
    buffer = ReplayBuffer(Slots(capacity), monitor=stage, **options)  # type: ignore[arg-type]  # options of any type, so that wrong ones can be tried
    _made.add(buffer)
    return buffer


def ledger_of(buffer: BlockingReplayBuffer | ReplayBuffer) -> Ledger:
    """Return the ledger behind a buffer."""
    return buffer._core.ledger


def ring_of(buffer: ReplayBuffer) -> OverwritingLedger:
    """Return the ledger behind an overwriting buffer."""
    ledger = buffer._core.ledger
    assert isinstance(ledger, OverwritingLedger)
    return ledger


@contextmanager
def patience() -> Iterator[Callable[[Callable[[], T]], "Future[T]"]]:
    """Give a function that starts threads, and join them all at the end.

    If the test fails meanwhile, its buffers fail too, so that threads which wait in them end.
    """
    threads: list[threading.Thread] = []

    def start(work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()

        def body() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        thread = threading.Thread(target=body, daemon=True)
        threads.append(thread)
        thread.start()
        return future

    try:
        yield start
    except BaseException:
        for buffer in list(_made):
            buffer.fail(AssertionError("the test has failed"))
        raise
    finally:
        for thread in threads:
            thread.join(PATIENCE)
        if any(thread.is_alive() for thread in threads):
            pytest.fail("a thread does not end")


def result(future: "Future[T]") -> T:
    """Return what a thread came to, or raise what it raised."""
    return future.result(PATIENCE)


def snapshot(buffer: BlockingReplayBuffer | ReplayBuffer) -> tuple[object, ...]:
    """Return all of a buffer's state that is not a counter."""
    ledger = ledger_of(buffer)
    return (
        ledger.phase.tolist(),
        ledger.uses.tolist(),
        ledger.pins.tolist(),
        ledger.free_order(),
        ledger.fresh,
        ledger.tickets(),
        ledger.holds(),
        ledger.fillings(),
        ledger.closing,
        ledger.sampleable,
    )


def pinned_by(ledger: Ledger, hold: HoldView) -> list[int]:
    """Return the slots that a hold pins; one that has been gathered pins none in a ring."""
    if not ledger.overwrites:
        return hold.slots
    return sorted(set(hold.slots)) if hold.state is HoldState.GATHERING else []


def assert_ring(ledger: OverwritingLedger) -> None:
    """Check what only the ledger of an overwriting buffer has."""
    live = (ledger.phase == 2).nonzero()[0]
    evictable = (ledger.phase == 2) & (ledger.pins == 0) & (ledger.copying == 0)
    assert ledger.evictable == int(evictable.sum())
    by_age = live[np.argsort(ledger.stamp[live])].tolist()
    assert ledger.ring._ages.live().tolist() == by_age
    assert len(set(ledger.stamp[live].tolist())) == len(live)
    left = ledger.left()
    assert len(set(left)) == len(left)
    assert set(left) <= set(by_age)
    if ledger.sampler == RandomSampler():
        assert set(left) == set(by_age)
    known = [
        slot
        for hold in ledger.holds()
        for slot, age in zip(hold.slots, hold.stamps, strict=True)
        if age
    ]
    assert len({*known, *left}) == len(known) + len(left), "once in an epoch"


def assert_consistent(buffer: BlockingReplayBuffer | ReplayBuffer) -> None:
    """Check that the parts of the ledger tell one story."""
    ledger = ledger_of(buffer)
    phase, uses, pins = ledger.phase, ledger.uses, ledger.pins
    free = ledger.free_order()
    assert sorted(free) == (phase == 0).nonzero()[0].tolist()
    assert len(set(free)) == len(free)
    filling = [slot for slots in ledger.fillings().values() for slot in slots]
    assert sorted(filling) == (phase == 1).nonzero()[0].tolist()
    held = [slot for hold in ledger.holds() for slot in pinned_by(ledger, hold)]
    assert [held.count(slot) for slot in range(ledger.capacity)] == pins.tolist()
    assert ledger.sampleable == int(ledger.sampleable_slots().sum())
    assert ledger.filling == len(filling)
    assert int((pins > 0).sum()) == buffer.stats().pinned
    assert (uses >= 0).all()
    assert (uses <= (0 if ledger.overwrites else ledger.uses_per_record)).all()
    stats = buffer.stats()
    live = int((phase == 2).sum())
    assert stats.admitted == live + stats.spent + stats.dropped + stats.evicted
    if isinstance(ledger, OverwritingLedger):
        assert_ring(ledger)
        return
    order = ledger.order.select(ledger.sampleable).tolist() if ledger.sampleable else []
    assert sorted(order) == ledger.sampleable_slots().nonzero()[0].tolist()
