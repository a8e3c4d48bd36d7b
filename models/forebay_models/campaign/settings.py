"""The settings that the campaign draws from: bounds, a storage and a seed of the random order.

Bounds of a campaign are wider than those of the exhaustive checks, since a random walk does not
have to see everything: more actors and larger sizes, all features, and enough waiting. Simple ones
come first, since failures are shrunk towards them.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from forebay_spec.bounds import Bounds, Request
from forebay_spec.kernel import Closing

from forebay_models.targets import LOCAL, Scope, StorageKind

_BOTH: Final = (Closing.DRAINING, Closing.STOPPED)
_LEASES: Final = (Request("lease", 1, 1), Request("lease", 2, 2), Request("lease", 3, 1))

_WIDE: Final = (
    Bounds(
        name="few",
        capacity=3,
        producers=("p1", "p2"),
        readers=("c1", "c2"),
        write_sizes=(1, 2, 3),
        requests=(Request("plain", 2, 2), Request("plain", 2, 1), Request("plain", 3, 3)),
        token_of=(("p1", "t1"), ("c1", "t2")),
        features=LOCAL.features,
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="crowd",
        capacity=4,
        uses=2,
        producers=("p1", "p2", "p3"),
        readers=("c1", "c2"),
        write_sizes=(1, 2, 4),
        requests=(Request("plain", 1, 1), Request("plain", 3, 2), Request("lease", 2, 1)),
        token_of=(("p1", "t1"), ("p2", "t1"), ("c1", "t2")),
        features=LOCAL.features,
        closings=_BOTH,
    ),
    Bounds(
        name="lenders",
        capacity=3,
        uses=2,
        producers=("p1", "x1"),
        readers=("x1", "c1"),
        write_sizes=(1, 2),
        requests=(Request("plain", 2, 2), *_LEASES),
        token_of=(("x1", "t1"),),
        features=LOCAL.features,
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="dice",
        capacity=4,
        uses=3,
        order="random",
        producers=("p1", "p2"),
        readers=("c1", "c2"),
        write_sizes=(1, 3),
        requests=(Request("plain", 1, 1), Request("plain", 3, 1), Request("lease", 2, 2)),
        token_of=(("p1", "t1"), ("p2", "t1"), ("c1", "t1"), ("c2", "t1")),
        features=LOCAL.features,
        closings=_BOTH,
    ),
    Bounds(
        name="dice-lenders",
        capacity=2,
        order="random",
        producers=("p1", "x1"),
        readers=("x1", "c1"),
        write_sizes=(1, 2),
        requests=(Request("plain", 1, 1), Request("lease", 1, 1), Request("lease", 2, 2)),
        features=LOCAL.features,
    ),
    Bounds(
        name="ahead",
        capacity=4,
        uses=2,
        producers=("p1", "p2"),
        readers=("c1", "c2"),
        write_sizes=(1, 2),
        requests=(Request("plain", 2, 2), Request("lease", 2, 2), Request("plain", 3, 1)),
        token_of=(("c1", "t1"), ("p1", "t1")),
        prefetch=3,
        batch_size=2,
        features=LOCAL.features,
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="ahead-dice",
        capacity=4,
        order="random",
        producers=("p1", "x1"),
        readers=("x1", "c1"),
        write_sizes=(1, 2, 3),
        requests=(Request("plain", 1, 1), Request("plain", 2, 1), Request("lease", 1, 1)),
        prefetch=2,
        features=LOCAL.features,
        closings=_BOTH,
    ),
    Bounds(
        name="loop",
        capacity=3,
        order="replacement",
        producers=("p1", "x1"),
        readers=("x1", "c1"),
        write_sizes=(1, 2, 3),
        requests=(Request("plain", 2, 2), Request("plain", 3, 1), Request("lease", 2, 1)),
        token_of=(("x1", "t1"), ("c1", "t1")),
        features=LOCAL.features,
        closings=_BOTH,
    ),
    Bounds(
        name="loop-ahead",
        capacity=3,
        order="replacement",
        producers=("p1", "p2"),
        readers=("c1", "c2"),
        write_sizes=(1, 2),
        requests=(Request("plain", 2, 1), Request("lease", 2, 2), Request("plain", 1, 1)),
        prefetch=2,
        batch_size=2,
        features=LOCAL.features,
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="rounds",
        capacity=4,
        order="epochs",
        producers=("p1", "p2"),
        readers=("c1", "c2"),
        write_sizes=(1, 3),
        requests=(Request("plain", 3, 1), Request("plain", 1, 1), Request("lease", 2, 1)),
        token_of=(("p1", "t1"), ("c1", "t1")),
        prefetch=2,
        batch_size=3,
        features=LOCAL.features,
        closings=_BOTH,
    ),
    Bounds(
        name="rounds-whole",
        capacity=4,
        order="epochs",
        drop_last=True,
        producers=("p1",),
        readers=("c1", "c2"),
        write_sizes=(1, 2),
        requests=(Request("plain", 2, 2), Request("lease", 2, 1), Request("lease", 3, 2)),
        prefetch=2,
        batch_size=2,
        features=LOCAL.features,
        closings=(Closing.DRAINING,),
    ),
)


def bounds_of(scope: Scope) -> tuple[Bounds, ...]:
    """Return the bounds that a campaign on a target draws from."""
    # "liveness" is "writers" with less in it, and "heals" is "crash".
    narrow = [bounds for name, bounds in scope.graphs.items() if name not in ("liveness", "heals")]
    every = [*narrow, *(_within(bounds, scope) for bounds in _WIDE)]
    # There is most to see where batches are drawn ahead.
    return (*every, *(bounds for bounds in every if bounds.prefetch))


def _within(bounds: Bounds, scope: Scope) -> Bounds:
    """Return wide bounds as they are on a target: its actors share a process or nobody does."""
    mortal = "Kill" in scope.features
    shared = () if mortal else tuple((actor, "q1") for actor in bounds.actors)
    features = scope.features - {"Empty"} if mortal and bounds.prefetch else scope.features
    return replace(bounds, features=features, process_of=shared)


class Setting(NamedTuple):
    """What one example runs with."""

    bounds: Bounds
    storage: StorageKind
    seed: int

    def line(self) -> str:
        """Return the setting on one line."""
        name = self.bounds.name
        return f"{name}: {self.bounds.line()}; {self.storage} storage, seed {self.seed}"
