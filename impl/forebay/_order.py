"""In which order the copies of a storage on a device run; the decision is docs/adr/0010.

The ledger says who may touch a slot on the host. On the device the last copy into it may not have
run by then, nor the last reads of it. So for each slot and each stream the last of both is noted,
as the number that it has among the stream's work, and an event for each number. Whoever copies into
slots lets its stream wait for the copies and the reads that are noted of them; whoever reads, for
the copies only. Since a stream runs in order, its last one among some slots stands for all of them.

Notes are never taken back: a number whose event is over is no reason to wait any more. Nobody looks
at a slot while somebody writes its notes, which is the ledger's doing: a slot that is written is
nobody else's, and who writes it next comes after all who read it.

A note is made before the work is queued and its event is recorded afterwards, so that an interrupt
in between loses nothing: for a number that has no event, whoever needs it records one. An event is
kept with a number only if everything up to that number had been queued when it was recorded, so
every event that is kept is right, in whatever order they are.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias
from weakref import WeakMethod

import numpy as np

from forebay._errors import reserving
from forebay._stores import Ints
from forebay._streams import Event, Stream, Streams

Where: TypeAlias = Ints | slice
"""Slots, by their numbers or as a range; at least one."""

Queue: TypeAlias = Callable[[Stream], None]
"""Queues something in a stream."""


class Track:
    """The work of one stream on the slots of a storage.

    Attributes:
        stream: the stream.
        copied: for each slot the number of the last copy into it, 0 for none.
        read: for each slot the number of the last read of it, 0 for none.
    """

    def __init__(self, streams: Streams, stream: Stream, capacity: int) -> None:
        self.stream: Final = stream
        with reserving(f"the notes of {capacity} records"):
            self.copied: Final = np.zeros(capacity, np.int64)
            self.read: Final = np.zeros(capacity, np.int64)
        self._streams = streams
        self._last = 0
        self._outer = 0
        self._over = 0
        self._events: deque[tuple[int, Event]] = deque()
        self._queueing = threading.RLock()

    def work(self, notes: Ints, where: Where, queue: Queue) -> None:
        """Queue something, which is noted for slots before and marked by an event afterwards.

        One thread at a time, so that numbers are in the order of the queue. A signal handler may do
        it in the middle of what its own thread queues: then the outer one marks what both have.
        """
        with self._queueing:
            outer = self._outer
            try:
                self._outer = outer or self._last + 1
                self._last += 1
                notes[where] = self._last
                queue(self.stream)
            finally:
                self._outer = outer
                if not outer:
                    self._mark(self._last)

    def event(self, number: int) -> Event | None:
        """Return an event of the work with a number, or None if it has run."""
        self._forget_over()
        if number <= self._over:
            return None
        marks = list(self._events)
        found = next((event for marked, event in marks if marked >= number), None)
        return self._mark(number) if found is None else found

    def latest(self) -> Event | None:
        """Return an event of all the work so far, or None if it has run."""
        return self.event(self._last)

    def _forget_over(self) -> None:
        """Forget the events that are over.

        Threads and signal handlers may do it at once, so each is taken out before it is looked at.
        They may come back in another order, and one may be lost on the way: that is as if it had
        never been recorded.
        """
        with suppress(IndexError):
            while True:
                number, event = self._events.popleft()
                if not self._streams.over(event):
                    self._events.appendleft((number, event))
                    return
                self._over = max(self._over, number)

    def _mark(self, number: int) -> Event:
        """Record an event for all that is queued, which has numbers up to this one.

        It is kept for others only if none of that is still being queued when it is recorded.
        """
        whole = not 0 < self._outer <= number
        event = self._streams.record(self.stream)
        if whole:
            self._events.append((number, event))
        return event


class Order:
    """The notes of all slots of one storage.

    Args:
        streams: the device.
        capacity: the number of slots.
        meet: a method that is called for each stream that works on the storage for the first time.
    """

    def __init__(self, streams: Streams, capacity: int, meet: Callable[[Stream], None]) -> None:
        self._streams = streams
        self._capacity = capacity
        # No cycle: the memory of a device goes with the last handle, not with a collection.
        self._meet = WeakMethod(meet)
        self._tracks: dict[Stream, Track] = {}

    def copying(self, where: Where, queue: Queue) -> Track:
        """Queue copies into slots, behind what was queued for them before; returns the track."""
        mine = self._behind(lambda it: max(it.copied[where].max(), it.read[where].max()))
        mine.work(mine.copied, where, queue)
        return mine

    def reading(self, where: Where, queue: Queue) -> Track:
        """Queue reads of slots, behind the copies that were queued for them; returns the track."""
        mine = self._behind(lambda it: it.copied[where].max())
        mine.work(mine.read, where, queue)
        return mine

    def _behind(self, last: Callable[[Track], int]) -> Track:
        """Let the current stream wait for work of all others; returns its track.

        Args:
            last: gives the number of the last work of a stream that matters, 0 for none.
        """
        mine = self._track()
        for track in self._others(mine):
            number = int(last(track))
            event = track.event(number) if number else None
            if event is not None:
                self._streams.wait(mine.stream, event)
        return mine

    def _track(self) -> Track:
        """Return the track of the calling thread's stream."""
        stream = self._streams.current()
        track = self._tracks.get(stream)
        if track is None:
            meet = self._meet()
            assert meet is not None, "whoever has the notes lives"
            meet(stream)
            made = Track(self._streams, stream, self._capacity)
            track = self._tracks.setdefault(stream, made)
        return track

    def _others(self, mine: Track) -> list[Track]:
        return [track for track in list(self._tracks.values()) if track is not mine]
