"""What storages of records of fixed shape have in common: a schema, and one column for each leaf.

The record's schema comes from an example or from the first write and never changes after that; a
batch that differs is refused whole, never filled up with zeros and never converted unasked.
"""

import threading
from typing import Generic, TypeVar

from tensordict import TensorDict

from forebay._arrays import Array
from forebay._errors import RecordMismatch
from forebay._forms import is_node, no_record, unfold
from forebay._records import Holds, Rows, TensorRows, on_no_device, plain_rows, rows_of
from forebay._saved_rows import RowCopy, TensorCopy
from forebay._schema import Schema
from forebay._stores import Ints, consecutive
from forebay._validate import whole_number

C = TypeVar("C")


class ColumnStorage(Generic[C]):
    """Slots for records of tensors with fixed shapes and dtypes.

    Args:
        capacity: the number of slots.
        example: one record, in any form, whose schema is used; by default the first write's.
    """

    _holds: Holds = staticmethod(on_no_device)

    def __init__(self, capacity: int, example: object) -> None:
        self._capacity = whole_number("capacity", capacity, 1)
        self._schema: Schema | None = None
        self._columns: list[C] = []
        self._fixing = threading.Lock()
        if example is not None:
            if not is_node(example):
                raise RecordMismatch(f"example must be one record: {no_record(example)}")
            form = unfold([example])
            self._fix(rows_of(form, None, cast=False, holds=self._holds).schema)

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return self._capacity

    @property
    def initialized(self) -> bool:
        """Always true: the first write may come from anyone at any time."""
        return True

    @property
    def shared(self) -> bool:
        """Whether buffers over this storage work across processes."""
        return False

    @property
    def schema(self) -> Schema | None:
        """What the records look like; None before the first write."""
        return self._schema

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        """Hold a batch against the schema; see `Storage.check`.

        A batch with several batch dimensions becomes one long batch, the dimension `dim_extend`
        outermost. With `cast=True` leaves of another dtype are converted as long as they stay of
        their kind; values that do not fit then wrap around or overflow as in torch.
        """
        schema = self._schema
        if type(batch) is TensorDict and schema is not None and dim_extend == 0:
            rows = plain_rows(batch, schema, self._holds)
            if rows is not None:
                return rows
        own_dims = len(schema.dims) if schema is not None else 0
        form = unfold(batch, dim_extend=dim_extend, own_dims=own_dims)
        return rows_of(form, schema, cast=cast, holds=self._holds)

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
                rows = rows_of(rows.form, schema, cast=rows.cast, holds=self._holds)
        self._put(slots, rows)

    def begin_copy(self, length: int) -> RowCopy | None:
        """Return room for copies of so many records; None before the first write."""
        return None if self._schema is None else TensorCopy(self, self._schema, length)

    def copy_out(self, slots: Ints, columns: list[Array]) -> None:
        """Copy the records in slots into arrays, one for each leaf, without making a batch."""
        raise NotImplementedError

    def in_place(self, slots: Ints) -> list[Array] | None:
        """Return the records in slots where they are, if the host finds them side by side."""
        return None

    def _put(self, slots: Ints, rows: TensorRows) -> None:
        """Copy rows of the schema into slots."""
        raise NotImplementedError

    def _reserve(self, schema: Schema) -> list[C]:
        """Return new columns for all records.

        Raises:
            MemoryError: there is not so much memory.
        """
        raise NotImplementedError

    def _fix(self, schema: Schema) -> Schema:
        """Fix the schema unless that is done, and return the one that holds."""
        with self._fixing:
            if self._schema is None:
                self._columns = self._reserve(schema)
                self._schema = schema
            return self._schema


class NoRecords:
    """No records, since there never was one; whatever was written first meanwhile goes with it."""

    def fits(self) -> bool:
        """Nothing can be wrong with nothing."""
        return True

    def settle(self) -> None:
        """There is nothing to put anywhere."""


def side_by_side(slots: Ints) -> slice | Ints:
    """Return slots as a slice where they follow each other, which copies fastest."""
    n = len(slots)
    if n:
        first = slots.item(0)
        end = first + n
        if n == 1 or (
            slots.item(-1) == end - 1 and slots.tobytes() == consecutive(first, end).tobytes()
        ):
            return slice(first, end)
    return slots
