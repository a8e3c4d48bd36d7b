"""An overwriting buffer as its users see it: what is evicted, what is drawn, and who waits."""

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from forebay import (
    AdmissionTimeout,
    BlockingReplayBuffer,
    LimitReached,
    Limits,
    ListStorage,
    PeerLost,
    RandomSampler,
    ReplayBuffer,
    SamplerWithoutReplacement,
    SampleTimeout,
    ShutDown,
    Trace,
)
from forebay import _layout as at

from tests.library.queues import AtOnce, prefetcher_of
from tests.library.support import (
    PATIENCE,
    Slots,
    Stage,
    assert_consistent,
    make_ring,
    patience,
    result,
    ring_of,
)


def values(ring: ReplayBuffer) -> list[object]:
    """Return all records, oldest first."""
    storage = ring.storage
    assert isinstance(storage, Slots)
    return [storage.cells[slot] for slot in ring_of(ring).ring._ages.live().tolist()]


class Blocking:
    """A transform that stops where the test wants, in the thread that gathers."""

    def __init__(self) -> None:
        self.gathering = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)

    def __call__(self, batch: list[object]) -> list[object]:
        self.gathering.release()
        assert self.go_on.acquire(timeout=PATIENCE)
        return batch

    def await_gathering(self) -> None:
        assert self.gathering.acquire(timeout=PATIENCE)


def test_the_oldest_records_are_overwritten() -> None:
    ring = make_ring(4)
    assert ring.extend([1, 2, 3]).tolist() == [0, 1, 2]
    assert ring.extend([4, 5]).tolist() == [3, 0]
    assert values(ring) == [2, 3, 4, 5]
    assert ring.extend([6, 7, 8, 9]).tolist() == [1, 2, 3, 0]
    assert values(ring) == [6, 7, 8, 9]
    stats = ring.stats()
    assert (stats.evicted, stats.evicted_batches) == (5, 2)
    assert (stats.admitted, stats.sampleable, stats.free) == (9, 4, 0)
    assert ring.can_extend(4)
    with pytest.raises(ValueError, match="larger than the capacity of 4"):
        ring.extend([0] * 5)
    assert_consistent(ring)


def test_a_batch_that_fails_leaves_its_slots_free_and_what_it_evicted_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ring = make_ring(4)
    ring.extend([1, 2, 3, 4])
    storage = ring.storage
    assert isinstance(storage, Slots)
    with monkeypatch.context() as patched:
        patched.setattr(storage, "write", _fail)
        with pytest.raises(ArithmeticError):
            ring.extend([5, 6])
    assert values(ring) == [3, 4]
    assert ring.extend([7, 8, 9]).tolist() == [0, 1, 2]
    assert values(ring) == [4, 7, 8, 9]
    assert_consistent(ring)


def _fail(*arguments: object) -> None:
    raise ArithmeticError


def test_no_draw_uses_a_record_up() -> None:
    ring = make_ring(4, seed=1)
    ring.extend([1, 2])
    for _ in range(50):
        assert set(ring.sample(2)) <= {1, 2}
    with ring.lease(2):
        pass
    assert (len(ring), ring.stats().spent, ring.stats().delivered) == (2, 0, 102)


def test_a_record_that_is_gathered_is_passed_over() -> None:
    gate = Blocking()
    ring = make_ring(4, epochs=True, transform=gate, seed=0)
    ring.extend([1, 2, 3, 4])
    with patience() as start:
        reading = start(lambda: ring.sample(2, return_info=True))
        gate.await_gathering()
        kept = {hold for view in ring_of(ring).holds() for hold in view.slots}
        assert ring.stats().pinned == 2
        assert ring.can_extend(2)
        assert not ring.can_extend(3)
        assert set(ring.extend([5, 6]).tolist()) == set(range(4)) - kept
        assert_consistent(ring)
        gate.go_on.release()
        batch, info = result(reading)
    assert batch == [slot + 1 for slot in info["index"].tolist()]
    assert_consistent(ring)


@pytest.mark.parametrize("epochs", [False, True])
def test_a_writer_waits_only_while_its_records_are_gathered(epochs: bool) -> None:
    gate, stage = Blocking(), Stage()
    ring = make_ring(2, stage, epochs, transform=gate)
    ring.extend([1, 2])
    with patience() as start:
        reading = start(lambda: ring.lease(2))
        gate.await_gathering()
        with pytest.raises(AdmissionTimeout):
            ring.extend([3, 4], timeout=0)
        writing = start(lambda: ring.extend([3, 4]))
        stage.await_sleepers(1)
        gate.go_on.release()
        lease = result(reading)
        assert sorted(result(writing).tolist()) == [0, 1]
        assert values(ring) == [3, 4]
        assert lease.active
        lease.commit()
    assert_consistent(ring)


def test_a_batch_that_cannot_be_gathered_lets_the_writer_go_on() -> None:
    gate, stage = Blocking(), Stage()

    def broken(batch: list[object]) -> list[object]:
        gate(batch)
        raise ArithmeticError

    ring = make_ring(2, stage, transform=broken)
    ring.extend([1, 2])
    with patience() as start:
        reading = start(lambda: ring.sample(2))
        gate.await_gathering()
        writing = start(lambda: ring.extend([3, 4]))
        stage.await_sleepers(1)
        gate.go_on.release()
        with pytest.raises(ArithmeticError):
            result(reading)
        result(writing)
    assert values(ring) == [3, 4]
    assert_consistent(ring)


def test_leases_keep_nobody_waiting() -> None:
    ring = make_ring(2, epochs=True)
    ring.extend([1, 2])
    leases = [ring.lease(2), ring.lease(2)]
    ring.extend([3, 4])
    assert sorted(ring.sample(2)) == [3, 4]
    for lease in leases:
        lease.release()
    assert_consistent(ring)


def test_records_that_are_dropped_while_they_are_gathered_are_free_afterwards() -> None:
    gate = Blocking()
    ring = make_ring(3, epochs=True, transform=gate)
    ring.extend([1, 2, 3])
    with patience() as start:
        reading = start(lambda: ring.sample(3))
        gate.await_gathering()
        ring.empty()
        assert (len(ring), ring.stats().free) == (0, 0)
        gate.go_on.release()
        assert sorted(result(reading)) == [1, 2, 3]
    assert ring.stats().free == 3
    assert_consistent(ring)


def test_uniform_choices() -> None:
    """Chi-square over ten records; 27.9 is exceeded once in a thousand seeds."""
    ring = make_ring(10, seed=3)
    ring.extend(list(range(10)))
    counts = Counter(value for _ in range(500) for value in ring.sample(10))
    expected = 500.0
    assert sum((counts[value] - expected) ** 2 / expected for value in range(10)) < 27.9
    batches = [ring.sample(2) for _ in range(500)]
    twice = sum(first == second for first, second in batches)
    assert 20 <= twice <= 90, "one in ten, since the choices are independent"


def test_a_batch_may_be_larger_than_what_is_there_with_replacement() -> None:
    ring = make_ring(4, seed=0)
    ring.extend([7])
    assert ring.sample(4) == [7] * 4
    ring.extend([8])
    assert set(ring.sample(4)) <= {7, 8}


def test_every_record_once_an_epoch() -> None:
    ring = make_ring(10, epochs=True, seed=0)
    ring.extend(list(range(10)))
    epochs: list[list[int]] = []
    for _ in range(4):
        batches = [ring.sample(4) for _ in range(3)]
        assert [len(batch) for batch in batches] == [4, 4, 2]
        epochs.append([value for batch in batches for value in batch])
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_the_last_batch_of_an_epoch_is_left_out() -> None:
    ring = make_ring(10, sampler=SamplerWithoutReplacement(drop_last=True), seed=0)
    ring.extend(list(range(10)))
    for _ in range(4):
        batches = [ring.sample(4) for _ in range(2)]
        assert [len(batch) for batch in batches] == [4, 4]
        assert len({value for batch in batches for value in batch}) == 8


def test_how_many_records_a_reader_waits_for() -> None:
    short, whole = SamplerWithoutReplacement(), SamplerWithoutReplacement(drop_last=True)
    for sampler, least in ((RandomSampler(), 1), (short, 1), (whole, 3)):
        ring = make_ring(8, sampler=sampler, batch_size=3)
        assert not ring.can_sample()
        ring.extend([1])
        assert ring.can_sample() == (least == 1)
        assert ring.wait_until_sampleable(timeout=0) == (least == 1)
        assert not ring.wait_until_sampleable(3, timeout=0)
        assert ring.can_sample(3, at_least=1)
        assert not ring.can_sample(3, at_least=2)
        with pytest.raises(SampleTimeout):
            ring.sample(3, at_least=2, timeout=0)
        ring.extend([2, 3])
        assert ring.can_sample()
        assert ring.wait_until_sampleable(3, timeout=0)


def test_a_reader_waits_until_so_many_are_there() -> None:
    stage = Stage()
    ring = make_ring(8, stage, epochs=True)
    ring.extend([1, 2])
    with patience() as start:
        reading = start(lambda: ring.sample(4, at_least=3))
        stage.await_sleepers(1)
        ring.extend([3])
        assert sorted(result(reading)) == [1, 2, 3]


def test_records_written_in_an_epoch_are_of_it() -> None:
    ring = make_ring(8, epochs=True, seed=0)
    ring.extend([1, 2, 3, 4])
    seen = ring.sample(3)
    ring.extend([5, 6])
    seen += ring.sample(3)
    assert sorted(seen) == [1, 2, 3, 4, 5, 6]
    assert ring_of(ring).left() == []
    assert len(ring.sample(8)) == 6


def test_records_that_are_overwritten_are_of_no_epoch() -> None:
    ring = make_ring(4, epochs=True, seed=0)
    ring.extend([1, 2, 3, 4])
    first = ring.sample(2)
    ring.extend([5, 6, 7, 8])
    assert sorted(ring.sample(4)) == [5, 6, 7, 8]
    assert set(first) <= {1, 2, 3, 4}
    assert_consistent(ring)


def test_a_returned_batch_comes_back_in_its_epoch() -> None:
    ring = make_ring(6, epochs=True, seed=0)
    ring.extend(list(range(6)))
    lease = ring.lease(2)
    others = ring.sample(3)
    returned = set(lease.batch)
    lease.release()
    rest = ring.sample(6)
    assert returned < set(rest)
    assert sorted([*others, *rest]) == list(range(6))


def test_a_batch_that_is_returned_too_late_comes_back_in_no_later_epoch() -> None:
    ring = make_ring(6, epochs=True, seed=0)
    ring.extend(list(range(6)))
    lease = ring.lease(2)
    assert len(ring.sample(6)) == 4
    first = ring.sample(3)
    assert set(lease.batch) & set(first), "they are drawn again"
    lease.release()
    assert sorted([*first, *ring.sample(6)]) == list(range(6))
    assert_consistent(ring)


def test_a_returned_batch_leaves_out_what_was_overwritten_meanwhile() -> None:
    ring = make_ring(4, epochs=True, seed=0)
    ring.extend([1, 2, 3, 4])
    lease = ring.lease(4)
    ring.extend([5, 6])
    lease.release()
    assert sorted(ring.sample(4)) == [3, 4, 5, 6]
    lease = ring.lease(1)
    ring.empty()
    ring.extend([7, 8, 9, 10])
    lease.release()
    assert sorted(ring.sample(4)) == [7, 8, 9, 10]
    assert_consistent(ring)


@pytest.mark.parametrize("epochs", [False, True])
@pytest.mark.parametrize("prefetch", [1, 2, 4])
def test_batches_drawn_ahead_keep_no_record(prefetch: int, epochs: bool) -> None:
    """A loop of one thread goes on though its queue covers the whole ring."""
    ring = make_ring(4, None, epochs, batch_size=4, prefetch=prefetch, seed=0)
    for step in range(0, 80, 4):
        ring.extend(list(range(step, step + 4)))
        batch = ring.sample()
        assert 1 <= len(batch) <= 4
        assert ring.sample(1)[0] in range(step, step + 4)
    ring.shutdown()
    assert_consistent(ring)


def test_a_queue_leaves_room_in_the_pool_for_other_calls() -> None:
    ring = make_ring(2, batch_size=2, prefetch=8, limits=Limits(held=8))
    prefetcher_of(ring).use(AtOnce())
    ring.extend([1, 2])
    ring.sample()
    assert ring.stats().prefetched == 2
    leases = [ring.lease(1)]
    ring.extend([3, 4])
    leases += [ring.lease(1) for _ in range(3)]
    with pytest.raises(LimitReached, match="held"):
        ring.lease(1)
    for lease in leases:
        lease.release()
    assert_consistent(ring)


def test_what_is_drawn_ahead_is_what_was_there() -> None:
    ring = make_ring(2, epochs=True, batch_size=1, prefetch=2, seed=0)
    prefetcher_of(ring).use(AtOnce())
    ring.extend([1, 2])
    first = ring.sample()
    ring.extend([3, 4])
    assert ring.sample() == ([2] if first == [1] else [1])
    ring.empty()
    ring.extend([5])
    assert ring.sample() == [5]
    assert_consistent(ring)


def test_iteration_ends_when_the_buffer_is_closed() -> None:
    ring = make_ring(4, batch_size=2)
    ring.extend([1, 2])
    seen = 0
    for batch in ring:
        assert set(batch) <= {1, 2}
        seen += 1
        if seen == 5:
            ring.shutdown()
    assert seen == 5
    assert ring.sample(1)[0] in (1, 2), "who asks is given what is there"
    with pytest.raises(ShutDown):
        ring.extend([3])
    ring.shutdown(immediate=True)
    assert list(ring) == []


def test_iteration_ends_with_the_producers() -> None:
    ring = make_ring(4, batch_size=1)
    with ring.producer():
        ring.extend([1])
        batches = iter(ring)
        assert next(batches) == [1]
    assert list(batches) == []


def test_iteration_raises_why_nobody_writes_any_more() -> None:
    ring = make_ring(4, batch_size=1)
    ring.extend([1])
    with pytest.raises(ArithmeticError), ring.producer():
        raise ArithmeticError
    with pytest.raises(PeerLost, match="all registered producers are gone; 1 of them"):
        list(ring)
    failed = make_ring(4, batch_size=1)
    failed.extend([1])
    failed.fail(ArithmeticError())
    with pytest.raises(PeerLost, match="the buffer has failed"):
        list(failed)


def test_an_iteration_that_waits_ends_too() -> None:
    stage = Stage()
    ring = make_ring(4, stage, batch_size=1)
    with patience() as start:
        reading = start(lambda: list(ring))
        stage.await_sleepers(1)
        ring.shutdown()
        assert result(reading) == []


def test_equal_seeds_give_equal_batches() -> None:
    for epochs in (False, True):
        rings = [make_ring(8, None, epochs, seed=5) for _ in range(2)]
        for ring in rings:
            ring.extend(list(range(8)))
        first, second = ([ring.sample(3) for _ in range(9)] for ring in rings)
        assert first == second


def test_what_is_said_of_a_ring() -> None:
    ring = make_ring(4, batch_size=2)
    ring.extend([1, 2, 3])
    assert "1 free, 3 that can be overwritten, 3 sampleable" in ring.describe()
    assert ring.sampler == RandomSampler()
    assert make_ring(4, epochs=True).sampler == SamplerWithoutReplacement(drop_last=False)
    assert not hasattr(ring, "available")


class RandomSamplerOfTorchRL:
    """Stands in for one of TorchRL's."""


RandomSamplerOfTorchRL.__module__ = "torchrl.data.replay_buffers.samplers"

REFUSED: list[tuple[dict[str, object], type[Exception], str]] = [
    ({"sampler": "random"}, TypeError, r"sampler must be forebay.RandomSampler\(\) or .*'random'$"),
    ({"sampler": None}, TypeError, "sampler must be"),
    ({"sampler": RandomSampler}, TypeError, "make one by calling it"),
    ({"sampler": RandomSamplerOfTorchRL()}, TypeError, "one of TorchRL keeps a state of its own"),
    ({"prefetch": 2}, ValueError, "it needs a batch_size"),
    ({"batch_size": 5}, ValueError, "larger than the capacity of 4"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_unsupported_arguments(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_ring(4, None, False, **options)


def test_a_trace_is_refused(tmp_path: object) -> None:
    with pytest.raises(NotImplementedError, match="does not tell of records that are overwritten"):
        make_ring(4, trace=Trace(f"{tmp_path}/trace"))


def test_other_refusals_say_what_to_use() -> None:
    with pytest.raises(TypeError, match="drop_last must be a bool"):
        SamplerWithoutReplacement(drop_last=1)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="use ReplayBuffer to sample with replacement"):
        BlockingReplayBuffer(ListStorage(4), order="replacement")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="use ReplayBuffer for that"):
        BlockingReplayBuffer(ListStorage(4), consume_after_n_samples=None)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("epochs", [False, True])
def test_writers_and_readers_on_threads(epochs: bool) -> None:
    """Every batch is whole: rows of one write are never torn, whatever is overwritten meanwhile."""
    ring = make_ring(16, None, epochs, batch_size=4, prefetch=2)
    with patience() as start:

        def write(first: int) -> None:
            for number in range(300):
                ring.extend([first + number] * 3)

        def read() -> int:
            count = 0
            for batch in ring:
                assert all(isinstance(value, int) for value in batch)
                count += 1
            return count

        readers = [start(read) for _ in range(2)]
        writers: list[Callable[[], None]] = [lambda: write(0), lambda: write(1000)]
        for writing in [start(work) for work in writers]:
            result(writing)
        ring.shutdown()
        assert all(result(reading) for reading in readers)
    assert ring.stats().admitted == 1800
    assert ring_of(ring).cells[at.PINNED] == 0
    assert_consistent(ring)
