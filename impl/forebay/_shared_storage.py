"""Records of fixed shape in memory that processes share.

The schema comes from an example, since all processes must know it before anything is written, and
the memory for all records is reserved at construction. It is anonymous: nothing is left behind when
the last process that has it ends, however that happens.
"""

import threading

import torch

from forebay import _native as native
from forebay._arrays import Array, array_dtype
from forebay._schema import Schema
from forebay._shared_block import ALIGNMENT, SharedBlock
from forebay._tensor_storage import TensorStorage


class SharedStorage(TensorStorage):
    """Slots for records of tensors with fixed shapes and dtypes, for several processes.

    A buffer over it can be handed to other processes: as an argument when they are started, with
    any start method, or through a queue. What travels is a handle; all processes use the same
    records.

    A storage belongs to one buffer.

    Args:
        capacity: the number of slots.
        example: one record, in any form, whose schema is used. Batch dimensions that it has belong
            to the record.
        device: `"cpu"`.

    Raises:
        RecordMismatch: the example cannot be stored.
        MemoryError: so much memory is not free; the message has the figures.
        NotImplementedError: this system cannot share memory between processes.
    """

    def __init__(
        self, capacity: int, *, example: object, device: torch.device | str = "cpu"
    ) -> None:
        if example is None:
            raise TypeError(
                "a SharedStorage needs an example: one record, whose keys, shapes and dtypes all "
                "processes then know"
            )
        super().__init__(capacity, example=example, device=device)

    @property
    def shared(self) -> bool:
        """Always true: buffers over this storage work across processes."""
        return True

    def claim(self) -> None:
        """Let a buffer have this storage for good; two would write over each other's records.

        Raises:
            ValueError: a buffer has it already, of whatever process.
        """
        assert self._schema is not None, "there is an example"
        if not native.try_acquire(self._block.address(_places(self._schema, self._capacity)[-1])):
            raise ValueError(
                "this SharedStorage belongs to a buffer already, and two would write over each "
                "other's records; make another SharedStorage, or hand that buffer itself to "
                "whoever is to use it"
            )

    def _reserve(self, schema: Schema) -> list[Array]:
        semaphore = _places(schema, self._capacity)[-1]
        self._block = SharedBlock(semaphore + ALIGNMENT)
        native.make_semaphore(self._block.address(semaphore), 1)
        return _arrays(self._block, schema, self._capacity)

    def __getstate__(self) -> tuple[int, Schema | None, SharedBlock]:
        return self._capacity, self._schema, self._block

    def __setstate__(self, state: tuple[int, Schema, SharedBlock]) -> None:
        self._capacity, self._schema, self._block = state
        self._columns = _arrays(self._block, self._schema, self._capacity)
        self._fixing = threading.Lock()


def _places(schema: Schema, capacity: int) -> list[int]:
    """Return at which byte the column of each leaf begins, and where the semaphore behind them is.

    The semaphore, of one, is taken by the buffer that gets the storage.
    """
    places = [0]
    for leaf in schema.leaves:
        nbytes = capacity * torch.Size(leaf.shape).numel() * leaf.dtype.itemsize
        places.append(places[-1] + -(-nbytes // ALIGNMENT) * ALIGNMENT)
    return places


def _arrays(block: SharedBlock, schema: Schema, capacity: int) -> list[Array]:
    places = _places(schema, capacity)[:-1]
    return [
        block.array(array_dtype(leaf.dtype), (capacity, *leaf.shape), at)
        for leaf, at in zip(schema.leaves, places, strict=True)
    ]
