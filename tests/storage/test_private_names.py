"""Two private names of tensordict are used for speed; all works without them too."""

import pytest
import torch
from forebay import _schema
from forebay._forms import _inner
from forebay._tensor_storage import TensorStorage
from tensordict import TensorDict

from tests.storage.support import put, same, slots, step, step_of, steps, taken


def test_batches_without_the_fast_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _schema._tensordict == TensorDict._new_unsafe, "else nothing is fast any more"
    monkeypatch.setattr(_schema, "_tensordict", _schema._new_tensordict)
    storage = TensorStorage(3)
    put(storage, slots(0, 2), steps(2))
    assert same(taken(storage, 0, 2), steps(2))
    storage = TensorStorage(1)
    put(storage, slots(0), step(torch.ones(1, 2), torch.tensor([3.0]), size=[1]))
    assert step_of(storage.read(slots(0))).reward.tolist() == [3.0]


class Elsewhere:
    """A tensorclass that keeps its tensors under names that nobody knows."""

    def to_tensordict(self, *, retain_none: bool) -> TensorDict:
        assert not retain_none
        return steps(2)


def test_tensorclasses_that_keep_their_tensors_elsewhere() -> None:
    inner = _inner(Elsewhere())
    assert isinstance(inner, TensorDict)
    assert same(inner, steps(2))


def test_a_tensorclass_is_opened_without_a_copy() -> None:
    batch = step(torch.ones(1, 2), torch.tensor([3.0]), size=[1])
    inner = _inner(batch)
    assert isinstance(inner, TensorDict)
    assert inner["reward"].data_ptr() == batch.reward.data_ptr()
