"""A state as JSON, with references where its tensors and arrays belong.

What JSON has stands as it is. Everything else is an object with one entry whose name begins with
`$`, as `{"$tuple": [1, 2]}`; a dict that has such a key of its own is written as pairs. The page
`docs/reference/checkpoints.md` has all of them.

A checkpoint may come from anywhere, so nothing here runs code that it names: tensorclasses are
looked for among the modules that are imported already, and whatever this encoding does not know
needs pickle, which the caller must have allowed. Types must match exactly, since a subclass may
mean more than its base shows.
"""

import base64
import math
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import NoReturn, Protocol, runtime_checkable

import numpy as np
import torch
from tensordict import (
    LazyStackedTensorDict,
    NonTensorData,
    NonTensorStack,
    TensorDict,
    TensorDictBase,
    is_tensorclass,
)

from forebay._arrays import Array, array_of, torch_dtype
from forebay._errors import CheckpointError
from forebay._forms import is_collection
from forebay._schema import Outline, Schema
from forebay._tensor_file import Look, can_store

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Place = tuple[object, ...]

RECORDS: Place = ("records", "data")
# Beyond it a double, which is what many readers of JSON make of a number, is not exact.
_EXACT = 2**53
_DEEPEST = 100
_PLAIN = (bool, int, float, str, bytes)


@runtime_checkable
class RowSource(Protocol):
    """Records that are still where they are kept, to be written a few at a time.

    Attributes:
        schema: what they look like.
        length: how many there are.
    """

    @property
    def schema(self) -> Schema: ...

    @property
    def length(self) -> int: ...

    def chunks(self) -> Iterator[list[Array]]:
        """Yield consecutive rows: one array for each leaf, as storages keep them.

        Nobody looks at a chunk any more when the next one is asked for.
        """


class Encoder:
    """Turns a state into JSON, and collects what the other files hold.

    Args:
        allow_pickle: whether objects of unknown types are collected too, or refused.

    Attributes:
        looks: dtype and shape of each tensor, by file and name.
        pieces: the elements, by file and name.
        rows: the source of the records, with the names of its tensors, if they come from one.
        objects: what is to be pickled, with its place.
    """

    def __init__(self, *, allow_pickle: bool) -> None:
        self._allow_pickle = allow_pickle
        self._above: set[int] = set()
        self.looks: dict[str, dict[str, Look]] = {"records": {}, "state": {}}
        self.pieces: dict[str, dict[str, Iterable[Array]]] = {"records": {}, "state": {}}
        self.rows: tuple[RowSource, list[str]] | None = None
        self.objects: list[tuple[Place, object]] = []

    def encode(self, value: object, place: Place = ()) -> Json:
        """Return a value as JSON.

        Raises:
            CheckpointError: it cannot be written; names its place in the state.
        """
        if len(self._above) > _DEEPEST:
            _refuse(place, f"is more than {_DEEPEST} levels deep")
        if id(value) in self._above:
            _refuse(place, "contains itself")
        if value is None or type(value) in _PLAIN:
            return _plain(value)
        self._above.add(id(value))
        try:
            return self._node(value, place)
        finally:
            self._above.discard(id(value))

    def _node(self, value: object, place: Place) -> Json:
        kind = type(value)
        if isinstance(value, list) and kind is list:
            return self._list(value, place)
        if isinstance(value, tuple) and kind is tuple:
            return {"$tuple": self._list(value, place)}
        if isinstance(value, dict) and kind in (dict, OrderedDict):
            return self._dict(value, place)
        if isinstance(value, torch.Tensor) and kind in (torch.Tensor, torch.nn.Parameter):
            there = value.layout is torch.strided and not value.is_nested and not value.is_meta
            if there and can_store(value.dtype):
                return self._tensor(value, place)
        elif isinstance(value, np.ndarray | np.generic):
            if kind is np.ndarray or isinstance(value, np.generic):
                dtype = torch_dtype(value.dtype)
                if dtype is not None:
                    found = self._elements(dtype, value.shape, [np.asarray(value)], place)
                    return {"$array" if kind is np.ndarray else "$scalar": found}
        elif isinstance(value, TensorDictBase) or is_tensorclass(value):
            node = self._collection(value, place)
            if node is not None:
                return node
        elif place == RECORDS and isinstance(value, RowSource):
            return self._rows(value)
        return self._object(value, place)

    def _list(self, values: Iterable[object], place: Place) -> list[Json]:
        return [self.encode(value, (*place, i)) for i, value in enumerate(values)]

    def _dict(self, value: dict[object, object], place: Place) -> Json:
        names = [key for key in value if type(key) is str and not key.startswith("$")]
        if type(value) is dict and len(names) == len(value):
            return {name: self.encode(value[name], (*place, name)) for name in names}
        pairs: list[Json] = []
        for key, item in value.items():
            if not _is_key(key):
                return self._object(value, place, f"has the key {key!r:.40}")
            pairs.append([self.encode(key, place), self.encode(item, (*place, key))])
        return {"$dict" if type(value) is dict else "$ordered": pairs}

    def _tensor(self, value: torch.Tensor, place: Place) -> Json:
        node = self._elements(value.dtype, tuple(value.shape), _Elements(value), place)
        if isinstance(value, torch.nn.Parameter):
            node["parameter"] = True
        if value.requires_grad:
            node["requires_grad"] = True
        return {"$tensor": node}

    def _elements(
        self, dtype: torch.dtype, shape: tuple[int, ...], pieces: Iterable[Array], place: Place
    ) -> dict[str, Json]:
        """Note a tensor for its file, and return the reference to it."""
        file, below = ("records", place[2:]) if place[:2] == RECORDS else ("state", place)
        name = self._name(file, below)
        self.looks[file][name] = Look(dtype, shape)
        self.pieces[file][name] = pieces
        return _reference(file, name, self.looks[file][name])

    def _name(self, file: str, below: Place) -> str:
        """Return a new name for a tensor, which tells where it belongs."""
        name = plain = ".".join(map(str, below)) or "data"
        number = 1
        while name in self.looks[file] or name == "__metadata__":
            number += 1
            name = f"{plain}#{number}"
        return name

    def _collection(self, value: TensorDictBase, place: Place) -> Json:
        """Return a TensorDict of a known kind, or None."""
        kind = type(value)
        if kind is TensorDict:
            return {
                "$tensordict": {
                    "batch_size": list(value.batch_size),
                    "names": list(value.names),
                    "device": None if value.device is None else "cpu",
                    "locked": value.is_locked,
                    "entries": {
                        key: self.encode(entry, (*place, key)) for key, entry in value.items()
                    },
                }
            }
        if kind is NonTensorData:
            data = self.encode(value.data, place)
            return {"$nontensor": {"batch_size": list(value.batch_size), "data": data}}
        if kind in (LazyStackedTensorDict, NonTensorStack):
            items = self._list(value.tensordicts, place)
            name = "$stack" if kind is LazyStackedTensorDict else "$nontensorstack"
            return {name: {"dim": value.stack_dim, "items": items}}
        if is_collection(value) and is_tensorclass(value):
            fields = {
                key: self.encode(field, (*place, key))
                for key, field in value._non_tensordict.items()
            }
            return _tensorclass(kind, self.encode(value._tensordict, place), fields, place)
        return None

    def _rows(self, source: RowSource) -> Json:
        """Return records that come in chunks, as if they were one TensorDict."""
        if not source.schema.leaves:
            _refuse(RECORDS, "has no leaves")
        names = []
        for leaf in source.schema.leaves:
            names.append(self._name("records", leaf.path))
            self.looks["records"][names[-1]] = Look(leaf.dtype, (source.length, *leaf.shape))
        self.rows = source, names
        return self._outline(source.schema.outline, names, source.length, RECORDS)

    def _outline(self, outline: Outline, names: list[str], length: int, place: Place) -> Json:
        entries: dict[str, Json] = {}
        for key, entry in outline.entries:
            if isinstance(entry, Outline):
                entries[key] = self._outline(entry, names, length, (*place, key))
            else:
                look = self.looks["records"][names[entry]]
                entries[key] = {"$tensor": _reference("records", names[entry], look)}
        kind, dims = outline.branch
        node: Json = {
            "$tensordict": {
                "batch_size": [length, *dims],
                "names": [None] * (1 + len(dims)),
                "device": None,
                "locked": False,
                "entries": entries,
            }
        }
        return node if kind is TensorDict else _tensorclass(kind, node, {}, place)

    def _object(self, value: object, place: Place, why: str = "") -> Json:
        """Note an object to be pickled, if that is allowed."""
        if not self._allow_pickle:
            why = why or f"is {_kind_of(value)}, which a checkpoint keeps only as a pickle"
            _refuse(place, f"{why}; pass allow_pickle=True if whoever loads it trusts you")
        self.objects.append((place, value))
        return {"$object": len(self.objects) - 1}


class _Elements:
    """The elements of a tensor, moved to the host when they are asked for."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __iter__(self) -> Iterator[Array]:
        yield array_of(self._tensor.detach().cpu())


def _plain(value: object) -> Json:
    """Return what has no parts."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -_EXACT < value < _EXACT else {"$int": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    assert value is None or isinstance(value, bool | str), "the types of _PLAIN"
    return value


def spoken(place: Place) -> str:
    """Return a place in a state as one would write it in Python."""
    return "".join(["state", *(f"[{key!r:.60}]" for key in place)])


def _refuse(place: Place, why: str) -> NoReturn:
    raise CheckpointError(f"{spoken(place)} {why}")


def _reference(file: str, name: str, look: Look) -> dict[str, Json]:
    return {
        "file": file,
        "name": name,
        "dtype": str(look.dtype).removeprefix("torch."),
        "shape": list(look.shape),
    }


def _is_key(key: object) -> bool:
    """Tell whether something can be the key of a dict in JSON."""
    if type(key) is tuple:
        return all(map(_is_key, key))
    return key is None or type(key) in (bool, int, float, str, bytes)


def _kind_of(value: object) -> str:
    if isinstance(value, torch.Tensor) and type(value) is torch.Tensor:
        return f"a tensor of {value.dtype} in layout {value.layout}"
    if isinstance(value, np.ndarray) and type(value) is np.ndarray:
        return f"an array of {value.dtype}"
    return f"of type {type(value).__module__}.{type(value).__qualname__}"


def _tensorclass(kind: type, content: Json, fields: dict[str, Json], place: Place) -> Json:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if find_class(name) is not kind:
        _refuse(
            place,
            f"is of the tensorclass {name}, which cannot be found by that name; define it at the "
            "top of a module",
        )
    return {"$tensorclass": {"class": name, "content": content, "fields": fields}}


def find_class(name: str) -> object:
    """Return what a class name means among imported modules, or None; nothing is imported."""
    module, _, qualname = name.partition(":")
    found: object = sys.modules.get(module)
    for part in qualname.split("."):
        # Not getattr: a module may run code for a name that it has not got.
        found = vars(found).get(part) if isinstance(found, type | type(sys)) else None
    return found
