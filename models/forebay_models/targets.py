"""What can be driven, and what of the specification can be exercised there.

`local` is the buffer on threads, which cannot be killed. `shared` is a buffer over a
`SharedStorage`; its participants can.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from forebay_spec.actions import ACTIONS
from forebay_spec.bounds import FEATURES, QUICK, Bounds
from forebay_spec.properties import WITNESSES

StorageKind = Literal["tensor", "list", "shared"]
_ABOUT_THE_DEAD: Final = frozenset({"Kill", "Recover"})


class Target(StrEnum):
    """What can be driven."""

    LOCAL = "local"
    SHARED = "shared"


class Scope(NamedTuple):
    """What can be exercised on a target.

    Attributes:
        target: the target.
        storages: where its records can be.
        features: what of the features may happen.
        actions: the actions that it can take.
        witnesses: the witnesses that it can show.
        graphs: the quick graphs that it can walk, by name.
    """

    target: Target
    storages: tuple[StorageKind, ...]
    features: frozenset[str]
    actions: tuple[str, ...]
    witnesses: tuple[str, ...]
    graphs: Mapping[str, Bounds]

    @property
    def where(self) -> str:
        """The storages, in words."""
        return f"{' and '.join(self.storages)} storage"


LOCAL: Final = Scope(
    Target.LOCAL,
    ("tensor", "list"),
    FEATURES - {"Kill"},
    tuple(name for name in ACTIONS if name not in _ABOUT_THE_DEAD),
    tuple(name for name, row in WITNESSES.items() if not _ABOUT_THE_DEAD & set(row.actions)),
    {name: bounds for name, bounds in QUICK.items() if "Kill" not in bounds.features},
)
SHARED: Final = Scope(
    Target.SHARED, ("shared",), FEATURES, tuple(ACTIONS), tuple(WITNESSES), dict(QUICK)
)
SCOPES: Final[Mapping[Target, Scope]] = {scope.target: scope for scope in (LOCAL, SHARED)}
