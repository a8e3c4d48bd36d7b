"""The graphs: the sizes within which the checks look at everything.

Exhaustive checks need small sizes, and one graph that holds every feature at once is too large. So
there are several graphs with a theme each: together they have every action and every witness.
`QUICK` are those of docs/state-machine.md and run on every change, `FULL` are wider and run at
leisure, and `mutual_wait_bounds` is the family of graphs for the bound on mutual waits.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from forebay_spec.constants import FEATURES, Bounds, ConsumingOrder, Order, ReaderKind, Request
from forebay_spec.kernel import Closing

__all__ = [
    "FEATURES",
    "FULL",
    "QUICK",
    "Bounds",
    "ConsumingOrder",
    "Order",
    "ReaderKind",
    "Request",
    "mutual_wait_bounds",
]

_BOTH = (Closing.DRAINING, Closing.STOPPED)
_PLAIN_1 = Request("plain", 1, 1)
_PLAIN_2 = Request("plain", 2, 2)
_ONE_OF_2 = Request("plain", 2, 1)
_LEASE_1 = Request("lease", 1, 1)
_LEASE_2 = Request("lease", 2, 2)
_LEASE_1_OF_2 = Request("lease", 2, 1)

_QUICK = (
    Bounds(
        name="writers",
        capacity=2,
        producers=("p1", "p2"),
        readers=("c1",),
        write_sizes=(1, 2),
        requests=(_PLAIN_1, _PLAIN_2),
        token_of=(("p1", "t1"),),
        features=frozenset({"Abandon", "Expire"}),
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="readers",
        capacity=2,
        uses=2,
        producers=("p1",),
        readers=("c1", "c2"),
        write_sizes=(1, 2),
        requests=(_ONE_OF_2, _PLAIN_2),
        features=frozenset({"Fail"}),
    ),
    Bounds(
        name="leases",
        capacity=2,
        producers=("p1", "x1"),
        readers=("x1", "c1"),
        write_sizes=(1,),
        requests=(_LEASE_1, _LEASE_2),
        features=frozenset({"Empty"}),
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="random",
        capacity=2,
        uses=2,
        order="random",
        producers=("p1",),
        readers=("c1", "c2"),
        write_sizes=(1, 2),
        requests=(_PLAIN_1, _LEASE_2),
        features=frozenset({"Fail"}),
    ),
    Bounds(
        name="cancel",
        capacity=2,
        producers=("p1", "p2"),
        readers=("c1",),
        write_sizes=(1, 2),
        requests=(_PLAIN_1,),
        token_of=(("p1", "t1"), ("p2", "t1"), ("c1", "t1")),
        features=frozenset({"Expire", "Empty"}),
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="liveness",
        capacity=2,
        producers=("p1", "p2"),
        readers=("c1",),
        write_sizes=(1, 2),
        requests=(_PLAIN_1,),
        token_of=(("p1", "t1"),),
        closings=_BOTH,
    ),
    Bounds(
        name="crash",
        capacity=2,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1, 2),
        requests=(_PLAIN_1, _LEASE_1_OF_2),
        features=frozenset({"Empty", "Kill"}),
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="heals",
        capacity=2,
        producers=("p1", "p2"),
        readers=("c1",),
        write_sizes=(1, 2),
        requests=(_PLAIN_1,),
        features=frozenset({"Kill"}),
    ),
    Bounds(
        name="prefetch",
        capacity=2,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1,),
        requests=(_PLAIN_1, _PLAIN_2),
        prefetch=1,
        features=frozenset({"Fail", "Empty", "Flush"}),
        closings=_BOTH,
    ),
    Bounds(
        name="threads",
        capacity=2,
        order="random",
        producers=("p1",),
        readers=("c1", "c2"),
        write_sizes=(1,),
        requests=(_PLAIN_1, _PLAIN_2),
        process_of=(("p1", "q1"), ("c1", "q1"), ("c2", "q1")),
        prefetch=2,
        features=frozenset({"Flush"}),
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="captures",
        capacity=2,
        uses=2,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(2,),
        requests=(_PLAIN_1,),
        process_of=(("p1", "q1"), ("c1", "q1")),
        prefetch=1,
        features=frozenset({"Abandon", "Capture"}),
    ),
    Bounds(
        name="copies",
        capacity=2,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(2,),
        requests=(_PLAIN_1,),
        process_of=(("p1", "q1"), ("c1", "q1")),
        prefetch=2,
        features=frozenset({"Empty", "Capture"}),
    ),
    Bounds(
        name="restores",
        capacity=2,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1,),
        requests=(_PLAIN_1, _LEASE_2),
        process_of=(("p1", "q1"), ("c1", "q1")),
        prefetch=1,
        batch_size=2,
        features=frozenset({"Capture", "Restore"}),
    ),
    Bounds(
        name="lost",
        capacity=2,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1,),
        requests=(_PLAIN_2,),
        prefetch=1,
        batch_size=2,
        features=frozenset({"Capture", "Restore", "Kill"}),
    ),
    Bounds(
        name="ring",
        capacity=2,
        order="replacement",
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1, 2),
        requests=(_LEASE_1_OF_2,),
        prefetch=1,
        batch_size=2,
        features=frozenset({"Abandon", "Fail", "Empty"}),
    ),
    Bounds(
        name="epochs",
        capacity=2,
        order="epochs",
        producers=("p1",),
        readers=("c1", "c2"),
        write_sizes=(1,),
        requests=(_LEASE_1_OF_2,),
        features=frozenset({"Empty"}),
    ),
    Bounds(
        name="droplast",
        capacity=2,
        order="epochs",
        drop_last=True,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1, 2),
        requests=(_PLAIN_2, _LEASE_1),
        features=frozenset({"Fail", "Expire"}),
        closings=(Closing.DRAINING,),
    ),
    Bounds(
        name="resumed",
        capacity=2,
        order="epochs",
        producers=("p1",),
        readers=("c1",),
        write_sizes=(2,),
        requests=(_PLAIN_1,),
        process_of=(("p1", "q1"), ("c1", "q1")),
        prefetch=1,
        features=frozenset({"Flush", "Capture", "Restore"}),
    ),
    Bounds(
        name="orphaned",
        capacity=2,
        order="replacement",
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1,),
        requests=(_ONE_OF_2,),
        features=frozenset({"Capture", "Kill"}),
    ),
)
QUICK: Final[Mapping[str, Bounds]] = {bounds.name: bounds for bounds in _QUICK}


_FULL = (
    replace(
        QUICK["writers"],
        capacity=3,
        write_sizes=(1, 2, 3),
        requests=(_PLAIN_1, Request("plain", 3, 2)),
        token_of=(("p1", "t1"),),
        features=frozenset({"Abandon", "Fail", "Expire"}),
    ),
    replace(QUICK["readers"], capacity=3, requests=(_ONE_OF_2, Request("plain", 3, 3))),
    replace(
        QUICK["leases"], capacity=3, write_sizes=(1, 2), features=frozenset({"Empty", "Expire"})
    ),
    replace(
        QUICK["random"],
        capacity=3,
        uses=1,
        requests=(_PLAIN_1, _PLAIN_2, Request("lease", 2, 1)),
    ),
    replace(
        QUICK["cancel"],
        capacity=3,
        requests=(_PLAIN_1, _LEASE_1),
        features=frozenset({"Abandon", "Expire", "Empty"}),
    ),
    replace(QUICK["liveness"], capacity=3, readers=("c1", "c2")),
    replace(QUICK["crash"], capacity=3, producers=("p1", "p2"), requests=(_LEASE_1_OF_2,)),
    replace(QUICK["crash"], name="crash-two", producers=("p1", "p2")),
    replace(QUICK["heals"], capacity=3, readers=("c1", "c2")),
    replace(QUICK["prefetch"], capacity=3, write_sizes=(1, 2), prefetch=2),
    replace(QUICK["threads"], capacity=3, requests=(_PLAIN_1, _PLAIN_2, _LEASE_1)),
    replace(QUICK["captures"], capacity=3),
    replace(QUICK["copies"], capacity=3),
    replace(QUICK["restores"], capacity=3),
    replace(QUICK["lost"], capacity=3),
    replace(QUICK["ring"], capacity=3),
    replace(QUICK["epochs"], capacity=3),
    replace(QUICK["droplast"], capacity=3),
    replace(QUICK["resumed"], capacity=3),
    replace(QUICK["orphaned"], capacity=3),
)
FULL: Final[Mapping[str, Bounds]] = {
    bounds.name: replace(bounds, name=f"{bounds.name}-full") for bounds in _FULL
}


def mutual_wait_bounds(capacity: int, n: int, k: int) -> Bounds:
    """Return the model with one size of writes, n, and one size of reads, k, and nothing else."""
    return Bounds(
        name=f"mutual-wait-{capacity}-{n}-{k}",
        capacity=capacity,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(n,),
        requests=(Request("plain", k, k),),
    )
