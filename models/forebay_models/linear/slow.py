"""A storage that takes its time, so that others come in between the two halves of a call.

Copying a few small records takes no time, so hardly anything would ever happen between a write's
admission and its publication, or between a draw and its delivery. Large records take long; these
pauses stand in for that. Nobody relies on how long they are.
"""

import random
import time
from typing import Final

import torch
from forebay import SharedStorage, Storage
from forebay._records import Rows
from forebay._stores import Ints

Pauses = tuple[float | None, ...]
PAUSES: Final[Pauses] = (None, None, 0.0, 0.0005, 0.002)
"""Seconds, or None for no pause; a pause of nothing still lets another thread run."""
LONG_PAUSES: Final[Pauses] = (None, 0.0, 0.002, 0.005, 0.01)
"""Long enough for a kill to come in between."""


class SlowStorage:
    """Another storage, with pauses before it copies."""

    def __init__(self, storage: Storage, choice: random.Random, pauses: Pauses = PAUSES) -> None:
        self._storage = storage
        self._choice = choice
        self._pauses = pauses

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return self._storage.capacity

    @property
    def device(self) -> torch.device:
        """Where the records are kept."""
        return self._storage.device

    @property
    def shared(self) -> bool:
        """Whether several processes can use the storage."""
        return isinstance(self._storage, SharedStorage)

    @property
    def initialized(self) -> bool:
        """Whether others may use the storage."""
        return self._storage.initialized

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        """Bring a batch into the form that `write` takes."""
        return self._storage.check(batch, dim_extend=dim_extend, cast=cast)

    def write(self, slots: Ints, rows: Rows) -> None:
        """Copy rows into slots, some time later."""
        self._pause()
        self._storage.write(slots, rows)

    def read(self, slots: Ints) -> object:
        """Return the records in slots, some time later."""
        self._pause()
        return self._storage.read(slots)

    def _pause(self) -> None:
        seconds = self._choice.choice(self._pauses)
        if seconds is not None:
            time.sleep(seconds)
