"""What the storage tests share: a record with all sorts of leaves, and ways to look at batches."""

import numpy as np
import torch
from forebay._stores import Ints
from forebay._tensor_storage import TensorStorage
from tensordict import TensorDict, tensorclass


@tensorclass
class Step:
    """A record as a class."""

    obs: torch.Tensor
    reward: torch.Tensor
    note: str | None = None


def step(
    obs: torch.Tensor, reward: torch.Tensor, note: str | None = None, *, size: list[int]
) -> TensorDict:
    """Return a Step, which offers all that a TensorDict does."""
    # The decorator writes the constructor, which type checkers cannot see.
    return Step(obs=obs, reward=reward, note=note, batch_size=size)  # type: ignore[call-arg]  # see above


def slots(*numbers: int) -> Ints:
    """Return slot numbers as the ledger hands them over."""
    return np.array(numbers, dtype=np.int64)


def steps(n: int, start: int = 0) -> TensorDict:
    """Return n records whose leaves all tell which record they are of, counted from `start`."""
    number = torch.arange(start, start + n)
    return TensorDict(
        {
            "obs": number.to(torch.float32).unsqueeze(1).expand(n, 4).clone(),
            "action": number.clone(),
            "done": number % 2 == 0,
            "next": {"obs": (number + 0.5).unsqueeze(1).expand(n, 4).clone()},
        },
        batch_size=[n],
    )


def put(storage: TensorStorage, where: Ints, batch: object, **options: bool | int) -> None:
    """Check and write a batch."""
    dim_extend = int(options.get("dim_extend", 0))
    rows = storage.check(batch, dim_extend=dim_extend, cast=bool(options.get("cast", False)))
    storage.write(where, rows)


def taken(storage: TensorStorage, *numbers: int) -> TensorDict:
    """Return the records in slots, which must be a TensorDict."""
    batch = storage.read(slots(*numbers))
    assert type(batch) is TensorDict
    return batch


def step_of(batch: object) -> TensorDict:
    """Return a batch, which must be a Step."""
    assert type(batch) is Step
    return batch


def same(left: TensorDict, right: TensorDict) -> bool:
    """Tell whether two TensorDicts have the same keys, dtypes, shapes and values."""
    keys = set(left.keys(include_nested=True, leaves_only=True))
    return (
        keys == set(right.keys(include_nested=True, leaves_only=True))
        and left.batch_size == right.batch_size
        and all(
            left[key].dtype == right[key].dtype
            and left[key].shape == right[key].shape
            and torch.equal(left[key], right[key])
            for key in keys
        )
    )
