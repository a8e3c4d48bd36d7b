"""The memory of the simulated device, each block of it with a twin, and who may have it when.

A block is handed out for the stream that is current then. It comes back when nobody knows the
tensor any more, and may be handed out again at once for the same stream, whose queue keeps the
order; the last one that came back is the first to go. For another stream it has to wait until all
has run that was queued when it came back. A stream for which it was kept has to have run as far
in either case. That is how caching allocators do it, at their most eager.

Where a tensor dies is up to the interpreter, and may be in the middle of anything. So its block
only gets into a list then, and `collect` looks at the list.
"""

import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np
import torch
from forebay._arrays import Array, array_dtype, tensor_of

from forebay_models.device.queues import GARBAGE, SimulatedEvent, SimulatedStream

CLASS: Final = 512
"""Blocks are multiples of so many bytes; those of one size stand in for each other."""

VIEWS: Final = 64
"""How many views of a block are kept."""

_WORDS: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.int16),
    4: np.dtype(np.int32),
    8: np.dtype(np.int64),
    16: np.dtype(np.complex128),
}

NOTHING: Final = SimulatedEvent(SimulatedStream("nothing", -1, None), 0)
"""An event that is complete."""


class Block:
    """Raw memory with its twin; staging memory has none.

    Attributes:
        real: what is there, in bytes.
        twin: what would be there if no operation ever waited in a queue.
        start: the address of the first byte.
        stream: the stream for which it was handed out.
        kept: other streams that use it, in the order in which that was said.
        behind: what has to have run before anybody may have it again.
        mark: what has to have run before another stream may have it.
        views: arrays that were made of it, by place, shape and size of the elements.
        number: blocks in the order in which they were made.
    """

    __slots__ = ("behind", "kept", "mark", "number", "real", "start", "stream", "twin", "views")

    def __init__(self, size: int, stream: SimulatedStream | None) -> None:
        self.real: Final[Array] = np.full(size, GARBAGE, np.uint8)
        self.twin: Final[Array | None] = None if stream is None else self.real.copy()
        self.start: Final[int] = self.real.ctypes.data
        self.stream = stream
        self.kept: Final[dict[SimulatedStream, None]] = {}
        self.behind: list[SimulatedEvent] = []
        self.mark = NOTHING
        self.views: Final[dict[object, tuple[Array, Array | None]]] = {}
        self.number = 0

    def view(self, place: int, tensor: torch.Tensor) -> tuple[Array, Array | None]:
        """Return what lies at a byte as words, in the shape of a tensor, and its twin."""
        words = _WORDS[tensor.itemsize]
        strides = [step * words.itemsize for step in tensor.stride()]
        real: Array = np.ndarray(tensor.shape, words, self.real, place, strides)
        if self.twin is None:
            return real, None
        return real, np.ndarray(tensor.shape, words, self.twin, place, strides)


class Owner(weakref.ref[Array]):
    """A reference to the array on which a tensor rests, with the block that the array is in."""

    __slots__ = ("block",)
    block: Block


class Memory:
    """All blocks.

    Args:
        limit: the number of bytes of the device, or None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._bytes = 0
        self._made = 0
        self._starts: list[int] = []
        self._blocks: list[Block] = []
        self._idle: dict[int, list[Block]] = {}
        self._owners: dict[int, Owner] = {}
        self._back: deque[Owner] = deque()

    def find(self, tensor: torch.Tensor) -> tuple[Block, int] | None:
        """Return the block that a tensor is in, and at which byte of it."""
        address = tensor.data_ptr() or tensor.untyped_storage().data_ptr()
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        block = self._blocks[index]
        place = address - block.start
        return (block, place) if place < block.real.size else None

    def contents(self) -> bytes:
        """Return what all blocks hold, in the order in which they were made."""
        blocks = sorted(self._blocks, key=lambda block: block.number)
        return b"".join(block.real.tobytes() for block in blocks)

    def views(self, tensor: torch.Tensor, name: str) -> tuple[Array, Array]:
        """Return a tensor of the device as words, and its twin.

        Raises:
            TypeError: it is not of the device.
        """
        real, twin = self.staged_views(tensor, name)
        if twin is None:
            raise TypeError(f"{name} is not memory of the device: {_described(tensor)}")
        return real, twin

    def staged_views(self, tensor: torch.Tensor, name: str) -> tuple[Array, Array | None]:
        """Return a tensor as words, and its twin, which staging memory has not.

        Raises:
            TypeError: it is neither of the device nor in staging memory.
        """
        found = self.find(tensor)
        if found is None:
            raise TypeError(
                f"{name} is neither memory of the device nor staging memory: {_described(tensor)}"
            )
        block, place = found
        key = place, tensor.itemsize, tensor.shape, tensor.stride()
        views = block.views.get(key)
        if views is None:
            if len(block.views) == VIEWS:
                block.views.clear()
            views = block.views[key] = block.view(place, tensor)
        return views

    def lend(
        self, nbytes: int, stream: SimulatedStream, *, quiet: bool = False
    ) -> Block | SimulatedEvent:
        """Return a block for a stream, or what has to have run before there can be one.

        With `quiet` nothing that is queued touches the block.

        Raises:
            MemoryError: there is not so much.
        """
        size = max(1, -(-nbytes // CLASS)) * CLASS
        block = self._again(size, stream, quiet)
        if block is not None:
            return block
        limit = self._limit
        if limit is not None and self._bytes + size > limit:
            waiting = self._drop_idle()
            if self._bytes + size > limit:
                if waiting is not None:
                    return waiting
                raise MemoryError(
                    f"{nbytes} bytes were asked for, and {limit - self._bytes} of the {limit} "
                    "bytes of the simulated device are free"
                )
        block = Block(size, stream)
        self._add(block)
        self._bytes += size
        return block

    def staging(self, nbytes: int) -> Block:
        """Return a block of host memory."""
        block = Block(max(1, nbytes), None)
        self._add(block)
        return block

    def tensor(self, block: Block, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return the tensor whose end gives a block back."""
        dims = tuple(shape)
        words = array_dtype(dtype)
        if prod(dims):
            array: Array = np.ndarray(dims, words, block.real)
            tensor = tensor_of(array, dtype)
        else:
            array = np.ndarray(1, words, block.real)
            tensor = tensor_of(array, dtype)[:0].view(dims)
        owner = Owner(array, self._back.append)
        owner.block = block
        self._owners[block.start] = owner
        return tensor

    def keep(self, tensor: torch.Tensor, stream: SimulatedStream) -> None:
        """Note that a stream uses a tensor of the device.

        Raises:
            TypeError: it is not of the device.
        """
        found = self.find(tensor)
        if found is None or found[0].twin is None:
            raise TypeError(f"a tensor to keep is not memory of the device: {_described(tensor)}")
        if stream is not found[0].stream:
            found[0].kept[stream] = None

    def collect(self) -> None:
        """Take back the blocks whose tensors nobody knows any more."""
        while self._back:
            block = self._back.popleft().block
            del self._owners[block.start]
            stream = block.stream
            if stream is None:
                self._remove(block)
                continue
            block.mark = SimulatedEvent(stream, stream.queued)
            block.behind = [SimulatedEvent(it, it.queued) for it in block.kept]
            block.kept.clear()
            self._idle.setdefault(block.real.size, []).append(block)

    def _again(self, size: int, stream: SimulatedStream, quiet: bool) -> Block | None:
        """Return the last block that came back and may be handed out for a stream."""
        idle = self._idle.get(size, [])
        for index in range(len(idle) - 1, -1, -1):
            block = idle[index]
            at_once = block.stream is stream and not quiet
            if (at_once or block.mark.over) and all(event.over for event in block.behind):
                del idle[index]
                block.stream = stream
                return block
        return None

    def _drop_idle(self) -> SimulatedEvent | None:
        """Forget idle blocks; for those that a stream still uses return an event to wait for."""
        waiting = None
        for idle in self._idle.values():
            for block in idle[:]:
                event = next((event for event in block.behind if not event.over), None)
                if event is None:
                    idle.remove(block)
                    self._remove(block)
                    self._bytes -= block.real.size
                waiting = waiting or event
        return waiting

    def _add(self, block: Block) -> None:
        block.number = self._made
        self._made += 1
        index = bisect_right(self._starts, block.start)
        self._starts.insert(index, block.start)
        self._blocks.insert(index, block)

    def _remove(self, block: Block) -> None:
        index = bisect_right(self._starts, block.start) - 1
        del self._starts[index], self._blocks[index]


def _described(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{tuple(tensor.shape)} at {tensor.data_ptr():#x}"
