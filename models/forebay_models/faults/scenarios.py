"""What happens around a kill: small scenes, each with one process that is killed in it.

`v` is the victim, `a` and `b` are others, who have to get on. Before the victim begins, `setup` is
done, each line to its end, and those in `waiting` stand in the queue. Each time that the victim
falls asleep, the next line of `help` is begun, and done or left waiting. After the kill everybody
does what is left of `help`, and `after`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from forebay_spec.bounds import Bounds, Order, Request

from forebay_models.faults.points import Point, point_of
from forebay_models.faults.program import Op, ops_of

VICTIM: Final = "v"
FINDER: Final = "f"
OTHERS: Final = ("a", "b")

Lines = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A buffer and what its processes do.

    Attributes:
        name: what it is called.
        capacity, uses, order: of the buffer.
        setup, waiting, help, after: see above; pairs of an actor and its program.
        victim: the program of the victim, in which it is killed.
        judged: the specification says which states may come out; it has no registered producers.
        naps: the victim is no participant, so only their naps help those whom it did not wake.
        finders: points at which the victim is killed so that whoever finds it may be killed too.
    """

    name: str
    capacity: int = 2
    uses: int = 1
    order: Order = "fifo"
    setup: Lines = ()
    waiting: Lines = ()
    victim: str
    help: Lines = ()
    after: Lines = ()
    judged: bool = True
    naps: bool = False
    finders: tuple[str, ...] = ()

    @cached_property
    def bounds(self) -> Bounds:
        """The constants of the specification for it."""
        lines = (*self.setup, *self.waiting, (VICTIM, self.victim), *self.help, *self.after)
        ops: list[Op] = [op for _, program in lines for op in ops_of(program)]
        actors = (VICTIM, *OTHERS)
        reads = {
            Request("lease" if op.kind == "lease" else "plain", *op.sizes)
            for op in ops
            if op.kind in ("sample", "lease")
        }
        return Bounds(
            name=f"faults {self.name}",
            capacity=self.capacity,
            uses=self.uses,
            order=self.order,
            producers=actors,
            readers=actors,
            write_sizes=tuple(sorted({op.sizes[0] for op in ops if op.kind == "extend"})),
            requests=tuple(sorted(reads)),
            features=frozenset({"Fail", "Empty", "Kill"}),
        )

    @cached_property
    def finder_points(self) -> tuple[Point, ...]:
        """The points of `finders`."""
        return tuple(map(point_of, self.finders))

    def line(self) -> str:
        """Return the scenario on one line."""
        parts = [f"{self.name}: C={self.capacity} N={self.uses} {self.order}"]
        for name, lines in (("setup", self.setup), ("waiting", self.waiting)):
            parts += [f"{name} {actor}: {program}" for actor, program in lines]
        parts.append(f"{VICTIM}: {self.victim}")
        for name, lines in (("help", self.help), ("after", self.after)):
            parts += [f"{name} {actor}: {program}" for actor, program in lines]
        return " | ".join(parts)


_SCENARIOS: Final = (
    Scenario(
        name="writer",
        victim="extend 2; extend 1",
        capacity=3,
        after=(("a", "sample 1"), ("b", "extend 1")),
        finders=("half#1", "copied#1"),
    ),
    Scenario(
        name="writer-waits",
        setup=(("a", "extend 2"),),
        victim="extend 1",
        help=(("a", "sample 1"),),
        after=(("b", "extend 1"), ("a", "sample 2")),
        finders=("asleep#1",),
    ),
    Scenario(
        name="writer-ahead",
        setup=(("a", "extend 2"),),
        victim="extend 2",
        help=(("b", "extend 1"), ("a", "sample 1"), ("a", "sample 1")),
        after=(("a", "sample 1"),),
        finders=("asleep#2",),
    ),
    Scenario(
        name="writer-admitted",
        waiting=(("a", "sample 2"),),
        victim="extend 2",
        after=(("b", "extend 2"),),
        finders=("admitted#1", "marked#3"),
    ),
    Scenario(
        name="reader",
        capacity=3,
        uses=2,
        setup=(("a", "extend 2"),),
        victim="sample 2; sample 1",
        after=(("a", "extend 1"), ("b", "sample 3 1")),
        finders=("half#1", "gathered#1", "half#3"),
    ),
    Scenario(
        name="reader-waits",
        capacity=3,
        victim="sample 2",
        help=(("a", "extend 1"), ("a", "extend 1")),
        after=(("b", "sample 1"), ("a", "extend 2")),
        finders=("awake#1",),
    ),
    Scenario(
        name="reader-ahead",
        capacity=3,
        victim="sample 2",
        help=(("b", "sample 1"), ("a", "extend 1"), ("a", "extend 1")),
        after=(("a", "extend 1"),),
        finders=("asleep#2",),
    ),
    Scenario(
        name="writer-behind-held",
        setup=(("a", "extend 2"), ("v", "lease 1")),
        waiting=(("b", "extend 1"),),
        victim="commit; sample 1",
        after=(("a", "sample 1"),),
        finders=("committing#1", "half#1"),
    ),
    Scenario(
        name="leases",
        capacity=3,
        uses=2,
        setup=(("a", "extend 3"), ("b", "lease 1"), ("v", "lease 2")),
        victim="lease 3 1; commit; release",
        after=(("b", "commit"), ("a", "sample 2 1")),
        finders=("half#1", "releasing#1"),
    ),
    Scenario(
        name="releaser",
        uses=2,
        setup=(("a", "extend 2"),),
        victim="lease 2; release",
        after=(("b", "sample 2"), ("b", "sample 1"), ("a", "sample 1"), ("a", "extend 1")),
        finders=("half#2",),
    ),
    Scenario(
        name="failing",
        uses=2,
        setup=(("a", "extend 2"),),
        victim="sample 1 raises; sample 2",
        after=(("b", "sample 2"),),
        finders=("returning#1",),
    ),
    Scenario(
        name="random",
        capacity=3,
        uses=2,
        order="random",
        setup=(("a", "extend 3"), ("b", "sample 2")),
        victim="sample 2; lease 1; release",
        after=(("b", "sample 1"),),
        finders=("half#1", "releasing#1"),
    ),
    Scenario(
        name="observer",
        victim="observe 1",
        help=(("a", "extend 1"),),
        after=(("b", "sample 1"), ("a", "extend 2")),
        finders=("asleep#1",),
    ),
    Scenario(
        name="emptying",
        setup=(("a", "extend 2"), ("b", "lease 1")),
        victim="empty",
        naps=True,
        after=(("b", "commit"), ("a", "extend 1")),
        finders=("half#1",),
    ),
    Scenario(
        name="closing",
        capacity=3,
        setup=(("a", "extend 1"),),
        waiting=(("b", "sample 2"),),
        victim="shutdown",
        naps=True,
        after=(("a", "extend 2"),),
        finders=("half#1",),
    ),
    Scenario(
        name="producer",
        capacity=3,
        waiting=(("b", "sample 3"),),
        victim="register; extend 1; leave",
        after=(("a", "extend 3"),),
        judged=False,
        finders=("copied#1", "half#1"),
    ),
    Scenario(
        name="tokens",
        victim="token; token",
        after=(("a", "extend 1"), ("b", "sample 1")),
        finders=("left#2",),
    ),
)
SCENARIOS: Final[Mapping[str, Scenario]] = {it.name: it for it in _SCENARIOS}
