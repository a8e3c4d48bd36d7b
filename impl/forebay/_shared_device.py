"""Records on a device for several processes.

The memory belongs to the process that made the storage, its owner, and other processes attach to
it. Nothing that orders the work of one process's streams is known to another process. So where
records pass from one to the other, which is when the ledger says so, the host has waited: a write
returns, and is published, when its copies have run, and a read when its gather has. Within a
process the notes of events are kept as ever.

When the owner ends, its memory is gone. So whoever has worked in it asks afterwards whether the
owner was there until then. If it was not, what was read may be anything and is given to nobody.

A process that dies while its copies are queued leaves slots that others will fill. That is safe if
the device's driver has ended the work of a process before the process counts as ended, and this is
taken for granted.
"""

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, SupportsIndex
from weakref import WeakValueDictionary

import torch

from forebay import _native as native
from forebay._arrays import Array
from forebay._device_storage import DeviceStorage
from forebay._errors import PeerLost
from forebay._failure import words_of
from forebay._layout import PARTICIPANT_FIELDS
from forebay._participants import Participants
from forebay._peers import OWNER_ENDED
from forebay._records import TensorRows
from forebay._schema import Schema
from forebay._stores import Ints
from forebay._streams import SharingStreams, Streams

TRIES: Final = 100
"""How often waiting for copies is tried when one interrupt follows the other."""

_numbers = itertools.count(1)


class Owner(NamedTuple):
    """The process that made a storage; equal for one storage in all processes.

    Attributes:
        process: its number.
        row: by what it is told from others that had its number, as in a table of participants.
        number: of the storage, among those that the process has made.
    """

    process: int
    row: tuple[int, ...]
    number: int

    @classmethod
    def here(cls) -> "Owner":
        """Return this process, as the owner of one storage more."""
        cells = memoryview(bytearray(8 * PARTICIPANT_FIELDS)).cast("q")
        Participants(cells).register()
        return cls(os.getpid(), tuple(cells.tolist()), next(_numbers))

    def is_here(self) -> bool:
        """Tell whether it is this process."""
        return self.process == os.getpid()

    def lives(self) -> bool:
        """Tell whether it has not ended, as far as is known."""
        if self.is_here():
            return True
        cells = memoryview(bytearray(8 * PARTICIPANT_FIELDS)).cast("q")
        for place, value in enumerate(self.row):
            cells[place] = value
        return Participants(cells).living(0)

    @contextmanager
    def present(self) -> Iterator[None]:
        """Work in the memory of the owner within a block.

        Raises:
            PeerLost: it has ended meanwhile, whatever the device says to that.
        """
        try:
            yield
        except Exception:
            self._demand()
            raise
        self._demand()

    def _demand(self) -> None:
        if not self.lives():
            cause = RuntimeError(OWNER_ENDED)
            raise PeerLost(f"the buffer has failed: {words_of(cause)}") from cause


class ShareableStorage(DeviceStorage):
    """Slots for records on a device, for one process or for several.

    Args:
        capacity: the number of slots.
        streams: the device; with `shared` it has to be one that can share memory.
        example: one record, in any form, whose schema is used; by default the first write's. Batch
            dimensions that it has belong to the record.
        shared: whether a buffer over the storage can be handed to other processes.
    """

    def __init__(
        self, capacity: int, *, streams: Streams, example: object = None, shared: bool = False
    ) -> None:
        name = type(self).__name__
        if not isinstance(shared, bool):
            raise TypeError(f"shared must be True or False, got {shared!r}")
        if shared and example is None:
            raise TypeError(
                f"a {name} with shared=True needs an example: one record, whose keys, shapes and "
                f"dtypes all processes then know"
            )
        if shared:
            native.demand_linux()
        self._owner = Owner.here() if shared else None
        self._unclaimed = threading.Lock()
        super().__init__(capacity, streams=streams, example=example)
        if self._owner is not None:
            _known[self._owner] = self

    @property
    def shared(self) -> bool:
        """Whether buffers over this storage work across processes."""
        return self._owner is not None

    def claim(self) -> None:
        """Let a buffer have this storage for good; two would write over each other's records.

        Raises:
            ValueError: a buffer has it already.
            RuntimeError: it is another process's.
        """
        name = type(self).__name__
        assert self._owner is not None, "only a shared storage is claimed"
        if not self._owner.is_here():
            raise RuntimeError(
                f"the memory of this {name} is process {self._owner.process}'s, which made it; "
                f"make the buffer there, and hand the buffer on"
            )
        if not self._unclaimed.acquire(blocking=False):
            raise ValueError(
                f"this {name} belongs to a buffer already, and two would write over each other's "
                f"records; make another {name}, or hand that buffer itself to whoever is to use it"
            )

    def read(self, slots: Ints) -> object:
        """Copy the records in slots; see `DeviceStorage.read`.

        Raises:
            PeerLost: the process that made a shared storage has ended.
        """
        if self._owner is None:
            return super().read(slots)
        with self._owner.present():
            batch = super().read(slots)
            self._finish()
        return batch

    def copy_out(self, slots: Ints, columns: list[Array]) -> None:
        """Copy the records in slots into arrays, one for each leaf; the host waits for them."""
        if self._owner is None:
            super().copy_out(slots, columns)
            return
        with self._owner.present():
            super().copy_out(slots, columns)

    def _put(self, slots: Ints, rows: TensorRows) -> None:
        if self._owner is None:
            super()._put(slots, rows)
            return
        with self._owner.present():
            # Whatever ends the write: the slots are others' afterwards, and nothing of it may be
            # queued by then. Twice, since an interrupt may come before the first time has begun.
            try:
                try:
                    super()._put(slots, rows)
                finally:
                    self._finish()
            finally:
                self._finish()

    def _reserve(self, schema: Schema) -> list[torch.Tensor]:
        columns = super()._reserve(schema)
        if self._owner is not None:
            # What had the memory before may have work queued there, which other processes cannot
            # wait for.
            self._finish()
        return columns

    def _finish(self) -> None:
        """Wait on the host until all that is queued in the calling thread's stream has run.

        An interrupt ends it only afterwards.
        """
        interrupt: BaseException | None = None
        for _ in range(TRIES):
            try:
                self.streams.synchronize(self.streams.record(self.streams.current()))
                break
            except Exception:
                raise
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        owner = self._owner
        if owner is None:
            return super().__reduce_ex__(protocol)
        if not owner.is_here():
            raise RuntimeError(
                f"only the process that made a storage on a device can hand its buffer on, which "
                f"is process {owner.process}; send it from there to whoever is to have it"
            )
        streams = _sharing(self.streams)
        handles = [streams.share(column) for column in self._columns]
        return _attach, (type(self), self._capacity, streams, self._schema, owner, handles)


def _attach(
    kind: type[ShareableStorage],
    capacity: int,
    streams: SharingStreams,
    schema: Schema,
    owner: Owner,
    handles: list[object],
) -> ShareableStorage:
    """Return this process's storage over the memory of another one's.

    Raises:
        PeerLost: that process has ended.
    """
    known = _known.get(owner)
    if known is not None and owner.is_here():
        return known
    with owner.present():
        # A handle is taken though it may not be needed: until it is, the owner keeps memory for it.
        columns = [streams.attach(handle) for handle in handles]
    if known is not None:
        return known
    storage = kind.__new__(kind)
    ShareableStorage.__init__(storage, capacity, streams=streams)
    storage._owner, storage._schema, storage._columns = owner, schema, columns
    return _known.setdefault(owner, storage)


_known: "WeakValueDictionary[Owner, ShareableStorage]" = WeakValueDictionary()
"""The shared storages on devices that this process has made, or has attached to."""


def _sharing(streams: Streams) -> SharingStreams:
    assert isinstance(streams, SharingStreams), f"{streams!r} cannot share memory"
    return streams
