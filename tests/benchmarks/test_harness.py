"""The benchmark harness computes what it says, and every contender moves whole batches."""

import multiprocessing
from collections.abc import Callable

import pytest
import torch
from tensordict import TensorDict, TensorDictBase

from benchmarks import processes, timing
from benchmarks.channels import FasterFifo, SharedOurs, SharedQueue, TorchQueue
from benchmarks.cycles import cycle, full, half_full, lazily_stacked, writes
from benchmarks.peers import CAPACITY, BatchQueue, Copies, OurRing, Ours, Peer, Polled, Ring
from benchmarks.processes import written_by_another
from benchmarks.records import BATCHES, small
from benchmarks.staleness import ages
from benchmarks.threads import hand_over


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], timing.Work]:
    """Return work by the seconds that a cycle of it takes, on a clock that only work moves."""
    now = 0.0

    def lasting(seconds: float) -> timing.Work:
        def work(cycles: int) -> None:
            nonlocal now
            now += seconds * cycles

        return work

    monkeypatch.setattr("time.perf_counter", lambda: now)
    return lasting


def test_ratios_are_taken_turn_by_turn_against_ours(
    clock: Callable[[float], timing.Work],
) -> None:
    contenders = {timing.OURS: clock(0.01), "a slower one": clock(0.03)}
    ours, slower = timing.race(contenders, repetitions=5)
    assert (ours.name, ours.times_ours) == (timing.OURS, (1.0, 1.0, 1.0))
    assert ours.seconds == pytest.approx(0.01)
    assert slower.times_ours == pytest.approx((3.0, 3.0, 3.0))


def test_a_ratio_is_of_the_same_turn() -> None:
    assert timing.ratio([2.0, 30.0, 8.0], [1.0, 10.0, 2.0]) == (3.0, 2.0, 4.0)


def test_contenders_take_turns_in_an_order_that_rotates() -> None:
    order = []

    def work(name: str) -> timing.Work:
        def run(cycles: int) -> None:
            order.append(name)

        return run

    timing.take_turns({name: work(name) for name in "abc"}, 3, shortest=0.0)
    assert "".join(order) == "abc" + "abc" + "bca" + "cab", "once to warm up, and then in turns"


def test_a_turn_takes_long_enough(clock: Callable[[float], timing.Work]) -> None:
    assert timing.cycles_for(clock(0.001), shortest=0.05) == 64
    assert timing.cycles_for(clock(1.0), shortest=0.05, least=1) == 1


def test_draws_that_make_room_do_not_count(clock: Callable[[float], timing.Work]) -> None:
    write, draw = clock(1.0), clock(5.0)

    class Slow:
        def put(self, batch: TensorDictBase) -> None:
            write(1)

        def get(self) -> object:
            return draw(1)

    assert timing.seconds_of(writes(Slow(), lazily_stacked(2)), 3) == pytest.approx(3.0)
    assert timing.seconds_of(cycle(Slow(), small(2)), 3) == pytest.approx(18.0)


@pytest.mark.parametrize("make", [Ours, OurRing, Ring, Polled, BatchQueue])
def test_every_contender_hands_over_whole_batches(make: Callable[[int], Peer]) -> None:
    peer = make(8)
    peer.put(small(8))
    batch = peer.get()
    assert isinstance(batch, TensorDict)
    assert batch.batch_size == torch.Size([8])
    assert set(batch.keys()) >= {"obs", "act", "reward", "done"}


@pytest.mark.parametrize("make", [Ours, Polled, BatchQueue])
def test_every_contender_passes_between_threads(make: Callable[[int], Peer]) -> None:
    peer = make(1024)
    hand_over(peer, small(1024))(20)
    peer.put(small(1024))
    assert isinstance(peer.get(), TensorDict)


def test_the_polled_buffer_of_torchrl_loses_nothing_between_threads() -> None:
    peer = Polled(32, capacity=64)
    hand_over(peer, small(32))(40)
    assert len(peer.buffer) == 0


def test_a_copy_goes_in_and_out() -> None:
    batch = BATCHES["tokens"](4)
    copies = Copies(batch, capacity=8)
    for _ in range(2):  # both places that there is room for
        copies.put(batch)
    taken = copies.get()
    assert isinstance(taken, list)
    assert len(taken) == 2
    for leaf, given in zip(taken, batch.values(), strict=True):
        assert (torch.from_numpy(leaf) == given).all()


def test_a_cycle_leaves_our_buffer_half_full() -> None:
    peer = Ours(32)
    half_full(lambda rows: peer, "small", 32)(5)
    assert len(peer.buffer) == CAPACITY // 2
    assert peer.buffer.stats().admitted == CAPACITY + 5 * 32


def test_a_cycle_overwrites_in_a_full_ring() -> None:
    peer = OurRing(32)
    full(lambda rows: peer, 32)(5)
    stats = peer.buffer.stats()
    assert (stats.size, stats.evicted, stats.delivered) == (CAPACITY, 5 * 32, 5 * 32)


def test_arrival_order_bounds_the_age_and_random_order_does_not() -> None:
    assert set(ages("fifo", capacity=64, batch=8, steps=40)) == {8}
    assert max(ages("random", capacity=64, batch=8, steps=200)) > 8


@pytest.mark.parametrize("kind", BATCHES)
def test_our_channel_hands_over_whole_batches_between_processes(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "METHOD", "fork")
    batch = BATCHES[kind](8)
    ours = SharedOurs(batch)
    with written_by_another({"ours": ours}, batch) as works:
        works["ours"](5)
        assert ours.buffer.stats().delivered == 40
        assert ours.buffer.stats().sampleable == 0
    ours.put(batch)
    drawn = ours.get()
    assert isinstance(drawn, TensorDict)
    assert all(torch.equal(drawn[name], batch[name]) for name in batch.keys())  # noqa: SIM118  # a TensorDict
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("make", [SharedQueue, FasterFifo, TorchQueue])
def test_every_queue_hands_over_whole_batches_between_processes(
    make: Callable[[TensorDict], SharedQueue | FasterFifo | TorchQueue],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if make is FasterFifo:
        pytest.importorskip("faster_fifo", reason="the extra bench has it, for Python below 3.14")
    monkeypatch.setattr(processes, "METHOD", "fork")
    batch = small(8)
    queue = make(batch)
    found = []
    get = queue.get
    monkeypatch.setattr(queue, "get", lambda: found.append(get()))
    with written_by_another({"queue": queue}, batch) as works:
        works["queue"](3)
    assert len(found) == 3
    for drawn in found:
        assert isinstance(drawn, dict | TensorDict)
        assert (torch.as_tensor(drawn["obs"]) == batch["obs"]).all()
    assert multiprocessing.active_children() == []
