"""What can be driven, and what of the specification can be exercised there.

`local` is the buffer on threads, which cannot be killed and are all of one process. `shared` is a
buffer over a `SharedStorage`; its participants can, and each is a process of its own. `simulated`
and `cuda` are the buffer on threads with its records on a device: one that runs what is queued when
an adversary says so, and a GPU.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from forebay_spec.actions import ACTIONS
from forebay_spec.bounds import FEATURES, QUICK, Bounds
from forebay_spec.properties import WITNESSES

StorageKind = Literal["tensor", "list", "shared", "simulated", "cuda"]
_DEATHS: Final = frozenset({"Kill", "Recover"})
_OF_ONE_PROCESS_ONLY: Final = frozenset({"HeldOffByCapture"})
"""The witnesses that need two actors of one process."""


class Target(StrEnum):
    """What can be driven."""

    LOCAL = "local"
    SHARED = "shared"
    SIMULATED = "simulated"
    CUDA = "cuda"


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


def _witnesses(graphs: Mapping[str, Bounds]) -> tuple[str, ...]:
    """Return the witnesses that can be shown where nobody can be killed, or somebody can."""
    mortal = any("Kill" in bounds.features for bounds in graphs.values())
    return tuple(
        name
        for name, row in WITNESSES.items()
        if (name not in _OF_ONE_PROCESS_ONLY if mortal else not _DEATHS & set(row.actions))
    )


_OF_ONE_PROCESS: Final = {
    name: bounds for name, bounds in QUICK.items() if "Kill" not in bounds.features
}
_OF_MANY: Final = {name: bounds for name, bounds in QUICK.items() if not bounds.process_of}

LOCAL: Final = Scope(
    Target.LOCAL,
    ("tensor", "list"),
    FEATURES - {"Kill"},
    tuple(name for name in ACTIONS if name not in _DEATHS),
    _witnesses(_OF_ONE_PROCESS),
    _OF_ONE_PROCESS,
)
SHARED: Final = Scope(
    Target.SHARED, ("shared",), FEATURES, tuple(ACTIONS), _witnesses(_OF_MANY), _OF_MANY
)
SIMULATED: Final = LOCAL._replace(target=Target.SIMULATED, storages=("simulated",))
CUDA: Final = LOCAL._replace(target=Target.CUDA, storages=("cuda",))
SCOPES: Final[Mapping[Target, Scope]] = {
    scope.target: scope for scope in (LOCAL, SHARED, SIMULATED, CUDA)
}
