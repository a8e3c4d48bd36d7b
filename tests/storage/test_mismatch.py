"""A batch that differs from a storage's records is refused whole, and every leaf is named."""

from collections import UserDict
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from forebay._errors import RecordMismatch
from forebay._tensor_storage import TensorStorage
from tensordict import NonTensorData, TensorDict, lazy_stack

from tests.storage.support import put, same, slots, steps, taken

HEAD = "the batch cannot be stored, nothing changed:"


def changed(**leaves: object) -> dict[str, object]:
    """Return two good records with some leaves replaced; None takes one away."""
    batch = {**dict(steps(2).items()), **leaves}
    return {key: value for key, value in batch.items() if value is not None}


def refusal(batch: object, *, cast: bool = False, example: object = None) -> list[str]:
    """Return what a storage with good records says about a batch, a sentence a leaf."""
    storage = TensorStorage(4, example=steps(1)[0] if example is None else example)
    if example is None:
        put(storage, slots(0, 1, 2, 3), steps(4))
    with pytest.raises(RecordMismatch) as caught:
        storage.check(batch, cast=cast)
    if example is None:
        assert same(taken(storage, 0, 1, 2, 3), steps(4))
    head, *sentences = str(caught.value).splitlines()
    assert head == HEAD
    return [sentence.strip() for sentence in sentences]


CASES: dict[str, tuple[dict[str, object], str]] = {
    "missing key": (
        changed(action=None),
        "'action': expected int64[], got nothing",
    ),
    "missing nested key": (
        changed(next={}),
        "('next', 'obs'): expected float32[4], got nothing",
    ),
    "extra key": (
        changed(extra=torch.zeros(2, 3, dtype=torch.int8)),
        "'extra': expected no such leaf, got int8[3]",
    ),
    "extra nested key": (
        changed(next={"obs": torch.zeros(2, 4), "more": np.zeros(2)}),
        "('next', 'more'): expected no such leaf, got float64[]",
    ),
    "shape": (
        changed(obs=torch.zeros(2, 5)),
        "'obs': expected float32[4], got float32[5]",
    ),
    "too many dimensions": (
        changed(action=torch.zeros(2, 1, dtype=torch.int64)),
        "'action': expected int64[], got int64[1]",
    ),
    "dtype that a cast would convert": (
        changed(obs=torch.zeros(2, 4, dtype=torch.float64)),
        "'obs': expected float32[4], got float64[4]; cast=True converts it",
    ),
    "dtype of another kind": (
        changed(action=torch.zeros(2)),
        "'action': expected int64[], got float32[]",
    ),
    "dtype and shape": (
        changed(obs=torch.zeros(2, 5, dtype=torch.float64)),
        "'obs': expected float32[4], got float64[5]",
    ),
    "array of another dtype": (
        changed(obs=np.zeros((2, 4))),
        "'obs': expected float32[4], got float64[4]; cast=True converts it",
    ),
    "device": (
        changed(obs=torch.zeros(2, 4, device="meta")),
        "'obs': expected a tensor on cpu, got one on meta",
    ),
    "another length": (
        changed(action=torch.zeros(3, dtype=torch.int64)),
        "'action': expected the batch dimensions [2] of the others, got the shape [3]",
    ),
    "leaf in place of entries": (
        changed(next=torch.zeros(2)),
        "'next': expected no such leaf, got float32[]",
    ),
    "entries in place of a leaf": (
        changed(action={"x": torch.zeros(2)}),
        "('action', 'x'): expected no such leaf, got float32[]",
    ),
    "string": (
        changed(action="left"),
        "'action': expected a tensor of fixed shape, got str; ListStorage takes any object",
    ),
    "strings": (
        changed(action=["left", "right"]),
        "'action': expected a tensor of fixed shape, got list; ListStorage takes any object",
    ),
    "array of strings": (
        changed(action=np.array(["left", "right"])),
        "'action': expected a tensor of fixed shape, got an array of <U5; "
        "ListStorage takes any object",
    ),
    "number for the whole batch": (
        changed(action=1),
        "'action': expected a tensor of fixed shape, got the number 1; "
        "ListStorage takes any object",
    ),
    "nothing at all": (
        changed() | {"action": None},
        "'action': expected a tensor of fixed shape, got NoneType; ListStorage takes any object",
    ),
    "sparse tensor": (
        changed(obs=torch.zeros(2, 4).to_sparse()),
        "'obs': expected a tensor of fixed shape, got torch.float32 in layout torch.sparse_coo; "
        "ListStorage takes any object",
    ),
    "key that is no string": (
        changed() | {7: torch.zeros(2)},  # type: ignore[dict-item]  # the point of the test
        "expected keys that are strings, got 7",
    ),
}


@pytest.mark.parametrize(("batch", "sentence"), CASES.values(), ids=CASES.keys())
def test_each_difference_is_named(batch: dict[str, object], sentence: str) -> None:
    assert sentence in refusal(batch)


SINGLE = {name: case for name, case in CASES.items() if "in place of" not in name}


@pytest.mark.parametrize(("batch", "sentence"), SINGLE.values(), ids=SINGLE.keys())
def test_one_difference_is_one_sentence(batch: dict[str, object], sentence: str) -> None:
    assert refusal(batch) == [sentence]


def test_all_differences_are_named_at_once() -> None:
    batch = changed(obs=torch.zeros(2, 5), action=None, done="no", extra=torch.zeros(2))
    assert refusal(batch) == [
        "'done': expected a tensor of fixed shape, got str; ListStorage takes any object",
        "'obs': expected float32[4], got float32[5]",
        "'action': expected int64[], got nothing",
        "'extra': expected no such leaf, got float32[]",
    ]


class TestLedgerRows:
    """Failures of other buffers that cannot happen here."""

    @pytest.mark.parametrize(
        ("leaf", "got"),
        [
            (NonTensorData("hello", batch_size=[2]), "NonTensorData"),
            (["a", "b"], "NonTensorStack"),
        ],
    )
    @pytest.mark.parametrize("fixed", [False, True], ids=["first write", "later write"])
    def test_l05_a_leaf_that_cannot_be_stored_is_refused_by_check(
        self, leaf: object, got: str, fixed: bool
    ) -> None:
        storage = TensorStorage(4, example=steps(1)[0] if fixed else None)
        batch = steps(2)
        batch["text"] = leaf
        with pytest.raises(RecordMismatch, match=f"'text': .* got {got}; ListStorage takes any"):
            storage.check(batch)
        put(storage, slots(0, 1), steps(2))
        assert same(taken(storage, 0, 1), steps(2))

    def test_l20_an_extra_key_in_a_tensordict(self) -> None:
        batch = steps(2)
        batch["extra"] = torch.zeros(2)
        assert refusal(batch) == ["'extra': expected no such leaf, got float32[]"]

    def test_l20_a_missing_key_in_a_tensordict(self) -> None:
        batch = steps(2).exclude("action")
        assert refusal(batch) == ["'action': expected int64[], got nothing"]

    def test_l20_one_record_of_a_list_has_an_extra_key(self) -> None:
        first, second = steps(2).unbind(0)
        second = second.clone().set("extra", torch.zeros(3))
        assert refusal([first, second]) == ["'extra': record 1 has it, record 0 has not"]

    def test_l20_one_record_of_a_lazy_stack_lacks_a_key(self) -> None:
        first, second = steps(2).unbind(0)
        stack = lazy_stack([first, second.exclude(("next", "obs"))])
        assert refusal(stack) == ["('next', 'obs'): record 0 has it, record 1 has not"]

    def test_l35_a_shape_error_in_a_later_leaf_writes_nothing(self) -> None:
        batch = TensorDict({**dict(steps(2, 50).items()), "done": torch.ones(2, 2) > 0}, [2])
        assert refusal(batch) == ["'done': expected bool[], got bool[2]"]


class TestUnevenRecords:
    RAGGED = "; pad to one length and store the length too, or use ListStorage"

    def test_shapes(self) -> None:
        records = [{"x": torch.zeros(2)}, {"x": torch.zeros(3)}]
        assert refusal(records, example={"x": torch.zeros(2)}) == [
            f"'x': expected the same in all records, got float32[2] and float32[3]{self.RAGGED}"
        ]

    def test_dtypes_are_not_promoted(self) -> None:
        for records in (
            [{"x": torch.zeros(2)}, {"x": torch.zeros(2, dtype=torch.float64)}],
            [{"x": np.zeros(2, np.float32)}, {"x": np.zeros(2)}],
        ):
            assert refusal(records, example={"x": torch.zeros(2)}) == [
                f"'x': expected the same in all records, got float32[2] and float64[2]{self.RAGGED}"
            ]

    def test_a_ragged_lazy_stack(self) -> None:
        stack = lazy_stack([TensorDict({"x": torch.zeros(n)}) for n in (2, 3)])
        assert refusal(stack, example={"x": torch.zeros(2)}) == [
            f"'x': expected the same in all records, got float32[2] and float32[3]{self.RAGGED}"
        ]

    def test_a_ragged_stack_inside_a_stack(self) -> None:
        ragged = lazy_stack([TensorDict({"x": torch.zeros(n)}) for n in (2, 3)])
        records = [TensorDict({"inner": ragged.clone()}, [2]) for _ in range(2)]
        (sentence,) = refusal(records, example={"x": torch.zeros(2)})
        assert sentence.startswith("a lazy stack is uneven; ListStorage takes it: ")

    def test_types(self) -> None:
        records = [{"x": torch.zeros(2)}, {"x": np.zeros(2)}]
        assert refusal(records, example={"x": torch.zeros(2)}) == [
            "'x': expected one type in all records, got Tensor and ndarray"
        ]

    def test_a_number_beyond_64_bits(self) -> None:
        assert refusal([{"x": 2**63}], example={"x": 1}) == [
            "'x': expected a tensor of fixed shape, got the number 9223372036854775808; "
            "ListStorage takes any object"
        ]

    def test_a_record_that_is_none(self) -> None:
        (sentence,) = refusal([{"x": 1}, "two"], example={"x": 1})
        assert sentence == (
            "record 1: expected a TensorDict, a tensorclass or a dict of tensors or arrays, got "
            "str; ListStorage takes any object"
        )

    def test_a_nested_tensor(self) -> None:
        parts = [torch.zeros(2), torch.zeros(3)]
        nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
        assert refusal({"x": torch.zeros(2), "y": nested}, example={"x": 1.0}) == [
            "'y': expected a tensor of fixed shape, got a ragged (nested) tensor; "
            "ListStorage takes any object"
        ]

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
    def test_a_nested_tensor_in_a_lazy_stack(self) -> None:
        nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
        stack = lazy_stack([TensorDict({"x": nested}, batch_size=[2])], 1)
        assert refusal(stack, example={"x": 1.0}) == [
            "'x': expected a tensor of fixed shape, got a ragged (nested) tensor; "
            "ListStorage takes any object"
        ]


@dataclass
class Plain:
    """A class that is no container of tensors."""

    x: int = 0


class TestNoBatch:
    @pytest.mark.parametrize(
        ("batch", "got"),
        [
            (torch.zeros(3), "Tensor"),
            (np.zeros(3), "an array of float64"),
            ("text", "str"),
            (None, "NoneType"),
            (Plain(), "Plain"),
            (iter([{"x": 1}]), "list_iterator"),
            (NonTensorData("x", batch_size=[2]), "NonTensorData"),
        ],
    )
    def test_other_objects_are_refused(self, batch: object, got: str) -> None:
        assert refusal(batch) == [
            "expected a TensorDict, a tensorclass, a dict of tensors or arrays, or a list of "
            f"records, got {got}"
        ]

    def test_a_tuple_could_be_either(self) -> None:
        (sentence,) = refusal((steps(2)[0], steps(2)[1]))
        assert sentence.endswith("got tuple; pass list(batch) if these are records")

    @pytest.mark.parametrize("batch", [steps(1)[0], {"x": torch.zeros(())}])
    def test_a_single_record_belongs_to_add(self, batch: object) -> None:
        (sentence,) = refusal(batch)
        assert sentence.endswith(
            "expected a batch dimension, got none; set batch_size, or use add for a single record"
        )

    @pytest.mark.parametrize("batch", [{}, TensorDict({}, [3]), [{}], {"a": {}}])
    def test_a_first_batch_without_leaves(self, batch: object) -> None:
        with pytest.raises(RecordMismatch, match="expected at least one leaf, got none"):
            TensorStorage(4).check(batch)

    def test_a_later_batch_without_leaves(self) -> None:
        assert refusal({}, example={"x": 1}) == ["'x': expected int64[], got nothing"]

    def test_other_mappings_will_do(self) -> None:
        storage = TensorStorage(1)
        put(storage, slots(0), UserDict(x=torch.tensor([3])))
        assert taken(storage, 0)["x"].tolist() == [3]


class TestCast:
    @pytest.mark.parametrize(
        ("stored", "came"),
        [
            (torch.float32, torch.float64),
            (torch.bfloat16, torch.float32),
            (torch.float64, torch.int64),
            (torch.int32, torch.int64),
            (torch.int64, torch.bool),
        ],
    )
    def test_a_conversion_that_keeps_the_kind(self, stored: torch.dtype, came: torch.dtype) -> None:
        storage = TensorStorage(2, example={"x": torch.zeros(2, dtype=stored)})
        given = torch.tensor([[0, 1], [1, 0]]).to(came)
        put(storage, slots(1, 0), {"x": given}, cast=True)
        read = taken(storage, 1, 0)["x"]
        assert read.dtype == stored
        assert torch.equal(read, given.to(stored))

    def test_a_read_only_array(self) -> None:
        storage = TensorStorage(1, example={"x": torch.zeros(())})
        array = np.array([0.25])
        array.setflags(write=False)
        put(storage, slots(0), {"x": array}, cast=True)
        assert taken(storage, 0)["x"].tolist() == [0.25]

    def test_a_tensor_with_a_gradient_history(self) -> None:
        storage = TensorStorage(1, example={"x": torch.zeros(())})
        put(
            storage, slots(0), {"x": torch.ones(1, dtype=torch.float64).requires_grad_()}, cast=True
        )
        read = taken(storage, 0)["x"]
        assert read.tolist() == [1.0]
        assert not read.requires_grad

    def test_it_changes_no_kinds_and_no_shapes(self) -> None:
        batch = changed(action=torch.zeros(2), obs=torch.zeros(2, 5))
        assert refusal(batch, cast=True) == [
            "'obs': expected float32[4], got float32[5]",
            "'action': expected int64[], got float32[]",
        ]


def test_an_example_that_cannot_be_stored() -> None:
    with pytest.raises(RecordMismatch, match=r"'text': .*ListStorage"):
        TensorStorage(4, example={"text": "hello"})


@pytest.mark.parametrize(
    ("capacity", "error", "message"),
    [
        (0, ValueError, "capacity must be at least 1, got 0"),
        (2.5, TypeError, "capacity must be an int, got 2.5"),
        (True, TypeError, "capacity must be an int, got True"),
    ],
)
def test_capacity(capacity: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TensorStorage(capacity)


def test_other_devices() -> None:
    with pytest.raises(ValueError, match="keeps records in host memory, not on cuda:1"):
        TensorStorage(4, device="cuda:1")
    assert TensorStorage(4, device="cpu").device == torch.device("cpu")
