"""The port to a device whose work is queued: streams, events, copies, and nothing else.

A call that copies on a device only puts the copy into the queue of a stream. It runs at any later
time, after what is in front of it in its stream, and in no order with other streams, unless one
waits for an event of the other. Everything that a storage wants of a device is in this protocol, so
that the order that it keeps can be checked without one: besides the implementation for CUDA there
is a simulated device, which runs what is queued in as unlucky an order as streams and events allow.

Nothing here waits on the host but `synchronize`, and nothing ever waits for a whole device.
"""

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, runtime_checkable

import torch

Stream: TypeAlias = Hashable
"""A queue of a device; two names of one queue are equal."""

Event: TypeAlias = object
"""A place in a queue: what had been queued when it was recorded."""


class Streams(Protocol):
    """One device, as the calling process has it.

    All methods may be called by any thread. Tensors of the device are those that `empty` returned,
    that views of them are, or that a caller has made on the device by other means.
    """

    @property
    def device(self) -> torch.device:
        """Where the tensors of the device are."""

    def holds(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor is in the memory of the device."""

    def current(self) -> Stream:
        """Return the stream to which the calling thread's work goes."""

    def own(self) -> Stream:
        """Return a stream for the calling thread's work aside, the same one each time."""

    def on(self, stream: Stream) -> AbstractContextManager[object]:
        """Let the calling thread's work go to a stream within a block."""

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return new memory of the device, for work that goes to the calling thread's stream.

        Once nobody knows the tensor any more, its memory may be handed out again at once for work
        of the same stream. For work of other streams see `keep`.

        Raises:
            MemoryError: there is not so much; names both figures.
        """

    def staging(self, nbytes: int) -> torch.Tensor:
        """Return new host memory, uint8[nbytes], that copies to and from the device may use.

        Once nobody knows it any more, it is handed out again only when the copies that were queued
        of it have run.

        Raises:
            MemoryError: there is not so much.
        """

    def copy(self, stream: Stream, source: torch.Tensor, target: torch.Tensor) -> None:
        """Queue a copy of a tensor into another of the same shape, converted to its dtype.

        One of them is of the device; the other may be in staging memory.
        """

    def put(
        self, stream: Stream, rows: torch.Tensor, slots: torch.Tensor, column: torch.Tensor
    ) -> None:
        """Queue a copy of `rows[i]` into `column[slots[i]]`; all three are of the device."""

    def take(
        self, stream: Stream, column: torch.Tensor, slots: torch.Tensor, rows: torch.Tensor
    ) -> None:
        """Queue a copy of `column[slots[i]]` into `rows[i]`; all three are of the device."""

    def record(self, stream: Stream) -> Event:
        """Return a new event: all that is in the queue of a stream now."""

    def wait(self, stream: Stream, event: Event) -> None:
        """Let what is queued in a stream from now on run after an event."""

    def over(self, event: Event) -> bool:
        """Tell whether all that an event stands for has run."""

    def synchronize(self, event: Event) -> None:
        """Wait on the host until all that an event stands for has run."""

    def keep(self, tensor: torch.Tensor, stream: Stream) -> None:
        """Keep a tensor's memory, once nobody knows it any more, until a stream has done its work.

        For memory that was not handed out for that stream: what is in its queue at that time may
        still use it.
        """


@runtime_checkable
class SharingStreams(Streams, Protocol):
    """A device whose memory several processes can use; it can be pickled.

    Each of them has streams and events of its own, of which the others know nothing.
    """

    def share(self, tensor: torch.Tensor) -> object:
        """Return a handle of memory that `empty` returned in this process; it can be pickled.

        It is for one other process, which attaches to it once. The memory lasts as long as this
        process does, at most.
        """

    def attach(self, handle: object) -> torch.Tensor:
        """Return the memory of another process's tensor, of which this is a handle."""
