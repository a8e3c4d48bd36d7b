"""Records that tell which record they are, in the forms that the storages take.

Each record carries its number in several places, so that a row made of two records, or of none, is
recognised: it has the number 0, which no record has.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast, get_args

import torch
from forebay import CudaStorage, ListStorage, SharedStorage, TensorStorage
from forebay._device_storage import DeviceStorage
from forebay._saved_rows import RowCopy
from forebay._stores import Ints

from forebay_models.device.simulated import SimulatedDevice
from forebay_models.targets import StorageKind

STORAGES: Final[tuple[StorageKind, ...]] = get_args(StorageKind)
TORN: Final = 0
_WIDTH: Final = 3


COPYING: Final = "copying"
"""The label of a capture before it copies a record."""

Stepped = TensorStorage | ListStorage | SharedStorage | DeviceStorage
"""The storages that are driven."""


class StepByStep:
    """Copies of the records of a capture, one at a time, each with a stop before it.

    Args:
        copies: the storage's own.
        point: marks the stop.
    """

    part = 1

    def __init__(self, copies: RowCopy, point: Callable[[str], None]) -> None:
        self._copies = copies
        self._point = point
        self._added = 0

    def add(self, slots: Ints) -> None:
        """Copy a record."""
        self._point(COPYING)
        self._add(slots)

    def finish(self, slots: Ints) -> None:
        """Copy without any stop what of these is not copied yet."""
        for position in range(self._added, len(slots)):
            self._add(slots[position : position + 1])

    def data(self) -> object:
        """Return all that were copied."""
        return self._copies.data()

    def _add(self, slots: Ints) -> None:
        self._copies.add(slots)
        self._added += len(slots)


def storage_of(kind: StorageKind, capacity: int, seed: int = 0) -> Stepped:
    """Return an empty storage; where there is an adversary, it has the seed.

    Raises:
        RuntimeError: its device is not there.
    """
    if kind == "list":
        return ListStorage(capacity)
    if kind == "tensor":
        return TensorStorage(capacity)
    if kind == "simulated":
        return DeviceStorage(capacity, streams=SimulatedDevice(seed, apart=True))
    if kind == "cuda":
        return CudaStorage(capacity)
    columns = cast(Mapping[str, torch.Tensor], batch_of(kind, [TORN]))
    return SharedStorage(capacity, example={name: column[0] for name, column in columns.items()})


def batch_of(kind: StorageKind, numbers: Sequence[int]) -> object:
    """Return a batch of the records with these numbers."""
    if kind == "list":
        return [{"number": number, "text": f"record {number}"} for number in numbers]
    column = torch.tensor(numbers, dtype=torch.int64)
    return {"number": column, "copies": column.to(torch.int32).unsqueeze(1).repeat(1, _WIDTH)}


def numbers_in(kind: StorageKind, batch: object) -> tuple[int, ...]:
    """Return the numbers of a batch's records, `TORN` for a row that is no whole record."""
    if kind == "list":
        return tuple(map(_number_of, cast(Sequence[Mapping[str, object]], batch)))
    columns = cast(Mapping[str, torch.Tensor], batch)
    numbers: list[int] = columns["number"].tolist()
    copies: list[list[int]] = columns["copies"].tolist()
    return tuple(
        number if row == [number] * _WIDTH else TORN
        for number, row in zip(numbers, copies, strict=True)
    )


def _number_of(record: Mapping[str, object]) -> int:
    number = record["number"]
    whole = isinstance(number, int) and record["text"] == f"record {number}"
    return cast(int, number) if whole else TORN
