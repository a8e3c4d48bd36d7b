"""Storages whose batches are there when they are handed out, and the campaigns that need them."""

import pickle
import re
from collections.abc import Callable
from functools import partial

import pytest
import torch
from forebay import BlockingReplayBuffer, TensorStorage
from forebay_models.device.prompt import (
    PromptStorage,
    aside,
    awaited,
    device_storage,
    put_in,
    without_device,
)
from forebay_models.linear.run import run_histories
from forebay_models.mutants.device import DEVICE_MUTANTS
from forebay_models.outcome import Outcome, Verdict
from forebay_models.snapshots.run import run_rounds
from forebay_models.targets import Target
from forebay_models.twins.judge import Counts, Parted, judge
from forebay_models.twins.program import Program, Recipe, Save, Way
from forebay_models.twins.run import run_programs
from tensordict import TensorDict

from tests.twins.programs import APPEND, BATCH, EPOCHS, FIFO, Steps, extend, sample

SEEDS = 40


def batch_of(first: int, count: int) -> TensorDict:
    return TensorDict({"number": torch.arange(first, first + count)}, [count])


def buffer_of(seed: int, prefetch: int = 0) -> tuple[PromptStorage, BlockingReplayBuffer]:
    storage = PromptStorage(8, seed=seed)
    return storage, BlockingReplayBuffer(storage, batch_size=2, prefetch=prefetch)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_batch_is_there_when_it_is_handed_out(prefetch: int) -> None:
    waiting = 0
    for seed in range(SEEDS):
        storage, buffer = buffer_of(seed, prefetch)
        with aside(storage):
            buffer.extend(batch_of(0, 5))
            waiting += bool(storage.simulated.runnable())
        drawn = [buffer.sample()["number"].tolist() for _ in range(2)]
        assert drawn == [[0, 1], [2, 3]]
        buffer.shutdown(immediate=True)
    assert waiting > SEEDS // 2, "what is written waits in its queue"


def test_a_write_from_the_device_is_what_is_read() -> None:
    for seed in range(SEEDS):
        storage, buffer = buffer_of(seed)
        batch = put_in(storage, batch_of(3, 4))
        assert storage.simulated.holds(batch["number"])
        buffer.extend(batch)
        with aside(storage):
            assert buffer.sample(4)["number"].tolist() == [3, 4, 5, 6]


def test_a_restored_batch_is_there_once_it_was_waited_for() -> None:
    early = 0
    for seed in range(SEEDS):
        _, first = buffer_of(seed, prefetch=2)
        first.extend(batch_of(0, 8))
        first.sample()
        second = pickle.loads(pickle.dumps(first))
        batch = second.sample()
        early += batch["number"].tolist() != [2, 3]
        assert awaited(second.storage, batch)["number"].tolist() == [2, 3]
        for buffer in (first, second):
            buffer.shutdown(immediate=True)
    assert early


def test_on_the_host_nothing_is_done() -> None:
    storage, batch = TensorStorage(4), batch_of(0, 2)
    assert put_in(storage, batch) is batch
    assert awaited(storage, batch) is batch
    with aside(storage):
        pass
    assert device_storage("tensor", 4, seed=0) is None


@pytest.mark.parametrize("target", [Target.LOCAL, Target.SHARED, Target.SIMULATED])
def test_only_cuda_can_be_without_its_device(target: Target) -> None:
    assert without_device(target, "x") is None


@pytest.mark.parametrize(
    "campaign",
    [
        partial(run_histories, seed=0, histories=1),
        partial(run_programs, runs=1, seed_number=0),
        partial(run_rounds, count=1, seed=0),
    ],
)
def test_a_campaign_without_its_device_says_so(
    campaign: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    outcome = campaign(Target.CUDA, seconds=None)
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert outcome.detail.startswith("torch finds no CUDA device")


THEN: Steps = (BATCH, extend(2), sample(2), APPEND, BATCH, BATCH)
WAYS: list[Way] = ["state_dict", "dumps"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("schema", ["odd", "nested", "tensorclass"])
def test_a_twin_goes_from_a_device_to_the_host_and_back(schema: str, way: Way) -> None:
    counts = Counts()
    recipes: tuple[Recipe, ...] = (FIFO, EPOCHS._replace(prefetch=2))
    for recipe in recipes:
        moving = recipe._replace(storage="simulated", schema=schema, transform="weighted")
        saves = (Save(way, "tensor", False, "here"), Save(way, "simulated", False, "here"))
        steps: Steps = (extend(5), extend(2), BATCH)
        judge(Program(moving, (steps, THEN, THEN), saves), "twins", counts)
    assert (counts.exact, counts.crossed, counts.queued) == (4, 4, 4)


def test_a_pickled_twin_stays_on_a_device() -> None:
    save = Save("pickle", "simulated", False, "here")
    counts = Counts()
    recipe = FIFO._replace(storage="simulated", schema="odd")
    judge(Program(recipe, ((extend(5), BATCH), THEN), (save,)), "twins", counts)
    assert (counts.exact, counts.queued, counts.crossed) == (1, 1, 0)


IN_HISTORIES = (
    "published_without_event",
    "event_recorded_before_copy",
    "staging_reused_at_once",
)


@pytest.mark.parametrize("name", IN_HISTORIES)
def test_histories_show_a_fault_of_the_order(name: str) -> None:
    with DEVICE_MUTANTS[name].plant():
        outcome = run_histories(Target.SIMULATED, seconds=None, seed=0, histories=200, limit=2000)
    assert outcome.verdict is Verdict.VIOLATED
    assert "no order of their steps explains" in outcome.detail


IN_SNAPSHOTS = ("published_without_event", "staging_reused_at_once", "captured_before_copied")


@pytest.mark.parametrize("name", IN_SNAPSHOTS)
def test_snapshots_show_a_fault_of_the_order(name: str) -> None:
    """By torn records as a rule; by older ones, or a worker that fails, as threads have it."""
    outcome = run_rounds(Target.SIMULATED, count=2000, seconds=None, seed=0, fault=name)
    assert outcome.verdict is Verdict.VIOLATED
    assert re.search(r"is torn|record \d+ of writer|out of bounds", outcome.detail)


def test_a_twin_shows_a_fault_of_the_order() -> None:
    recipe = FIFO._replace(storage="simulated", prefetch=0)
    save = Save("state_dict", "tensor", False, "here")
    programs = [
        Program(recipe._replace(seed=seed), ((extend(5), BATCH), (BATCH, sample(3))), (save,))
        for seed in range(SEEDS)
    ]
    for program in programs:
        judge(program, "twins", Counts())
    with pytest.raises(Parted, match="of the original and the twin 1"):  # noqa: PT012  # one of them
        for program in programs:
            judge(program, "twins", Counts(), fault="captured_before_copied")
