"""Takes every edge of the quick graphs, in two processes, and says how much of that was done.

It holds only if every edge of every graph that was asked for was taken on the implementation; a
part of them, in whatever time, is never a pass.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from forebay_spec.bounds import QUICK

from forebay_models.adapters.adapter import MANNERS
from forebay_models.adapters.start import start
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.quiet import quiet_library
from forebay_models.campaign.replay import shortened
from forebay_models.campaign.shown import counterexample_of
from forebay_models.cover.workers import (
    Broken,
    Failure,
    Job,
    Progress,
    Size,
    Sizes,
    Work,
    Workers,
    work,
)
from forebay_models.coverage import heat_of
from forebay_models.device.prompt import without_device
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.progress import Observer
from forebay_models.runs.walk import WalkRun, planted
from forebay_models.targets import SCOPES, Scope, Target
from forebay_models.tokens import token_of

SHARES: Final = 2
"""How many processes take paths."""

SHORTENING: Final = 10.0
"""Seconds for which steps are left out of a failure at most."""


@dataclass
class Cover:
    """What was taken so far, by all workers together.

    Attributes:
        scope: what is driven, and what can be exercised there.
        graphs: the graphs that were asked for.
        sizes: of those that were explored.
        edges: for each graph, one byte for each edge, 1 if it was taken.
        states: for each graph, one byte for each state, 1 if the buffer was in it.
    """

    scope: Scope
    graphs: tuple[str, ...]
    sizes: dict[str, Size] = field(default_factory=dict)
    edges: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, bytes] = field(default_factory=dict)
    exercises: dict[tuple[int, str], Exercise] = field(default_factory=dict)

    def explored(self, sizes: Mapping[str, Size]) -> None:
        """Note how large the graphs are; every worker has to find the same."""
        for name, size in sizes.items():
            if self.sizes.setdefault(name, size) != size:
                raise AssertionError(f"{name} was explored twice, and differs")

    def took(self, worker: int, progress: Progress) -> None:
        """Note what a worker has taken of a graph."""
        name = progress.graph
        self.edges[name] = _either(self.edges.get(name), progress.edges)
        self.states[name] = _either(self.states.get(name), progress.states)
        self.exercises[worker, name] = progress.exercise

    @property
    def name(self) -> str:
        """What the campaign is called in tables."""
        return f"cover {self.scope.target.value}"

    @property
    def complete(self) -> bool:
        """Whether every edge of every graph was taken."""
        return set(self.sizes) == set(self.graphs) and self.missing() == 0

    def missing(self) -> int:
        """Return how many edges of the explored graphs were not taken."""
        taken = sum(edges.count(1) for edges in self.edges.values())
        return sum(size.edges for size in self.sizes.values()) - taken

    def exercise(self) -> Exercise:
        """Return what was exercised, over all workers and graphs."""
        whole = Exercise()
        for part in self.exercises.values():
            whole.actions += part.actions
            whole.heat += part.heat
            whole.manners += part.manners
            whole.examples += part.examples
            whole.steps += part.steps
        return whole

    def figures(self, seconds: float) -> dict[str, Figure]:
        """Return the counts of a cover that has taken so many seconds."""
        exercise = self.exercise()
        taken = sum(edges.count(1) for edges in self.edges.values())
        seen = sum(states.count(1) for states in self.states.values())
        return {
            "edges": _of(taken, sum(size.edges for size in self.sizes.values())),
            "states": _of(seen, sum(size.states for size in self.sizes.values())),
            "actions": _of(
                sum(exercise.actions[it] > 0 for it in self.scope.actions),
                len(self.scope.actions),
            ),
            "manners": _manners(exercise.manners),
            "paths": exercise.examples,
            "steps": exercise.steps,
            "steps/s": round(exercise.steps / seconds) if seconds else 0,
        }


def run_cover(
    target: Target = Target.LOCAL,
    *,
    graphs: Sequence[str] = (),
    seconds: float | None = None,
    fault: str = "",
    observer: Observer,
    work: Work = work,
) -> Outcome:
    """Take every edge of the quick graphs on a target.

    Args:
        target: what is driven.
        graphs: the names of the graphs; none means all that the target can walk.
        seconds: the budget, or None for as long as it takes.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far it has come.
        work: does one share, in a process of its own.
    """
    scope = SCOPES[target]
    names = tuple(dict.fromkeys(graphs)) or tuple(scope.graphs)
    cover = Cover(scope, names)
    if (cannot := without_device(target, cover.name)) is not None:
        return cannot
    observer.expects(1)
    observer.begins(cover.name)
    began = time.monotonic()
    until = None if seconds is None else began + seconds
    jobs = [Job(target, names, share, SHARES, fault, until) for share in range(SHARES)]
    end: Failure | Broken | None = None
    with Workers(jobs, work) as workers:
        for worker, message in workers.messages():
            if isinstance(message, Sizes):
                cover.explored(message.of)
            elif isinstance(message, Progress):
                cover.took(worker, message)
                observer.says(cover.name, f"{cover.figures(0.0)['edges']} edges")
            elif isinstance(message, Failure | Broken):
                end = message
                break
    took = time.monotonic() - began
    if isinstance(end, Failure):
        failure = _shorter(end.divergence(), fault)
        outcome = violated(cover, failure, took, fault=fault)
    else:
        outcome = conclude(cover, took, broken="" if end is None else end.why)
    observer.ends(cover.name, outcome)
    return outcome


def conclude(cover: Cover, seconds: float, broken: str = "") -> Outcome:
    """Return the outcome of a cover that has found no failure; `broken` says why it ended early."""
    detail = _table(cover)
    if broken:
        verdict = Verdict.COULD_NOT_RUN
        detail = f"{detail}\n\n{broken}".strip()
    elif cover.complete:
        verdict = Verdict.HOLDS
    else:
        verdict = Verdict.INCONCLUSIVE
        detail += f"\n\n{cover.missing():,} edges were not taken; give it more time"
    return Outcome(
        name=cover.name,
        verdict=verdict,
        bounds=bounds_line(cover),
        figures=cover.figures(seconds),
        seconds=seconds,
        detail=detail,
        heat=heat_of(cover.exercise().heat),
    )


def violated(cover: Cover, failure: Divergence, seconds: float, *, fault: str = "") -> Outcome:
    """Return the outcome of a cover that has found a failure."""
    token = token_of(WalkRun.of(failure), fault=fault)
    counterexample = counterexample_of(failure, name=cover.name, token=token)
    return Outcome(
        name=cover.name,
        verdict=Verdict.VIOLATED,
        bounds=bounds_line(cover),
        figures=cover.figures(seconds),
        seconds=seconds,
        detail=counterexample.as_text(),
        counterexample=counterexample,
        heat=heat_of(cover.exercise().heat),
    )


def bounds_line(cover: Cover) -> str:
    """Return on one line what a cover is limited to."""
    capacities = sorted({QUICK[name].capacity for name in cover.graphs})
    sizes = "..".join(map(str, dict.fromkeys((capacities[0], capacities[-1]))))
    return (
        f"every edge of the graphs {', '.join(cover.graphs)}, C={sizes}, each on some path and not "
        f"on every path; {cover.scope.where}"
    )


def _shorter(failure: Divergence, fault: str) -> Divergence:
    """Return a failure on a shorter path, if one fails too."""
    with planted(fault), quiet_library():
        return shortened(start, failure, SHORTENING)


def _table(cover: Cover) -> str:
    """Return how much of each graph was taken."""
    rows = [
        f"{name}: {_of(cover.edges.get(name, b'').count(1), size.edges)} edges, "
        f"{_of(cover.states.get(name, b'').count(1), size.states)} states"
        for name, size in cover.sizes.items()
    ]
    return "\n".join(rows)


def _manners(counted: Counter[str]) -> str:
    names = [
        f"{action}: {manner or 'as usual'}"
        for action, manners in MANNERS.items()
        for manner in manners
    ]
    return _of(sum(counted[name] > 0 for name in names), len(names))


def _either(first: bytes | None, second: bytes) -> bytes:
    """Return for each byte whether it is 1 in either."""
    if first is None:
        return second
    both = int.from_bytes(first) | int.from_bytes(second)
    return both.to_bytes(len(second))


def _of(part: int, whole: int) -> str:
    share = f" ({part / whole:.1%})" if 0 < part < whole else ""
    return f"{part:,} of {whole:,}{share}"
