"""Overwriting buffers saved and loaded: exact continuation, and states that are refused."""

import copy
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch
from forebay import (
    BlockingReplayBuffer,
    CheckpointError,
    RandomSampler,
    ReplayBuffer,
    SamplerWithoutReplacement,
    SharedStorage,
    TensorStorage,
    read_records,
)
from forebay._samplers import Sampler
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.continuing import STEPS, WAYS, Buffer, act, by_state
from tests.library.queues import AtOnce, prefetcher_of
from tests.library.saving import State, assert_nothing_left, assert_whole, numbers, plain
from tests.library.support import Stage, patience, result, ring_of

CAPACITY = 7
BATCH = 3
UNIFORM = RandomSampler()
EPOCHS, DROPPING = SamplerWithoutReplacement(), SamplerWithoutReplacement(drop_last=True)
SAMPLERS: list[Sampler] = [UNIFORM, EPOCHS, DROPPING]
NAMES = ["replacement", "epochs", "drop last"]


def make(
    sampler: Sampler, prefetch: int = 0, seed: int | None = None, shared: bool = False
) -> ReplayBuffer:
    storage = (
        SharedStorage(CAPACITY, example=numbers(0, 1)[0]) if shared else TensorStorage(CAPACITY)
    )
    return ReplayBuffer(storage, sampler, batch_size=BATCH, prefetch=prefetch, seed=seed)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=NAMES)
@settings(max_examples=60, deadline=None)
@given(
    steps=STEPS,
    later=STEPS,
    way=st.sampled_from(WAYS),
    prefetch=st.integers(0, 4),
    seed=st.integers(0, 3),
)
def test_a_restored_buffer_goes_on_as_the_original(
    sampler: Sampler,
    steps: list[tuple[str, int]],
    later: list[tuple[str, int]],
    way: Callable[[Buffer, Buffer], Buffer],
    prefetch: int,
    seed: int,
) -> None:
    original = make(sampler, prefetch, seed)
    for number, (kind, size) in enumerate(steps):
        act(original, kind, size, 10 * number)
    state = original.state_dict()
    assert_whole(state, original)
    restored = way(original, make(sampler, prefetch, 99))
    goes_on_alike(original, restored, state, later)


def goes_on_alike(
    original: Buffer, restored: Buffer, state: State, later: list[tuple[str, int]]
) -> None:
    assert plain(restored.state_dict()) == plain(state)
    for number, (kind, size) in enumerate(later):
        first = 1000 + 10 * number
        assert act(restored, kind, size, first) == act(original, kind, size, first)
    assert plain(restored.state_dict()) == plain(original.state_dict())
    assert_nothing_left(restored)
    assert_nothing_left(original)


LATER = [("sample", 3), ("extend", 4), ("sample", 2), ("release", 2), ("sample", 3)] * 3


@pytest.mark.parametrize("shared", [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=NAMES)
def test_between_local_and_shared(sampler: Sampler, shared: tuple[bool, bool]) -> None:
    original, restored = (make(sampler, 2, 1, where) for where in shared)
    for number, (kind, size) in enumerate([("extend", 4), *LATER]):
        act(original, kind, size, 10 * number)
    state = original.state_dict()
    restored.load_state_dict(state)
    goes_on_alike(original, restored, state, LATER)


PROGRAM = """
import sys
import forebay
from tests.library.test_overwriting_checkpoint import batches, make, SAMPLERS
ring = make(SAMPLERS[int(sys.argv[2])], 2)
ring.loads(sys.argv[1])
print(batches(ring))
"""


def batches(ring: ReplayBuffer) -> list[object]:
    """Return what ten samples give, with writes in between."""
    prefetcher_of(ring).use(AtOnce())
    seen: list[object] = []
    for number in range(10):
        batch, info = ring.sample(return_info=True)
        seen += [batch["x"].tolist(), info["index"].tolist()]
        ring.extend(numbers(100 + number, 1))
    return seen


@pytest.mark.parametrize("place", range(3), ids=NAMES)
def test_in_a_new_process(place: int, tmp_path: Path) -> None:
    original = make(SAMPLERS[place], 2, 5)
    for number, (kind, size) in enumerate([("extend", 7), *LATER]):
        act(original, kind, size, 10 * number)
    original.dumps(tmp_path)
    other = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(place)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert other.returncode == 0, other.stderr
    assert other.stdout.strip() == str(batches(original))


def test_what_is_left_and_what_a_batch_remembers_are_in_a_state() -> None:
    ring = make(EPOCHS, 1, 0)
    prefetcher_of(ring).use(AtOnce())
    ring.extend(numbers(0, 7))
    ring.sample()
    state = ring.state_dict()
    left = state["sampler"]["dense"].tolist()
    (ahead,) = state["prefetched"]["batches"]
    assert len(left) == 1
    assert sorted(ahead["stamps"].tolist()) == sorted(slot + 1 for slot in ahead["slots"].tolist())
    assert not {*left} & {*ahead["slots"].tolist()}
    assert state["buffer"] == {
        "kind": "overwriting",
        "capacity": CAPACITY,
        "order": "epochs",
        "drop_last": False,
        "batch_size": BATCH,
        "prefetch": 1,
    }
    ring.extend(numbers(7, 7))
    state = ring.state_dict()
    (ahead,) = state["prefetched"]["batches"]
    assert ahead["stamps"].tolist() == [0, 0, 0]
    restored = make(EPOCHS, 1)
    restored.load_state_dict(state)
    assert set(restored.sample()["x"].tolist()) <= set(range(7))
    assert restored.state_dict()["records"]["data"]["x"].tolist() == list(range(7, 14))


def test_a_batch_that_a_snapshot_returns_is_left_in_it() -> None:
    ring = make(EPOCHS, 0, 0)
    ring.extend(numbers(0, 7))
    lease = ring.lease(4)
    state = ring.state_dict()
    assert sorted(state["sampler"]["dense"].tolist()) == list(range(7))
    ring.sample(3)
    assert ring.state_dict()["sampler"]["dense"].tolist() == sorted(
        lease.index.tolist(), key=lease.index.tolist().index
    )
    lease.commit()
    assert ring.state_dict()["sampler"]["dense"].tolist() == []


def test_a_capture_lets_writers_go_on_and_keeps_what_it_copies() -> None:
    stage = Stage()
    ring = ReplayBuffer(TensorStorage(4), EPOCHS, monitor=stage, seed=0)
    ring.extend(numbers(0, 4))
    writing: list[Future[torch.Tensor]] = []

    def write() -> None:
        """Have a writer wait for records that are still to be copied."""
        del stage.at["captured"]
        assert not ring.can_extend(1)
        writing.append(start(lambda: ring.extend(numbers(10, 4))))
        stage.await_sleepers(1)

    stage.at["captured"] = write
    with patience() as start:
        state = ring.state_dict()
        assert sorted(result(writing[0]).tolist()) == [0, 1, 2, 3]
    assert state["records"]["data"]["x"].tolist() == [0, 1, 2, 3]
    assert ring_of(ring).evictable == 4
    assert_nothing_left(ring)


def saved(sampler: Sampler, prefetch: int = 1) -> State:
    """Return a state of five records, one batch drawn ahead, and under epochs something left."""
    ring = make(sampler, prefetch, 0)
    if prefetch:
        prefetcher_of(ring).use(AtOnce())
    ring.extend(numbers(0, 7))
    ring.sample()
    return ring.state_dict()


def test_kinds_are_not_mixed(tmp_path: Path) -> None:
    blocking = BlockingReplayBuffer(TensorStorage(CAPACITY), batch_size=BATCH)
    blocking.extend(numbers(0, 3))
    ring = make(UNIFORM)
    ring.extend(numbers(50, 2))
    before = plain(ring.state_dict())
    with pytest.raises(
        CheckpointError, match=r"the state of a ReplayBuffer.*got that of a Block.*read_records"
    ):
        ring.load_state_dict(blocking.state_dict())
    assert plain(ring.state_dict()) == before
    with pytest.raises(CheckpointError, match=r"the state of a BlockingReplayBuffer.*of a Replay"):
        blocking.load_state_dict(ring.state_dict())
    assert len(blocking) == 3
    blocking.dumps(tmp_path)
    ring.extend(read_records(tmp_path))
    assert len(ring) == 5


def test_samplers_are_not_mixed() -> None:
    for sampler in SAMPLERS:
        for other in SAMPLERS:
            ring = make(other, 1)
            if sampler == other:
                ring.load_state_dict(saved(sampler))
                continue
            with pytest.raises(CheckpointError, match=r"buffer\.(order|drop_last): expected"):
                ring.load_state_dict(saved(sampler))
            assert len(ring) == 0


def change(state: State, *path: Any, to: Any) -> State:
    """Return a copy of a state with one entry changed."""
    changed = copy.deepcopy(state)
    entry: Any = changed
    for key in path[:-1]:
        entry = entry[key]
    entry[path[-1]] = to(entry[path[-1]])
    return changed


def at_first(number: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def put(values: torch.Tensor) -> torch.Tensor:
        changed = values.clone()
        changed[0] = number
        return changed

    return put


BATCHES = ("prefetched", "batches", 0)
WRONG: list[tuple[Sampler, tuple[Any, ...], Callable[[Any], Any], str]] = [
    (UNIFORM, ("records", "uses"), at_first(1), r"records\.uses: expected 0 to 0, got 1"),
    (EPOCHS, ("records", "stamps"), lambda stamps: stamps * 0, r"records\.stamps: expected"),
    (UNIFORM, ("records", "stamps"), at_first(2), r"records\.stamps: expected one age for each"),
    (UNIFORM, ("sampler", "dense"), lambda dense: dense[1:], "the 7 records that can be sampled"),
    (EPOCHS, ("sampler", "dense"), at_first(7), r"sampler\.dense: expected 0 to 6, got 7"),
    (
        EPOCHS,
        ("sampler", "dense"),
        lambda dense: torch.cat([dense, dense]),
        "each record of the epoch once",
    ),
    (
        EPOCHS,
        ("sampler", "dense"),
        lambda dense: torch.arange(7),
        "each record of the epoch once",
    ),
    (
        EPOCHS,
        ("sampler",),
        lambda kept: {"dense": kept["dense"]},
        r"sampler: expected an entry 'drawn', got none.*read_records",
    ),
    (EPOCHS, ("sampler", "drawn"), at_first(7), r"sampler\.drawn: expected 0 to 6, got 7"),
    (EPOCHS, ("sampler", "drawn"), lambda drawn: drawn[1:], r"drawn: expected the 6 records that"),
    (EPOCHS, ("sampler", "drawn"), lambda drawn: drawn[[0, *range(5)]], "not left, once each"),
    (UNIFORM, (*BATCHES, "stamps"), at_first(1), r"batches\[0\]\.stamps: expected no ages"),
    (EPOCHS, (*BATCHES, "stamps"), at_first(99), r"batches\[0\]\.stamps: expected the ages of"),
    (EPOCHS, (*BATCHES, "slots"), at_first(7), r"batches\[0\]\.slots: expected 0 to 6, got 7"),
    (
        EPOCHS,
        (*BATCHES, "slots"),
        lambda slots: slots[[0, 0, 1]],
        r"batches\[0\]\.slots: expected different slots",
    ),
    (EPOCHS, ("buffer", "drop_last"), lambda value: 0, r"buffer\.drop_last: expected False"),
    (EPOCHS, ("buffer", "kind"), lambda kind: "ring", "expected a overwriting buffer"),
]


@pytest.mark.parametrize(("sampler", "path", "to", "message"), WRONG)
def test_states_that_contradict_themselves_are_refused(
    sampler: Sampler, path: tuple[Any, ...], to: Callable[[Any], Any], message: str
) -> None:
    state = saved(sampler)
    ring = make(sampler, 1)
    ring.extend(numbers(60, 1))
    before = plain(ring.state_dict())
    with pytest.raises(CheckpointError, match=message):
        ring.load_state_dict(change(state, *path, to=to))
    assert plain(ring.state_dict()) == before
    ring.load_state_dict(state)
    assert plain(ring.state_dict()) == plain(state)


def test_what_is_left_must_be_there() -> None:
    ring = make(EPOCHS, 0, 0)
    ring.extend(numbers(0, 3))
    state = change(ring.state_dict(), "sampler", "dense", to=at_first(5))
    with pytest.raises(CheckpointError, match="slots with a record"):
        ring.load_state_dict(state)


def test_a_state_without_what_was_drawn_ahead_counts_it_as_drawn() -> None:
    for sampler in (UNIFORM, EPOCHS):
        state = saved(sampler)
        del state["prefetched"]
        ring = make(sampler, 0)
        ring.load_state_dict(state)
        assert len(ring) == 7
        assert len(ring.sample(7)) == (7 if sampler == UNIFORM else 1)
        assert_nothing_left(ring)


def test_leases_of_before_a_restore_come_back_nowhere() -> None:
    ring = make(EPOCHS, 0, 0)
    ring.extend(numbers(0, 7))
    state = ring.state_dict()
    lease = ring.lease(3)
    by_state(ring, ring)
    ring.load_state_dict(state)
    assert not lease.active
    with pytest.raises(RuntimeError, match="made void by a restore"):
        lease.release()
    assert sorted(ring.sample(7)["x"].tolist()) == list(range(7))
    assert_nothing_left(ring)
