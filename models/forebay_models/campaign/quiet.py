"""Keeps the library's warnings off the screen while it is driven into what it warns of."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_library() -> Iterator[None]:
    """Keep the library from warning of sizes that are meant to lead to mutual waits."""
    logger = logging.getLogger("forebay")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
