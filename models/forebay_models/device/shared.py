"""A simulated device whose memory several processes use; all else each of them has for itself.

The memory lies in blocks that processes share, the twins of it too. So what a process queues is
promised to all at once, and has happened for them when that process's adversary has run it. Streams
and events of one process are unknown to the others, as on a real device, and what a process that
dies has queued never runs.

The bytes outlive the process that made them, which those of a real device may or may not do: a
storage must not care.
"""

from math import prod
from typing import Final, cast

import numpy as np
import torch
from forebay._arrays import Array
from forebay._shared_block import SharedBlock

from forebay_models.device.memory import CLASS, Block, Memory
from forebay_models.device.queues import GARBAGE, SimulatedEvent, SimulatedStream
from forebay_models.device.simulated import SimulatedDevice

ROOM: Final = 2**20
"""Bytes of memory that a process has, those of others not counted."""

Handle = tuple[SharedBlock, int, int, torch.Size, torch.dtype]
"""The memory of a process, where a block begins in it, its size, and the tensor in it."""


class PartBlock(Block):
    """A part of a block that processes share: of its first half, with the twin in the second.

    Args:
        memory: of the process that made it.
        place: where it begins.
        size: how many bytes it has.
        stream: for which it is handed out.
    """

    __slots__ = ("memory", "place")

    def __init__(self, memory: SharedBlock, place: int, size: int, stream: SimulatedStream) -> None:
        super().__init__(0, stream)
        half = memory.nbytes // 2
        self.memory: Final = memory
        self.place: Final = place
        self.real: Array = memory.array(np.uint8, (size,), place)  # type: ignore[misc]  # others are private
        self.twin: Array | None = memory.array(np.uint8, (size,), half + place)  # type: ignore[misc]  # as above
        self.start: int = self.real.ctypes.data  # type: ignore[misc]  # as above


class SharedMemory(Memory):
    """All blocks that a process knows: its own, and those of others that it is attached to."""

    def __init__(self) -> None:
        super().__init__(None)
        self._shared = SharedBlock(2 * ROOM)
        self._used = 0

    def lend(
        self, nbytes: int, stream: SimulatedStream, *, quiet: bool = False
    ) -> Block | SimulatedEvent:
        """Return a block for a stream; see `Memory.lend`."""
        size = max(1, -(-nbytes // CLASS)) * CLASS
        block = self._again(size, stream, quiet)
        if block is not None:
            return block
        if self._used + size > ROOM:
            raise MemoryError(
                f"{nbytes} bytes were asked for, and {ROOM - self._used} of the {ROOM} bytes of "
                "the simulated device are free"
            )
        block = PartBlock(self._shared, self._used, size, stream)
        for part in (block.real, block.twin):
            assert part is not None, "memory of the device has a twin"
            part.fill(GARBAGE)
        self._used += size
        self._add(block)
        return block

    def attach(self, handle: Handle, stream: SimulatedStream) -> torch.Tensor:
        """Return the tensor of another process's memory."""
        memory, place, size, shape, dtype = handle
        block = PartBlock(memory, place, size, stream)
        known = self.find(torch.from_numpy(block.real))
        if known is None:
            self._add(block)
        # A bare view: the block stays known, and its end gives nothing back.
        words = torch.from_numpy(block.real[: prod(shape) * dtype.itemsize])
        return words.view(dtype).view(shape)


class SimulatedSharedDevice(SimulatedDevice):
    """One simulated device, as one of several processes has it.

    Args:
        seed: of the adversary.
        apart: whether each thread begins with a current stream of its own.
    """

    def __init__(self, seed: int = 0, *, apart: bool = False) -> None:
        super().__init__(seed, apart=apart)
        self._seed = seed
        self._memory: SharedMemory = SharedMemory()

    def share(self, tensor: torch.Tensor) -> object:
        """Return a handle of memory that `empty` returned in this process; it can be pickled."""
        with self._lock:
            found = self._memory.find(tensor)
            block, place = found or (None, 0)
            if not isinstance(block, PartBlock):
                raise TypeError("only memory of the device can be shared")
            if block.memory is not self._memory._shared:
                raise RuntimeError("memory that was received from another process cannot be sent")
            assert not place, "whole columns are shared"
            return block.memory, block.place, block.real.size, tensor.shape, tensor.dtype

    def attach(self, handle: object) -> torch.Tensor:
        """Return the memory of another process's tensor, of which this is a handle."""
        with self._lock:
            return self._memory.attach(cast(Handle, handle), self.current())

    def __reduce__(self) -> tuple[type["SimulatedSharedDevice"], tuple[int]]:
        return SimulatedSharedDevice, (self._seed,)
