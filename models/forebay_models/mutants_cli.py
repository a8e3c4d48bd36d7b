"""`forebay campaign mutants`: plants every fault there is, and sees whether a campaign finds it.

A verdict that nothing was found is worth as much as what the same search would have found. So each
fault of the library that was ever met or thought of is planted in turn; the scheduler looks for it,
and where it finds nothing, the cover. What is wrong with overwriting buffers alone is looked for by
the cover of the graphs that have one, on threads and with deaths.
"""

import time
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from forebay_models.campaign_cli import TargetOption, known_fault, local_only
from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.cover_cli import run_cover
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Observer, Quiet, bar
from forebay_models.tables import text_table
from forebay_models.targets import LOCAL, SHARED, Target
from forebay_models.verdicts import report

SECONDS: Final = 30.0
"""How long the scheduler looks for one fault."""

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
    local_only(target, "mutants")
    faults = [known_fault(name) for name in names or ()]
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
    from forebay_models.mutants.local import LOCAL_MUTANTS

    name = f"mutants {target.value}"
    began = time.monotonic()
    observer.expects(1)
    observer.begins(name)
    rows, missed = [], []
    for fault in names or LOCAL_MUTANTS:
        observer.says(name, fault)
        found = _found_by(target, fault)
        if not found:
            missed.append(fault)
        rows.append([fault, LOCAL_MUTANTS[fault].sentence, found or "NOT FOUND"])
    parts = [text_table(["fault", "what is wrong", "found by"], rows)]
    if missed:
        parts.append(f"no campaign has found: {', '.join(missed)}")
    outcome = Outcome(
        name=name,
        verdict=Verdict.VIOLATED if missed else Verdict.HOLDS,
        bounds=f"one fault at a time; the scheduler for {SECONDS:g} s, then the cover",
        figures={"planted": len(rows), "found": len(rows) - len(missed)},
        seconds=time.monotonic() - began,
        detail="\n\n".join(parts),
    )
    observer.ends(name, outcome)
    return outcome


def _found_by(target: Target, fault: str) -> str:
    """Return which campaign finds a fault, and where; nothing if none does."""
    from forebay_models.mutants.local import LOCAL_MUTANTS

    if LOCAL_MUTANTS[fault].overwriting:
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


def _covered(target: Target, fault: str, graphs: list[str]) -> str:
    """Return what a fault is found by on the way through some graphs, or all; else nothing."""
    outcome = run_cover(target, graphs=graphs, seconds=None, fault=fault, observer=Quiet())
    return f"cover {target.value}" if outcome.verdict is Verdict.VIOLATED else ""
