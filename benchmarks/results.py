"""What measurements come to: rows, each with a figure of ours and perhaps a peer's beside it.

All cases give rows of this one form, and a document has all rows of a run. It can be kept as JSON,
from which the tables and charts of the documentation are made.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.timing import OURS, Spread

FORMAT = 1


class Goal(NamedTuple):
    """What a median has to reach: of the ratio, or of our own figure."""

    side: Literal["at least", "at most"]
    value: float
    of: Literal["ratio", "ours"] = "ratio"

    def __str__(self) -> str:
        return f"{self.side} {self.value:g}"

    def met_by(self, value: float) -> bool:
        """Tell whether a value is good enough."""
        return value >= self.value if self.side == "at least" else value <= self.value


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table.

    Attributes:
        case: the case, such as P1.
        size: what was measured of it.
        ours: our figure.
        unit: of our figure and of the peer's; "us" if lower is better, or "records/s" and the like.
        who: which of ours.
        peer: beside what; nothing if ours stands alone.
        theirs: the peer's figure; None if there is no peer, or it is not installed.
        ratio: how many times better ours is, unless the case says otherwise.
        goal: what is to be reached, or None.
        curve: rows of a case with the same curve, who and peer are points of one line of a chart.
        x: where on it.
    """

    case: str
    size: str
    ours: Spread
    unit: str
    who: str = OURS
    peer: str = ""
    theirs: Spread | None = None
    ratio: Spread | None = None
    goal: Goal | None = None
    curve: str = ""
    x: float | None = None

    @property
    def judged(self) -> float | None:
        """The figure that the goal is about; None if there is none."""
        if self.goal is None or (self.goal.of == "ratio" and self.ratio is None):
            return None
        found = self.ours if self.goal.of == "ours" or self.ratio is None else self.ratio
        return found.median

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if there is none, or what it is about was not measured."""
        if self.goal is None or self.judged is None:
            return None
        return self.goal.met_by(self.judged)


@dataclass(kw_only=True)
class Document:
    """All that one run has measured.

    Attributes:
        machine: where, in words.
        versions: of what was measured, by package.
        repetitions: turns of each contender.
        quick: whether sizes and times were cut short.
        titles: of the cases that were measured.
        rows: what came of it.
        notes: what was not measured, and why.
        seconds: how long each case took.
    """

    machine: str
    versions: dict[str, str]
    repetitions: int
    quick: bool
    titles: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def of(self, *cases: str) -> list[Row]:
        """Return the rows of some cases."""
        return [row for row in self.rows if row.case in cases]

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        rows = [{**asdict(row), "met": row.met} for row in self.rows]
        whole = {"format": FORMAT, **asdict(self), "rows": rows}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


class Unreadable(ValueError):
    """A file is no document of results; the message says why."""


def load(path: Path) -> Document:
    """Read a document.

    Raises:
        Unreadable: the file is not there, or is something else.
    """
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        if whole.pop("format") != FORMAT:
            raise Unreadable(f"{path} has another format than {FORMAT}; run the benchmarks again")
        rows = [_row(row) for row in whole.pop("rows")]
        return Document(rows=rows, **whole)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}; make it with --json") from error
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise Unreadable(f"{path} is no document of benchmarks: {error!r}") from error


def _row(found: dict[str, Any]) -> Row:
    del found["met"]
    for name in ("ours", "theirs", "ratio"):
        if found[name] is not None:
            found[name] = Spread(*found[name])
    if found["goal"] is not None:
        found["goal"] = Goal(*found["goal"])
    return Row(**found)


def counted(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Return how many goals are met, are not, and could not be judged."""
    goals = [row.met for row in rows if row.goal is not None]
    return goals.count(True), goals.count(False), goals.count(None)
