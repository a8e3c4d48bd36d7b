"""Checks of arguments, before anything waits or changes."""

import math
import operator
from numbers import Real

from forebay._calls import Event


def timeout_seconds(value: object) -> float | None:
    """Return a timeout in seconds; None waits for ever, and so does infinity.

    Raises:
        TypeError: it is no real number.
        ValueError: it is negative or not a number.
    """
    if value is None:
        return None
    seconds = _seconds("timeout", value)
    if not seconds >= 0.0:
        raise ValueError(f"timeout must be None or at least 0 seconds, got {value!r}")
    return None if math.isinf(seconds) else seconds


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return an integer argument.

    Raises:
        TypeError: it is no integer.
        ValueError: it is less than `least` or more than `most`.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, got {value!r}")
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    if most is not None and number > most:
        raise ValueError(f"{name} must be at most {most}, got {number}")
    return number


def request_sizes(
    batch_size: object, at_least: object, default: int | None, capacity: int
) -> tuple[int, int]:
    """Return how many records a reader asks for, and how many will do.

    Raises:
        TypeError: a size is no integer.
        ValueError: a size is missing, less than 1, or larger than what it has to fit into.
    """
    if batch_size is None:
        if default is None:
            raise ValueError(
                "no batch size: pass batch_size to this call or to the buffer's constructor"
            )
        k = default
    else:
        k = whole_number("batch_size", batch_size, 1)
    if k > capacity:
        raise ValueError(f"batch_size {k} is larger than the capacity of {capacity}")
    if at_least is None:
        return k, k
    m = whole_number("at_least", at_least, 1)
    if m > k:
        raise ValueError(f"at_least {m} is larger than the batch size of {k}")
    return k, m


def checked_event(value: object) -> Event | None:
    """Return a cancel event.

    Raises:
        TypeError: it has no method `is_set`.
    """
    if value is None:
        return None
    if not isinstance(value, Event):
        raise TypeError(
            f"cancel_event must be a token of buffer.cancel_token() or have is_set(), got {value!r}"
        )
    return value


def seconds_or_none(name: str, value: object) -> float | None:
    """Return an optional positive number of seconds.

    Raises:
        TypeError: it is no real number.
        ValueError: it is not positive.
    """
    seconds = _seconds(name, value)
    if not seconds > 0.0:
        raise ValueError(f"{name} must be None or more than 0 seconds, got {value!r}")
    return None if math.isinf(seconds) else seconds


def _seconds(name: str, value: object) -> float:
    """Return a number of seconds; None is infinitely many."""
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be None or a number of seconds, got {value!r}")
    try:
        return float(value)
    except OverflowError:  # a whole number or a fraction that no float holds
        return -math.inf if value < 0 else math.inf
