"""Faults planted in the order that a storage on a device keeps; see `forebay_models.mutants.local`.

Each leaves the ledger right, and most leave right what a device without queues would do: they show
only when what was queued runs late, early, or in another order than on the host.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from unittest.mock import patch
from weakref import WeakKeyDictionary

import numpy as np
import torch
from forebay._arrays import Array
from forebay._device_storage import DeviceStorage
from forebay._hand_over import HandOver
from forebay._order import Order, Queue, Track, Where
from forebay._payloads import tensors_in
from forebay._prefetch import Prefetcher
from forebay._read_write import ReadWriteBase
from forebay._schema import Leaf
from forebay._staging import Buffer, Staging
from forebay._stores import Ints, Store
from forebay._streams import Event, Stream

from forebay_models.mutants.planting import LocalMutant, mutant

T = TypeVar("T")

_PLANTED: Final[dict[str, LocalMutant]] = {}
DEVICE_MUTANTS: Final[Mapping[str, LocalMutant]] = _PLANTED

_device_mutant = partial(mutant, among=_PLANTED)
_copy_out = DeviceStorage.copy_out
_extend = ReadWriteBase.extend
_reading = Order.reading
_event = Track.event
_give_back = Staging.give_back
_plain = DeviceStorage._plain
_adopt = Prefetcher.adopt


@_device_mutant(
    "published_without_event",
    Order,
    "copying",
    "a record is published without the event of its copy, so that nobody can wait for that",
)
def _copy_without_note(self: Order, where: Where, queue: Queue) -> Track:
    mine = self._behind(lambda it: max(it.copied[where].max(), it.read[where].max()))
    mine.work(mine.copied, np.empty(0, np.int64), queue)
    return mine


@_device_mutant(
    "read_at_once",
    Order,
    "reading",
    "a reader does not wait for the copies into the slots that it reads",
)
def _read_at_once(self: Order, where: Where, queue: Queue) -> Track:
    mine = self._track()
    mine.work(mine.read, where, queue)
    return mine


@_device_mutant(
    "reused_without_readers_event",
    Order,
    "copying",
    "a writer does not wait for the reads of the slots that it writes",
)
def _copy_before_readers(self: Order, where: Where, queue: Queue) -> Track:
    mine = self._behind(lambda it: it.copied[where].max())
    mine.work(mine.copied, where, queue)
    return mine


@_device_mutant(
    "copied_without_last_copys_event",
    Order,
    "copying",
    "a writer does not wait for the last copy into the slots that it writes",
)
def _copy_before_writers(self: Order, where: Where, queue: Queue) -> Track:
    mine = self._behind(lambda it: it.read[where].max())
    mine.work(mine.copied, where, queue)
    return mine


@_device_mutant(
    "event_recorded_before_copy",
    Track,
    "work",
    "an event is recorded before the work is queued that it stands for",
)
def _mark_first(self: Track, notes: Ints, where: Where, queue: Queue) -> None:
    self._last += 1
    notes[where] = self._last
    self._mark(self._last)
    queue(self.stream)


_shared: Final[WeakKeyDictionary[object, Event]] = WeakKeyDictionary()
"""The one event that all batches on a device share, if that fault is planted."""


@_device_mutant(
    "one_event_for_all",
    Track,
    "event",
    "all batches share one event, which the last of them has recorded, on whatever stream",
)
def _shared_event(self: Track, number: int) -> Event | None:
    last = _event(self, self._last)
    if last is not None and number == self._last:
        _shared[self._streams] = last
    return _shared.get(self._streams)


@_device_mutant(
    "event_of_two_batches",
    Track,
    "work",
    "every second batch of a stream goes by the event of the one before",
)
def _share_event(self: Track, notes: Ints, where: Where, queue: Queue) -> None:
    shared = notes[where].max() < self._last and self._last % 2
    self._last += 1
    notes[where] = self._last - shared
    try:
        queue(self.stream)
    finally:
        self._mark(self._last)


@_device_mutant(
    "reads_of_one_stream_noted",
    Order,
    "reading",
    "of the streams that read a slot only the last one is noted",
)
def _note_last_reader(self: Order, where: Where, queue: Queue) -> Track:
    mine = _reading(self, where, queue)
    for track in self._others(mine):
        track.read[where] = 0
    return mine


@_device_mutant(
    "staging_reused_at_once",
    Staging,
    "give_back",
    "staging memory is filled again before it was copied to the device",
)
def _forget_last_copy(self: Staging, buffer: Buffer, last: Event | None) -> None:
    _give_back(self, buffer, None)


@_device_mutant(
    "captured_before_copied",
    DeviceStorage,
    "copy_out",
    "a capture uses rows on the host before they were copied there",
)
def _use_at_once(self: DeviceStorage, slots: Ints, columns: list[Array]) -> None:
    with patch.object(self.streams, "synchronize", lambda event: None):
        _copy_out(self, slots, columns)


@_device_mutant(
    "abandoned_copy_forgotten",
    ReadWriteBase,
    "extend",
    "nothing waits for the copy of a write that was abandoned",
)
def _extend_or_forget(self: ReadWriteBase, *batch: object, **options: Any) -> torch.Tensor:
    storage = self._storage
    if not isinstance(storage, DeviceStorage):
        return _extend(self, *batch, **options)
    track = storage._order._track()
    before = track._last
    try:
        return _extend(self, *batch, **options)
    except BaseException:
        track.copied[track.copied > before] = 0
        raise


@_device_mutant(
    "ahead_without_event",
    HandOver,
    "receive",
    "who is handed a batch that was drawn ahead does not wait for it",
)
def _receive_at_once(self: HandOver, batch: T, event: Event | None) -> T:
    streams = self._streams
    for tensor in tensors_in(batch) if streams is not None else ():
        if streams is not None and streams.holds(tensor):
            streams.keep(tensor, streams.current())
    return batch


@_device_mutant(
    "ahead_not_kept",
    HandOver,
    "receive",
    "memory of a batch that was drawn ahead is used again while its reader's stream uses it",
)
def _receive_without_keeping(self: HandOver, batch: T, event: Event | None) -> T:
    if self._streams is not None and event is not None:
        self._streams.wait(self._streams.current(), event)
    return batch


@_device_mutant(
    "restored_without_event",
    Prefetcher,
    "adopt",
    "who is handed a batch that was restored does not wait for it",
)
def _adopt_without_event(
    self: Prefetcher, entries: Sequence[tuple[int, int, Ints, Any]], event: Event | None
) -> list[Store]:
    return _adopt(self, entries, None)


@_device_mutant(
    "written_not_kept",
    DeviceStorage,
    "_plain",
    "memory of a batch on the device is used again before it was copied",
)
def _copy_without_keeping(
    self: DeviceStorage, stream: Stream, tensor: torch.Tensor, leaf: Leaf
) -> torch.Tensor:
    with patch.object(self.streams, "keep", lambda tensor, stream: None):
        return _plain(self, stream, tensor, leaf)
