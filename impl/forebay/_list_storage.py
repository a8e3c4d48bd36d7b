"""Records of any kind, for threads: what has no fixed shape, or is no tensor at all.

One slot holds one object. What somebody may change after a write or a read - tensors, arrays,
TensorDicts, and dicts, lists and tuples of them - is copied both ways, as in every storage. Any
other object is kept as it is and shared by all who have it, so treat it as constant.

A batch comes back as TorchRL's users know it: TensorDicts stacked, densely where they look the same
and lazily where they do not; tensors of one shape and dtype stacked; everything else as a list.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from tensordict import TensorDictBase, lazy_stack

from forebay._errors import RecordMismatch, reserving
from forebay._forms import is_collection, no_dimension
from forebay._records import Rows
from forebay._saved_rows import PART_ROWS, Arrival, RowCopy
from forebay._schema import mismatch
from forebay._stores import Ints
from forebay._validate import whole_number


class ObjectRows(Rows):
    """Rows as a list of objects, which are still the caller's own."""

    __slots__ = ("objects",)

    def __init__(self, objects: list[object]) -> None:
        super().__init__(len(objects))
        self.objects = objects


class ListStorage:
    """Slots for one object each.

    A consumed record stays in memory until its slot is written again. Processes cannot share this
    storage.

    Args:
        capacity: the number of slots.
    """

    def __init__(self, capacity: int) -> None:
        capacity = whole_number("capacity", capacity, 1)
        with reserving(f"a capacity of {capacity} records"):
            self._objects: list[object] = [None] * capacity

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return len(self._objects)

    @property
    def device(self) -> torch.device:
        """Where the list is; tensors in it stay on the devices on which they came."""
        return torch.device("cpu")

    @property
    def initialized(self) -> bool:
        """Always true: there is nothing to prepare."""
        return True

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        """Split a batch into records.

        A list holds one record an entry, whatever that is. A TensorDict or tensorclass is split
        along its batch dimensions, flattened with `dim_extend` outermost; a tensor, an array, and
        a dict of tensors, arrays or lists along the first dimension. Records need not be alike,
        so there is nothing that `cast` could convert to.

        Raises:
            RecordMismatch: this is no batch, or it has no batch dimension.
        """
        if isinstance(batch, list):
            return ObjectRows(list(batch))
        if is_collection(batch):
            return ObjectRows(_unbind(batch, dim_extend))
        if isinstance(batch, Mapping):
            return ObjectRows(_split(batch))
        if isinstance(batch, torch.Tensor | np.ndarray) and batch.ndim:
            return ObjectRows(list(batch))
        raise mismatch(
            [
                "expected a list of records, or a TensorDict, a tensor, an array or a dict of "
                f"those with a batch dimension, got {type(batch).__name__}"
            ]
        )

    def write(self, slots: Ints, rows: Rows) -> None:
        """Put copies of the records into slots."""
        if not isinstance(rows, ObjectRows):
            raise TypeError("these rows were checked by a storage of another class")
        if len(slots) != len(rows):
            raise ValueError(f"expected as many slots as rows, got {len(slots)} for {len(rows)}")
        copies = [_copied(item) for item in rows.objects]
        for slot, copy in zip(slots.tolist(), copies, strict=True):
            self._objects[slot] = copy

    def read(self, slots: Ints) -> object:
        """Return copies of the records in slots: stacked if they are tensors, else a list."""
        return _batch([self._objects[slot] for slot in slots.tolist()])

    def another(self) -> "Callable[[], ListStorage]":
        """Return what makes an empty storage like this one."""
        return partial(ListStorage, self.capacity)

    def begin_copy(self, length: int) -> RowCopy | None:
        """Return room for copies of so many records."""
        return _ObjectCopy(self)

    def accept(self, data: object, slots: Ints) -> Arrival:
        """Check saved records and make them ready for these slots; see `Saving.accept`."""
        objects = [] if data is None else data
        if not isinstance(objects, list) or len(objects) != len(slots):
            raise RecordMismatch(
                f"expected {len(slots)} records of a ListStorage, a list of objects, got "
                f"{type(data).__name__}; records of tensors go into a storage of tensors"
            )
        replaced: list[object] = [None] * self.capacity
        for slot, item in zip(slots.tolist(), objects, strict=True):
            replaced[slot] = _copied(item)
        return _Swap(self, replaced)


class _ObjectCopy:
    """Copies of records of any kind."""

    part = PART_ROWS

    def __init__(self, storage: ListStorage) -> None:
        self._storage = storage
        self._objects: list[object] = []

    def add(self, slots: Ints) -> None:
        self._objects += [_copied(self._storage._objects[slot]) for slot in slots.tolist()]

    def data(self) -> object:
        return self._objects


class _Swap:
    """Records in a list of their own, which the storage takes instead of the one that it has."""

    def __init__(self, storage: ListStorage, objects: list[object]) -> None:
        self._storage = storage
        self._objects = objects

    def fits(self) -> bool:
        return True

    def settle(self) -> None:
        self._storage._objects = self._objects


def _unbind(batch: TensorDictBase, dim_extend: int) -> list[object]:
    """Return the records of a TensorDict or tensorclass."""
    sizes = tuple(batch.batch_size)
    if len(sizes) <= whole_number("dim_extend", dim_extend, 0):
        raise mismatch([no_dimension(sizes, dim_extend)])
    if len(sizes) > 1:
        batch = batch.transpose(0, dim_extend).reshape(-1)
    return list(batch.unbind(0))


def _split(batch: Mapping[object, object]) -> list[object]:
    """Return the records of a dict of columns, each a dict with the same keys."""
    columns: dict[object, list[object]] = {}
    for key, value in batch.items():
        if is_collection(value):
            columns[key] = _unbind(value, 0)
        elif isinstance(value, Mapping):
            columns[key] = _split(value)
        elif isinstance(value, list):
            columns[key] = value
        elif isinstance(value, torch.Tensor | np.ndarray) and value.ndim:
            columns[key] = list(value)
        else:
            raise mismatch(
                [f"{key!r}: expected one value a record, got one {type(value).__name__} for all"]
            )
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise mismatch([f"expected columns of one length, got {lengths}"])
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _copied(item: object) -> object:
    """Return a copy of what could be changed in place, and everything else itself."""
    if isinstance(item, torch.Tensor):
        return item.detach().clone()
    if is_collection(item):
        return _clone(item)
    if isinstance(item, np.ndarray):
        return item.copy()
    if type(item) is dict:
        return {key: _copied(value) for key, value in item.items()}
    if type(item) is list:
        return [_copied(value) for value in item]
    if type(item) is tuple:
        return tuple(_copied(value) for value in item)
    return item


def _clone(item: TensorDictBase) -> TensorDictBase:
    return item.detach().clone()


def _batch(items: list[object]) -> object:
    """Return copies of stored records as one batch."""
    kinds = {type(item) for item in items}
    if len(kinds) == 1 and all(isinstance(item, torch.Tensor) for item in items):
        tensors = [item for item in items if isinstance(item, torch.Tensor)]
        if len({(tensor.dtype, tensor.shape, tensor.device) for tensor in tensors}) == 1:
            return torch.stack(tensors)
    elif len(kinds) == 1 and is_collection(items[0]):
        return _stacked(items)
    return [_copied(item) for item in items]


def _stacked(items: list[TensorDictBase]) -> TensorDictBase:
    """Return TensorDicts or tensorclasses of one class as a batch."""
    # A dense stack would promote dtypes that differ; it refuses shapes and keys that do.
    if len({_dtypes(item) for item in items}) == 1:
        try:
            return torch.stack(items)
        except RuntimeError:
            pass
    return lazy_stack([_clone(item) for item in items])


def _dtypes(item: TensorDictBase) -> frozenset[tuple[object, torch.dtype]]:
    leaves = item.items(include_nested=True, leaves_only=True)
    return frozenset((key, leaf.dtype) for key, leaf in leaves)
