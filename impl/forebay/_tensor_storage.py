"""Records of fixed shape in host memory, for threads of one process.

Each leaf of all records is one array, `[capacity, *shape]`. The record's schema comes from an
example or from the first write and never changes after that; a batch that differs is refused whole,
never filled up with zeros and never converted unasked.

A copy into slots or out of them is one numpy operation a leaf: over a slice where the slots lie
side by side, which is how arrival order mostly uses them, else by their numbers. What is read owns
its memory, so a reader may keep a batch while its slots are written again.
"""

import threading

import numpy as np
import torch
from tensordict import TensorDict

from forebay._arrays import Array, empty_array, tensor_of
from forebay._errors import RecordMismatch, reserving
from forebay._forms import is_node, no_record, unfold
from forebay._records import Rows, TensorRows, plain_rows, rows_of
from forebay._saved_rows import Arrival, RowCopy, TensorCopy, saved_rows
from forebay._schema import Schema
from forebay._stores import Ints
from forebay._validate import whole_number


class TensorStorage:
    """Slots for records of tensors with fixed shapes and dtypes.

    Args:
        capacity: the number of slots.
        example: one record, in any form, whose schema is used; by default the first write's. Batch
            dimensions that it has belong to the record.
        device: `"cpu"`.

    Raises:
        RecordMismatch: the example cannot be stored.
        MemoryError: there is no memory for the records; without an example the first write says so.
    """

    def __init__(
        self, capacity: int, *, example: object = None, device: torch.device | str = "cpu"
    ) -> None:
        if torch.device(device).type != "cpu":
            raise ValueError(
                f"TensorStorage keeps records in host memory, not on {device}; move batches to the "
                "device after sampling, for instance with transform=lambda batch: batch.to(device)"
            )
        self._capacity = whole_number("capacity", capacity, 1)
        self._schema: Schema | None = None
        self._arrays: list[Array] = []
        self._fixing = threading.Lock()
        if example is not None:
            if not is_node(example):
                raise RecordMismatch(f"example must be one record: {no_record(example)}")
            self._fix(rows_of(unfold([example]), None, cast=False).schema)

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return self._capacity

    @property
    def device(self) -> torch.device:
        """Where the records are kept: on the host."""
        return torch.device("cpu")

    @property
    def initialized(self) -> bool:
        """Always true: the first write may come from anyone at any time."""
        return True

    @property
    def shared(self) -> bool:
        """Whether buffers over this storage work across processes."""
        return False

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        """Hold a batch against the schema; see `Storage.check`.

        A batch with several batch dimensions becomes one long batch, the dimension `dim_extend`
        outermost. With `cast=True` leaves of another dtype are converted as long as they stay of
        their kind; values that do not fit then wrap around or overflow as in torch.
        """
        schema = self._schema
        if type(batch) is TensorDict and schema is not None and dim_extend == 0:
            rows = plain_rows(batch, schema)
            if rows is not None:
                return rows
        own_dims = len(schema.dims) if schema is not None else 0
        form = unfold(batch, dim_extend=dim_extend, own_dims=own_dims)
        return rows_of(form, schema, cast=cast)

    def write(self, slots: Ints, rows: Rows) -> None:
        """Copy rows into slots; the first write fixes the schema."""
        if not isinstance(rows, TensorRows):
            raise TypeError("these rows were checked by a storage of another class")
        if len(slots) != len(rows):
            raise ValueError(f"expected as many slots as rows, got {len(slots)} for {len(rows)}")
        if not len(rows):
            return
        if rows.schema is not self._schema:
            schema = self._fix(rows.schema)
            if rows.schema is not schema and rows.form is not None:
                rows = rows_of(rows.form, schema, cast=rows.cast)
        _put(self._arrays, slots, rows)

    def read(self, slots: Ints) -> object:
        """Return a copy of the records in slots: a TensorDict, or the tensorclass first written."""
        schema = self._schema
        if schema is None:
            raise RuntimeError("there is nothing to read before the first write")
        where = _side_by_side(slots)
        if isinstance(where, slice):
            copies = [array[where].copy() for array in self._arrays]
        else:
            # "clip" skips a check of every number; the ledger's slots are in range.
            copies = [array.take(where, 0, None, "clip") for array in self._arrays]
        tensors = [
            tensor_of(copy, leaf.dtype) for copy, leaf in zip(copies, schema.leaves, strict=True)
        ]
        return schema.assemble(tensors, len(slots))

    @property
    def schema(self) -> Schema | None:
        """What the records look like; None before the first write."""
        return self._schema

    def copy_out(self, slots: Ints, columns: list[Array]) -> None:
        """Copy the records in slots into arrays, one for each leaf, without making a batch."""
        where = _side_by_side(slots)
        for array, column in zip(self._arrays, columns, strict=True):
            if isinstance(where, slice):
                column[...] = array[where]
            else:
                array.take(where, 0, column, "clip")

    def begin_copy(self, length: int) -> RowCopy | None:
        """Return room for copies of so many records; None before the first write."""
        return None if self._schema is None else TensorCopy(self, self._schema, length)

    def accept(self, data: object, slots: Ints) -> Arrival:
        """Check saved records and make them ready for these slots; see `Saving.accept`.

        A storage without a schema takes theirs.
        """
        before = self._schema
        if data is None:
            return _Nothing()
        rows = saved_rows(data, len(slots), before)
        if self.shared:
            return _InPlace(self, rows, slots)
        arrays = self._reserve(rows.schema)
        _put(arrays, slots, rows)
        return _Swap(self, before, rows.schema, arrays)

    def _fix(self, schema: Schema) -> Schema:
        """Fix the schema unless that is done, and return the one that holds."""
        with self._fixing:
            if self._schema is None:
                self._arrays = self._reserve(schema)
                self._schema = schema
            return self._schema

    def _reserve(self, schema: Schema) -> list[Array]:
        """Return new arrays for all records."""
        with reserving(f"a capacity of {self._capacity} records"):
            return [
                empty_array((self._capacity, *leaf.shape), leaf.dtype) for leaf in schema.leaves
            ]


class _Nothing:
    """No records, since there never was one; whatever was written first meanwhile goes with it."""

    def fits(self) -> bool:
        return True

    def settle(self) -> None: ...


class _InPlace:
    """Records that are copied into the arrays that there are, which other processes have too."""

    def __init__(self, storage: TensorStorage, rows: TensorRows, slots: Ints) -> None:
        self._storage = storage
        self._rows = rows
        self._slots = slots

    def fits(self) -> bool:
        return True

    def settle(self) -> None:
        self._storage.write(self._slots, self._rows)


class _Swap:
    """Records in arrays of their own, which the storage takes instead of those that it has."""

    def __init__(
        self,
        storage: TensorStorage,
        before: Schema | None,
        schema: Schema | None,
        arrays: list[Array],
    ) -> None:
        self._storage = storage
        self._before = before
        self._after = schema, arrays

    def fits(self) -> bool:
        return self._storage._schema is self._before

    def settle(self) -> None:
        self._storage._schema, self._storage._arrays = self._after


def _put(arrays: list[Array], slots: Ints, rows: TensorRows) -> None:
    """Copy rows into slots."""
    where = _side_by_side(slots)
    for array, column in zip(arrays, rows.columns, strict=True):
        array[where] = column


def _side_by_side(slots: Ints) -> slice | Ints:
    """Return slots as a slice where they follow each other, which copies fastest."""
    n = len(slots)
    if n:
        first = int(slots[0])
        if n == 1 or (
            slots[-1] - first == n - 1
            and slots.tobytes() == np.arange(first, first + n, dtype=slots.dtype).tobytes()
        ):
            return slice(first, first + n)
    return slots
