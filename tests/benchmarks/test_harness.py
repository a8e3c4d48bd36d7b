"""The benchmark harness computes what it says, and every contender moves whole batches."""

import json
from collections.abc import Callable

import pytest
import torch
from tensordict import TensorDict

from benchmarks import timing
from benchmarks.__main__ import main
from benchmarks.cases import cycle, hand_over
from benchmarks.peers import CAPACITY, BatchQueue, OurRing, Ours, Peer, PolledRing, Ring, small
from benchmarks.staleness import ages


def test_ratios_are_taken_turn_by_turn_against_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def spend(seconds: float, cycles: int) -> None:
        nonlocal now
        now += seconds * cycles

    monkeypatch.setattr("time.perf_counter", lambda: now)
    contenders = {
        timing.OURS: lambda cycles: spend(0.01, cycles),
        "a slower one": lambda cycles: spend(0.03, cycles),
    }
    ours, slower = timing.race(contenders, repetitions=5)
    assert (ours.name, ours.ratio) == (timing.OURS, 1.0)
    assert ours.seconds == pytest.approx(0.01)
    assert slower.ratio == pytest.approx(3.0)
    assert slower.smallest == pytest.approx(3.0)
    assert slower.largest == pytest.approx(3.0)


@pytest.mark.parametrize("make", [Ours, OurRing, Ring, PolledRing, BatchQueue])
def test_every_contender_hands_over_whole_batches(make: Callable[[int], Peer]) -> None:
    peer = make(8)
    peer.put(small(8))
    batch = peer.get()
    assert isinstance(batch, TensorDict)
    assert batch.batch_size == torch.Size([8])
    assert set(batch.keys()) >= {"obs", "act", "reward", "done"}


@pytest.mark.parametrize("make", [Ours, PolledRing, BatchQueue])
def test_every_contender_passes_between_threads(make: Callable[[int], Peer]) -> None:
    peer = make(1024)
    hand_over(peer, 1024)(20)
    peer.put(small(1024))
    assert isinstance(peer.get(), TensorDict)


def test_a_cycle_leaves_our_buffer_half_full() -> None:
    peer = Ours(32)
    cycle(peer, 32)(5)
    assert len(peer.buffer) == 2048
    assert peer.buffer.stats().delivered == 5 * 32


def test_a_cycle_overwrites_in_a_full_ring() -> None:
    peer = OurRing(32)
    cycle(peer, 32, CAPACITY)(5)
    stats = peer.buffer.stats()
    assert (stats.size, stats.evicted, stats.delivered) == (CAPACITY, 5 * 32, 5 * 32)


def test_arrival_order_bounds_the_age_and_random_order_does_not() -> None:
    assert set(ages("fifo", capacity=64, batch=8, steps=40)) == {8}
    assert max(ages("random", capacity=64, batch=8, steps=200)) > 8


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("P1", ["forebay", "forebay (random)", "TorchRL ring"]),
        ("ring", ["forebay", "TorchRL ring"]),
    ],
)
def test_results_come_as_json(
    case: str,
    names: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.__main__.SIZES", {case: (32,)})
    monkeypatch.setattr("benchmarks.__main__.settle", lambda: "a machine")
    assert main([case, "--repetitions", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["machine"] == "a machine"
    assert [result["name"] for result in document["results"]] == names
