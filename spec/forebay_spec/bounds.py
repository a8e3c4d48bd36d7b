"""The constants of one model, and the sizes within which the checks look at everything.

Exhaustive checks need small sizes, and one graph that holds every feature at once is too large. So
there are several graphs with a theme each: together they have every action and every witness.
`QUICK` are those of docs/state-machine.md and run on every change, `FULL` are wider and run at
leisure, and `mutual_wait_bounds` is the family of graphs for the bound on mutual waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple

from forebay_spec.kernel import Closing

Order = Literal["fifo", "random"]
ReaderKind = Literal["plain", "lease"]
FEATURES: Final = frozenset(
    {"Abandon", "Fail", "Expire", "Empty", "Flush", "Capture", "Restore", "Kill"}
)


class Request(NamedTuple):
    """What a reader may ask for: at most k records, and m of them will do."""

    kind: ReaderKind
    k: int
    m: int


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The constants of one model; sizes are in records. Impossible sizes raise `ValueError`.

    `process_of` names the processes of those actors that share one; every other actor is a process
    of its own, of the same name. `prefetch` is how many batches of `batch_size` records a process
    may have drawn ahead.
    """

    name: str
    capacity: int
    uses: int = 1
    order: Order = "fifo"
    producers: tuple[str, ...]
    readers: tuple[str, ...]
    write_sizes: tuple[int, ...]
    requests: tuple[Request, ...]
    token_of: tuple[tuple[str, str], ...] = ()
    process_of: tuple[tuple[str, str], ...] = ()
    prefetch: int = 0
    batch_size: int = 1
    features: frozenset[str] = frozenset()
    closings: tuple[Closing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what the model has no meaning for."""
        if self.capacity < 1 or self.uses < 1:
            raise ValueError(f"{self.name}: capacity and uses are at least 1")
        if any(not 1 <= n <= self.capacity for n in self.write_sizes):
            raise ValueError(f"{self.name}: write sizes lie in 1..{self.capacity}")
        if any(not 1 <= m <= k <= self.capacity for _, k, m in self.requests):
            raise ValueError(f"{self.name}: requests have 1 <= m <= k <= {self.capacity}")
        if not self.features <= FEATURES:
            raise ValueError(f"{self.name}: the features are {sorted(FEATURES)}")
        if self.prefetch < 0 or not 1 <= self.batch_size <= self.capacity:
            raise ValueError(f"{self.name}: prefetched batches have 1..{self.capacity} records")
        if not {x for x, _ in self.process_of} <= set(self.actors):
            raise ValueError(f"{self.name}: only actors are of a process")
        if {q for _, q in self.process_of} & set(self.actors):
            raise ValueError(f"{self.name}: a process that is shared is named unlike any actor")
        if self.process_of and "Kill" in self.features:
            raise ValueError(f"{self.name}: only who is a process of its own is killed")

    def __hash__(self) -> int:
        """Equal bounds have equal names, and the hash of a string is kept by the interpreter."""
        return hash(self.name)

    @property
    def fifo(self) -> bool:
        """Whether records are drawn oldest first."""
        return self.order == "fifo"

    @cached_property
    def actors(self) -> tuple[str, ...]:
        """Everybody who makes calls, producers first, each once."""
        return tuple(dict.fromkeys((*self.producers, *self.readers)))

    @cached_property
    def processes(self) -> tuple[str, ...]:
        """Every process that some actor belongs to, each once."""
        return tuple(dict.fromkeys(self.process(actor) for actor in self.actors))

    @cached_property
    def reading(self) -> tuple[str, ...]:
        """Every process that some reader belongs to, each once."""
        return tuple(dict.fromkeys(self.process(reader) for reader in self.readers))

    @cached_property
    def _processes_by_actor(self) -> Mapping[str, str]:
        return dict(self.process_of)

    def process(self, actor: str) -> str:
        """Return the process of an actor."""
        return self._processes_by_actor.get(actor, actor)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Every cancel token that some actor has, sorted."""
        return tuple(sorted({token for _, token in self.token_of}))

    @cached_property
    def _tokens_by_actor(self) -> Mapping[str, str]:
        return dict(self.token_of)

    def token(self, actor: str) -> str | None:
        """Return the cancel token that an actor passes with every call, or None."""
        return self._tokens_by_actor.get(actor)

    def line(self) -> str:
        """Return the bounds on one line, for the side of a verdict."""
        parts = [
            f"C={self.capacity} N={self.uses} {self.order}",
            f"producers {' '.join(self.producers)} write {' '.join(map(str, self.write_sizes))}",
            f"readers {' '.join(self.readers)} ask "
            + ", ".join(f"{kind} {k} {m}" for kind, k, m in self.requests),
        ]
        if self.token_of:
            parts.append("tokens " + " ".join(f"{a}:{t}" for a, t in self.token_of))
        if self.process_of:
            parts.append("processes " + " ".join(f"{a}:{q}" for a, q in self.process_of))
        if self.prefetch:
            parts.append(f"D={self.prefetch} B={self.batch_size}")
        if self.features:
            parts.append(" ".join(sorted(self.features)))
        if self.closings:
            parts.append("close " + " ".join(mode.name.lower() for mode in self.closings))
        return "; ".join(parts)


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
