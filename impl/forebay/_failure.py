"""The cause of a failure as bytes in shared memory, for the other processes of a buffer.

An exception travels pickled, when that works here and there, and in words for when it does not.
"""

import os
import pickle
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

FAILURE_BYTES: Final = 8192
"""Room for the cause of a failure."""

_WORDS: Final = 2048


def write_failure(area: Bytes, error: BaseException) -> int:
    """Write an exception down and return how many bytes that took, at least 1."""
    note = (_words(error).encode(errors="backslashreplace")[:_WORDS], b"")
    try:
        pickled = pickle.dumps(error)
        if isinstance(pickle.loads(pickled), BaseException):
            note = (note[0], pickled)
    except Exception:
        pass
    data = pickle.dumps(note)
    if len(data) > len(area):
        data = pickle.dumps((note[0], b""))
    area[: len(data)] = np.frombuffer(data, np.uint8)
    return len(data)


def _words(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:
        said = "an exception that cannot say what it is"
    return f"{type(error).__name__}: {said} (in process {os.getpid()})"


def read_failure(area: Bytes, length: int) -> BaseException:
    """Return the exception that was written down, or a RuntimeError with its words."""
    words, pickled = pickle.loads(area[:length].tobytes())
    if pickled:
        try:
            error: BaseException = pickle.loads(pickled)
        except Exception:  # its class may be one that only the other process knows
            pass
        else:
            return error
    return RuntimeError(words.decode(errors="replace"))
