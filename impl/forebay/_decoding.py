"""A state from the JSON and the tensors of a checkpoint; see `_encoding`.

By now every byte is known to be as it was written. By whom is not known: so each node is looked at
as if it came from a stranger, and nothing is imported or unpickled on its word.
"""

import base64
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import torch
from tensordict import (
    LazyStackedTensorDict,
    NonTensorData,
    NonTensorStack,
    TensorDict,
    TensorDictBase,
    is_tensorclass,
)

from forebay._arrays import Array, array_dtype, tensor_of
from forebay._encoding import Place, find_class, spoken
from forebay._manifest import NAME, Damaged, Unusable
from forebay._tensor_file import Look, Stored, can_store, stored_as

Fields = Mapping[str, object]


class Decoder:
    """Turns JSON into the state that it was made from.

    Args:
        tensors: what the files hold, by file and name; each tensor is taken over.
        objects: what was pickled.
    """

    def __init__(self, tensors: Mapping[str, dict[str, Stored]], objects: Sequence[object]) -> None:
        self._tensors = tensors
        self._objects = objects
        self._kinds: dict[str, Callable[[object, Place], object]] = {
            "$int": lambda node, _: int(_text(node), 16),
            "$float": lambda node, _: _float(_text(node)),
            "$bytes": lambda node, _: base64.b64decode(_text(node), validate=True),
            "$tuple": lambda node, place: tuple(self._list(node, place)),
            "$dict": lambda node, place: dict(self._pairs(node, place)),
            "$ordered": lambda node, place: OrderedDict(self._pairs(node, place)),
            "$tensor": self._tensor,
            "$array": lambda node, _: self._elements(_table(node))[0],
            "$scalar": lambda node, _: self._elements(_table(node))[0][()],
            "$tensordict": self._tensordict,
            "$nontensor": self._nontensor,
            "$stack": self._stack,
            "$nontensorstack": self._nontensor_stack,
            "$tensorclass": self._tensorclass,
            "$object": lambda node, _: self._objects[_number(node)],
        }

    def decode(self, node: object, place: Place = ()) -> object:
        """Return the value that a node stands for.

        Raises:
            Damaged: the node is none.
        Unusable: it needs a module that is not imported.
        """
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return self._list(node, place)
        table = _table(node)
        marks = [key for key in table if key.startswith("$")]
        if not marks:
            return {key: self.decode(entry, (*place, key)) for key, entry in table.items()}
        kind = self._kinds.get(marks[0])
        if kind is None or len(table) != 1:
            _malformed(place, f"has the entries {sorted(table)}")
        try:
            return kind(table[marks[0]], place)
        except Unusable:
            raise
        # What a stranger has written can go wrong in any way that torch and tensordict know.
        except Exception as error:
            _malformed(place, f"is no {marks[0]}: {type(error).__name__}: {error}", error)

    def _list(self, node: object, place: Place) -> list[object]:
        return [self.decode(entry, (*place, i)) for i, entry in enumerate(_items(node))]

    def _pairs(self, node: object, place: Place) -> list[tuple[object, object]]:
        pairs = []
        for pair in _items(node):
            key, value = _items(pair)
            decoded = self.decode(key, place)
            pairs.append((decoded, self.decode(value, (*place, decoded))))
        return pairs

    def _elements(self, reference: Fields) -> tuple[Array, torch.dtype]:
        """Return the array that a reference names, and the dtype of its elements."""
        stored = self._tensors[_text(reference["file"])][_text(reference["name"])]
        # Not getattr: torch imports some of its modules when they are asked for.
        dtype = vars(torch)[_text(reference["dtype"])]
        if not isinstance(dtype, torch.dtype) or not can_store(dtype):
            raise ValueError(f"{dtype} is no dtype of a tensor")
        look = Look(dtype, _shape(reference["shape"]))
        if stored_as(look) != (stored.tag, stored.shape):
            raise ValueError(f"the file has {stored.tag}{list(stored.shape)} for {look}")
        return stored.data.view(array_dtype(dtype)).reshape(look.shape), dtype

    def _tensor(self, node: object, place: Place) -> torch.Tensor:
        reference = _table(node)
        tensor = tensor_of(*self._elements(reference))
        if reference.get("parameter") is True:
            return torch.nn.Parameter(tensor, requires_grad=reference.get("requires_grad") is True)
        return tensor.requires_grad_(reference.get("requires_grad") is True)

    def _tensordict(self, node: object, place: Place) -> TensorDictBase:
        table = _table(node)
        entries = {
            key: self.decode(entry, (*place, key))
            for key, entry in _table(table["entries"]).items()
        }
        made = TensorDict(
            entries,
            batch_size=_shape(table["batch_size"]),
            names=[None if name is None else _text(name) for name in _items(table["names"])],
            device=None if table["device"] is None else _text(table["device"]),
        )
        return made.lock_() if table["locked"] is True else made

    def _nontensor(self, node: object, place: Place) -> TensorDictBase:
        table = _table(node)
        data = self.decode(table["data"], place)
        return NonTensorData(data, batch_size=_shape(table["batch_size"]))

    def _stack(self, node: object, place: Place) -> TensorDictBase:
        table = _table(node)
        return LazyStackedTensorDict(
            *self._list(table["items"], place), stack_dim=_number(table["dim"])
        )

    def _nontensor_stack(self, node: object, place: Place) -> TensorDictBase:
        table = _table(node)
        return NonTensorStack(*self._list(table["items"], place), stack_dim=_number(table["dim"]))

    def _tensorclass(self, node: object, place: Place) -> object:
        table = _table(node)
        name = _text(table["class"])
        kind = find_class(name)
        if kind is None:
            raise Unusable(
                f"{spoken(place)} is of the tensorclass {name}, which is not there; import the "
                f"module {name.partition(':')[0]} before loading"
            )
        if not isinstance(kind, type) or not is_tensorclass(kind):
            raise TypeError(f"{name} is no tensorclass")
        fields = {
            key: self.decode(field, (*place, key)) for key, field in _table(table["fields"]).items()
        }
        content = self.decode(table["content"], place)
        return kind.from_tensordict(content, fields)  # type: ignore[attr-defined]  # all have it


def _malformed(place: Place, why: str, cause: Exception | None = None) -> NoReturn:
    raise Damaged(f"{NAME}: {spoken(place)} {why}") from cause


def _table(node: object) -> Fields:
    if not isinstance(node, dict):
        raise TypeError(f"expected a table, got {node!r:.40}")
    return node


def _items(node: object) -> list[object]:
    if not isinstance(node, list):
        raise TypeError(f"expected a list, got {node!r:.40}")
    return node


def _text(node: object) -> str:
    if not isinstance(node, str):
        raise TypeError(f"expected a text, got {node!r:.40}")
    return node


def _number(node: object) -> int:
    if not isinstance(node, int) or isinstance(node, bool) or node < 0:
        raise TypeError(f"expected a whole number, got {node!r:.40}")
    return node


def _shape(node: object) -> tuple[int, ...]:
    return tuple(map(_number, _items(node)))


def _float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise ValueError(f"{text!r} is not nan, inf or -inf")
    return float(text)
