"""What a planted fault of a capture or a restore is."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple


class ResumeMutant(NamedTuple):
    """A fault: what is wrong, and a context manager that plants it."""

    sentence: str
    plant: Callable[[], AbstractContextManager[object]]
