"""Records of fixed shape in the memory of a device, for any streams and threads of a process.

A write and a read only queue their copies, on the stream that is current for the calling thread,
and in the order that `_order` keeps: a batch is published before it is there, and handed out before
it is there. Nothing of that is seen by whoever uses a device as one does, by queueing more work on
the stream on which a batch was sampled, or by asking for its values.

Each leaf of all records is one tensor of words, `[capacity, words]`, of the largest integers that
its bytes divide into: a copy does not care what bits mean, some devices do not copy every dtype,
and large words copy fastest.

Rows that come from the host are put into staging memory before a write returns, so its caller may
do with the batch as it likes. Rows that are on the device are copied from where they are, in the
order of the caller's stream.
"""

from math import prod
from typing import Final

import numpy as np
import torch

from forebay._arrays import Array, array_of
from forebay._column_storage import ColumnStorage, NoRecords, side_by_side
from forebay._order import Order, Where
from forebay._records import Column, TensorRows
from forebay._saved_rows import Arrival, rows_in_part, saved_rows
from forebay._schema import Leaf, Schema
from forebay._staging import Freight, Staging, room_for
from forebay._stores import Ints
from forebay._streams import Event, Stream, Streams

_WORDS: Final = (torch.int64, torch.int32, torch.int16, torch.uint8)


class DeviceStorage(ColumnStorage[torch.Tensor]):
    """Slots for records of tensors with fixed shapes and dtypes, on a device.

    Args:
        capacity: the number of slots.
        streams: the device.
        example: one record, in any form, whose schema is used; by default the first write's. Batch
            dimensions that it has belong to the record.
    """

    def __init__(self, capacity: int, *, streams: Streams, example: object = None) -> None:
        self.streams: Final = streams
        self._staging = Staging(streams)
        self._holds = streams.holds
        self._reserved: list[Event] = []
        super().__init__(capacity, example)
        self._order = Order(streams, self._capacity, self._meet)

    @property
    def device(self) -> torch.device:
        """Where the records are kept, and sampled batches come."""
        return self.streams.device

    def read(self, slots: Ints) -> object:
        """Queue a copy of the records in slots: a TensorDict, or the tensorclass first written.

        It belongs to the stream that is current for the calling thread.
        """
        schema = self._schema
        if schema is None:
            raise RuntimeError("there is nothing to read before the first write")
        n, where = len(slots), side_by_side(slots)
        numbers = self._staged([_numbers(where)])
        taken: list[torch.Tensor] = []

        def queue(stream: Stream) -> None:
            taken[:] = [self._room(n, column) for column in self._columns]
            self._take(stream, where, numbers, taken)

        numbers.end(self._order.reading(where, queue))
        tensors = [
            self._rows(words, leaf) for words, leaf in zip(taken, schema.leaves, strict=True)
        ]
        return schema.assemble(tensors, n)

    def copy_out(self, slots: Ints, columns: list[Array]) -> None:
        """Copy the records in slots into arrays, one for each leaf; the host waits for them."""
        n, where = len(slots), side_by_side(slots)
        numbers = self._staged([_numbers(where)])
        here = Freight(self._staging, [array.nbytes for array in columns])

        def queue(stream: Stream) -> None:
            if isinstance(where, slice):
                taken = [column[where] for column in self._columns]
            else:
                taken = [self._room(n, column) for column in self._columns]
                self._take(stream, where, numbers, taken)
            for words, piece in zip(taken, here.pieces(here.memory), strict=True):
                if words.numel():
                    self.streams.copy(stream, words, _as_words(piece, n, words))

        track = self._order.reading(where, queue)
        last = track.latest()
        if last is not None:
            self.streams.synchronize(last)
        here.empty_into(columns)
        here.end(track)
        numbers.end(track)

    def accept(self, data: object, slots: Ints) -> Arrival:
        """Check saved records and make them ready for these slots; see `Saving.accept`.

        They wait on the host. A storage without a schema takes theirs, and reserves its memory.
        """
        if data is None:
            return NoRecords()
        before = self._schema
        rows = saved_rows(data, len(slots), before)
        columns = self._columns if before is not None else self._reserve(rows.schema)
        return _Arrival(self, before, columns, rows, slots)

    def _put(self, slots: Ints, rows: TensorRows) -> None:
        n, where = len(slots), side_by_side(slots)
        tensors = [self._there(column) for column in rows.columns]
        pairs = zip(rows.columns, tensors, strict=True)
        arrays = [_array(column) for column, tensor in pairs if tensor is None]
        freight = self._staged([_numbers(where), *arrays])

        def queue(stream: Stream) -> None:
            memory = freight.memory
            if memory is not None and not isinstance(where, slice):
                landed = self.streams.empty(memory.shape, memory.dtype)
                self.streams.copy(stream, memory, landed)
                memory = landed
            index, *pieces = freight.pieces(memory)
            for tensor, leaf, column in zip(
                tensors, rows.schema.leaves, self._columns, strict=True
            ):
                rest = pieces.pop(0) if tensor is None else self._plain(stream, tensor, leaf)
                if not column.shape[1]:
                    continue
                words = _as_words(rest, n, column)
                if isinstance(where, slice):
                    self.streams.copy(stream, words, column[where])
                else:
                    self.streams.put(stream, words, index.view(torch.int64), column)

        freight.end(self._order.copying(where, queue))

    def _take(
        self, stream: Stream, where: Where, numbers: Freight, rows: list[torch.Tensor]
    ) -> None:
        """Queue gathers of all leaves; the numbers of scattered slots go to the device first."""
        index = None
        if numbers.memory is not None:
            (piece,) = numbers.pieces(numbers.memory)
            index = self.streams.empty((piece.numel() // 8,), torch.int64)
            self.streams.copy(stream, piece.view(torch.int64), index)
        for column, taken in zip(self._columns, rows, strict=True):
            if not taken.numel():
                continue
            if index is None:
                self.streams.copy(stream, column[where], taken)
            else:
                self.streams.take(stream, column, index, taken)

    def _there(self, column: Column) -> torch.Tensor | None:
        """Return a leaf of a batch if it is on the device."""
        if isinstance(column, torch.Tensor) and self.streams.holds(column):
            return column
        return None

    def _plain(self, stream: Stream, tensor: torch.Tensor, leaf: Leaf) -> torch.Tensor:
        """Return a leaf of a batch on the device so that its bytes are those of its rows."""
        self.streams.keep(tensor, stream)
        shape = (len(tensor), prod(leaf.shape))
        aligned = tensor.storage_offset() * tensor.element_size() % _WORDS[0].itemsize == 0
        bare = not tensor.is_conj() and not tensor.is_neg()
        if aligned and bare and tensor.dtype is leaf.dtype and tensor.is_contiguous():
            rows = tensor.view(shape)
            if rows.stride() == (shape[1], 1):  # which a single row does not need for being dense
                return rows
        plain = self.streams.empty(tensor.shape, leaf.dtype)
        self.streams.copy(stream, tensor, plain)
        return plain.view(shape)

    def _rows(self, words: torch.Tensor, leaf: Leaf) -> torch.Tensor:
        """Return the words of some rows as a leaf."""
        shape = (len(words), *leaf.shape)
        if not words.numel():
            return self.streams.empty(shape, leaf.dtype)
        return words.view(leaf.dtype).view(shape)

    def _room(self, rows: int, column: torch.Tensor) -> torch.Tensor:
        """Return new memory for so many rows of a column."""
        return self.streams.empty((rows, *column.shape[1:]), column.dtype)

    def _staged(self, arrays: list[Array]) -> Freight:
        """Return staging memory that holds these arrays."""
        freight = Freight(self._staging, [array.nbytes for array in arrays])
        freight.fill(arrays)
        return freight

    def _meet(self, stream: Stream) -> None:
        """Let a stream wait for the records' memory, which has to outlive what it will do there."""
        for event in list(self._reserved):
            self.streams.wait(stream, event)
        for column in self._columns:
            self.streams.keep(column, stream)

    def _reserve(self, schema: Schema) -> list[torch.Tensor]:
        columns = []
        for leaf in schema.leaves:
            nbytes = prod(leaf.shape) * leaf.dtype.itemsize
            word = next(word for word in _WORDS if nbytes % word.itemsize == 0)
            columns.append(self.streams.empty((self._capacity, nbytes // word.itemsize), word))
        # What had that memory before may still be in the queue of this stream, and of no other.
        self._reserved.append(self.streams.record(self.streams.current()))
        return columns


class _Arrival:
    """Records on the host that are copied into the columns, which are as before until then.

    Part by part, so that it takes no more memory than a write, of the host or of the device.
    """

    def __init__(
        self,
        storage: DeviceStorage,
        before: Schema | None,
        columns: list[torch.Tensor],
        rows: TensorRows,
        slots: Ints,
    ) -> None:
        self._storage = storage
        self._before = before
        self._columns = columns
        self._rows = rows
        self._slots = slots
        self._part = rows_in_part(rows.schema)
        # What a part needs on its way is had now, while nothing has changed.
        sizes = [8 * self._part, *(_array(it[: self._part]).nbytes for it in rows.columns)]
        self._room: object = storage.streams.empty((room_for(sizes),), torch.uint8)

    def fits(self) -> bool:
        return self._storage._schema is self._before

    def settle(self) -> None:
        self._room = None
        self._storage._columns, self._storage._schema = self._columns, self._rows.schema
        for start in range(0, len(self._slots), self._part):
            part = slice(start, start + self._part)
            slots = self._slots[part]
            columns = [column[part] for column in self._rows.columns]
            self._storage._put(slots, TensorRows(len(slots), self._rows.schema, columns))


def _numbers(where: Where) -> Array:
    """Return the numbers of slots that have to go to the device: none of a range."""
    return np.empty(0, np.int64) if isinstance(where, slice) else where


def _array(column: Column) -> Array:
    """Return a leaf of a batch that is on the host."""
    return array_of(column) if isinstance(column, torch.Tensor) else column


def _as_words(tensor: torch.Tensor, rows: int, column: torch.Tensor) -> torch.Tensor:
    """Return the bytes of some rows as the words of their column."""
    return tensor.view(column.dtype).view(rows, *column.shape[1:])
