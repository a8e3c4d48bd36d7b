"""What the actors of a run do: a short program of calls for each of them.

A program is written as text, one call after the other, so that it can be read, shortened and put
into a replay token:

    extend 2; extend 1 timed      a write of two records, then one that may time out
    extend 1 at-once              a write that does not wait
    sample 2 1; sample 1 raises   a read of one or two records, then one whose transform raises
    lease 1 1; commit             a lease that is committed (or `release`)
    set t1; shutdown draining; empty
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple, cast

from forebay_spec.bounds import Bounds, ConsumingOrder, Request
from forebay_spec.kernel import Closing

from forebay_models.targets import LOCAL

OpKind = Literal["extend", "sample", "lease", "commit", "release", "set", "shutdown", "empty"]
ScenarioStorage = Literal["numbers", "simulated", "cuda"]
Manner = Literal["", "timed", "at-once", "raises"]

SCENARIO_STORAGES: Final[tuple[ScenarioStorage, ...]] = ("numbers", "simulated", "cuda")

_NO_CALLS: Final = frozenset(
    {
        "Refill",
        "Recall",
        "CaptureAsk",
        "Capture",
        "CaptureDone",
        "RestoreAsk",
        "Load",
        "Restore",
        "Reject",
    }
)
ACTIONS: Final = tuple(name for name in LOCAL.actions if name not in _NO_CALLS)
"""What programs can take: nobody in them draws ahead, saves or restores."""

MOST: Final = 16
"""The most actors, slots and uses of a scenario; more would take for ever."""

TOKENS: Final = 4

_SIZES: Final[Mapping[OpKind, tuple[int, ...]]] = {
    "extend": (1,),
    "sample": (1, 2),
    "lease": (1, 2),
    "commit": (0,),
    "release": (0,),
    "set": (0,),
    "shutdown": (0,),
    "empty": (0,),
}
"""How many whole numbers a call has."""

_WORDS: Final[Mapping[OpKind, int]] = {"set": 1, "shutdown": 1}
_MANNERS: Final[Mapping[OpKind, tuple[Manner, ...]]] = {
    "extend": ("timed", "at-once", "raises"),
    "sample": ("timed", "at-once", "raises"),
    "lease": ("timed", "at-once", "raises"),
}


class Op(NamedTuple):
    """One call: its kind, its sizes (a read's are k and m), a token or mode, and its manner."""

    kind: OpKind
    sizes: tuple[int, ...] = ()
    word: str = ""
    manner: Manner = ""

    def __str__(self) -> str:
        sizes = self.sizes[:1] if len(set(self.sizes)) == 1 else self.sizes
        return " ".join(filter(None, (self.kind, *map(str, sizes), self.word, self.manner)))


def op_of(text: str) -> Op:
    """Read one call; `ValueError` says what is wrong with any other text."""
    kind_text, *rest = text.split()
    if kind_text not in _SIZES:
        raise ValueError(f"expected one of {', '.join(_SIZES)}, got {text!r}")
    kind = cast(OpKind, kind_text)
    manner: Manner = ""
    if rest and rest[-1] in _MANNERS.get(kind, ()):
        manner = cast(Manner, rest.pop())
    words = [rest.pop() for _ in range(_WORDS.get(kind, 0)) if rest]
    if len(rest) not in _SIZES[kind] or len(words) != _WORDS.get(kind, 0):
        raise ValueError(f"{kind} takes other arguments than in {text!r}")
    sizes = tuple(int(size) for size in rest)
    if any(size < 1 for size in sizes):
        raise ValueError(f"sizes are at least 1, got {text!r}")
    if kind == "shutdown" and words[0] not in ("draining", "stopped"):
        raise ValueError(f"shutdown is draining or stopped, got {text!r}")
    if kind in ("sample", "lease") and len(sizes) == 1:
        sizes *= 2
    return Op(kind, sizes, "".join(words), manner)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A buffer and the programs of its actors.

    Attributes:
        name: what it is called.
        capacity, uses, order: of the buffer.
        programs: the actors and what each of them does, in the order of their numbers.
        token_of: the cancel tokens that actors pass with every call.
        storage: where the records are: plain numbers, on a simulated device whose streams take
            their turns too, or on a CUDA device, which takes none.
    """

    name: str
    capacity: int
    programs: tuple[tuple[str, str], ...]
    uses: int = 1
    order: ConsumingOrder = "fifo"
    token_of: tuple[tuple[str, str], ...] = field(default=())
    storage: ScenarioStorage = "numbers"

    def __post_init__(self) -> None:
        """Refuse what cannot be run: `ValueError` says why."""
        if len(self.actors) > MOST or self.capacity > MOST or self.uses > MOST:
            raise ValueError(f"{self.name}: at most {MOST} actors, slots and uses")
        if len(set(self.actors)) < len(self.actors):
            raise ValueError(f"{self.name}: the names of actors differ")
        if len(self.bounds.tokens) > TOKENS:
            raise ValueError(f"{self.name}: at most {TOKENS} tokens")
        known = {token for actor, token in self.token_of if actor in self.actors}
        tokens = {op.word for ops in self.ops for op in ops if op.kind == "set"}
        if not tokens <= known:
            raise ValueError(f"{self.name}: nobody has the token {' '.join(tokens - known)}")

    @cached_property
    def ops(self) -> tuple[tuple[Op, ...], ...]:
        """The calls of each actor."""
        return tuple(
            tuple(op_of(text) for text in program.split(";") if text.strip())
            for _, program in self.programs
        )

    @cached_property
    def actors(self) -> tuple[str, ...]:
        """The names of the actors."""
        return tuple(name for name, _ in self.programs)

    @cached_property
    def bounds(self) -> Bounds:
        """The constants of the specification for it."""
        calls = [(name, op) for name, ops in zip(self.actors, self.ops, strict=True) for op in ops]
        writes = [(name, op.sizes[0]) for name, op in calls if op.kind == "extend"]
        reads = [
            (name, Request("lease" if op.kind == "lease" else "plain", *op.sizes))
            for name, op in calls
            if op.kind in ("sample", "lease")
        ]
        return Bounds(
            name=self.name,
            capacity=self.capacity,
            uses=self.uses,
            order=self.order,
            producers=tuple(dict.fromkeys(name for name, _ in writes)),
            readers=tuple(dict.fromkeys(name for name, _ in reads)),
            write_sizes=tuple(sorted({n for _, n in writes})),
            requests=tuple(sorted({request for _, request in reads})),
            token_of=self.token_of,
            features=LOCAL.features,
            closings=(Closing.DRAINING, Closing.STOPPED),
        )

    def line(self) -> str:
        """Return the scenario on one line."""
        programs = " | ".join(f"{name}: {program}" for name, program in self.programs)
        tokens = "".join(f", {actor} has {token}" for actor, token in self.token_of)
        where = "" if self.storage == "numbers" else f", {self.storage} storage"
        return (
            f"{self.name}: C={self.capacity} N={self.uses} {self.order}{tokens}{where}; {programs}"
        )
