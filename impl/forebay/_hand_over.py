"""Batches that one thread gathers and another one uses, where work is queued in streams.

What a thread has queued is behind what it queues next, and nobody else's. So a batch that is drawn
ahead is gathered on a stream of the gathering thread's own, and whoever is handed it lets its own
stream wait for it. A call that a thread makes in the place of a task works on the task's stream.

For storages on the host nothing of this is needed, and nothing is done.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeVar

import torch

from forebay._payloads import tensors_in
from forebay._streams import Event, Stream, Streams

T = TypeVar("T")


def streams_of(storage: object) -> Streams | None:
    """Return the device in whose streams a storage queues its copies; None if it is on the host."""
    streams: Streams | None = getattr(storage, "streams", None)
    return streams


class HandOver:
    """How the batches of a storage get from one thread to another.

    Args:
        storage: where the records are.
    """

    def __init__(self, storage: object) -> None:
        self._streams: Final = streams_of(storage)
        self._marks: dict[Stream, Event] = {}
        self._before: Event | None = None

    def aside(self) -> AbstractContextManager[object]:
        """Work on a stream of the calling thread's own within a block."""
        streams, before = self._streams, self._before
        if streams is None:
            return nullcontext()
        stream = streams.own()
        if before is not None and not streams.over(before):
            streams.wait(stream, before)
        return streams.on(stream)

    def mark(self) -> Event | None:
        """Return the event of what the calling thread has queued, for whoever uses it."""
        streams = self._streams
        if streams is None:
            return None
        stream = streams.current()
        event = self._marks[stream] = streams.record(stream)
        return event

    def catch_up(self) -> None:
        """Let the calling thread's stream wait for all marks, as for what transforms have done."""
        streams = self._streams
        if streams is not None:
            for event in list(self._marks.values()):
                streams.wait(streams.current(), event)

    def begin_here(self) -> None:
        """Let what is gathered aside from now on wait for what the calling thread has queued."""
        self._before = self.mark()

    def receive(self, batch: T, event: Event | None) -> T:
        """Return a batch that has this event, for the stream of the calling thread."""
        streams = self._streams
        if streams is not None and event is not None:
            stream = streams.current()
            streams.wait(stream, event)
            for tensor in tensors_in(batch):
                # What is not dense keeps its elements where nothing here knows.
                if streams.holds(tensor) and tensor.layout is torch.strided:
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
