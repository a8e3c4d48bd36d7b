"""Runs of the command line that were saved, read back and put together.

A saved run is what `--save` wrote: the document that `--json` prints. Several make a report. What
was covered is added up by kind of check only: edges of a graph and steps of a random walk are
different things, and a sum of both would say nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forebay_models.coverage import heat_of
from forebay_models.documents import DocumentError, Fields, Json
from forebay_models.outcome import Outcome, Verdict, worst
from forebay_models.verdicts import FORMAT, document


@dataclass(frozen=True)
class SavedRun:
    """One command that was run: where its document came from, what was run, and the outcomes."""

    source: str
    command: str
    outcomes: tuple[Outcome, ...]

    @classmethod
    def from_json(cls, content: object, *, source: str) -> "SavedRun":
        """Return what `verdicts.document` gave, or raise `DocumentError`.

        Args:
            content: the document.
            source: a name for where it came from, such as that of its file.
        """
        fields = Fields(content, "run")
        if fields.whole("format") != FORMAT:
            raise DocumentError(f"run: only documents of format {FORMAT} can be read")
        command = fields.text("command")
        outcomes = tuple(Outcome.from_json(it) for it in fields.items("outcomes"))
        verdict = worst(outcomes)
        told = fields.text("verdict"), fields.whole("exit_code")
        fields.end()
        if told != (verdict.name.lower(), int(verdict)):
            says = f"{told[0]} with exit code {told[1]}"
            raise DocumentError(f"run: it says {says}, and its outcomes say {verdict.words}")
        return cls(source, command, outcomes)

    @property
    def verdict(self) -> Verdict:
        """The verdict of the outcomes together."""
        return worst(self.outcomes)

    @property
    def seconds(self) -> float:
        """The seconds of the outcomes together; checks that ran side by side count twice."""
        return sum(outcome.seconds for outcome in self.outcomes)


def verdict_of(runs: Sequence[SavedRun]) -> Verdict:
    """Return the verdict of several runs together."""
    return worst(outcome for run in runs for outcome in run.outcomes)


def coverage(runs: Sequence[SavedRun]) -> dict[str, dict[str, dict[str, int]]]:
    """Return how often each action was taken in each class of states, by kind of check.

    The kind is the first word of an outcome's name, such as "explore" or "stateful".
    """
    counted: dict[str, Counter[tuple[str, str]]] = {}
    for run in runs:
        for outcome in run.outcomes:
            for action, classes in outcome.heat.items():
                for name, times in classes.items():
                    kind = outcome.name.split()[0]
                    counted.setdefault(kind, Counter())[action, name] += times
    return {kind: heat_of(heat) for kind, heat in counted.items()}


def collected(runs: Sequence[SavedRun]) -> Mapping[str, Json]:
    """Return several runs as one JSON document."""
    verdict = verdict_of(runs)
    return {
        "format": FORMAT,
        "verdict": verdict.name.lower(),
        "exit_code": int(verdict),
        "seconds": round(sum(run.seconds for run in runs), 3),
        "coverage": coverage(runs),
        "runs": [
            {"source": run.source, **document(run.outcomes, command=run.command)} for run in runs
        ],
    }
