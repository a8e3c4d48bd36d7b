"""What the checkpoint tests share: states of all sorts, and a comparison that sees everything."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from forebay._arrays import Array, array_of
from forebay._checkpoint import write_checkpoint
from forebay._manifest import seal, unseal
from forebay._schema import Schema
from tensordict import LazyStackedTensorDict, NonTensorData, TensorDict, is_tensorclass

from tests.storage.support import step

State = dict[str, object]


class Source:
    """Rows of columns, handed out a few at a time; each chunk is spoilt once the next is asked for.

    Args:
        schema: of the rows.
        columns: all rows, one array a leaf.
        rows: how many to hand out at a time.
    """

    def __init__(self, schema: Schema, columns: list[Array], rows: int) -> None:
        self.schema = schema
        self.length = len(columns[0])
        self._columns = columns
        self._rows = rows

    def chunks(self) -> Iterator[list[Array]]:
        for start in range(0, self.length, self._rows):
            chunk = [column[start : start + self._rows].copy() for column in self._columns]
            yield chunk
            for array in chunk:
                array.view(np.uint8)[...] = 0xAA


def small_state(number: int = 0) -> State:
    """Return a state with a bit of everything that needs no pickle, and its number in it."""
    records = TensorDict({"obs": torch.arange(6.0).reshape(3, 2) + number, "done": torch.ones(3)})
    return {
        "number": number,
        "counters": {"admitted": 3, "large": 2**80, "nothing": None},
        "records": {"data": records.auto_batch_size_(1), "slots": torch.arange(3)},
        "queue": [step(torch.ones(2, 4), torch.zeros(2), "note", size=[2])],
    }


def same(a: object, b: object) -> bool:
    """Tell whether two values are alike in type, bits and all that is written of them."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        flags = a.requires_grad == b.requires_grad and b.is_leaf
        return flags and a.dtype == b.dtype and a.shape == b.shape and _bits(a) == _bits(b)
    if isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and str(a) == str(b))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict | OrderedDict) and isinstance(b, dict | OrderedDict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(same, a.values(), b.values()))
    if isinstance(a, TensorDict) and isinstance(b, TensorDict):
        return _frame(a) == _frame(b) and same(dict(a.items()), dict(b.items()))
    if isinstance(a, LazyStackedTensorDict) and isinstance(b, LazyStackedTensorDict):
        return a.stack_dim == b.stack_dim and same(list(a.tensordicts), list(b.tensordicts))
    if isinstance(a, NonTensorData) and isinstance(b, NonTensorData):
        return a.batch_size == b.batch_size and same(a.data, b.data)
    if is_tensorclass(a) and is_tensorclass(b):
        return same(vars(a)["_tensordict"], vars(b)["_tensordict"]) and same(
            vars(a)["_non_tensordict"], vars(b)["_non_tensordict"]
        )
    return bool(a == b)


def _bits(tensor: torch.Tensor) -> bytes:
    return array_of(tensor.detach()).tobytes()


def _frame(value: TensorDict) -> object:
    return (value.batch_size, value.names, value.device, value.is_locked)


def written(path: Path, state: State) -> dict[str, bytes]:
    """Write a state and return the files of the checkpoint, the lock left out."""
    write_checkpoint(path, state)
    return contents(path)


def contents(path: Path) -> dict[str, bytes]:
    """Return the files of a directory but the lock."""
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".lock"}


def resealed(path: Path, change: Callable[[str], str]) -> None:
    """Change the manifest of a checkpoint as text, and make its digest right again."""
    import hashlib

    manifest = path / "manifest.json"
    text = change(manifest.read_bytes()[:-79].decode())
    digest = hashlib.sha256(text.encode()).hexdigest()
    manifest.write_bytes(f'{text}"sha256": "{digest}"\n}}\n'.encode())


def with_state(path: Path, node: object) -> None:
    """Give a checkpoint another state, as JSON."""
    manifest = path / "manifest.json"
    manifest.write_bytes(seal(unseal(manifest.read_bytes())._replace(state=node)))
