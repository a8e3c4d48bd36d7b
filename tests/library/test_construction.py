"""What a buffer is made of; what cannot keep its promises is refused with what to use instead."""

import pytest
import torch
from forebay import BlockingReplayBuffer, Limits, ListStorage, ShutDown, TensorStorage
from forebay._layout import MOST_USES
from tensordict import TensorDict

from tests.library.support import Slots, Stage, make, patience, result


def test_defaults() -> None:
    buffer = BlockingReplayBuffer(Slots(4))
    assert buffer.sampler == ("fifo", 1)
    assert buffer.batch_size is None
    assert buffer.capacity == 4


REFUSED: list[tuple[dict[str, object], type[Exception], str]] = [
    ({"consume_after_n_samples": None}, ValueError, "use ReplayBuffer"),
    ({"consume_after_n_samples": 0}, ValueError, "consume_after_n_samples must be at least 1"),
    ({"consume_after_n_samples": True}, TypeError, "consume_after_n_samples must be an int"),
    ({"consume_after_n_samples": 1.5}, TypeError, "consume_after_n_samples must be an int"),
    ({"order": "lifo"}, ValueError, "order must be 'fifo' or 'random'"),
    ({"order": "epochs"}, ValueError, "use ReplayBuffer to sample with replacement or in epochs"),
    ({"prefetch": 2}, ValueError, "it needs a batch_size"),
    ({"prefetch": -1}, ValueError, "prefetch must be at least 0"),
    ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
    ({"batch_size": 5}, ValueError, "larger than the capacity of 4"),
    ({"seed": -1}, ValueError, "seed must be at least 0"),
    ({"seed": "a"}, TypeError, "seed must be an int"),
    ({"stall_warning": 0}, ValueError, "stall_warning must be None or more than 0"),
    ({"stall_warning": "soon"}, TypeError, "stall_warning must be None or a number"),
    ({"dim_extend": -1}, ValueError, "dim_extend must be at least 0, got -1"),
    ({"dim_extend": "0"}, TypeError, "dim_extend must be an int"),
    ({"limits": 5}, TypeError, r"limits must be a Limits or None, got 5"),
    (
        {"consume_after_n_samples": 10**30},
        ValueError,
        f"consume_after_n_samples must be at most {MOST_USES}, got {10**30}",
    ),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_unsupported_arguments(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(4, None, **options)


def test_a_storage_is_needed() -> None:
    with pytest.raises(TypeError, match="TensorStorage"):
        BlockingReplayBuffer(4)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"calls": 0}, "the limit calls must be at least 1, got 0"),
        ({"tokens": -1}, "the limit tokens must be at least 1, got -1"),
        ({"held": -1}, "the limit held must be at least 0, got -1"),
    ],
)
def test_limits_that_are_too_small(limits: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Limits(**limits)


def test_limits_are_integers() -> None:
    with pytest.raises(TypeError, match="must be an int"):
        Limits(calls=1.5)  # type: ignore[arg-type]  # wrong on purpose


def test_as_many_uses_as_can_be_counted() -> None:
    buffer = make(2, consume_after_n_samples=MOST_USES)
    buffer.extend([1])
    assert [buffer.sample(1), buffer.sample(1), len(buffer)] == [[1], [1], 1]


@pytest.mark.parametrize("capacity", [10**15, 10**30])
def test_a_capacity_that_no_memory_holds_is_named(capacity: int) -> None:
    """Whoever reserves the memory first says so: the storage, the ledger, or the first write."""
    message = f"no memory for a capacity of {capacity} records"
    with pytest.raises(MemoryError, match=message):
        ListStorage(capacity)
    with pytest.raises(MemoryError, match=message):
        BlockingReplayBuffer(TensorStorage(capacity))
    with pytest.raises(MemoryError, match=message):
        TensorStorage(capacity, example={"x": 1.0})


def test_limits_that_no_memory_holds_are_named() -> None:
    with pytest.raises(MemoryError, match=f"capacity of 4 records with Limits.calls={10**15}"):
        make(4, limits=Limits(calls=10**15))


def test_a_timeout_beyond_all_floats_waits_for_ever() -> None:
    stage = Stage()
    buffer = make(4, stage, stall_warning=10**400)
    with patience() as start:
        waiting = start(lambda: buffer.sample(1, timeout=10**400))
        stage.await_sleepers(1)
        stage.advance(1e9)
        stage.await_sleepers(1)
        buffer.extend([7])
        assert result(waiting) == [7]
    with pytest.raises(ValueError, match="timeout must be None or at least 0 seconds"):
        buffer.sample(1, timeout=-(10**400))


def test_a_writer_handle_has_its_defaults() -> None:
    buffer = make(4)
    token = buffer.cancel_token()
    writer = buffer.writer(timeout=0, cancel_event=token)
    assert writer.extend([1, 2]).tolist() == [0, 1]
    assert writer.add(3) == 2
    assert (writer.write_count, len(writer), writer.batch_size) == (3, 3, None)
    buffer.shutdown()
    with pytest.raises(ShutDown):
        writer.extend([4])
    with pytest.raises(ShutDown):
        writer.add(4)


def test_a_writer_that_discards_gives_an_empty_index_once_closed() -> None:
    buffer = make(4)
    writer = buffer.writer(when_closed="discard")
    assert writer.extend([1]).tolist() == [0]
    buffer.shutdown()
    index = writer.extend([2])
    assert (index.tolist(), str(index.dtype)) == ([], "torch.int64")
    assert writer.add(3) is None
    assert buffer.stats().refusals == 2
    assert buffer.sample(1) == [1]


def test_when_closed_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="'raise' or 'discard'"):
        make(4).writer(when_closed="ignore")  # type: ignore[arg-type]  # wrong on purpose


def test_names_that_collectors_and_trainers_touch() -> None:
    buffer = BlockingReplayBuffer(TensorStorage(4), batch_size=2)
    for handle in (buffer, buffer.writer()):
        assert handle.extend(TensorDict({"x": [1.0, 2.0]}, [2])).shape == (2,)
        assert handle.add(TensorDict({"x": 3.0}, [])) in (2, 0)
        assert handle.storage is handle._storage is buffer.storage
        assert handle._storage.initialized is True
        assert str(handle._storage.device) == "cpu"
        assert handle.shared is False
        assert handle.batch_size == 2
        assert handle.write_count in (3, 6)
        with pytest.raises(NotImplementedError, match="SharedStorage"):
            handle.share()
        handle.empty(empty_write_count=True)
        assert len(handle) == 0


class Scale:
    """Doubles what is sampled; its inverse halves what is written."""

    def __call__(self, batch: TensorDict) -> TensorDict:
        return batch.apply(lambda leaf: leaf * 2)

    def inv(self, batch: TensorDict) -> TensorDict:
        return batch.apply(lambda leaf: leaf / 2)


def ones() -> TensorDict:
    return TensorDict({"x": [1.0]}, [1])


def stored_and_sampled(buffer: BlockingReplayBuffer) -> tuple[float, float]:
    index = buffer.extend(ones())
    stored = buffer.storage.read(index.numpy())
    assert isinstance(stored, TensorDict)
    return float(stored["x"]), float(buffer.sample(1)["x"])


def test_transforms_of_samples_and_of_writes() -> None:
    def buffer(**options: object) -> BlockingReplayBuffer:
        return BlockingReplayBuffer(TensorStorage(4), **options)  # type: ignore[arg-type]  # options of one kind

    assert stored_and_sampled(buffer(transform=Scale())) == (0.5, 1.0)
    assert stored_and_sampled(buffer(transform=Scale(), write_transform=None)) == (1.0, 2.0)
    assert stored_and_sampled(buffer(write_transform=Scale())) == (2.0, 2.0)
    assert stored_and_sampled(buffer(transform=Scale().inv)) == (1.0, 0.5)


def test_appended_transforms_come_last_on_the_way_out_and_first_on_the_way_in() -> None:
    buffer = BlockingReplayBuffer(TensorStorage(4))
    assert stored_and_sampled(buffer) == (1.0, 1.0)
    buffer.append_transform(Scale())
    assert stored_and_sampled(buffer) == (0.5, 1.0)
    buffer.append_transform(lambda batch: batch + 1.0)
    assert stored_and_sampled(buffer) == (0.5, 2.0)
    buffer.append_transform(Scale(), invert=True)
    assert stored_and_sampled(buffer) == (1.0, 1.5)
    with pytest.raises(ValueError, match="needs a transform with an inv"):
        buffer.append_transform(lambda batch: batch, invert=True)


def test_a_sample_transform_that_returns_nothing_gives_the_records_back() -> None:
    buffer = make(2, transform=lambda batch: None)
    buffer.extend([1])
    with pytest.raises(TypeError, match="returned None instead of a batch"):
        buffer.sample(1)
    assert len(buffer) == 1


def test_what_add_writes_goes_through_a_write_transform_as_a_batch_of_one() -> None:
    buffer = BlockingReplayBuffer(
        TensorStorage(2), write_transform=lambda batch: batch.set("x", batch["x"] + batch.shape[0])
    )
    buffer.add(TensorDict({"x": torch.tensor([1.0, 2.0])}))
    assert buffer.sample(1)["x"].tolist() == [[2.0, 3.0]]


def test_a_record_that_the_write_transform_drops_is_not_written() -> None:
    buffer = make(2, write_transform=lambda batch: [] if batch == [1] else None)
    assert buffer.add(1) is None
    assert buffer.add(2) is None
    assert buffer.writer().add(1) is None
    assert (len(buffer), buffer.write_count) == (0, 0)
    buffer.shutdown()
    with pytest.raises(ShutDown):
        buffer.add(1)
