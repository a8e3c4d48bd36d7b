"""The level "spec": steps of the specification alone, and the promise that they break.

A path is followed by its labels. Where a draw is at random one label has several outcomes, and all
of them are followed. A liveness property cannot be judged on one path; it is checked anew on the
whole graph of the bounds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from forebay_spec.actions import Label, Machine
from forebay_spec.bounds import Bounds
from forebay_spec.properties import LIVENESS, STEPS, invariants
from forebay_spec.state import State

from forebay_models.counterexample import Counterexample
from forebay_models.documents import DocumentError, Fields, Json
from forebay_models.explore.check import Violation
from forebay_models.explore.graph import Move, explore
from forebay_models.explore.liveness import answer
from forebay_models.explore.show import starvation_shown, violation_shown
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.runs.values import bounds_json, label_json, read_bounds, read_label
from forebay_models.tokens import LEVELS, TokenError, token_of

Path = tuple[Move, ...]
Broken = Callable[[State, Label | None, State], bool]
_NAME = "replay spec"


class Found(NamedTuple):
    """What came of a run: the verdict, how it fails if it does, and a sentence if not."""

    verdict: Verdict
    failure: Counterexample | None = None
    otherwise: str = ""


@dataclass(frozen=True)
class SpecRun:
    """A path of the specification within bounds, and the name of the property that it breaks."""

    bounds: Bounds
    labels: tuple[Label, ...]
    broken: str

    level: ClassVar[str] = "spec"

    @classmethod
    def of(cls, path: Path, *, bounds: Bounds, broken: str) -> "SpecRun":
        """Return the run of a path as the explorer gives it."""
        return cls(bounds, tuple(label for label, _ in path if label is not None), broken)

    def as_json(self) -> dict[str, Json]:
        """Return the run as one JSON object."""
        return {
            "bounds": bounds_json(self.bounds),
            "steps": [label_json(label) for label in self.labels],
            "property": self.broken,
        }

    @classmethod
    def from_json(cls, document: object) -> "SpecRun":
        """Return the run that `as_json` gave, or raise `DocumentError`."""
        fields = Fields(document, "path of the specification")
        bounds = read_bounds(fields.take("bounds"))
        labels = tuple(read_label(step, bounds) for step in fields.items("steps"))
        run = cls(bounds, labels, fields.text("property"))
        fields.end()
        if run.broken not in {*invariants(), *STEPS, *LIVENESS}:
            raise DocumentError(f"no property is called {run.broken!r}")
        return run

    def again(self, fault: str) -> Outcome:
        """Follow the path once more, in a specification with this fault.

        Inconclusive if the path ends early, since the specification does not allow it any more.
        """
        started = time.monotonic()
        machine = _machine(self.bounds, fault)
        token = token_of(self, fault=fault)
        for_ever = self.broken in LIVENESS
        found = self._for_ever(machine, token) if for_ever else self._along(machine, token)
        figures: dict[str, Figure] = {"steps": len(self.labels)}
        return Outcome(
            name=_NAME,
            verdict=found.verdict,
            bounds=f"{self.bounds.name}: {self.bounds.line()}",
            figures=figures,
            seconds=time.monotonic() - started,
            detail=found.otherwise if found.failure is None else found.failure.as_text(),
            counterexample=found.failure,
        )

    def _along(self, machine: Machine, token: str) -> Found:
        """Follow the labels through every state that they may lead to."""
        broken = _predicate(machine, self.broken)
        start = machine.initial()
        if broken(start, None, start):
            return self._violated((Move(None, start),), token)
        paths: list[Path] = [(Move(None, start),)]
        for number, label in enumerate(self.labels, 1):
            further: dict[State, Path] = {}
            for path in paths:
                before = path[-1].state
                if label not in machine.labels(before):
                    continue
                for after in machine.apply(before, label):
                    longer = (*path, Move(label, after))
                    if broken(before, label, after):
                        return self._violated(longer, token)
                    further.setdefault(after, longer)
            if not further:
                why = f"step {number}, {label}, cannot happen here any more"
                return Found(Verdict.INCONCLUSIVE, otherwise=why)
            paths = list(further.values())
        return Found(Verdict.HOLDS, otherwise=f"{self.broken} holds all along this path")

    def _for_ever(self, machine: Machine, token: str) -> Found:
        """Check the liveness property on the whole graph."""
        starved = answer(explore(machine), LIVENESS[self.broken]).starvation
        if starved is None:
            why = f"{self.broken} holds in the whole graph of these bounds"
            return Found(Verdict.HOLDS, otherwise=why)
        shown = starvation_shown(self.broken, starved, bounds=self.bounds, name=_NAME, token=token)
        return Found(Verdict.VIOLATED, shown)

    def _violated(self, path: Path, token: str) -> Found:
        violation = Violation((self.broken,), path)
        shown = violation_shown(violation, bounds=self.bounds, name=_NAME, token=token)
        return Found(Verdict.VIOLATED, shown)


def _machine(bounds: Bounds, fault: str) -> Machine:
    """Return the machine of the bounds, faulty if the fault has a name."""
    from forebay_models.mutants.spec import SPEC_MUTANTS

    if not fault:
        return Machine(bounds)
    if fault not in SPEC_MUTANTS:
        raise TokenError(f"no fault is called {fault!r}; there are: {', '.join(SPEC_MUTANTS)}")
    return SPEC_MUTANTS[fault].machine(bounds)


def _predicate(machine: Machine, name: str) -> Broken:
    """Return how to tell that a step, or the state that it leads to, breaks a property."""
    states = invariants(machine.actions)
    if name in states:
        holds = states[name].predicate
        return lambda before, label, after: not holds(machine.bounds, after)
    keeps = STEPS[name].predicate
    return lambda before, label, after: (
        label is not None and not keeps(machine.bounds, before, label, after)
    )


LEVELS[SpecRun.level] = SpecRun.from_json
