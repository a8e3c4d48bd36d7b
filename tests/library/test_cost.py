"""Every operation costs what its batch costs, whatever the capacity.

Time is not measured. A step that looks at every slot has to allocate something of that size, so
memory shows it; a step in Python for every slot or row shows in the number of calls.
"""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest
import torch
from forebay import (
    BlockingReplayBuffer,
    RandomSampler,
    ReplayBuffer,
    SamplerWithoutReplacement,
    TensorStorage,
)
from forebay._ages import AgeOrder
from forebay._boundary import Boundary
from forebay._image import _parts
from forebay._samplers import Sampler
from forebay._stores import Ints
from tensordict import TensorDict, lazy_stack

from tests.library.support import ListRows, Slots, make

BATCH = 16


class Nothing(Slots):
    """A storage that keeps nothing, so that only the bookkeeping is looked at."""

    def write(self, slots: object, rows: object) -> None:
        assert isinstance(rows, ListRows)

    def read(self, slots: object) -> object:
        return None


def half_full(capacity: int, order: str, uses: int) -> BlockingReplayBuffer:
    buffer = BlockingReplayBuffer(
        Nothing(capacity),
        order="fifo" if order == "fifo" else "random",
        consume_after_n_samples=uses,
        seed=0,
    )
    for _ in range(min(capacity, 4096) // (2 * BATCH)):
        buffer.extend([0] * BATCH)
    return buffer


def full(capacity: int, sampler: Sampler) -> ReplayBuffer:
    """Return a ring whose writers have to overwrite, in the middle of an epoch."""
    ring = ReplayBuffer(Nothing(capacity), sampler, seed=0)
    for _ in range(capacity // 4096):
        ring.extend([0] * 4096)
    return ring


def cycle(buffer: BlockingReplayBuffer | ReplayBuffer, times: int = 1) -> None:
    for _ in range(times):
        buffer.extend([0] * BATCH)
        buffer.lease(BATCH).release()
        with buffer.lease(BATCH):
            buffer.sample(BATCH)


def calls_of(work: Callable[[], object]) -> int:
    count = 0

    def tick(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    # What earlier tests have left would be collected, and its finalizers counted, at any time.
    gc.collect()
    gc.disable()
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("uses", [1, 3])
@pytest.mark.parametrize("order", ["fifo", "random"])
def test_a_cycle_allocates_what_its_batches_need(order: str, uses: int) -> None:
    buffer = half_full(2**17, order, uses)
    cycle(buffer)
    peak = peak_of(lambda: cycle(buffer, 20))
    assert peak < 2**15, "one flag a slot would be 2**17 bytes"


@pytest.mark.parametrize("uses", [1, 3])
@pytest.mark.parametrize("order", ["fifo", "random"])
def test_a_cycle_takes_as_many_calls_at_any_capacity(order: str, uses: int) -> None:
    def calls(capacity: int) -> int:
        buffer = half_full(capacity, order, uses)
        cycle(buffer)
        return calls_of(lambda: cycle(buffer, 5))

    assert abs(calls(2**12) - calls(2**17)) <= 20


@pytest.mark.parametrize("sampler", [RandomSampler(), SamplerWithoutReplacement()])
def test_a_cycle_of_a_ring_allocates_what_its_batches_need(sampler: Sampler) -> None:
    ring = full(2**17, sampler)
    cycle(ring)
    peak = peak_of(lambda: cycle(ring, 20))
    assert ring.stats().evicted == 21 * BATCH
    assert peak < 2**15, "one flag a slot would be 2**17 bytes"


@pytest.mark.parametrize("sampler", [RandomSampler(), SamplerWithoutReplacement()])
def test_a_cycle_of_a_ring_takes_as_many_calls_at_any_capacity(sampler: Sampler) -> None:
    def calls(capacity: int) -> int:
        ring = full(capacity, sampler)
        cycle(ring)
        return calls_of(lambda: cycle(ring, 5))

    assert abs(calls(2**12) - calls(2**17)) <= 20


def test_a_new_epoch_costs_what_its_first_batch_costs() -> None:
    def calls(capacity: int) -> int:
        ring = full(capacity, SamplerWithoutReplacement())
        ring.sample(capacity)
        assert peak_of(lambda: ring.sample(BATCH)) < 2**15, "one flag a slot would be 2**17 bytes"
        ring.sample(capacity)
        return calls_of(lambda: ring.sample(BATCH))

    assert abs(calls(2**12) - calls(2**17)) <= 20


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_a_capture_copies_what_there_is_and_not_what_there_could_be(order: str) -> None:
    ledger = half_full(2**17, order, 1)._core.ledger
    layout = ledger.layout
    assert 0 < sum(len(source) for source, _ in _parts(layout, layout)) < 2**16
    assert peak_of(Boundary(ledger).capture) < 2**18, "one number a slot would be 2**20 bytes"


def test_larger_batches_take_no_more_calls() -> None:
    def calls(rows: int) -> int:
        buffer = half_full(2**13, "fifo", 2)
        batch = [0] * rows
        buffer.extend(batch)

        def work() -> None:
            buffer.extend(batch)
            buffer.lease(rows).release()
            buffer.sample(rows)

        return calls_of(work)

    assert abs(calls(1024) - calls(16)) <= 20


@pytest.mark.parametrize("form", ["TensorDicts", "dicts", "lazy stack"])
def test_records_that_come_singly_take_no_more_calls(form: str) -> None:
    """Each leaf of all records is stacked at once, and nothing is asked of each record."""
    batch = TensorDict(
        {"obs": torch.zeros(256, 4), "next": {"done": torch.zeros(256, dtype=torch.bool)}}, [256]
    )
    storage = TensorStorage(256, example=batch[0])
    rows: list[TensorDict] = list(batch.unbind(0))

    def calls(count: int) -> int:
        given: object = rows[:count]
        if form == "dicts":
            given = [row.to_dict() for row in rows[:count]]
        elif form == "lazy stack":
            given = lazy_stack(rows[:count])
        storage.check(given)
        return calls_of(lambda: storage.check(given))

    assert abs(calls(256) - calls(2)) <= 20


def test_a_look_at_the_state_costs_the_same_at_any_capacity() -> None:
    buffer = half_full(2**17, "fifo", 1)
    assert peak_of(lambda: (len(buffer), buffer.stats(), buffer.can_sample(1))) < 2**15


def test_squeezing_stale_places_costs_no_more_than_what_made_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Returned records leave stale places in the order, which are squeezed out in passing."""
    squeezed = 0
    original = AgeOrder._squeeze

    def counting(self: AgeOrder, width: int) -> None:
        nonlocal squeezed
        squeezed += width
        original(self, width)

    monkeypatch.setattr(AgeOrder, "_squeeze", counting)
    buffer = make(256, consume_after_n_samples=100)
    buffer.extend(list(range(200)))
    moved = 0
    for step in range(2000):
        rows = 1 + step % 7
        early, late = buffer.lease(rows), buffer.lease(rows)
        late.release()
        early.release()
        moved += 4 * rows
        if step % 50 == 0:
            buffer.sample(2)
            moved += 2
    assert 0 < squeezed <= 4 * moved
    assert moved > 2000


def test_a_step_over_all_slots_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    select = AgeOrder.select

    def look_at_all(self: AgeOrder, rows: int) -> Ints:
        np.sort(self._stamp)
        return select(self, rows)

    buffer = half_full(2**17, "fifo", 1)
    cycle(buffer)
    monkeypatch.setattr(AgeOrder, "select", look_at_all)
    assert peak_of(lambda: cycle(buffer)) > 2**15


def test_a_step_in_python_for_every_row_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    select = AgeOrder.select

    def one_by_one(self: AgeOrder, rows: int) -> Ints:
        slots = select(self, rows)
        return np.array([slot for slot in slots.tolist() if slot.bit_length() < 64])

    monkeypatch.setattr(AgeOrder, "select", one_by_one)
    buffer = half_full(2**13, "fifo", 1)

    def calls(rows: int) -> int:
        buffer.extend([0] * rows)
        return calls_of(lambda: buffer.sample(rows))

    assert calls(1024) - calls(16) > 1000


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_no_call_counts_numbers_with_what_lets_go_of_the_interpreter_lock(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """See `consecutive`: two threads that hand batches over would wait for the lock each time."""
    buffer = half_full(2**13, order, 2)
    cycle(buffer)

    def refuse(*numbers: int) -> None:
        raise AssertionError(f"numpy.arange{numbers}")

    monkeypatch.setattr(np, "arange", refuse)
    cycle(buffer, 3)
