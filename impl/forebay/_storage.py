"""What a buffer asks of the place where its records are kept.

A storage is a row of numbered slots and nothing more: which slot is free, live or held is the
ledger's business, and so is who may touch it when. The ledger hands every slot to one writer at a
time and to no reader meanwhile, so a storage copies without a lock.

A write is split in two, so that whatever can be wrong with a batch is found before the buffer has
reserved anything: `check` looks at the batch and changes nothing, `write` only copies.
"""

from typing import Protocol, runtime_checkable

import torch

from forebay._records import Rows
from forebay._stores import Ints


class Storage(Protocol):
    """Numbered slots for records, each written and read by the owner that the ledger names."""

    @property
    def capacity(self) -> int:
        """The number of slots."""

    @property
    def device(self) -> torch.device:
        """Where the records are kept."""

    @property
    def initialized(self) -> bool:
        """Always true: nothing has to be written before other participants may use the storage."""

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        """Bring a batch into the form that `write` takes; the storage stays as it is.

        A single record is passed as a list of one. The rows may share the memory of the batch, so
        the caller leaves the batch alone until `write` has returned.

        Args:
            batch: a TensorDict, a tensorclass, a dict of tensors or arrays, or a list of records.
            dim_extend: which batch dimension of a `[B, T]` batch comes first when it is flattened.
            cast: whether leaves of another dtype are converted where that keeps their kind.

        Raises:
            RecordMismatch: the records are not like those of the storage; all differing leaves are
                named.
        """

    def write(self, slots: Ints, rows: Rows) -> None:
        """Copy rows into slots, the i-th row into the i-th slot.

        Raises:
            RecordMismatch: another first write, after these rows were checked, has fixed a
                different schema; nothing was written.
        """

    def read(self, slots: Ints) -> object:
        """Return the records in slots, in their order, as a copy that stays what it is."""


@runtime_checkable
class Claimed(Protocol):
    """What a storage for several processes offers besides."""

    def claim(self) -> None:
        """Let a buffer have the storage for good.

        Raises:
            ValueError: a buffer has it already.
        """
