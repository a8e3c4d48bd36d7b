"""The constants of one model: what a buffer is like, who uses it, and what may happen.

They are those of the table in docs/state-machine.md. The graphs that are checked are in
`forebay_spec.bounds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from forebay_spec.kernel import Closing

Order = Literal["fifo", "random", "replacement", "epochs"]
ConsumingOrder = Literal["fifo", "random"]
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
    may have drawn ahead. Orders `replacement` and `epochs` make a buffer overwrite its oldest
    records; `drop_last` leaves the last batch of an epoch out when it would be short.
    """

    name: str
    capacity: int
    uses: int = 1
    order: Order = "fifo"
    drop_last: bool = False
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
        if self.overwriting and self.uses != 1:
            raise ValueError(f"{self.name}: an overwriting buffer uses no record up, so uses is 1")
        if self.drop_last and self.order != "epochs":
            raise ValueError(f"{self.name}: only an epoch has a last batch to drop")
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
    def overwriting(self) -> bool:
        """Whether writers overwrite the oldest records, and no draw uses one up."""
        return self.order in ("replacement", "epochs")

    @property
    def aged(self) -> bool:
        """Whether live records have ages: under every order but `random`."""
        return self.order != "random"

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
            f"C={self.capacity} N={self.uses} {self.order}" + " drop last" * self.drop_last,
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
