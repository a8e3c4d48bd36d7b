"""What is no record at all is refused with what was expected and what came."""

import pytest
import torch
from forebay import BlockingReplayBuffer, ListStorage, RecordMismatch, TensorStorage

from tests.storage.support import steps

EXPECTED = "expected a TensorDict, a tensorclass or a dict of tensors or arrays, got"


def buffer(fixed: bool) -> BlockingReplayBuffer:
    """Return a buffer whose schema is fixed by an example, or still open."""
    return BlockingReplayBuffer(TensorStorage(4, example=steps(1)[0] if fixed else None))


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ([torch.ones(3)], f"record 0: {EXPECTED} Tensor; ListStorage takes any object"),
        ([None], f"record 0: {EXPECTED} NoneType; ListStorage takes any object"),
        ([1, 2], f"record 0: {EXPECTED} the number 1; ListStorage takes any object"),
        ([steps(1)[0], "two"], f"record 1: {EXPECTED} str; ListStorage takes any object"),
    ],
)
def test_a_list_of_no_records(fixed: bool, batch: list[object], sentence: str) -> None:
    own = buffer(fixed)
    with pytest.raises(RecordMismatch, match="nothing changed") as caught:
        own.extend(batch)
    assert str(caught.value).splitlines()[1:] == [f"  {sentence}"]
    assert own.extend(steps(2)).tolist() == [0, 1]


def test_adding_what_is_no_record() -> None:
    with pytest.raises(RecordMismatch, match=f"record 0: {EXPECTED} Tensor"):
        buffer(fixed=False).add(torch.ones(3))


@pytest.mark.parametrize("example", [torch.ones(3), 5, [steps(1)[0]]])
def test_an_example_that_is_no_record(example: object) -> None:
    with pytest.raises(RecordMismatch, match=f"example must be one record: {EXPECTED}"):
        TensorStorage(4, example=example)


@pytest.mark.parametrize("storage", [TensorStorage(4), ListStorage(4)])
def test_none_is_no_batch(storage: TensorStorage | ListStorage) -> None:
    """Only a write transform may say with it that nothing is left."""
    with pytest.raises(RecordMismatch, match="expected a batch of records, got None"):
        BlockingReplayBuffer(storage).extend(None)
    with pytest.raises(RecordMismatch, match="expected a batch of records, got None"):
        BlockingReplayBuffer(storage, write_transform=lambda batch: batch).extend(None)
    dropping = BlockingReplayBuffer(storage, write_transform=lambda batch: None)
    assert dropping.extend(steps(1)).tolist() == []


def test_none_is_a_record_of_a_list() -> None:
    own = BlockingReplayBuffer(ListStorage(2))
    assert own.add(None) == 0
    assert own.sample(1) == [None]
