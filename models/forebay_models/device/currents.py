"""The streams of a device, and which of them is current for whom."""

import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

from forebay_models.device.queues import SimulatedStream


class _Mine(threading.local):
    """The streams of a thread: the current one, the one of its own, and the one it begins with."""

    current: SimulatedStream | None = None
    own: SimulatedStream | None = None
    first: SimulatedStream | None = None


class Currents:
    """All streams, in the order in which they were made.

    Args:
        owner: is in each stream.
        apart: whether each thread begins with a stream of its own, instead of the common one.
    """

    def __init__(self, owner: object, *, apart: bool) -> None:
        self.all: Final[list[SimulatedStream]] = []
        self._owner = owner
        self._apart = apart
        self._named: dict[str, SimulatedStream] = {}
        self._mine = _Mine()
        self._lock = threading.RLock()
        self._common = self.named("common")

    def named(self, name: str) -> SimulatedStream:
        """Return the stream of that name, the same one each time."""
        with self._lock:
            if name not in self._named:
                stream = SimulatedStream(name, len(self.all), self._owner)
                self._named[name] = stream
                self.all.append(stream)
            return self._named[name]

    def current(self) -> SimulatedStream:
        """Return the stream to which the calling thread's work goes."""
        mine = self._mine
        if mine.current is not None:
            return mine.current
        if not self._apart:
            return self._common
        if mine.first is None:
            mine.first = self._new("thread")
        return mine.first

    def own(self) -> SimulatedStream:
        """Return a stream for the calling thread's work aside, the same one each time."""
        mine = self._mine
        if mine.own is None:
            mine.own = self._new("own")
        return mine.own

    def on(self, stream: SimulatedStream) -> AbstractContextManager[object]:
        """Let the calling thread's work go to a stream within a block."""
        return _On(self._mine, stream)

    def _new(self, name: str) -> SimulatedStream:
        with self._lock:
            return self.named(f"{name} {len(self.all)}")


class _On:
    """Sets the current stream of a thread within a block."""

    __slots__ = ("_before", "_mine", "_stream")

    def __init__(self, mine: _Mine, stream: SimulatedStream) -> None:
        self._mine = mine
        self._stream = stream
        self._before: SimulatedStream | None = None

    def __enter__(self) -> SimulatedStream:
        self._before = self._mine.current
        self._mine.current = self._stream
        return self._stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._mine.current = self._before
