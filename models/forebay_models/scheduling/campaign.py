"""The schedule campaign: all schedules up to a bound, then random ones, over several scenarios."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from forebay_models.campaign.quiet import quiet_library
from forebay_models.counterexample import Counterexample
from forebay_models.cover.edges import EdgeCoverage
from forebay_models.coverage import heat_of
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.progress import Observer
from forebay_models.scheduling.coverage import Exercised
from forebay_models.scheduling.play import Run, Theatre
from forebay_models.scheduling.scenario import ACTIONS
from forebay_models.scheduling.scenarios import Plan
from forebay_models.scheduling.search import Search, search
from forebay_models.scheduling.shorten import shortened
from forebay_models.scheduling.show import counterexample_of
from forebay_models.scheduling.strategies import DepthFirst, Priorities, Strategy, Uniform
from forebay_models.tables import text_table


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a campaign runs.

    Attributes:
        plans: the scenarios and the bounds up to which all of their schedules are run.
        random: how many schedules of each random kind are run of every scenario afterwards.
        depth: of the random schedules with priorities.
        seconds: the budget, or None.
        seed: of the random schedules.
        actions: what the scenarios together have to take, or nothing is known about it.
    """

    plans: Sequence[Plan]
    random: int = 50
    depth: int = 3
    seconds: float | None = None
    seed: int = 0
    actions: Sequence[str] = ()


@dataclass
class Campaign:
    """A campaign and what it has found so far."""

    settings: Settings
    observer: Observer
    name: str
    exercised: Exercised = field(default_factory=Exercised)
    total: Search = field(default_factory=Search)
    reached: dict[str, int] = field(default_factory=dict)
    cut: bool = False
    failed: tuple[Plan, Run] | None = None

    def __post_init__(self) -> None:
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def run(self) -> None:
        """Run it to its end, to its budget, or to the first failure."""
        with quiet_library(), ExitStack() as stack:
            theatres = [stack.enter_context(Theatre(plan.scenario)) for plan in self.settings.plans]
            pairs = list(zip(self.settings.plans, theatres, strict=True))
            deepest = max((plan.bound for plan in self.settings.plans), default=0)
            for bound in range(deepest + 1):
                for plan, theatre in pairs:
                    if bound <= plan.bound and self._search(plan, theatre, DepthFirst(bound)):
                        self.reached[plan.scenario.name] = bound
            for plan, theatre in pairs:
                seed = self.settings.seed
                most = self.settings.random
                self._search(plan, theatre, Uniform(seed), most)
                self._search(plan, theatre, Priorities(seed, self.settings.depth), most)

    def _search(
        self, plan: Plan, theatre: Theatre, strategy: Strategy, most: int | None = None
    ) -> bool:
        """Run schedules of one scenario; tells whether the strategy has no more of them."""
        if self.failed is not None or self.cut:
            return False
        name = plan.scenario.name

        def enough(found: Search) -> bool:
            if found.schedules % 50 == 0:
                total = self.total.schedules + found.schedules
                self.observer.says(self.name, f"{name}, {total:,} schedules")
            seconds = self.settings.seconds
            if seconds is not None and self.elapsed >= seconds:
                self.cut = True
            return self.cut or (most is not None and found.schedules >= most)

        found = search(
            theatre,
            strategy,
            enough=enough,
            see=lambda run: self.exercised.see(plan.scenario, run),
        )
        self.total.schedules += found.schedules
        self.total.slices += found.slices
        self.total.repeated += found.repeated
        if found.failed is not None:
            self.failed = plan, found.failed
        return found.exhausted

    def figures(self) -> Mapping[str, Figure]:
        """Return the counts."""
        taken = sum(self.exercised.actions[name] > 0 for name in ACTIONS)
        rate = round(self.total.schedules / max(self.elapsed, 1e-9))
        return {
            "schedules": self.total.schedules,
            "slices": self.total.slices,
            "schedules/s": rate,
            "run twice": self.total.repeated,
            "actions": f"{taken} of {len(ACTIONS)}",
            **coverage_figures(self.exercised.edges),
        }

    def outcome(self, *, fault: str = "") -> Outcome:
        """Return the campaign's result, its failure made short.

        Args:
            fault: the planted fault, for the token.
        """
        elapsed, figures = self.elapsed, self.figures()
        verdict, failure = Verdict.HOLDS, None
        parts = [self._table()]
        missing = [it for it in self.settings.actions if not self.exercised.actions[it]]
        behind = [
            plan.scenario.name
            for plan in self.settings.plans
            if self.reached.get(plan.scenario.name, -1) < plan.bound
        ]
        if self.failed is not None:
            verdict = Verdict.VIOLATED
            failure = self._failure(fault)
            parts = [failure.as_text()]
        elif behind or self.cut:
            verdict = Verdict.INCONCLUSIVE
            where = ", ".join(behind) or "the random schedules"
            parts.append(f"the budget ended before all was run of: {where}")
        elif missing:
            verdict = Verdict.INCONCLUSIVE
            parts.append(f"actions that no scenario has taken: {', '.join(missing)}")
        return Outcome(
            name=self.name,
            verdict=verdict,
            bounds=self._bounds(),
            figures=figures,
            seconds=elapsed,
            detail="\n\n".join(parts),
            counterexample=failure,
            heat=heat_of(self.exercised.heat),
        )

    def _failure(self, fault: str) -> Counterexample:
        from forebay_models.runs.schedule import ScheduleRun
        from forebay_models.tokens import token_of

        assert self.failed is not None
        plan, run = self.failed
        with quiet_library():
            found = shortened(plan.scenario, run)
        token = token_of(ScheduleRun(found.scenario, dict(found.choices)), fault=fault)
        return counterexample_of(found.scenario, found.run, name=self.name, token=token)

    def _bounds(self) -> str:
        bounds = sorted({plan.bound for plan in self.settings.plans})
        deepest = f"{bounds[0]}..{bounds[-1]}" if len(bounds) > 1 else str(bounds[0])
        return (
            f"scenarios: {len(self.settings.plans)}; all schedules with at most {deepest} "
            f"preemptions, then {self.settings.random} uniform and {self.settings.random} PCT "
            f"(depth {self.settings.depth}) each; switches at labelled points only"
        )

    def _table(self) -> str:
        rows = [
            [plan.scenario.line(), str(plan.bound), str(self.reached.get(plan.scenario.name, "-"))]
            for plan in self.settings.plans
        ]
        return text_table(["scenario", "bound", "reached"], rows)


def coverage_figures(edges: EdgeCoverage) -> Mapping[str, Figure]:
    """Return how many edges and states of the quick graphs were taken."""
    return {"quick edges": len(edges.edges), "quick states": len(edges.states)}
