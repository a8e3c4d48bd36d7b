"""Records of fixed shape in host memory, for threads of one process.

Each leaf of all records is one array, `[capacity, *shape]`.

A copy into slots or out of them is one numpy operation a leaf: over a slice where the slots lie
side by side, which is how arrival order mostly uses them, else by their numbers. What is read owns
its memory, so a reader may keep a batch while its slots are written again.
"""

from collections.abc import Callable
from functools import partial

import torch

from forebay._arrays import Array, empty_array
from forebay._column_storage import ColumnStorage, NoRecords, side_by_side
from forebay._errors import reserving
from forebay._records import TensorRows
from forebay._saved_rows import Arrival, saved_rows
from forebay._schema import Schema
from forebay._stores import Ints


class TensorStorage(ColumnStorage[Array]):
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
                f"{type(self).__name__} keeps records in host memory, not on {device}; use "
                f"CudaStorage for records on a CUDA device, or move batches to the device after "
                f"sampling, for instance with transform=lambda batch: batch.to(device)"
            )
        super().__init__(capacity, example)

    @property
    def device(self) -> torch.device:
        """Where the records are kept: on the host."""
        return torch.device("cpu")

    def read(self, slots: Ints) -> object:
        """Return a copy of the records in slots: a TensorDict, or the tensorclass first written."""
        schema = self._schema
        if schema is None:
            raise RuntimeError("there is nothing to read before the first write")
        where = side_by_side(slots)
        if isinstance(where, slice):
            copies = [array[where].copy() for array in self._columns]
        else:
            # "clip" skips a check of every number; the ledger's slots are in range.
            copies = [array.take(where, 0, None, "clip") for array in self._columns]
        tensors = list(map(torch.from_numpy, copies))
        for position, dtype in schema.borrowed:
            tensors[position] = tensors[position].view(dtype)
        return schema.assemble(tensors, len(slots))

    def copy_out(self, slots: Ints, columns: list[Array]) -> None:
        """Copy the records in slots into arrays, one for each leaf, without making a batch."""
        where = side_by_side(slots)
        for array, column in zip(self._columns, columns, strict=True):
            if isinstance(where, slice):
                column[...] = array[where]
            else:
                array.take(where, 0, column, "clip")

    def in_place(self, slots: Ints) -> list[Array] | None:
        """Return the records in slots where they are, if they lie side by side; else None."""
        where = side_by_side(slots)
        return [array[where] for array in self._columns] if isinstance(where, slice) else None

    def accept(self, data: object, slots: Ints) -> Arrival:
        """Check saved records and make them ready for these slots; see `Saving.accept`.

        A storage without a schema takes theirs.
        """
        before = self._schema
        if data is None:
            return NoRecords()
        rows = saved_rows(data, len(slots), before)
        if self.shared:
            return _InPlace(self, rows, slots)
        arrays = self._reserve(rows.schema)
        _copy_in(arrays, slots, rows)
        return _Swap(self, before, rows.schema, arrays)

    def another(self) -> "Callable[[], TensorStorage]":
        """Return what makes an empty storage like this one."""
        return partial(TensorStorage, self._capacity)

    def _put(self, slots: Ints, rows: TensorRows) -> None:
        _copy_in(self._columns, slots, rows)

    def _reserve(self, schema: Schema) -> list[Array]:
        with reserving(f"a capacity of {self._capacity} records"):
            return [
                empty_array((self._capacity, *leaf.shape), leaf.dtype) for leaf in schema.leaves
            ]


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
        self._storage._schema, self._storage._columns = self._after


def _copy_in(arrays: list[Array], slots: Ints, rows: TensorRows) -> None:
    """Copy rows into slots."""
    where = side_by_side(slots)
    for array, column in zip(arrays, rows.columns, strict=True):
        array[where] = column
