"""Every kind of leaf is the same after it was saved and restored, in each of the three ways."""

import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from forebay import BlockingReplayBuffer, ListStorage, SharedStorage, TensorStorage
from forebay._saved_rows import PART_BYTES, PART_ROWS, PinnedRows, rows_in_part
from tensordict import TensorDict

from tests.storage.support import Step, put, same, slots, step, steps, taken

pytestmark = pytest.mark.filterwarnings("error")


def sorts() -> TensorDict:
    """Return three records with all sorts of leaves."""
    number = torch.arange(3)
    return TensorDict(
        {
            "bool": number % 2 == 0,
            "half": torch.randn(3, 2).to(torch.bfloat16),
            "eighth": torch.randn(3, 2).to(torch.float8_e4m3fn),
            "complex": torch.randn(3, 2, dtype=torch.complex64),
            "unsigned": number.to(torch.uint16),
            "scalar": number.to(torch.float64),
            "none": torch.zeros(3, 0),
            "nested": {"deep": {"x": number.unsqueeze(1)}, "y": number.to(torch.int8)},
        },
        [3],
    )


def grouped() -> TensorDict:
    """Return two records with a batch dimension of their own, and another one below."""
    agents = TensorDict({"obs": torch.randn(2, 3, 4, 5)}, [2, 3, 4])
    return TensorDict({"agents": agents, "mask": torch.ones(2, 3, dtype=torch.bool)}, [2, 3])


def classes() -> TensorDict:
    return step(torch.randn(3, 4), torch.arange(3.0), size=[3])


def nested_classes() -> TensorDict:
    return TensorDict({"step": classes(), "k": torch.arange(3)}, [3])


def by_state(buffer: BlockingReplayBuffer) -> BlockingReplayBuffer:
    new = BlockingReplayBuffer(TensorStorage(buffer.capacity))
    new.load_state_dict(buffer.state_dict())
    return new


def by_file(buffer: BlockingReplayBuffer) -> BlockingReplayBuffer:
    new = BlockingReplayBuffer(TensorStorage(buffer.capacity))
    with tempfile.TemporaryDirectory() as path:
        buffer.dumps(path)
        new.loads(path)
    return new


def by_pickle(buffer: BlockingReplayBuffer) -> BlockingReplayBuffer:
    loaded = pickle.loads(pickle.dumps(buffer))
    assert isinstance(loaded, BlockingReplayBuffer)
    return loaded


WAYS = [by_state, by_file, by_pickle]


def bits(batch: Any) -> dict[Any, Any]:
    """Return all leaves as bytes, with what they look like."""
    leaves = batch.items(include_nested=True, leaves_only=True)
    return {
        key: (leaf.dtype, tuple(leaf.shape), leaf.contiguous().flatten().view(torch.uint8).tolist())
        if leaf.numel()
        else (leaf.dtype, tuple(leaf.shape), [])
        for key, leaf in leaves
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [sorts, classes, nested_classes, lambda: steps(3)])
@pytest.mark.parametrize("shared", [False, True])
def test_records_come_back_bit_for_bit(
    way: Callable[[BlockingReplayBuffer], BlockingReplayBuffer],
    make: Callable[[], TensorDict],
    shared: bool,
) -> None:
    batch = make()
    if shared and way is by_pickle:
        way = by_state  # a shared buffer that is pickled is a handle
    storage = SharedStorage(4, example=batch[0]) if shared else TensorStorage(4)
    buffer = BlockingReplayBuffer(storage)
    buffer.extend(batch)
    restored = way(buffer)
    expected, came = buffer.sample(3), restored.sample(3)
    assert type(came) is type(expected)
    assert bits(came) == bits(expected) == bits(batch)
    if make is nested_classes:
        assert type(came["step"]) is Step


@pytest.mark.parametrize("way", WAYS)
def test_batch_dimensions_that_belong_to_a_record(
    way: Callable[[BlockingReplayBuffer], BlockingReplayBuffer],
) -> None:
    batch = grouped()
    buffer = BlockingReplayBuffer(TensorStorage(4, example=batch[0]))
    buffer.extend(batch)
    came = way(buffer).sample(2)
    assert came.batch_size == torch.Size([2, 3])
    assert came["agents"].batch_size == torch.Size([2, 3, 4])
    assert bits(came) == bits(batch)


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_buffer_keeps_what_its_records_look_like(
    way: Callable[[BlockingReplayBuffer], BlockingReplayBuffer],
) -> None:
    buffer = BlockingReplayBuffer(TensorStorage(4))
    buffer.extend(steps(2))
    buffer.sample(2)
    restored = way(buffer)
    with pytest.raises(ValueError, match="'action'"):
        restored.extend({"obs": torch.zeros(1, 4)})
    restored.extend(steps(3))
    assert same(restored.sample(3), steps(3))


def test_objects_of_a_list_storage() -> None:
    records: list[object] = [
        {"text": "a", "ids": torch.arange(3)},
        {"text": "b", "ids": torch.arange(5)},
        ["deep", {"x": np.arange(2)}],
    ]
    buffer = BlockingReplayBuffer(ListStorage(4))
    buffer.extend(records)
    state = buffer.state_dict()
    new = BlockingReplayBuffer(ListStorage(4))
    new.load_state_dict(state)
    came: Any = new.sample(3)
    assert came[0]["text"] == "a"
    assert came[1]["ids"].tolist() == [0, 1, 2, 3, 4]
    assert came[2][1]["x"].tolist() == [0, 1]
    with tempfile.TemporaryDirectory() as path:
        buffer.dumps(path, allow_pickle=True)
        new.loads(path, allow_pickle=True)
    came = new.sample(3)
    assert came[1]["ids"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("where", [(2, 3, 4), (4, 0, 2), (1,), ()])
def test_copying_out_is_what_reading_gives(where: tuple[int, ...]) -> None:
    storage = TensorStorage(5)
    put(storage, slots(0, 1, 2, 3, 4), steps(5))
    copies = storage.begin_copy(len(where))
    assert copies is not None
    copies.add(slots(*where[:1]))
    copies.add(slots(*where[1:]))
    data: Any = copies.data()
    assert same(data, taken(storage, *where))
    data["obs"].fill_(-1)
    assert same(taken(storage, 0), steps(1))


def test_what_lies_side_by_side_is_written_from_where_it_is() -> None:
    storage = TensorStorage(8)
    put(storage, slots(*range(8)), steps(8))
    assert storage.schema is not None
    parts = [slots(2, 3, 4), slots(7, 0, 5)]
    rows = PinnedRows(storage, storage.schema, 6, lambda most: iter(parts))
    chunks = rows.chunks()
    for part, there in zip(parts, (True, False), strict=True):
        columns = next(chunks)
        for column, kept in zip(columns, storage._columns, strict=True):
            assert np.shares_memory(column, kept) is there
            assert np.array_equal(column, kept[part])


def test_parts_are_bounded_in_rows_and_in_bytes() -> None:
    small = TensorStorage(4, example={"x": torch.zeros(())}).schema
    large = TensorStorage(4, example={"x": torch.zeros(PART_BYTES // 8)}).schema
    huge = TensorStorage(4, example={"x": torch.zeros(PART_BYTES)}).schema
    assert small is not None
    assert large is not None
    assert huge is not None
    assert rows_in_part(small) == PART_ROWS
    assert rows_in_part(large) == 2
    assert rows_in_part(huge) == 1
