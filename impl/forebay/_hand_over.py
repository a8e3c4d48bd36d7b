"""Batches that one thread gathers and another one uses, where work is queued in streams.

What a thread has queued is behind what it queues next, and nobody else's. So a batch that is drawn
ahead is gathered on a stream of the gathering thread's own, and whoever is handed it lets its own
stream wait for it. A call that a thread makes in the place of a task works on the task's stream.

For storages on the host nothing of this is needed, and nothing is done.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, TypeVar, runtime_checkable

from forebay._payloads import tensors_in
from forebay._storage import Storage
from forebay._streams import Event, Streams

T = TypeVar("T")


@runtime_checkable
class OnDevice(Protocol):
    """A storage whose copies are queued in streams."""

    @property
    def streams(self) -> Streams:
        """The device."""


class HandOver:
    """How the batches of a storage get from one thread to another.

    Args:
        storage: where the records are.
    """

    def __init__(self, storage: Storage) -> None:
        self._streams: Final = storage.streams if isinstance(storage, OnDevice) else None

    def aside(self) -> AbstractContextManager[object]:
        """Work on a stream of the calling thread's own within a block."""
        streams = self._streams
        return nullcontext() if streams is None else streams.on(streams.own())

    def mark(self) -> Event | None:
        """Return the event of what the calling thread has queued, for whoever uses it."""
        streams = self._streams
        return None if streams is None else streams.record(streams.current())

    def receive(self, batch: T, event: Event | None) -> T:
        """Return a batch that has this event, for the stream of the calling thread."""
        streams = self._streams
        if streams is not None and event is not None:
            stream = streams.current()
            streams.wait(stream, event)
            for tensor in tensors_in(batch):
                if streams.holds(tensor):
                    streams.keep(tensor, stream)
        return batch

    def as_here(self, work: Callable[[], T]) -> Callable[[], T]:
        """Return work for another thread to do on the stream of the calling one."""
        streams = self._streams
        if streams is None:
            return work
        stream = streams.current()

        def there() -> T:
            with streams.on(stream):
                return work()

        return there
