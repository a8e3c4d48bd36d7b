"""How a fault of the library is planted: a method is replaced for the length of a `with` block."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, TypeVar
from unittest.mock import patch


class LocalMutant(NamedTuple):
    """A fault: what is wrong, a context manager that plants it, and whether it takes an overwriting
    buffer to find it."""

    sentence: str
    plant: Callable[[], AbstractContextManager[object]]
    overwriting: bool


PLANTED: Final[dict[str, LocalMutant]] = {}
"""The faults by their names, in the order in which they were registered."""

Replacement = TypeVar("Replacement")


def mutant(
    name: str,
    owner: object,
    attribute: str,
    sentence: str,
    *,
    overwriting: bool = False,
    among: dict[str, LocalMutant] = PLANTED,
) -> Callable[[Replacement], Replacement]:
    """Register a fault that replaces an attribute of a class or module by what follows."""

    def register(replacement: Replacement) -> Replacement:
        assert hasattr(owner, attribute), f"{owner} has no {attribute}"
        among[name] = LocalMutant(
            sentence, lambda: patch.object(owner, attribute, replacement), overwriting
        )
        return replacement

    return register
