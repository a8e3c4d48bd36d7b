"""A handle for code that calls a bare `extend(data)` and knows nothing of timeouts or closing.

Collectors and other workers are often written by somebody else. Such code still needs a way out
that is neither a kill nor an exception that it does not expect, so the handle brings its own
defaults.
"""

from typing import TYPE_CHECKING, Literal

import torch

from forebay._calls import Event
from forebay._errors import ShutDown
from forebay._one_process import OneProcess

if TYPE_CHECKING:
    from forebay._read_write import ReadWriteBase
    from forebay._storage import Storage

WhenClosed = Literal["raise", "discard"]


class Writer(OneProcess):
    """Writes to a buffer with fixed defaults; from `writer` of the buffer.

    With `when_closed="discard"` a write to a closed buffer gives an empty index, and the buffer
    counts a refusal, so that a worker's loop can come to its own end.
    """

    def __init__(
        self,
        buffer: "ReadWriteBase",
        timeout: float | None,
        cancel_event: Event | None,
        when_closed: WhenClosed,
    ) -> None:
        self._buffer = buffer
        self._timeout = timeout
        self._cancel_event = cancel_event
        self._when_closed = when_closed

    def _travels(self) -> bool:
        return self._buffer.shared

    def extend(self, batch: object) -> torch.Tensor:
        """Write a batch; returns its index, int64[rows]. Raises what the buffer's `extend` does."""
        try:
            return self._buffer.extend(
                batch, timeout=self._timeout, cancel_event=self._cancel_event
            )
        except ShutDown:
            if self._when_closed == "raise":
                raise
            return torch.empty(0, dtype=torch.int64, device="cpu")

    def add(self, record: object) -> int | None:
        """Write one record; returns its index, or None where it was not written."""
        try:
            return self._buffer.add(record, timeout=self._timeout, cancel_event=self._cancel_event)
        except ShutDown:
            if self._when_closed == "raise":
                raise
            return None

    @property
    def write_count(self) -> int:
        """How many records were written to the buffer so far, by whomever."""
        return self._buffer.write_count

    @property
    def batch_size(self) -> int | None:
        """The buffer's batch size."""
        return self._buffer.batch_size

    @property
    def storage(self) -> "Storage":
        """The buffer's storage."""
        return self._buffer.storage

    @property
    def _storage(self) -> "Storage":
        return self._buffer.storage

    @property
    def shared(self) -> bool:
        """Whether other processes can use the buffer."""
        return self._buffer.shared

    def share(self) -> None:
        """Make the buffer usable by other processes; see the buffer's `share`."""
        self._buffer.share()

    def empty(self, empty_write_count: bool = True) -> None:
        """Remove all records; see the buffer's `empty`."""
        self._buffer.empty(empty_write_count)

    def __len__(self) -> int:
        return len(self._buffer)
