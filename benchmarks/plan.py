"""How much is measured, and what a case is.

An effort has all sizes in one place: FULL is what the documentation shows, QUICK is for a look
within two minutes. A case is split into parts, between which progress is shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.results import Row
from benchmarks.timing import SHORTEST


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sizes and times of a run.

    Attributes:
        repetitions: turns of each contender.
        turns: the same of what takes long.
        shortest: seconds of one turn at least.
        large: slots of a large buffer, for P2 and P3.
        mib: size of the buffer that is saved, for P10 and P11.
        wakes: how often a blocked writer is released, for P8.
        deaths: how often somebody is killed, for P8.
        readers: readers that wait, for P9.
        idle: seconds that they wait in one turn.
        graphs: which quick graphs are explored, for P12.
        schedules: random schedules of each scenario and kind in one turn, for P13.
        walks: examples of a random walk in one turn.
        records: capacity of a buffer with very many records.
        nbytes: size of a buffer with very large records.
        threads: producers at the same time.
        processes: producers at the same time, each a process.
        batches: how many batches each of them writes.
        capacities: along the axis of growth of that name; so are `rows`, `leaves` and `waiters`.
    """

    repetitions: int
    turns: int
    shortest: float
    large: int
    mib: int
    wakes: int
    deaths: int
    readers: int
    idle: float
    graphs: Sequence[str]
    schedules: int
    walks: int
    records: int
    nbytes: int
    threads: int
    processes: int
    batches: int
    capacities: Sequence[int]
    rows: Sequence[int]
    leaves: Sequence[int]
    waiters: Sequence[int]


FULL: Final = Effort(
    repetitions=7,
    turns=5,
    shortest=SHORTEST,
    large=2**20,
    mib=1024,
    wakes=200,
    deaths=10,
    readers=16,
    idle=10.0,
    graphs=("random", "lost"),
    schedules=10,
    walks=40,
    records=10**7,
    nbytes=4 * 2**30,
    threads=64,
    processes=16,
    batches=50,
    capacities=(2**8, 2**11, 2**14, 2**17, 2**20),
    rows=(1, 8, 64, 512, 4096),
    leaves=(1, 4, 16, 64),
    waiters=(0, 1, 4, 16, 64),
)
QUICK: Final = Effort(
    repetitions=5,
    turns=5,
    shortest=0.01,
    large=2**20,
    mib=64,
    wakes=50,
    deaths=5,
    readers=16,
    idle=0.5,
    graphs=("lost",),
    schedules=2,
    walks=8,
    records=10**6,
    nbytes=256 * 2**20,
    threads=64,
    processes=4,
    batches=10,
    capacities=(2**8, 2**14, 2**20),
    rows=(1, 64, 4096),
    leaves=(1, 8, 64),
    waiters=(0, 8, 64),
)


@dataclass
class Plan:
    """What a run measures with, and what it has to say besides rows."""

    effort: Effort
    scratch: Path
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say why something was not measured, once."""
        if text not in self.notes:
            self.notes.append(text)

    def has(self, peer: str, module: str, extra: str) -> bool:
        """Tell whether a peer is installed, and note it if not."""
        if find_spec(module) is not None:
            return True
        self.note(
            f"{peer} is not measured, since {module} is not installed:"
            f" pip install -e '.[{extra}]' -c constraints.txt"
        )
        return False


class Part(NamedTuple):
    """A piece of a case, and what is said while it runs."""

    label: str
    measure: Callable[[], list[Row]]


class Case(NamedTuple):
    """Something that is measured.

    Attributes:
        title: what, in one line.
        parts: the pieces, for a plan.
    """

    title: str
    parts: Callable[[Plan], list[Part]]
