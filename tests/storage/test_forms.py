"""Every form in which records come in is stored as the same records."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from forebay._errors import RecordMismatch
from forebay._tensor_storage import TensorStorage
from tensordict import LazyStackedTensorDict, TensorDict, TensorDictParams, lazy_stack

from tests.storage.support import Step, put, same, slots, step, step_of, steps, taken

BATCH = steps(3)


def as_arrays(batch: TensorDict) -> dict[str, object]:
    return {
        key: as_arrays(value) if isinstance(value, TensorDict) else value.numpy()
        for key, value in batch.items()
    }


def read_only(batch: TensorDict) -> dict[str, object]:
    arrays = as_arrays(batch)
    for array in arrays.values():
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    return arrays


def lazy(batch: TensorDict) -> LazyStackedTensorDict:
    return lazy_stack([batch[i].clone() for i in range(len(batch))])


def lazy_of_lazy(batch: TensorDict) -> LazyStackedTensorDict:
    """Return a stack whose nested entries are stacks of their own."""
    stack = lazy(batch)
    return lazy_stack([TensorDict(dict(stack[i].items())) for i in range(len(batch))])


def with_history(batch: TensorDict) -> TensorDict:
    return batch.clone().apply(
        lambda leaf: leaf.requires_grad_() if leaf.is_floating_point() else leaf
    )


FORMS: dict[str, Callable[[TensorDict], object]] = {
    "TensorDict": lambda batch: batch,
    "TensorDict with gaps in memory": lambda batch: torch.stack([batch, batch], 1)[:, 0],
    "TensorDict that is locked": lambda batch: batch.clone().lock_(),
    "TensorDict on disk": lambda batch: batch.clone().memmap_(),
    "TensorDict as parameters": lambda batch: TensorDictParams(batch.clone(), no_convert=True),
    "part of a TensorDict": lambda batch: batch._get_sub_tensordict(slice(None)),
    "TensorDict with a gradient history": with_history,
    "dict of tensors": lambda batch: batch.to_dict(),
    "dict of arrays": as_arrays,
    "dict of read-only arrays": read_only,
    "dict of tensors and arrays": lambda batch: {**as_arrays(batch), "obs": batch["obs"]},
    "dict with a TensorDict in it": lambda batch: dict(batch.items()),
    "list of TensorDicts": lambda batch: list(batch.unbind(0)),
    "list of dicts of tensors": lambda batch: [row.to_dict() for row in batch.unbind(0)],
    "list of dicts of arrays": lambda batch: [as_arrays(row) for row in batch.unbind(0)],
    "list of dicts with numbers": lambda batch: [
        {**row.to_dict(), "action": row["action"].item(), "done": bool(row["done"])}
        for row in batch.unbind(0)
    ],
    "lazy stack": lazy,
    "lazy stack of lazy stacks": lazy_of_lazy,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("fixed", [False, True], ids=["first write", "later write"])
def test_all_forms_give_the_same_records(form: Callable[[TensorDict], object], fixed: bool) -> None:
    storage = TensorStorage(8, example=BATCH[0] if fixed else None)
    put(storage, slots(4, 1, 6), form(BATCH))
    assert same(taken(storage, 4, 1, 6), BATCH)


@pytest.mark.parametrize(
    "record",
    [BATCH[1], BATCH[1].to_dict(), as_arrays(BATCH[1])],
    ids=["TensorDict", "dict of tensors", "dict of arrays"],
)
def test_a_single_record_is_a_list_of_one(record: object) -> None:
    storage = TensorStorage(2)
    rows = storage.check([record], dim_extend=1)
    assert len(rows) == 1
    storage.write(slots(1), rows)
    assert same(taken(storage, 1), BATCH[1:2])


class TestDimensions:
    """What TorchRL does with `[B, T]` batches in a two-dimensional storage, observed on 0.14.1."""

    def batch(self) -> TensorDict:
        return TensorDict({"a": torch.arange(6).reshape(2, 3)}, batch_size=[2, 3])

    def test_batch_first(self) -> None:
        storage = TensorStorage(6)
        rows = storage.check(self.batch())
        assert len(rows) == 6
        storage.write(slots(0, 1, 2, 3, 4, 5), rows)
        assert taken(storage, 0, 1, 2, 3, 4, 5)["a"].tolist() == [0, 1, 2, 3, 4, 5]

    def test_time_first(self) -> None:
        storage = TensorStorage(6)
        put(storage, slots(0, 1, 2, 3, 4, 5), self.batch(), dim_extend=1)
        assert taken(storage, 0, 1, 2, 3, 4, 5)["a"].tolist() == [0, 3, 1, 4, 2, 5]

    def test_three_dimensions(self) -> None:
        batch = TensorDict({"a": torch.arange(12).reshape(2, 3, 2)}, batch_size=[2, 3, 2])
        storage = TensorStorage(12)
        put(storage, slots(*range(12)), batch, dim_extend=1)
        expected = batch["a"].transpose(0, 1).flatten().tolist()
        assert taken(storage, *range(12))["a"].tolist() == expected

    def test_a_lazy_stack_along_time(self) -> None:
        batch = lazy_stack([TensorDict({"a": torch.tensor([t, t + 3])}, [2]) for t in range(3)], 1)
        storage = TensorStorage(6)
        put(storage, slots(0, 1, 2, 3, 4, 5), batch)
        assert taken(storage, 0, 1, 2, 3, 4, 5)["a"].tolist() == [0, 1, 2, 3, 4, 5]

    def test_the_dimensions_of_a_dict_are_those_up_to_dim_extend(self) -> None:
        batch = {"a": torch.arange(6).reshape(2, 3), "b": np.arange(12).reshape(2, 3, 2)}
        storage = TensorStorage(6)
        put(storage, slots(0, 1, 2, 3, 4, 5), batch, dim_extend=1)
        read = taken(storage, 0, 1, 2, 3, 4, 5)
        assert read["a"].tolist() == [0, 3, 1, 4, 2, 5]
        assert read["b"].tolist() == [[0, 1], [6, 7], [2, 3], [8, 9], [4, 5], [10, 11]]

    def test_dimensions_of_the_example_belong_to_the_record(self) -> None:
        group = TensorDict({"a": torch.zeros(3, dtype=torch.int64)}, batch_size=[3])
        storage = TensorStorage(4, example=group)
        put(storage, slots(0, 1), self.batch())
        read = taken(storage, 1, 0)
        assert read.batch_size == (2, 3)
        assert read["a"].tolist() == [[3, 4, 5], [0, 1, 2]]

    def test_a_nested_batch_size_comes_back(self) -> None:
        agents = TensorDict({"obs": torch.arange(12).reshape(2, 3, 2)}, batch_size=[2, 3])
        batch = TensorDict({"agents": agents, "reward": torch.zeros(2)}, batch_size=[2])
        storage = TensorStorage(2)
        put(storage, slots(0, 1), batch)
        read = taken(storage, 1)
        assert read["agents"].batch_size == (1, 3)
        assert read["agents", "obs"].tolist() == [[[6, 7], [8, 9], [10, 11]]]

    @pytest.mark.parametrize("batch", [steps(3), {"a": torch.zeros(3)}], ids=["TensorDict", "dict"])
    def test_a_missing_dimension_is_named(self, batch: object) -> None:
        with pytest.raises(RecordMismatch, match=r"batch dimension 1 \(dim_extend\), got .* \[3\]"):
            TensorStorage(4).check(batch, dim_extend=1)

    def test_dim_extend_counts_from_the_front(self) -> None:
        with pytest.raises(ValueError, match="dim_extend must be at least 0, got -1"):
            TensorStorage(4).check(self.batch(), dim_extend=-1)


class TestTensorclasses:
    def steps(self, n: int) -> TensorDict:
        number = torch.arange(n, dtype=torch.float32)
        return step(number.unsqueeze(1).expand(n, 2), -number, size=[n])

    @pytest.mark.parametrize("form", ["batch", "list", "lazy stack"])
    def test_the_same_class_comes_back(self, form: str) -> None:
        batch = self.steps(3)
        records = [batch[i] for i in range(3)]
        storage = TensorStorage(3)
        given = {"batch": batch, "list": records, "lazy stack": lazy_stack(records)}[form]
        put(storage, slots(0, 1, 2), given)
        read = step_of(storage.read(slots(2, 0)))
        assert read.batch_size == (2,)
        assert read.obs.tolist() == [[2.0, 2.0], [0.0, 0.0]]
        assert read.reward.tolist() == [-2.0, 0.0]
        assert read.note is None

    def test_the_first_write_decides_for_the_class(self) -> None:
        storage = TensorStorage(2)
        put(storage, slots(0), self.steps(1))
        put(storage, slots(1), {"obs": torch.full((1, 2), 7.0), "reward": torch.ones(1)})
        read = step_of(storage.read(slots(1)))
        assert read.obs.tolist() == [[7.0, 7.0]]

    def test_a_nested_class_comes_back(self) -> None:
        storage = TensorStorage(2)
        put(storage, slots(0, 1), TensorDict({"step": self.steps(2)}, batch_size=[2]))
        read = taken(storage, 1)
        assert type(read["step"]) is Step
        assert read["step"].reward.tolist() == [-1.0]

    def test_a_plain_field_needs_a_list_storage(self) -> None:
        batch = self.steps(2)
        batch.note = "hello"
        with pytest.raises(RecordMismatch, match=r"'note': .*ListStorage"):
            TensorStorage(2).check(batch)


class TestNumbers:
    """Python numbers have no dtype: they take the leaf's if it is of their kind."""

    def test_they_take_torchs_default_in_a_new_leaf(self) -> None:
        storage = TensorStorage(1, example={"f": 1.5, "i": 2, "b": True})
        put(storage, slots(0), [{"f": 0.1, "i": -7, "b": True}])
        read = taken(storage, 0)
        assert {key: value.dtype for key, value in read.items()} == {
            "f": torch.float32,
            "i": torch.int64,
            "b": torch.bool,
        }
        assert read["i"].tolist() == [-7]
        assert read["b"].tolist() == [True]
        assert torch.equal(read["f"], torch.tensor([0.1]))

    def test_they_take_the_dtype_of_the_leaf(self) -> None:
        example = {"f": np.float64(0), "i": np.uint8(0)}
        storage = TensorStorage(2, example=example)
        put(storage, slots(0, 1), [{"f": 0.1, "i": 255}, {"f": 1, "i": 0}])
        read = taken(storage, 0, 1)
        assert read["f"].dtype == torch.float64
        assert read["f"].tolist() == [0.1, 1.0]
        assert read["i"].dtype == torch.uint8
        assert read["i"].tolist() == [255, 0]

    @pytest.mark.parametrize(
        ("dtype", "number", "got"),
        [
            (torch.uint8, 256, "int64"),
            (torch.uint8, -1, "int64"),
            (torch.uint8, True, "bool"),
            (torch.int64, 0.5, "float32"),
            (torch.bool, 1, "int64"),
            (torch.float32, True, "bool"),
        ],
    )
    def test_a_number_of_another_kind_is_refused(
        self, dtype: torch.dtype, number: float, got: str
    ) -> None:
        storage = TensorStorage(1, example={"x": torch.zeros((), dtype=dtype)})
        with pytest.raises(RecordMismatch, match=rf"'x': expected .*\[\], got {got}\[\]"):
            storage.check([{"x": number}])


@pytest.mark.parametrize(
    "batch",
    [
        [],
        {"obs": torch.zeros(0, 4)},
        steps(0),
        TensorDict({}, batch_size=[0]),
        TensorDict({"wrong": torch.zeros(0, 3)}, batch_size=[0, 3]),
        TensorDict({"wrong": torch.zeros(3, 0)}, batch_size=[3, 0]),
    ],
    ids=["list", "dict", "TensorDict", "without leaves", "[0, 3]", "[3, 0]"],
)
@pytest.mark.parametrize("fixed", [False, True], ids=["first write", "later write"])
def test_an_empty_batch_is_no_rows_and_fixes_nothing(batch: object, fixed: bool) -> None:
    storage = TensorStorage(4, example=steps(1)[0] if fixed else None)
    rows = storage.check(batch)
    assert len(rows) == 0
    storage.write(slots(), rows)
    put(storage, slots(2), steps(1, start=5))
    assert same(taken(storage, 2), steps(1, start=5))
    assert same(taken(storage), steps(0))
