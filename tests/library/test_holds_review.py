"""What a review of prefetching, captures and restores found, each in the smallest form."""

import asyncio
import copy
import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from forebay import BlockingReplayBuffer, CheckpointError, LimitReached, Limits, ListStorage
from forebay._base import PARTS
from forebay._batches import HoldState
from forebay._capture import Capture
from forebay._monitor import ThreadMonitor
from tensordict import TensorDict

from tests.library.interrupts import interrupted
from tests.library.queues import AtOnce, ByHand, prefetcher_of, queue_of
from tests.library.saving import (
    State,
    assert_nothing_left,
    at_point,
    make,
    make_tensors,
    numbers,
)
from tests.library.support import PATIENCE, Stage, ledger_of, patience, result

pytestmark = pytest.mark.filterwarnings("error")
GATHERING, READY = HoldState.GATHERING, HoldState.READY


def make_ahead(stage: Stage | None = None, **options: Any) -> BlockingReplayBuffer:
    """Return a buffer of eight records that has one batch ahead, [2, 3], gathered."""
    buffer = make(8, stage, batch_size=2, prefetch=1, **options)
    prefetcher_of(buffer).use(AtOnce())
    buffer.extend(list(range(8)))
    buffer.sample()
    return buffer


class Once(Stage):
    """Raises the first time that somebody waits, as a handler does that interrupts the wait."""

    broken = False

    def wait(self, seen: int, deadline: float | None) -> None:
        if not self.broken:
            self.broken = True
            raise KeyboardInterrupt
        super().wait(seen, deadline)


def test_l67_what_was_gathered_for_nobody_does_not_settle_the_batch_that_has_its_row_now() -> None:
    buffer, pool = make(8, Once(), batch_size=2, prefetch=1), ByHand()
    prefetcher_of(buffer).use(pool)
    buffer.extend([1, 2, 3, 4, 5, 6])
    buffer.sample()
    batches = ledger_of(buffer).batches
    (row,) = batches.queue()
    with pytest.raises(KeyboardInterrupt):
        buffer.sample()  # which takes that batch and is interrupted: it is returned
    pool.do(1)
    assert buffer.sample() == [5, 6]
    assert batches.queue() == [row], "the row is used again"
    assert queue_of(buffer) == [([2, 3], GATHERING)]
    pool.do(0)  # the job of the batch that had the row before
    assert queue_of(buffer) == [([2, 3], GATHERING)]
    pool.do()
    assert queue_of(buffer) == [([2, 3], READY)]
    assert buffer.sample() == [3, 4]
    assert_nothing_left(buffer)


def test_l73_a_reader_of_a_draining_buffer_waits_for_records_that_are_being_restored() -> None:
    stage = Stage()
    buffer, source = make(2, stage), make(2)
    source.extend([7])
    buffer.shutdown()
    readings = []

    def read() -> None:
        readings.append(start(lambda: buffer.sample(1)))
        stage.await_sleepers(1)

    with patience() as start, at_point(stage, "loading", read):
        buffer.load_state_dict(source.state_dict())
        assert result(readings[0]) == [7]
    assert_nothing_left(buffer)


class Sleepless(ThreadMonitor):
    """A monitor for one thread, in which nobody has anything to wait for."""

    def wait(self, seen: int, deadline: float | None) -> None:
        raise AssertionError("nobody else would end this wait")


def test_a_capture_after_an_interrupt_of_the_gathering_itself_waits_for_nothing() -> None:
    for place in itertools.count():
        buffer = BlockingReplayBuffer(ListStorage(8), batch_size=2, prefetch=1, monitor=Sleepless())
        prefetcher_of(buffer).use(AtOnce())
        buffer.extend(list(range(8)))
        reached = interrupted(buffer.sample, place)
        state = buffer.state_dict()
        assert len(state["records"]["slots"]) in (6, 8)
        assert_nothing_left(buffer)
        if not reached:
            break
    assert place > 100


class Calling:
    """A transform that calls its buffer where it is asked for its state, or given one."""

    def __init__(self) -> None:
        self.saving: Callable[[], object] = list
        self.loading: Callable[[], object] = list

    def __call__(self, batch: object) -> object:
        return batch

    def state_dict(self) -> State:
        self.saving()
        return {"a": 1}

    def load_state_dict(self, state: State) -> None:
        self.loading()


def test_a_transform_that_calls_the_buffer_that_is_being_saved_or_restored_is_told() -> None:
    calling = Calling()
    buffer = make(4, transform=calling, batch_size=1)
    buffer.extend([1, 2])
    state = buffer.state_dict()
    readers: list[Callable[[], object]] = [
        buffer.sample,
        lambda: buffer.lease(1),
        lambda: buffer.wait_until_sampleable(1),
    ]
    for read in readers:
        calling.saving = read
        with pytest.raises(RuntimeError, match="each would wait for the other"):
            buffer.state_dict()
        calling.saving = list
    for call in (*readers, lambda: buffer.extend([3])):
        calling.loading, before = call, calling.loading
        with pytest.raises(RuntimeError, match="each would wait for the other"):
            buffer.load_state_dict(state)
        calling.loading = before
    assert_nothing_left(buffer)
    assert ledger_of(buffer).tickets() == []
    assert buffer.sample(2) == [1, 2]


def test_a_capture_is_woken_by_a_batch_that_is_ready_right_after_it_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    drawn, go_on, ready, captured = (threading.Event() for _ in range(4))

    def gather(batch: object) -> object:
        drawn.set()
        assert go_on.wait(PATIENCE)
        return batch

    def stay() -> None:
        ready.set()
        assert captured.wait(PATIENCE)

    buffer = make(4, stage, transform=gather)
    buffer.extend([1, 2])
    is_quiet, woken = Capture._is_quiet, []

    def then_ready(self: Capture) -> bool:
        quiet = is_quiet(self)
        if not quiet:
            before = stage.sequence()
            go_on.set()
            assert ready.wait(PATIENCE)
            woken.append(stage.sequence() != before)
        return quiet

    monkeypatch.setattr(Capture, "_is_quiet", then_ready)
    with patience() as start, at_point(stage, "gathered", stay):
        reading = start(lambda: buffer.sample(1))
        assert drawn.wait(PATIENCE)
        state = buffer.state_dict()
        captured.set()
        assert result(reading) == [1]
    assert woken == [True]
    assert len(state["records"]["slots"]) == 2


def test_a_call_that_waits_when_a_restored_queue_takes_the_last_row_is_told() -> None:
    state = make_ahead().state_dict()
    stage = Stage()
    buffer = make(8, stage, batch_size=2, prefetch=1, limits=Limits(calls=1))
    with patience() as start:
        reading = start(lambda: buffer.sample(1))
        stage.await_sleepers(1)
        buffer.load_state_dict(state)
        with pytest.raises(LimitReached, match="1 calls wait, copy or hold"):
            result(reading)
    assert_nothing_left(buffer)
    assert buffer.sample() == [2, 3]
    assert buffer.sample(1) == [4]


def test_a_coroutine_that_is_dropped_inside_the_section_does_not_enter_it() -> None:
    stage = Stage()
    buffer = make(4, stage)

    async def ask() -> Any:
        asking = buffer.sample_async(1)
        future = asking.send(None)
        await asyncio.to_thread(stage.await_sleepers, 1)
        return asking, future

    asking, _ = asyncio.run(ask())
    with patience() as start:
        # A collection closes it, in whatever thread and place it happens.
        result(start(lambda: buffer._core.look(asking.close)))
    buffer.extend([1])
    for thread in threading.enumerate():
        if thread.name == "forebay-async":
            thread.join(PATIENCE)
    assert buffer.sample(1) == [1]
    assert_nothing_left(buffer)


def many() -> torch.Tensor:
    """Return one number that says that it is a thousand billion."""
    return torch.zeros(1, dtype=torch.int64).expand(10**12)


HOSTILE: dict[str, tuple[tuple[Any, ...], object]] = {
    "slots without data": (("records", "slots"), torch.zeros(6, dtype=torch.int64, device="meta")),
    "sparse slots": (("records", "slots"), torch.zeros(6, dtype=torch.int64).to_sparse()),
    "negated slots": (("records", "slots"), torch._neg_view(torch.arange(6))),
    "more slots than memory": (("records", "slots"), many()),
    "more slots ahead than memory": (("prefetched", "batches", 0, "slots"), many()),
    "an array for a format": (("format",), np.array([1, 2])),
    "an array for a kind": (("buffer", "kind"), np.array([1, 2])),
    "one age for two records ahead": (("prefetched", "batches", 0, "stamps"), torch.tensor([1, 1])),
    "the age of another record": (("prefetched", "batches", 0, "stamps"), torch.tensor([1, 5])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_state_is_refused_as_such(name: str) -> None:
    path, value = HOSTILE[name]
    buffer = make_ahead()
    state = buffer.state_dict()
    buffer.load_state_dict(state)
    inside: Any = state
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    with pytest.raises(CheckpointError, match="nothing changed"):
        buffer.load_state_dict(state)
    assert buffer.sample() == [2, 3]
    assert_nothing_left(buffer)


def test_records_without_leaves_do_not_become_the_schema_of_a_storage() -> None:
    source = make_tensors(4)
    source.extend(numbers(0, 2))
    for length in (0, 2):
        if not length:
            source.empty()
        state = source.state_dict()
        state["records"]["data"] = TensorDict({}, [len(state["records"]["slots"])])
        buffer = make_tensors(4)
        with pytest.raises(CheckpointError, match="at least one leaf"):
            buffer.load_state_dict(state)
        buffer.extend(numbers(5, 1))
        assert buffer.sample(1)["x"].tolist() == [5]


class Pair(NamedTuple):
    """What a transform may return."""

    left: torch.Tensor
    right: list[torch.Tensor]


def test_b10_named_tuples_of_tensors_with_a_history() -> None:
    weight = torch.ones(2, requires_grad=True)
    buffer = make_ahead(transform=lambda batch: Pair(weight * 2, [weight * 3]))
    (entry,) = buffer.state_dict()["prefetched"]["batches"]
    pair = entry["batch"]
    assert type(pair) is Pair
    assert pair.left.tolist() == [2, 2]
    assert pair.left.is_leaf
    assert pair.left.requires_grad
    assert pair.right[0].is_leaf


def test_a_batch_that_cannot_be_copied_says_so_and_is_still_there() -> None:
    lock = threading.Lock()
    buffer = make_ahead(transform=lambda batch: {"lock": lock})
    with pytest.raises(TypeError, match=r"a lock cannot be copied.*neither saved nor"):
        buffer.state_dict()
    assert_nothing_left(buffer)
    assert buffer.sample() == {"lock": lock}


def test_a_tensor_without_data_is_refused_by_its_place(tmp_path: Any) -> None:
    module = torch.nn.Linear(1, 1, device="meta")
    buffer = make(4, transform=module)
    with pytest.raises(CheckpointError, match=r"\['transforms'\]\[0\]\['weight'\]"):
        buffer.dumps(tmp_path / "saved")
    assert_nothing_left(buffer)


class Named(BlockingReplayBuffer):
    """A buffer with a constructor and an attribute of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(ListStorage(4), batch_size=2)
        self.name = name


@pytest.mark.parametrize(
    "duplicate", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy, copy.copy]
)
def test_what_a_subclass_adds_goes_with_it(duplicate: Any) -> None:
    buffer = Named("mine")
    buffer.extend([1, 2, 3])
    again = duplicate(buffer)
    assert type(again) is Named
    assert again.name == "mine"
    assert again.sample() == [1, 2]
    assert buffer.sample() == [1, 2]


def test_the_parts_of_a_buffer_are_known() -> None:
    assert vars(make(1)).keys() == PARTS
    assert vars(make_ahead()).keys() == PARTS


class Knowing:
    """A transform that knows its buffer."""

    buffer: object = None

    def __call__(self, batch: object) -> object:
        return batch


def test_a_transform_that_knows_its_buffer_is_copied_with_it() -> None:
    knowing = Knowing()
    knowing.buffer = buffer = make(4, transform=knowing)
    buffer.extend([1])
    again = copy.deepcopy(buffer)
    (theirs,) = again._transforms._given
    assert isinstance(theirs, Knowing)
    assert theirs is not knowing
    assert theirs.buffer is again
    assert again.sample(1) == [1]


@pytest.mark.parametrize("writing", [False, True])
def test_a_restore_that_blocks_the_event_loop_it_waits_for_is_told(writing: bool) -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1])
    state = buffer.state_dict()
    inside = threading.Event()

    async def body() -> None:
        stage.at["copied" if writing else "gathered"] = inside.set
        call = buffer.extend_async([2]) if writing else buffer.sample_async(1)
        task = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        assert inside.wait(PATIENCE), "which blocks the loop that has the last step to take"
        with pytest.raises(RuntimeError, match="await the call first"):
            buffer.load_state_dict(state)
        await task
        buffer.load_state_dict(state)

    asyncio.run(asyncio.wait_for(body(), PATIENCE))
    assert_nothing_left(buffer)
    assert buffer.sample(1) == [1]
