"""A buffer on a simulated device is driven like any other, and what runs out of order is seen."""

from collections.abc import Iterator, Mapping
from unittest.mock import patch

import pytest
import torch
from forebay_models.adapters.adapter import Mismatch
from forebay_models.adapters.on_device import SimulatedAdapter, columns_of
from forebay_models.adapters.records import TORN
from forebay_models.adapters.start import start
from forebay_models.campaign.driver import Divergence
from forebay_models.campaign.replay import Move, walk
from forebay_models.campaign.report import RARE
from forebay_models.campaign.run import run
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import Setting
from forebay_models.mutants.device import DEVICE_MUTANTS
from forebay_models.outcome import Verdict
from forebay_models.runs.walk import WalkRun
from forebay_models.stepping.board import Ended
from forebay_models.targets import SIMULATED
from forebay_models.tokens import read_token, token_of
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, Request

# At the default budget of a minute there are about as many, on a slow machine too.
WITHIN = 400
SEED = 0

BOUNDS = Bounds(
    name="on a device",
    capacity=2,
    producers=("p1",),
    readers=("c1",),
    write_sizes=(1, 2),
    requests=(Request("plain", 1, 1), Request("lease", 2, 2)),
)
WRITE = [Move(Label("Arrive", ("p1", 2))), Move(Label("Publish", ("p1",)))]
LEASE = [Move(Label("Ask", ("c1", "lease", 2, 2))), Move(Label("Ready", (0,)))]
IDLE = patch("forebay_models.adapters.on_device.PACES", (0,))
"""The device does nothing as long as nobody waits for it."""


@pytest.fixture
def adapter() -> Iterator[SimulatedAdapter]:
    adapter = SimulatedAdapter(BOUNDS, "simulated")
    yield adapter
    adapter.close()


def campaign(examples: int, seed: int = SEED) -> Session:
    """Return a campaign of so many examples, after its end."""
    session = Session(start, SIMULATED, seconds=None, examples=examples, shrinking=0.0)
    run(session, seed_number=seed)
    return session


def seen_twice(failure: Divergence, fault: str) -> bool:
    """Tell whether the token of a failure shows the same failure each time."""
    token = read_token(token_of(WalkRun.of(failure), fault=fault))
    for _ in range(2):
        again = token.run.again(token.fault)
        if again.counterexample is None or again.counterexample.what != failure.what:
            return False
    return token.run.again("").verdict is Verdict.HOLDS


def test_batches_come_from_the_host_and_from_two_streams_of_the_device(
    adapter: SimulatedAdapter,
) -> None:
    device, ways = adapter._device, set()
    for _ in range(40):
        with device.on(device.stream("p1")), adapter._written((1, 2)) as batch:
            columns = columns_of(batch)
            there = device.holds(columns["number"])
            if there:
                assert device.promised(columns["number"]).tolist() == [1, 2]
            queued = device.stream("loader").queued
        aside = device.stream("loader").queued > queued
        ways.add((there, bool(device.stream("loader").operations), aside))
        device.finish()
        if not there:
            assert columns["number"].tolist() == columns["copies"][:, 0].tolist() == [TORN] * 2
    assert {way[:2] for way in ways} == {(False, False), (True, False), (True, True)}


def test_what_a_reader_has_may_come_later_than_its_numbers(adapter: SimulatedAdapter) -> None:
    with IDLE:
        adapter._pace = 0
        for label, manner in (*WRITE, *LEASE):
            seen = adapter.apply(label, manner)
    assert seen.records == (1, 2)
    (held,) = adapter._holds
    assert held.lease is not None
    batch = columns_of(held.lease.batch)
    assert batch["number"].tolist() != [1, 2]
    adapter._device.finish()
    assert batch["number"].tolist() == [1, 2]


def test_a_fault_that_shows_only_in_the_end_is_a_failure_and_is_replayed() -> None:
    setting = Setting(BOUNDS, "simulated", 0)
    with IDLE, DEVICE_MUTANTS["event_recorded_before_copy"].plant():
        failures = [walk(start, setting, [*WRITE, *LEASE]) for _ in range(3)]
    for failure in failures:
        assert failure is not None
        assert failure.steps[-1].after is not None
        assert "of c1 used on stream c1 is not what was promised" in failure.what[0]
    with IDLE:
        assert walk(start, setting, [*WRITE, *LEASE]) is None


def test_all_threads_end_though_the_device_has_seen_a_fault() -> None:
    adapter = SimulatedAdapter(BOUNDS, "simulated")
    adapter.apply(Label("Ask", ("c1", "plain", 1, 1)))
    adapter._device.faults.append("planted")
    worker = adapter._crew._workers["c1"]
    with pytest.raises(Mismatch, match="planted"):
        adapter.close()
    assert isinstance(worker.seat.stop, Ended)
    assert not worker._thread.is_alive()


def test_equal_seeds_give_equal_runs_of_the_device() -> None:
    def contents(seed: int) -> bytes:
        adapter = SimulatedAdapter(BOUNDS, "simulated", seed)
        try:
            for label, manner in (*WRITE, *LEASE, Move(Label("Deliver", (0,))), *WRITE):
                adapter.apply(label, manner)
            counts = [(it.name, it.queued, it.ran) for it in adapter._device._streams.all]
            return repr(counts).encode()
        finally:
            adapter.close()

    runs = [contents(seed) for seed in range(8)]
    assert runs == [contents(seed) for seed in range(8)]
    assert len(set(runs)) > 1


def test_the_four_faults_that_have_to_be_found_are_among_the_mutants() -> None:
    assert set(DEVICE_MUTANTS) >= {
        "published_without_event",
        "reused_without_readers_event",
        "event_recorded_before_copy",
        "one_event_for_all",
    }


def test_a_reader_that_does_not_wait_is_found_and_its_token_shows_it() -> None:
    name = "published_without_event"
    with DEVICE_MUTANTS[name].plant():
        session = campaign(WITHIN)
    assert session.failure is not None
    assert seen_twice(session.failure, name)


# Found by the cover, in tests/cover/test_mutants.py: the walks of this seed come to it at the 677th
# example, since few of them restore what was drawn ahead.
ONLY_BY_THE_COVER = frozenset({"restored_without_event"})

SEEDS: Mapping[str, int] = {
    "abandoned_copy_forgotten": 10,
    "ahead_not_kept": 1,
    "ahead_without_event": 2,
    "copied_without_last_copys_event": 10,
    "one_event_for_all": 5,
    "written_not_kept": 4,
}
"""Where `SEED` comes late to a fault: a seed that comes to it within 40 examples."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(DEVICE_MUTANTS) - ONLY_BY_THE_COVER))
def test_a_planted_fault_is_found_and_its_token_shows_it(name: str) -> None:
    with DEVICE_MUTANTS[name].plant():
        session = campaign(WITHIN, SEEDS.get(name, SEED))
    assert session.failure is not None, DEVICE_MUTANTS[name].sentence
    assert seen_twice(session.failure, name)


@pytest.mark.slow
def test_the_library_passes_and_everything_is_exercised() -> None:
    session = campaign(WITHIN)
    assert session.failure is None
    assert set(session.exercise.actions) == set(SIMULATED.actions)
    missed = set(SIMULATED.witnesses) - set(session.exercise.witnesses)
    assert missed <= RARE


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("seed", range(4))
def test_a_cuda_device_is_driven_too(seed: int) -> None:
    path = [*WRITE, *LEASE, Move(Label("Deliver", (0,))), *WRITE, *LEASE]
    assert walk(start, Setting(BOUNDS, "cuda", seed), path) is None
