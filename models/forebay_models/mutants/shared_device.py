"""Faults planted in how records on a device pass between processes.

Each entry is a small, believable mistake; tests show which run of several processes finds it. A
fault has to be planted in every process of a buffer, and before the buffer is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final
from unittest.mock import patch

from forebay._device_storage import DeviceStorage
from forebay._shared_device import Owner, ShareableStorage
from forebay._shared_peers import SharedPeers

from forebay_models.mutants.shared import SharedMutant

SHARED_DEVICE_MUTANTS: Final[dict[str, SharedMutant]] = {}


@contextmanager
def planted_in_sharing(fault: str) -> Iterator[None]:
    """Plant the fault of that name for the length of the block; nothing without a name."""
    with SHARED_DEVICE_MUTANTS[fault].plant() if fault else nullcontext():
        yield


def _mutant(name: str, owner: object, attribute: str, sentence: str, replacement: object) -> None:
    """Register a fault that replaces an attribute of a class."""
    assert hasattr(owner, attribute), f"{owner} has no {attribute}"
    SHARED_DEVICE_MUTANTS[name] = SharedMutant(
        sentence, lambda: patch.object(owner, attribute, replacement)
    )


_mutant(
    "owner_not_noted",
    SharedPeers,
    "own",
    "the ledger does not know whose the memory is, so those who wait are not told of its end",
    SharedPeers.enlist,
)
_mutant(
    "published_while_queued",
    ShareableStorage,
    "_put",
    "the host does not wait for copies before other processes may see the records",
    DeviceStorage._put,
)
_mutant(
    "delivered_while_queued",
    ShareableStorage,
    "read",
    "the host does not wait for a gather before other processes may write to the slots",
    DeviceStorage.read,
)
_mutant(
    "owner_not_asked_for",
    Owner,
    "lives",
    "nobody asks whether the memory was still there when it was read",
    lambda owner: True,
)
