"""What the actors of a recorded run do: a setting, and choices drawn from a seed.

The seed decides what each actor asks for; who comes first is the machine's doing. Sizes are small
against the capacity and timeouts are short, so that calls wait, expire, are cancelled and get into
each other's way as often as possible. Nothing depends on how long anything takes.

Actors that are processes may be killed. The seed decides who is, and after how many of the lines
that it reports; where in its work that finds it is the machine's doing, too.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from forebay_spec.bounds import ConsumingOrder

from forebay_models.linear.history import Setting
from forebay_models.targets import SCOPES, StorageKind, Target

Role = Literal["producer", "reader", "taker"]
CAST: Final[tuple[tuple[str, Role], ...]] = (
    ("p1", "producer"),
    ("p2", "producer"),
    ("p3", "producer"),
    ("c1", "reader"),
    ("c2", "reader"),
    ("x1", "taker"),
)
PROCESSES: Final[tuple[tuple[str, Role], ...]] = (
    ("p1", "producer"),
    ("p2", "producer"),
    ("c1", "reader"),
    ("c2", "reader"),
    ("x1", "taker"),
    ("x2", "taker"),
)
VICTIMS: Final = ("p1", "c1", "x1", "x2")
"""One who only writes and one who only reads stay alive, so that the others are never stuck.

Takers make all kinds of calls, and may be killed with leases."""
OUTSIDER: Final = "o1"
KILLER: Final = "k1"
MOST: Final = 4
"""How many times the wanted number of operations a run makes at most, should closing not end it."""
_TIMEOUTS: Final = (None, None, None, 0.0, 0.0005, 0.002, 0.01)
_DELAYS: Final = (0.0, 0.0, 0.0002, 0.0005, 0.001, 0.002)
_LINES: Final = 16
LEASES: Final = 2
"""How many leases the taker has at most at a time."""


class Ask(NamedTuple):
    """One call: its kind, sizes and timeout, whether with a token, whether its transform raises."""

    kind: Literal["extend", "sample", "take", "settle"]
    n: int = 0
    m: int = 0
    timeout: float | None = None
    token: bool = False
    raises: bool = False


class Kill(NamedTuple):
    """A death: whose, after how many of its lines, and how many seconds later.

    An odd line is that of a call, an even one that of a return.
    """

    victim: str
    lines: int
    delay: float


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The buffer and the seed of one run, and after how many operations it is closed."""

    seed: int
    capacity: int
    uses: int
    order: ConsumingOrder
    storage: StorageKind
    operations: int = 64

    def line(self) -> str:
        """Return what the history's setting says about its source."""
        return f"{self.storage} storage, seed {self.seed}"

    def setting(self) -> Setting:
        """Return the buffer that the history belongs to."""
        return Setting(capacity=self.capacity, uses=self.uses, order=self.order, source=self.line())

    def kills(self) -> list[Kill]:
        """Return who is killed, if the actors are processes: one or two of them."""
        choice = self.choices(KILLER)
        victims = choice.sample(VICTIMS, choice.choice((1, 1, 2)))
        return [
            Kill(
                victim, choice.randint(1, _LINES) | choice.choice((0, 1, 1)), choice.choice(_DELAYS)
            )
            for victim in victims
        ]

    def choices(self, actor: str) -> random.Random:
        """Return the source of an actor's choices."""
        return random.Random(f"{self.seed} {actor}")


def workload(seed: int, target: Target = Target.LOCAL) -> Workload:
    """Return the run of a target with that number."""
    choice = random.Random(seed)
    return Workload(
        seed=seed,
        capacity=choice.randint(2, 6),
        uses=choice.randint(1, 3),
        order=choice.choice(("fifo", "random")),
        storage=choice.choice(SCOPES[target].storages),
    )


def next_ask(choice: random.Random, role: Role, capacity: int, leases: int) -> Ask:
    """Choose an actor's next call; `leases` are those that it has."""
    kind = _kind(choice, role, leases)
    if kind == "settle":
        return Ask(kind)
    n = min(choice.randint(1, capacity), choice.randint(1, capacity))
    m = choice.randint(1, n) if kind != "extend" and choice.random() < 0.5 else n
    return Ask(
        kind,
        n,
        m,
        timeout=choice.choice(_TIMEOUTS),
        token=choice.random() < 0.3,
        raises=kind != "extend" and choice.random() < 0.1,
    )


def _kind(
    choice: random.Random, role: Role, leases: int
) -> Literal["extend", "sample", "take", "settle"]:
    if role == "producer":
        return "extend"
    if role == "reader":
        return "sample"
    if leases and (leases >= LEASES or choice.random() < 0.4):
        return "settle"
    return choice.choice(("take", "take", "take", "sample", "extend"))
