"""Records on their way into a snapshot and back: copied out of slots, checked before they return.

A storage hands out a `RowCopy` for a capture, which is filled part by part while the slots are kept
from being written, and an `Arrival` for a restore, which has looked at everything that can be wrong
before anything of the storage changes.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol, runtime_checkable

from forebay._arrays import Array, empty_array, tensor_of
from forebay._errors import RecordMismatch
from forebay._forms import is_collection, unfold
from forebay._records import TensorRows, rows_of, schema_of
from forebay._schema import Schema, compare, missing, unexpected
from forebay._stores import Ints

PART_ROWS: Final = 1024
PART_BYTES: Final = 2**20
"""How many records, and how many bytes of them, are copied at most before their slots are let go;
one record at least."""
STREAMED_PARTS: Final = 8
"""How many such parts are written to a file before their slots are let go. Where they lie side by
side they are written from where they are, so that nothing of this size is made."""


class RowCopy(Protocol):
    """Copies of records, in the order in which they are added."""

    part: int
    """How many records to add at a time."""

    def add(self, slots: Ints) -> None:
        """Copy the records in these slots."""

    def data(self) -> object:
        """Return all that were added, as one batch that is nobody else's."""


class Arrival(Protocol):
    """Saved records that are ready to take their slots."""

    def fits(self) -> bool:
        """Tell whether the storage is as it was when they were checked."""

    def settle(self) -> None:
        """Put them into their slots; may be done again after an interrupt."""


@runtime_checkable
class Saving(Protocol):
    """What a storage offers if its records can be saved and put back."""

    def begin_copy(self, length: int) -> RowCopy | None:
        """Return room for copies of so many records; None while there never was a record."""

    def accept(self, data: object, slots: Ints) -> Arrival:
        """Check saved records, None for none at all, and make them ready for these slots.

        Raises:
            RecordMismatch: they are not like those of this storage; the differences are named.
        """


@runtime_checkable
class Columns(Protocol):
    """What a storage of tensors offers besides."""

    @property
    def schema(self) -> Schema | None:
        """What the records look like; None before the first write."""

    def copy_out(self, slots: Ints, columns: list[Array]) -> None:
        """Copy the records in slots into arrays, one for each leaf."""

    def in_place(self, slots: Ints) -> list[Array] | None:
        """Return the records in slots where they are, if the host finds them side by side."""


class TensorCopy:
    """Copies of records of tensors.

    Args:
        storage: where they are.
        schema: what they look like.
        length: how many there will be.
    """

    def __init__(self, storage: Columns, schema: Schema, length: int) -> None:
        self.part = rows_in_part(schema)
        self._storage = storage
        self._schema = schema
        self._length = length
        self._added = 0
        self._columns = new_columns(schema, length)

    def add(self, slots: Ints) -> None:
        start, end = self._added, self._added + len(slots)
        self._storage.copy_out(slots, [column[start:end] for column in self._columns])
        self._added = end

    def data(self) -> object:
        tensors = [
            tensor_of(column, leaf.dtype)
            for column, leaf in zip(self._columns, self._schema.leaves, strict=True)
        ]
        return self._schema.assemble(tensors, self._length)


class PinnedRows:
    """The records of a capture as a stream, so that whoever writes them needs no full copy.

    Args:
        storage: where the records are.
        schema: what they look like.
        length: how many there are.
        parts: gives their slots in parts of so many rows; those of a part are let go once the next
            one is asked for.
    """

    def __init__(
        self,
        storage: Columns,
        schema: Schema,
        length: int,
        parts: Callable[[int], Iterator[Ints]],
    ) -> None:
        self.schema = schema
        self.length = length
        self._storage = storage
        self._parts = parts

    def chunks(self) -> Iterator[list[Array]]:
        """Yield the records in parts, each as one array for each leaf; once only.

        A part must be done with when the next one is asked for, which may take its memory.
        """
        rows = rows_in_part(self.schema)
        room: list[Array] = []
        for slots in self._parts(rows_in_part(self.schema, STREAMED_PARTS)):
            columns = self._storage.in_place(slots)
            if columns is not None:
                yield columns
                continue
            room = room or new_columns(self.schema, min(rows, self.length))
            for start in range(0, len(slots), rows):
                copied = slots[start : start + rows]
                columns = [column[: len(copied)] for column in room]
                self._storage.copy_out(copied, columns)
                yield columns


def rows_in_part(schema: Schema, parts: int = 1) -> int:
    """Return how many records are copied at a time, or in so many parts."""
    nbytes = sum(column.nbytes for column in new_columns(schema, 1))
    return max(1, min(parts * PART_ROWS, parts * PART_BYTES // max(nbytes, 1)))


def new_columns(schema: Schema, length: int) -> list[Array]:
    """Return new arrays for so many records."""
    return [empty_array((length, *leaf.shape), leaf.dtype) for leaf in schema.leaves]


def saved_rows(data: object, length: int, schema: Schema | None) -> TensorRows:
    """Hold saved records against a schema, leaf by leaf, or against none.

    Raises:
        RecordMismatch: says all that differs.
    """
    if not is_collection(data):
        raise RecordMismatch(
            f"expected the records of a storage of tensors, a TensorDict or a tensorclass, got "
            f"{type(data).__name__}; records of a ListStorage go into a ListStorage"
        )
    form = unfold(data, own_dims=max(len(data.batch_size) - 1, 0))
    own = schema_of(form)
    wrong = list(form.faults.values())
    if form.lead != (length,):
        wrong.append(f"expected {length} records, got a batch of {list(data.batch_size)}")
    if schema is not None:
        came = {leaf.path: leaf for leaf in own.leaves}
        for leaf in schema.leaves:
            found = came.pop(leaf.path, None)
            sentence = missing(leaf) if found is None else compare(leaf, found, cast=False)
            if sentence is not None:
                wrong.append(sentence)
        wrong += map(unexpected, came.values())
    if wrong:
        raise RecordMismatch("\n  ".join(wrong))
    schema = schema or own
    if not schema.leaves:
        raise RecordMismatch("expected at least one leaf, got none")
    if not length:
        return TensorRows(0, schema, new_columns(schema, 0))
    return rows_of(form, schema, cast=False)
