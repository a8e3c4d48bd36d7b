"""Host memory through which records go to a device and come back.

It is page-locked, so that copies run while the host goes on, and costly to make, so that it is used
again: once the last copy of it has run. Where a few such buffers are all in use, the host waits for
the oldest, so that a writer that is faster than the device does not fill the host's memory.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import torch

from forebay._arrays import Array
from forebay._order import Track
from forebay._streams import Event, Streams

MOST: Final = 4
"""How many buffers wait for their last copy; those that are being filled come on top of that."""

ALIGNMENT: Final = 64
"""Pieces begin at multiples of this many bytes, which every number's size divides."""

LEAST: Final = 4096
"""Bytes of the smallest buffer."""


@dataclass(eq=False)
class Buffer:
    """Some staging memory.

    Attributes:
        memory: uint8[bytes].
        last: the event of the last copy; None once that has run.
    """

    memory: torch.Tensor
    last: Event | None = None


class Staging:
    """The staging memory of one storage.

    Args:
        streams: the device.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._back: deque[Buffer] = deque()

    def lend(self, nbytes: int) -> Buffer:
        """Return at least so many bytes that nothing uses.

        One that is never given back is simply gone.

        Raises:
            MemoryError: there is not so much memory.
        """
        for _ in range(len(self._back)):
            buffer = self._oldest()
            if buffer is None:
                break
            if buffer.memory.numel() >= nbytes and self._is_free(buffer):
                return buffer
            self._back.append(buffer)
        if len(self._back) >= MOST:
            buffer = self._oldest()
            if buffer is not None and buffer.memory.numel() >= nbytes:
                if buffer.last is not None:
                    self._streams.synchronize(buffer.last)
                return buffer
        return Buffer(self._streams.staging(max(LEAST, 1 << (nbytes - 1).bit_length())))

    def give_back(self, buffer: Buffer, last: Event | None) -> None:
        """Take a buffer back whose last copy has this event, or has run."""
        buffer.last = last
        self._back.append(buffer)

    def _is_free(self, buffer: Buffer) -> bool:
        return buffer.last is None or self._streams.over(buffer.last)

    def _oldest(self) -> Buffer | None:
        try:
            return self._back.popleft()
        except IndexError:  # other threads have taken them
            return None


class Freight:
    """Pieces of one staging buffer, for one transport.

    Args:
        staging: lends the buffer.
        sizes: how many bytes each piece has.
    """

    def __init__(self, staging: Staging, sizes: Sequence[int]) -> None:
        self._staging = staging
        self._sizes = sizes
        self._begins = list(accumulate((_aligned(size) for size in sizes), initial=0))
        self._buffer = staging.lend(self._begins[-1]) if self._begins[-1] else None

    @property
    def memory(self) -> torch.Tensor | None:
        """All pieces, uint8, with what lies between them; None if they are empty."""
        return None if self._buffer is None else self._buffer.memory[: self._begins[-1]]

    def pieces(self, memory: torch.Tensor | None) -> list[torch.Tensor]:
        """Return the pieces of memory that is laid out like this, uint8 each."""
        if memory is None:
            memory = torch.empty(0, dtype=torch.uint8, device="cpu")
        pairs = zip(self._begins, self._sizes, strict=False)
        return [memory[begin : begin + size] for begin, size in pairs]

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy an array into each piece."""
        for piece, array in zip(self.pieces(self.memory), arrays, strict=True):
            piece.numpy().view(array.dtype).reshape(array.shape)[...] = array

    def empty_into(self, arrays: Sequence[Array]) -> None:
        """Copy each piece into an array."""
        for piece, array in zip(self.pieces(self.memory), arrays, strict=True):
            array[...] = piece.numpy().view(array.dtype).reshape(array.shape)

    def end(self, track: Track) -> None:
        """Give the buffer back, whose copies are among the work of a stream."""
        if self._buffer is not None:
            self._staging.give_back(self._buffer, track.latest())


def room_for(sizes: Sequence[int]) -> int:
    """Return how many bytes pieces of these sizes take together."""
    return sum(map(_aligned, sizes))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
