"""What every check reports: a verdict, within which bounds, with which figures.

A verdict alone is easily read as more than was shown. So an outcome always carries the bounds that
it holds within, and "could not tell" is a verdict of its own that never counts as a pass. The
values of the verdicts are the exit codes of the command line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from forebay_models.counterexample import Counterexample
from forebay_models.documents import DocumentError, Fields, Json

Figure = int | float | str


class Verdict(IntEnum):
    """How a check ended; the value is the exit code."""

    HOLDS = 0
    VIOLATED = 1
    COULD_NOT_RUN = 2
    INCONCLUSIVE = 3

    @property
    def words(self) -> str:
        """The verdict as it is shown to people."""
        return self.name.lower().replace("_", " ")


# The first of these that occurs decides the exit code of a whole command.
_WORST_FIRST = (Verdict.VIOLATED, Verdict.COULD_NOT_RUN, Verdict.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of one check.

    `name` is unique within a command, such as "tlc writers". `bounds` says in one line what the
    verdict is limited to. `figures` are counts such as states and edges. `seconds` is the time
    taken. `detail` is plain text: a counterexample as a table, or why the check could not run.
    `counterexample` is the failure that was found. `heat` counts how often each action was taken in
    each class of states: heat[action][class].
    """

    name: str
    verdict: Verdict
    bounds: str
    figures: Mapping[str, Figure]
    seconds: float
    detail: str = ""
    counterexample: Counterexample | None = None
    heat: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        """Return the outcome as one JSON object; the verdict goes by its lower-case name."""
        failure = self.counterexample
        return {
            "name": self.name,
            "verdict": self.verdict.name.lower(),
            "bounds": self.bounds,
            "figures": dict(self.figures),
            "seconds": round(self.seconds, 3),
            "detail": self.detail,
            "counterexample": None if failure is None else failure.as_json(),
            "heat": {action: dict(classes) for action, classes in self.heat.items()},
        }

    @classmethod
    def from_json(cls, document: object) -> "Outcome":
        """Return what `as_json` gave, the seconds being rounded, or raise `DocumentError`."""
        fields = Fields(document, "outcome")
        failure = fields.take("counterexample")
        outcome = cls(
            name=_name(fields.text("name")),
            verdict=_verdict(fields.text("verdict")),
            bounds=fields.text("bounds"),
            figures={name: _figure(name, it) for name, it in fields.mapping("figures").items()},
            seconds=fields.number("seconds"),
            detail=fields.text("detail"),
            counterexample=None if failure is None else Counterexample.from_json(failure),
            heat={action: _times(action, it) for action, it in fields.mapping("heat").items()},
        )
        fields.end()
        return outcome


def worst(outcomes: Iterable[Outcome]) -> Verdict:
    """Return the verdict of several outcomes together.

    A violation beats a check that could not run, which beats an inconclusive one. Without any
    outcome nothing was checked, which is `COULD_NOT_RUN`.
    """
    verdicts = {outcome.verdict for outcome in outcomes}
    if not verdicts:
        return Verdict.COULD_NOT_RUN
    return next((verdict for verdict in _WORST_FIRST if verdict in verdicts), Verdict.HOLDS)


def _name(name: str) -> str:
    if not name.strip():
        raise DocumentError("outcome: 'name' is empty")
    return name


def _verdict(name: str) -> Verdict:
    for verdict in Verdict:
        if verdict.name.lower() == name:
            return verdict
    raise DocumentError(f"outcome: {name!r} is no verdict")


def _figure(name: str, value: object) -> Figure:
    if isinstance(value, bool) or not isinstance(value, Figure):
        raise DocumentError(f"outcome: the figure {name!r} is neither a number nor a text")
    return value


def _times(action: str, classes: object) -> dict[str, int]:
    fields = Fields(classes, f"heat of {action!r}")
    return {name: fields.whole(name) for name in fields.names()}


def could_not_run(name: str, reason: Exception | str, *, bounds: str = "-") -> Outcome:
    """Return the outcome of a check or campaign that lacks something that it needs."""
    return Outcome(
        name=name,
        verdict=Verdict.COULD_NOT_RUN,
        bounds=bounds,
        figures={},
        seconds=0.0,
        detail=str(reason),
    )
