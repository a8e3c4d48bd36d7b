"""How fast the models are: the explorer, P12, the scheduler, P13, and random walks by target.

Where `make verify` spends its time is read from what it has saved.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from forebay_models.campaign_cli import run_stateful
from forebay_models.explore.check import check
from forebay_models.explore.graph import Graph, explore
from forebay_models.progress import Quiet
from forebay_models.scheduling.campaign import Campaign, Settings
from forebay_models.scheduling.scenarios import plans_for
from forebay_models.targets import Target
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK, Bounds

from benchmarks.plan import Part, Plan
from benchmarks.results import Goal, Row
from benchmarks.timing import Work, spread, take_turns

P12: Final = 100_000.0
P13: Final = 500.0
TARGETS: Final = (Target.LOCAL, Target.SHARED, Target.SIMULATED)
VERIFIED: Final = Path("build/verify.json")
SLOWEST: Final = 12
"""Checks of `make verify` that are listed one by one."""


def _explored(bounds: Bounds) -> Graph:
    return explore(Machine(bounds), keep_edges=False)


def _checked(bounds: Bounds) -> Graph:
    return check(Machine(bounds)).graph


def exploring(plan: Plan) -> list[Part]:
    """P12: edges a second of whole graphs, and with every property checked on the way."""
    ways = {"explored": _explored, "explored and judged by every property": _checked}

    def work(way: Callable[[Bounds], Graph], name: str) -> Work:
        def run(cycles: int) -> None:
            for _ in range(cycles):
                way(QUICK[name])

        return run

    def measure(name: str) -> list[Row]:
        edges = _explored(QUICK[name]).edge_count
        works = {how: work(way, name) for how, way in ways.items()}
        found = take_turns(works, plan.effort.turns, plan.effort.shortest, least=1)
        return [
            Row(
                case="P12",
                size=f"graph {name}, {edges} edges, {how}",
                ours=spread([edges / each for each in seconds]),
                unit="edges/s",
                goal=Goal("at least", P12, "ours") if how == "explored" else None,
            )
            for how, seconds in found.items()
        ]

    return [Part(f"graph {name}", partial(measure, name)) for name in plan.effort.graphs]


def scheduling(plan: Plan) -> list[Part]:
    """P13: schedules a second, random ones and those without preemption, of every scenario."""
    plans = [it._replace(bound=0) for it in plans_for(Target.LOCAL, full=False).values()]

    def measure() -> list[Row]:
        rates = []
        for turn in range(plan.effort.turns):
            settings = Settings(plans=plans, random=plan.effort.schedules, seed=turn)
            campaign = Campaign(settings, Quiet(), "benchmark")
            campaign.run()
            if campaign.failed is not None:
                raise AssertionError("a schedule failed; see `forebay campaign schedule`")
            rates.append(campaign.total.schedules / campaign.elapsed)
        return [
            Row(
                case="P13",
                size=f"{len(plans)} scenarios on threads",
                ours=spread(rates),
                unit="schedules/s",
                goal=Goal("at least", P13, "ours"),
            )
        ]

    return [Part(f"{len(plans)} scenarios", measure)]


def walking(plan: Plan) -> list[Part]:
    """Steps a second of random walks on each target, and the time of the last `make verify`."""

    def measure(target: Target) -> list[Row]:
        rates = []
        for turn in range(plan.effort.turns):
            found = run_stateful(
                target,
                seconds=None,
                examples=plan.effort.walks,
                seed=turn,
                steps=40,
                observer=Quiet(),
            )
            if found.counterexample is not None:
                raise AssertionError(f"a walk failed; see `forebay campaign stateful`: {found}")
            steps = found.figures["steps"]
            assert isinstance(steps, int)
            rates.append(steps / found.seconds)
        return [
            Row(
                case="models",
                size=f"random walk, target {target.value}",
                ours=spread(rates),
                unit="steps/s",
            )
        ]

    return [
        *(Part(f"target {target.value}", partial(measure, target)) for target in TARGETS),
        Part("make verify", partial(verified, plan, VERIFIED)),
    ]


def verified(plan: Plan, path: Path) -> list[Row]:
    """Return where the time of `make verify` went, by kind of check and for the slowest checks.

    Checks run beside each other, so this is more than what passed on the clock.
    """
    if not path.is_file():
        plan.note(f"where `make verify` spends its time is not known: there is no {path}; run it")
        return []
    found: dict[str, float] = {
        outcome["name"]: outcome["seconds"]
        for outcome in json.loads(path.read_text(encoding="utf-8"))["outcomes"]
    }
    kinds: dict[str, float] = defaultdict(float)
    for name, seconds in found.items():
        kinds[name.split()[0]] += seconds
    slowest = sorted(found, key=lambda name: -found[name])[:SLOWEST]
    lines = [
        *(
            (f"make verify, all of {kind}", kinds[kind])
            for kind in sorted(kinds, key=lambda it: -kinds[it])
        ),
        *((f"make verify, {name}", found[name]) for name in slowest),
    ]
    return [
        Row(case="models", size=size, ours=spread([seconds]), unit="s") for size, seconds in lines
    ]
