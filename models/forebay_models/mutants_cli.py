"""`forebay campaign mutants`: plants every fault there is, and sees whether a campaign finds it.

A verdict that nothing was found is worth as much as what the same search would have found. So each
fault of the library that was ever met or thought of is planted in turn; the scheduler looks for it,
and where it finds nothing, the cover. What is wrong with overwriting buffers alone is looked for by
the cover of the graphs that have one, on threads and with deaths.

On a simulated device the faults are others, those in the order that a storage on a device keeps.
The stateful campaign looks for them, and where it finds nothing, the cover.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from forebay_models.campaign_cli import TargetOption, one_of, one_of_targets, run_stateful
from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.cover_cli import run_cover
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Observer, Quiet, bar
from forebay_models.tables import text_table
from forebay_models.targets import LOCAL, SHARED, Target
from forebay_models.verdicts import report

if TYPE_CHECKING:
    from forebay_models.mutants.planting import LocalMutant

SECONDS: Final = 30.0
"""How long the scheduler looks for one fault."""

WALKING: Final = 60.0
"""How long the stateful campaign does."""

_SEARCHES: Final = {
    Target.LOCAL: f"the scheduler for {SECONDS:g} s",
    Target.SIMULATED: f"the stateful campaign for {WALKING:g} s",
}
"""What looks for a fault before the cover, of the targets that have faults."""

OVERWRITING: Final = [name for name, bounds in LOCAL.graphs.items() if bounds.overwriting]
ORPHANED: Final = [
    name
    for name, bounds in SHARED.graphs.items()
    if bounds.overwriting and "Kill" in bounds.features
]
"""The graphs in which a fault of overwriting buffers is looked for, on each target."""


def mutants(
    names: Annotated[
        list[str] | None, typer.Argument(help="Faults; every one there is if none.")
    ] = None,
    target: TargetOption = Target.LOCAL,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Plant each known fault in the library and look whether the campaigns find it.

    Example: `forebay campaign mutants lost_wakeup wakes_one`
    """
    one_of_targets(tuple(_SEARCHES), target, "mutants")
    faults = [one_of(_faults(target), name) for name in names or ()]
    with bar() as observer:
        outcome = run_mutants(target, names=faults, observer=observer)
    verdict = report([outcome], command="campaign mutants", as_json=as_json, save=save)
    raise typer.Exit(int(verdict))


def run_mutants(target: Target, *, names: Sequence[str] = (), observer: Observer) -> Outcome:
    """Plant faults, look for each, and return the outcome: it holds if all were found.

    Args:
        target: what is driven.
        names: of the faults; none means all.
        observer: is told how far it has come.
    """
    name, faults = f"mutants {target.value}", _faults(target)
    began = time.monotonic()
    observer.expects(1)
    observer.begins(name)
    rows, missed = [], []
    for fault in names or faults:
        observer.says(name, fault)
        found = _found_by(target, fault)
        if not found:
            missed.append(fault)
        rows.append([fault, faults[fault].sentence, found or "NOT FOUND"])
    parts = [text_table(["fault", "what is wrong", "found by"], rows)]
    if missed:
        parts.append(f"no campaign has found: {', '.join(missed)}")
    outcome = Outcome(
        name=name,
        verdict=Verdict.VIOLATED if missed else Verdict.HOLDS,
        bounds=f"one fault at a time; {_SEARCHES[target]}, then the cover",
        figures={"planted": len(rows), "found": len(rows) - len(missed)},
        seconds=time.monotonic() - began,
        detail="\n\n".join(parts),
    )
    observer.ends(name, outcome)
    return outcome


def _faults(target: Target) -> Mapping[str, "LocalMutant"]:
    """Return the faults that are looked for on a target."""
    from forebay_models.mutants.device import DEVICE_MUTANTS
    from forebay_models.mutants.local import LOCAL_MUTANTS

    return DEVICE_MUTANTS if target is Target.SIMULATED else LOCAL_MUTANTS


def _found_by(target: Target, fault: str) -> str:
    """Return which campaign finds a fault, and where; nothing if none does."""
    if target is Target.SIMULATED:
        return _walked(target, fault) or _covered(target, fault, [])
    if _faults(target)[fault].overwriting:
        return _covered(Target.LOCAL, fault, OVERWRITING) or _covered(
            Target.SHARED, fault, ORPHANED
        )
    return _scheduled(fault) or _covered(target, fault, [])


def _scheduled(fault: str) -> str:
    """Return by which schedule a fault is found; nothing if by none."""
    from forebay_models.runs.walk import planted
    from forebay_models.scheduling.campaign import Campaign, Settings
    from forebay_models.scheduling.scenarios import QUICK

    plans = [plan._replace(bound=min(plan.bound, 1)) for plan in QUICK.values()]
    campaign = Campaign(Settings(plans=plans, random=0, seconds=SECONDS), Quiet(), "mutants")
    with planted(fault):
        campaign.run()
    if campaign.failed is not None:
        scenario = campaign.failed[0].scenario.name
        return f"schedule {campaign.total.schedules:,} of {scenario}"
    return ""


def _walked(target: Target, fault: str) -> str:
    """Return in which example the stateful campaign finds a fault; nothing if in none."""
    outcome = run_stateful(target, seconds=WALKING, seed=0, steps=40, fault=fault, observer=Quiet())
    found = outcome.counterexample is not None
    return f"example {outcome.figures['examples']} of stateful {target.value}" if found else ""


def _covered(target: Target, fault: str, graphs: list[str]) -> str:
    """Return what a fault is found by on the way through some graphs, or all; else nothing."""
    outcome = run_cover(target, graphs=graphs, seconds=None, fault=fault, observer=Quiet())
    return f"cover {target.value}" if outcome.verdict is Verdict.VIOLATED else ""
