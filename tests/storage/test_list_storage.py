"""One slot, one object: what goes in, how it is split, and how a batch comes back."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from forebay._errors import RecordMismatch
from forebay._list_storage import ListStorage
from forebay._tensor_storage import TensorStorage
from tensordict import LazyStackedTensorDict, TensorDict, lazy_stack

from tests.storage.support import same, slots, step, step_of, steps


def stored(batch: object, *, dim_extend: int = 0) -> object:
    """Return a batch as it comes back from a storage that holds nothing else."""
    storage = ListStorage(16)
    rows = storage.check(batch, dim_extend=dim_extend)
    where = np.arange(len(rows))[::-1].copy()
    storage.write(where, rows)
    return storage.read(where)


class TestObjects:
    def test_any_object_comes_back_itself(self) -> None:
        thing = object()
        batch = ["text", 7, None, thing, {1, 2}]
        read = stored(batch)
        assert read == batch
        assert isinstance(read, list)
        assert read[3] is thing

    def test_mixed_records_come_back_as_a_list(self) -> None:
        read = stored([torch.tensor([1]), "text"])
        assert isinstance(read, list)
        assert torch.equal(read[0], torch.tensor([1]))
        assert read[1] == "text"

    def test_an_empty_list_is_no_rows(self) -> None:
        storage = ListStorage(2)
        assert len(storage.check([])) == 0
        assert storage.read(slots()) == []


class TestSplitting:
    def test_a_tensordict(self) -> None:
        read = stored(steps(3))
        assert isinstance(read, TensorDict)
        assert same(read, steps(3))

    @pytest.mark.parametrize(("dim", "order"), [(0, [0, 1, 2, 3, 4, 5]), (1, [0, 3, 1, 4, 2, 5])])
    def test_two_batch_dimensions(self, dim: int, order: list[int]) -> None:
        batch = TensorDict({"a": torch.arange(6).reshape(2, 3)}, batch_size=[2, 3])
        read = stored(batch, dim_extend=dim)
        assert isinstance(read, TensorDict)
        assert read["a"].tolist() == order

    def test_a_tensor(self) -> None:
        read = stored(torch.arange(6).reshape(3, 2))
        assert isinstance(read, torch.Tensor)
        assert read.tolist() == [[0, 1], [2, 3], [4, 5]]

    def test_an_array(self) -> None:
        read = stored(np.arange(3))
        assert read == [0, 1, 2]

    def test_a_dict_of_columns(self) -> None:
        batch = {
            "text": ["a", "b"],
            "x": torch.arange(2),
            "more": {"y": np.arange(2), "z": TensorDict({"w": torch.arange(2)}, [2])},
        }
        read = stored(batch)
        assert isinstance(read, list)
        assert [row["text"] for row in read] == ["a", "b"]
        assert [int(row["x"]) for row in read] == [0, 1]
        assert [int(row["more"]["y"]) for row in read] == [0, 1]
        assert [int(row["more"]["z"]["w"]) for row in read] == [0, 1]

    def test_columns_must_be_as_long(self) -> None:
        with pytest.raises(RecordMismatch, match=r"one length, got \{'a': 2, 'b': 1\}"):
            ListStorage(2).check({"a": ["x", "y"], "b": ["x"]})

    def test_a_column_must_hold_one_value_a_record(self) -> None:
        with pytest.raises(RecordMismatch, match="'a': expected one value a record, got one str"):
            ListStorage(2).check({"a": "xy"})

    def test_a_single_tensordict_belongs_to_add(self) -> None:
        with pytest.raises(RecordMismatch, match="use add for a single record"):
            ListStorage(2).check(steps(1)[0])

    @pytest.mark.parametrize("batch", ["text", 3, ("a", "b"), torch.tensor(1), None])
    def test_what_is_no_batch(self, batch: object) -> None:
        with pytest.raises(RecordMismatch, match=f"got {type(batch).__name__}$"):
            ListStorage(2).check(batch)


class TestStacking:
    """As TorchRL's users know it, observed on 0.14.1."""

    def ragged(self) -> list[TensorDict]:
        return [TensorDict({"a": torch.arange(n)}) for n in (2, 3)]

    def test_records_of_different_shapes_come_back_as_a_lazy_stack(self) -> None:
        read = stored(self.ragged())
        assert isinstance(read, LazyStackedTensorDict)
        assert [row["a"].tolist() for row in read.unbind(0)] == [[0, 1], [0, 1, 2]]

    def test_a_ragged_lazy_stack_comes_back_as_one(self) -> None:
        read = stored(lazy_stack(self.ragged()))
        assert isinstance(read, LazyStackedTensorDict)
        assert [row["a"].tolist() for row in read.unbind(0)] == [[0, 1], [0, 1, 2]]

    def test_dtypes_are_not_promoted(self) -> None:
        dtypes = [torch.float32, torch.float64]
        read = stored([TensorDict({"a": torch.zeros(1, dtype=dtype)}) for dtype in dtypes])
        assert isinstance(read, LazyStackedTensorDict)
        assert [row["a"].dtype for row in read.unbind(0)] == dtypes
        read = stored([torch.zeros(1, dtype=dtype) for dtype in dtypes])
        assert isinstance(read, list)
        assert [row.dtype for row in read] == dtypes

    def test_records_with_different_keys(self) -> None:
        read = stored([TensorDict({"a": torch.ones(1)}), TensorDict({"b": torch.ones(1)})])
        assert isinstance(read, LazyStackedTensorDict)
        assert [list(row.keys()) for row in read.unbind(0)] == [["a"], ["b"]]

    def test_tensors_of_one_shape_are_stacked(self) -> None:
        read = stored([torch.tensor([1, 2]), torch.tensor([3, 4])])
        assert isinstance(read, torch.Tensor)
        assert read.tolist() == [[1, 2], [3, 4]]

    def test_tensors_of_different_shapes_come_back_as_a_list(self) -> None:
        read = stored([torch.zeros(2), torch.zeros(3)])
        assert isinstance(read, list)
        assert [len(row) for row in read] == [2, 3]

    def test_a_tensorclass_with_text(self) -> None:
        records = [step(torch.ones(2), torch.tensor(n), f"step {n}", size=[]) for n in range(2)]
        read = step_of(stored(records))
        assert list(read.note) == ["step 0", "step 1"]
        assert read.reward.tolist() == [0, 1]


def inside(item: object) -> torch.Tensor:
    """Return the tensor that is, or is in, a record."""
    if isinstance(item, np.ndarray):
        return torch.from_numpy(item)
    if isinstance(item, dict | TensorDict):
        item = item["x"]
    if isinstance(item, list | tuple):
        item = item[-1]
    assert isinstance(item, torch.Tensor)
    return item


def only(storage: ListStorage) -> torch.Tensor:
    """Return the tensor in the only record of a storage, without its batch dimension."""
    batch = storage.read(slots(0))
    if isinstance(batch, list):
        return inside(batch[0])
    return inside(batch)[0]


COPIED: dict[str, Callable[[], object]] = {
    "tensor": lambda: torch.zeros(2),
    "array": lambda: np.zeros(2),
    "TensorDict": lambda: TensorDict({"x": torch.zeros(2)}),
    "dict": lambda: {"x": torch.zeros(2)},
    "list": lambda: [torch.zeros(2)],
    "tuple": lambda: ("a", torch.zeros(2)),
}


@pytest.mark.parametrize("make", COPIED.values(), ids=COPIED.keys())
class TestL33:
    """What can be changed in place is copied both ways."""

    def test_changing_what_was_written_changes_no_record(self, make: Callable[[], object]) -> None:
        storage = ListStorage(1)
        record = make()
        storage.write(slots(0), storage.check([record]))
        inside(record).fill_(7)
        assert only(storage).tolist() == [0.0, 0.0]

    def test_changing_a_batch_changes_no_record(self, make: Callable[[], object]) -> None:
        storage = ListStorage(1)
        storage.write(slots(0), storage.check([make()]))
        only(storage).fill_(7)
        assert only(storage).tolist() == [0.0, 0.0]


def test_a_ragged_batch_is_a_copy_too() -> None:
    storage = ListStorage(2)
    storage.write(slots(0, 1), storage.check([TensorDict({"x": torch.zeros(n)}) for n in (1, 2)]))
    read = storage.read(slots(0, 1))
    assert isinstance(read, LazyStackedTensorDict)
    for row in read.unbind(0):
        row["x"].fill_(7)
    again = storage.read(slots(1))
    assert isinstance(again, TensorDict)
    assert again["x"].tolist() == [[0.0, 0.0]]


def test_no_gradient_history_is_kept() -> None:
    weight = torch.ones(2, requires_grad=True)
    read = stored([weight * 2])
    assert isinstance(read, torch.Tensor)
    assert not read.requires_grad
    assert read.tolist() == [[2.0, 2.0]]


def test_rows_of_another_storage_are_refused() -> None:
    objects, tensors = ListStorage(2), TensorStorage(2)
    with pytest.raises(TypeError, match="checked by a storage of another class"):
        objects.write(slots(0, 1), tensors.check(steps(2)))
    with pytest.raises(TypeError, match="checked by a storage of another class"):
        tensors.write(slots(0), objects.check(["x"]))


def test_rows_and_slots_must_be_as_many() -> None:
    storage = ListStorage(2)
    with pytest.raises(ValueError, match="expected as many slots as rows, got 1 for 2"):
        storage.write(slots(0), storage.check(["a", "b"]))
    assert storage.read(slots(0, 1)) == [None, None]


def test_capacity() -> None:
    assert ListStorage(3).capacity == 3
    with pytest.raises(ValueError, match="capacity must be at least 1, got 0"):
        ListStorage(0)
