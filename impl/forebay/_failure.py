"""The cause of a failure as bytes in shared memory, for the other processes of a buffer.

An exception travels pickled, when that works here and there, and in words for when it does not.
"""

import os
import pickle
from typing import Final

FAILURE_BYTES: Final = 8192
"""Room for the cause of a failure."""

_WORDS: Final = 2048


def failure_bytes(error: BaseException, room: int) -> bytes:
    """Return an exception written down, in at most so many bytes; foreign code runs here."""
    said = f"{words_of(error)} (in process {os.getpid()})"
    words = said.encode(errors="backslashreplace")[:_WORDS]
    pickled = b""
    try:
        pickled = pickle.dumps(error)
        if not isinstance(pickle.loads(pickled), BaseException):
            pickled = b""
    except (Exception, SystemExit):
        pickled = b""
    data = pickle.dumps((words, pickled))
    return data if len(data) <= room else pickle.dumps((words, b""))


def words_of(error: BaseException) -> str:
    """Return the kind of an exception and what it says."""
    try:
        said = str(error)
    except (Exception, SystemExit):
        said = "an exception that cannot say what it is"
    return f"{type(error).__name__}: {said}"


def read_failure(data: bytes) -> BaseException:
    """Return the exception that was written down, or a RuntimeError with its words."""
    words, pickled = pickle.loads(data)
    if pickled:
        try:
            error = pickle.loads(pickled)
        except (Exception, SystemExit):  # its class may be one that only the other process knows
            error = None
        if isinstance(error, BaseException):
            return error
    return RuntimeError(words.decode(errors="replace"))
