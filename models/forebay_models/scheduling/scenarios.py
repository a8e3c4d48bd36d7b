"""The scenarios that the schedule campaign runs: small programs, each with a theme.

Each has a bound on preemptions up to which all of its schedules are run in the quick tier, chosen
so that all of them together take about a minute. `FULL` has wider ones. On a simulated device the
same scenarios have a player more for each actor, so the bounds are lower.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from forebay_models.scheduling.scenario import Scenario, ScenarioStorage
from forebay_models.targets import Target


class Plan(NamedTuple):
    """A scenario and the number of preemptions up to which it is run."""

    scenario: Scenario
    bound: int


_QUICK: Final = (
    Plan(
        Scenario(name="smallest", capacity=1, programs=(("p1", "extend 1"), ("c1", "sample 1"))),
        bound=3,
    ),
    Plan(
        Scenario(
            name="hand-over",
            capacity=1,
            programs=(("p1", "extend 1; extend 1"), ("c1", "sample 1; sample 1")),
        ),
        bound=2,
    ),
    Plan(
        Scenario(
            name="crowd",
            capacity=1,
            programs=(
                ("p1", "extend 1"),
                ("p2", "extend 1"),
                ("c1", "sample 1"),
                ("c2", "sample 1"),
            ),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="batches",
            capacity=2,
            programs=(("p1", "extend 2"), ("p2", "extend 1"), ("c1", "sample 2 1; sample 2 1")),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="twice",
            capacity=2,
            uses=2,
            programs=(("p1", "extend 2; extend 1"), ("c1", "sample 2"), ("c2", "sample 2 1")),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="cancelled",
            capacity=1,
            programs=(("p1", "extend 1; extend 1"), ("p2", "extend 1"), ("x1", "set t1")),
            token_of=(("p1", "t1"),),
        ),
        bound=2,
    ),
    Plan(
        Scenario(
            name="head-expires",
            capacity=2,
            programs=(("p1", "extend 1; extend 2 timed"), ("p2", "extend 1")),
        ),
        bound=2,
    ),
    Plan(
        Scenario(
            name="reader-expires",
            capacity=2,
            programs=(("c1", "sample 2 timed"), ("c2", "sample 1"), ("p1", "extend 1")),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="closing",
            capacity=1,
            programs=(
                ("p1", "extend 1; extend 1"),
                ("c1", "sample 1"),
                ("x1", "shutdown draining"),
            ),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="draining",
            capacity=2,
            programs=(("p1", "extend 1"), ("c1", "sample 2"), ("x1", "shutdown draining")),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="stopping",
            capacity=1,
            programs=(
                ("p1", "extend 1; extend 1"),
                ("c1", "sample 1"),
                ("x1", "shutdown stopped; shutdown draining"),
            ),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="emptied",
            capacity=1,
            programs=(("p1", "extend 1; extend 1"), ("c1", "sample 1"), ("x1", "empty")),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="failing",
            capacity=2,
            uses=2,
            programs=(
                ("p1", "extend 1 raises; extend 1; extend 1"),
                ("c1", "sample 1 raises; sample 1; sample 2"),
            ),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="failing-lease",
            capacity=1,
            programs=(("p1", "extend 1; extend 1"), ("c1", "lease 1 raises; lease 1; commit")),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="leases",
            capacity=2,
            programs=(
                ("p1", "extend 1; extend 1; extend 1"),
                ("c1", "lease 1; sample 1; release"),
                ("c2", "sample 1"),
            ),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="mutual-wait",
            capacity=3,
            programs=(("p1", "extend 2; extend 2"), ("c1", "sample 3; sample 2")),
        ),
        bound=1,
    ),
    Plan(
        Scenario(
            name="own-lease",
            capacity=2,
            programs=(("x1", "extend 2; lease 1; extend 2; commit"), ("c1", "sample 1")),
        ),
        bound=2,
    ),
    Plan(
        Scenario(
            name="dice",
            capacity=2,
            uses=2,
            order="random",
            programs=(
                ("p1", "extend 2; extend 1"),
                ("c1", "sample 1; sample 1"),
                ("c2", "sample 2"),
            ),
        ),
        bound=1,
    ),
)

_FULL: Final = (
    *(plan._replace(bound=plan.bound + 1) for plan in _QUICK),
    Plan(
        Scenario(
            name="three-and-two",
            capacity=2,
            programs=(
                ("p1", "extend 1"),
                ("p2", "extend 1"),
                ("p3", "extend 1"),
                ("c1", "sample 1"),
                ("c2", "sample 2"),
            ),
        ),
        bound=2,
    ),
)

_ON_SIMULATED: Final = {"smallest": 2, "hand-over": 1, "failing": 1}
"""The bounds on a simulated device; all others are run without preemptions, and at random."""


QUICK: Final[Mapping[str, Plan]] = {plan.scenario.name: plan for plan in _QUICK}
FULL: Final[Mapping[str, Plan]] = {plan.scenario.name: plan for plan in _FULL}


def plans_for(target: Target, *, full: bool) -> Mapping[str, Plan]:
    """Return the scenarios of a target by their names, those of the quick tier or all."""
    if target is Target.LOCAL:
        return FULL if full else QUICK
    storage: ScenarioStorage = "simulated" if target is Target.SIMULATED else "cuda"
    plans = {}
    for scenario, bound in _QUICK:
        if storage == "simulated":
            bound = max(_ON_SIMULATED.get(scenario.name, -1) + full, 0)
        plans[scenario.name] = Plan(replace(scenario, storage=storage), bound)
    return plans
