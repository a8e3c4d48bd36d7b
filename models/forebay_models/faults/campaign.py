"""Every labelled point of every scenario, each killed at once in a run of its own.

Which points there are is not written down anywhere: each scenario is run once without a kill, and
the victim, or whoever finds it, tells which points it has come to.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from forebay_models.faults.case import Case
from forebay_models.faults.crew import Crew, Wrong, crew
from forebay_models.faults.hands import LOOK, PATIENCE
from forebay_models.faults.kills import Kill
from forebay_models.faults.points import Point, Reached
from forebay_models.faults.scenarios import FINDER, SCENARIOS, VICTIM, Scenario
from forebay_models.faults.stage import PRELOAD, Stage
from forebay_models.mutants.shared import planted_in_shared
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.progress import Observer
from forebay_models.tables import text_table

FEW: Final = ("inside", "half", "asleep", "copied", "gathered")
"""Labels that every method of starting processes is tried with, in the quick tier."""


@dataclass(frozen=True)
class Settings:
    """What is killed.

    Attributes:
        scenarios: their names.
        methods: of starting processes. The first one is taken for all kills, the others once for
            each label.
        full: whether every point of every scenario is taken, and each once more with nobody who
            looks for the dead on purpose; else each place in each kind of call once, and the
            other methods for `FEW` labels.
        seconds: the budget, or None for as long as it takes.
        fault: the planted fault, or nothing.
        patience: seconds after which whoever is silent is stuck.
    """

    scenarios: Sequence[str]
    methods: Sequence[str]
    full: bool = False
    seconds: float | None = None
    fault: str = ""
    patience: float = PATIENCE


class Campaign:
    """Runs kills until one goes wrong.

    Args:
        settings: what is killed.
        observer: is told how far it has come.
        name: of the check.
    """

    def __init__(self, settings: Settings, observer: Observer, name: str) -> None:
        self._settings = settings
        self._observer = observer
        self._name = name
        self._began = time.monotonic()
        self._only: Kill | None = None
        self._seen: set[tuple[str, str, int]] = set()
        self._tried: set[tuple[str, str]] = set()
        self.points = 0
        self.kills: Counter[str] = Counter()
        self.missed: list[str] = []
        self.failed: tuple[str, Kill, str] | None = None
        self.cut = False
        self.table: list[list[str]] = []

    def run(self) -> None:
        """Run all kills, or those that there is time for."""
        with self._members() as members:
            stage = Stage(members, self._settings.fault)
            for name in self._settings.scenarios:
                if not self._run_scenario(stage, SCENARIOS[name]):
                    return

    def run_one(self, kill: Kill, method: str) -> None:
        """Run one kill."""
        self._only = kill
        with self._members() as members:
            self._kill(Stage(members, self._settings.fault), kill, method)

    @contextmanager
    def _members(self) -> Iterator[Crew]:
        """Give a crew, with the fault planted here as well, where buffers are made."""
        settings = self._settings
        with planted_in_shared(settings.fault), crew(PRELOAD, settings.patience) as members:
            yield members

    def _run_scenario(self, stage: Stage, scenario: Scenario) -> bool:
        """Run all kills of a scenario; False if one has gone wrong, or there is no time left."""
        counts = Counter[str]()
        for kill, label in self._kills_of(stage, scenario):
            for method in self._methods(label):
                seconds = self._settings.seconds
                if seconds is not None and time.monotonic() - self._began > seconds:
                    self.cut = True
                    return False
                if not self._kill(stage, kill, method):
                    return False
                if method == self._settings.methods[0]:
                    counts["natural" if kill.natural else FINDER if kill.finder else VICTIM] += 1
        if self.failed is not None:
            return False
        self.table.append([scenario.name, *(str(counts[it]) for it in (VICTIM, "natural", FINDER))])
        return True

    def _kills_of(self, stage: Stage, scenario: Scenario) -> Iterator[tuple[Kill, str]]:
        """Yield the kills of a scenario and a label for each, having found out about the points."""
        name = scenario.name
        for reached in self._points(stage, Kill(name, None)):
            if self._is_new(reached):
                yield Kill(name, reached.point), reached.point.label
            if self._settings.full:
                yield Kill(name, reached.point, natural=True), ""
        for point in scenario.finder_points:
            for reached in self._points(stage, Kill(name, point, finder=Point("-", 1))):
                if self._is_new(reached):
                    label = f"{FINDER} {reached.point.label}"
                    yield Kill(name, point, finder=reached.point), label

    def _is_new(self, reached: Reached) -> bool:
        """Tell whether a point is to be taken."""
        label = reached.point.label
        place = reached.call, label, 1 if reached.call == LOOK else reached.place
        if not self._settings.full and place in self._seen:
            return False
        self._seen.add(place)
        return True

    def _points(self, stage: Stage, kill: Kill) -> tuple[Reached, ...]:
        """Return the points of the one who is to be killed, by a run in which it is not."""
        scenario = SCENARIOS[kill.scenario]
        try:
            ran = Case(stage, scenario, "fork", kill, self._settings.fault).run()
        except Wrong as error:
            self.failed = "fork", kill, str(error)
            return ()
        reached = ran.points if kill.finder is None else ran.finder_points
        self.points += len(reached)
        return reached

    def _methods(self, label: str) -> Iterator[str]:
        first, *others = self._settings.methods
        yield first
        if label and (self._settings.full or label in FEW):
            for method in others:
                if (method, label) not in self._tried:
                    self._tried.add((method, label))
                    yield method

    def _kill(self, stage: Stage, kill: Kill, method: str) -> bool:
        """Run one kill; True if all went well."""
        self._observer.says(self._name, f"{sum(self.kills.values()):,} kills, {kill} by {method}")
        try:
            ran = Case(stage, SCENARIOS[kill.scenario], method, kill, self._settings.fault).run()
        except Wrong as error:
            self.failed = method, kill, str(error)
            return False
        self.kills[method] += 1
        if not ran.reached:
            self.missed.append(f"{kill} by {method}")
        return True

    def outcome(self) -> Outcome:
        """Return what has come out."""
        settings = self._settings
        figures: dict[str, Figure] = {"points": self.points}
        figures |= {f"kills by {method}": self.kills[method] for method in settings.methods}
        parts = [text_table(["scenario", VICTIM, "natural", FINDER], self.table)]
        verdict = Verdict.HOLDS
        if self.failed is not None:
            verdict = Verdict.VIOLATED
            parts = [self._failure(*self.failed)]
        elif self.cut or self.missed:
            verdict = Verdict.INCONCLUSIVE
            if self.cut:
                parts.append("the budget ended before all was run")
            if self.missed:
                parts.append(f"points that were not reached again: {', '.join(self.missed)}")
        return Outcome(
            name=self._name,
            verdict=verdict,
            bounds=self._bounds(),
            figures=figures,
            seconds=time.monotonic() - self._began,
            detail="\n\n".join(parts),
        )

    def _bounds(self) -> str:
        settings = self._settings
        first, *others = settings.methods
        if self._only is not None:
            return f"kill {self._only}, started by {first}"
        every = "every point" if settings.full else "each place in each kind of call once"
        return (
            f"scenarios: {len(settings.scenarios)} of capacity 2..3; {every}, by {first}"
            + (f"; some labels by {', '.join(others)}" if others else "")
            + "; one process killed, or its finder too"
        )

    def _failure(self, method: str, kill: Kill, wrong: str) -> str:
        """Return what went wrong, and how to see it again."""
        killed = "nobody is killed" if (kill.finder or kill.point) is None else f"kill {kill}"
        again = ""
        if (kill.finder or kill.point) is not None:
            plant = f" --plant {self._settings.fault}" if self._settings.fault else ""
            again = (
                f'\n\nto repeat: forebay campaign faults --methods {method} --only "{kill}"{plant}'
            )
        return f"{SCENARIOS[kill.scenario].line()}\n{killed}, started by {method}\n{wrong}{again}"
