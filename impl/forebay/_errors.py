"""The errors that a buffer raises, each for one outcome that a caller can tell apart.

A timeout, a cancellation, a closed buffer and a mutual wait are different outcomes and look
different, because code reacts to them differently: one retries, one exits, one ends its epoch, one
is a mistake in sizes. Where the standard library has a name for the same outcome, the error derives
from that too, so that code written for `queue.Queue` keeps working.
"""

import queue
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info < (3, 13):

    class _ClosedQueue(Exception):
        """Stands in for `queue.ShutDown`, which Python has from 3.13 on."""

else:
    _ClosedQueue = queue.ShutDown


class AdmissionTimeout(queue.Full, TimeoutError):
    """A writer's timeout passed before its batch was admitted; the batch is certainly absent."""


class SampleTimeout(queue.Empty, TimeoutError):
    """A reader's timeout passed before enough records could be sampled; nothing was consumed."""


class Cancelled(RuntimeError):
    """The call's cancel token or event was set before the call was served; it had no effect."""


class ShutDown(RuntimeError, _ClosedQueue):
    """The buffer is closed: to writers at once, to readers when nothing is left for them."""


class MutualWait(RuntimeError):
    """The waiting calls could only wait for each other for ever, and this one gave way."""


class RecordMismatch(ValueError):
    """A batch does not have the keys, shapes, dtypes or device of the buffer's records."""


class CheckpointError(RuntimeError):
    """A checkpoint cannot be used; the live buffer is untouched."""


class PeerLost(RuntimeError):
    """Another participant failed, so that this buffer cannot be used any more; see the cause."""


class LimitReached(RuntimeError):
    """A table of the ledger is full; the message names the limit and how to raise it."""


@contextmanager
def reserving(what: str) -> Iterator[None]:
    """Reserve memory for something that the caller has sized, and name it if there is not enough.

    Raises:
        MemoryError: there is not, or the size is beyond what could be asked for.
    """
    try:
        yield
    except (MemoryError, OverflowError, ValueError) as error:
        raise MemoryError(f"there is no memory for {what}") from error
