"""The explorer's checks as outcomes, ready for the command line.

An outcome says "holds" only when the whole graph was seen, nothing in it breaks a property, and
every witness that is expected of these bounds came up. A limit that was hit makes it inconclusive.
"""

import time
from collections.abc import Callable, Mapping
from math import gcd
from typing import Final

from forebay_spec.actions import Machine
from forebay_spec.bounds import FULL, QUICK, Bounds, mutual_wait_bounds
from forebay_spec.properties import LIVENESS, WITNESSES

from forebay_models.counterexample import Counterexample
from forebay_models.coverage import heat_of
from forebay_models.explore.check import Lookout, Report, check
from forebay_models.explore.graph import Limits, Tally, explore
from forebay_models.explore.liveness import Starvation, answer
from forebay_models.explore.show import meanwhile, starvation_shown, violation_shown
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.runs.spec import SpecRun
from forebay_models.tokens import token_of

Progress = Callable[[str], None]
FOR_EVER: Final[Mapping[str, str]] = {
    "liveness": "for-ever",
    "captures": "captures-end",
    "heals": "heals-for-ever",
}
"""The checks of the liveness properties, by the theme of the graph that they look at."""

# Which witnesses come up in which theme; the quick graph and the full one have the same.
_WAITS = ("WriterWaitsThenAdmitted", "ReaderWaitsThenDraws")
_LEASES = ("LeaseReturned", "OwnLeaseRefused", "DroppedWhileHeld", "MutualWaitFound")
_KILLS = (
    *("KilledWhileWaiting", "KilledWhileFilling", "KilledWhileGathering"),
    "RecoveredThenServed",
)
_CLOSES = ("PublishAfterClose", "SmallBehindLarge")
_QUEUES = ("TakenWhileGathering", "Recalled")
_CAPTURES = (
    *("CaptureWhileWriterWaits", "CaptureWhileFilling", "CaptureAskWhileGathering"),
    *("CaptureWithQueue", "SpentWhileCopied", "TakenByWaiting"),
)
_RESTORES = ("RestoredWithQueue", "RestoredWhileWaiting", "Rejected")
_EVICTIONS = ("Evicted", "EvictedPastPinned", "WriterWaitsForGather")
_EPOCHS = ("NewEpoch", "BackInEpoch", "TooLateForEpoch")
WITNESSES_OF: Final[Mapping[str, frozenset[str]]] = {
    "writers": frozenset(
        {*_WAITS, *_CLOSES, "MutualWaitFound", "ShortByDraining", "CancelAfterAdmit"}
    ),
    "readers": frozenset({*_WAITS, "MutualWaitFound", "DrawReturned", "ShortByLeast"}),
    "leases": frozenset({*_WAITS, *_LEASES, "PublishAfterClose", "ShortByDraining"}),
    "random": frozenset(
        {*_WAITS, "MutualWaitFound", "DrawReturned", "LeaseReturned", "OwnLeaseRefused"}
    ),
    "cancel": frozenset({*_WAITS, *_CLOSES, "DroppedWhileHeld", "CancelAfterAdmit"}),
    "liveness": frozenset({*_WAITS, *_CLOSES, "CancelAfterAdmit"}),
    "crash": frozenset(
        {
            *(*_WAITS, *_KILLS, *_LEASES),
            *("PublishAfterClose", "KilledWhileLeasing", "ShortByLeast"),
        }
    ),
    "heals": frozenset({*_WAITS, *_KILLS, "SmallBehindLarge"}),
    "prefetch": frozenset(
        {
            *(*_WAITS, *_QUEUES, "PublishAfterClose", "ShortByDraining", "DrawReturned"),
            *("TakenFailed", "FlushedQueue", "StaleGathering", "DroppedWhileHeld"),
        }
    ),
    "threads": frozenset(
        {*_WAITS, *_QUEUES, "PublishAfterClose", "ShortByDraining", "FlushedQueue"}
    ),
    "captures": frozenset({*_WAITS, *_QUEUES, *_CAPTURES, "HeldOffByCapture"}),
    "copies": frozenset(
        {
            *(*_WAITS, *_QUEUES, *_CAPTURES, "HeldOffByCapture"),
            *("DroppedWhileHeld", "StaleGathering", "DroppedWhileCopied"),
        }
    ),
    "restores": frozenset(
        {
            *(*_WAITS, *_QUEUES, *_CAPTURES, *_RESTORES, "HeldOffByCapture"),
            *("MutualWaitFound", "OwnLeaseRefused", "LeaseReturned", "LeaseMadeVoid"),
        }
    ),
    "lost": frozenset(
        {
            *(*_WAITS, *_QUEUES, *_CAPTURES, *_RESTORES, *_KILLS),
            *("KilledWhileCopying", "KilledWhileLoading"),
        }
    ),
    "ring": frozenset(
        {
            *(*_WAITS, *_EVICTIONS, "TakenWhileGathering", "TakenFailed", "StaleGathering"),
            *("DrawnTwice", "EvictedWhileLeased", "LeaseReturned", "DrawReturned"),
            "DroppedWhileHeld",
        }
    ),
    "epochs": frozenset(
        {
            *(*_WAITS, *_EVICTIONS, *_EPOCHS, "EpochEnds", "ShortByLeast"),
            *("EvictedWhileLeased", "LeaseReturned", "DroppedWhileHeld"),
        }
    ),
    "droplast": frozenset(
        {
            *(*_WAITS, *_EVICTIONS, *_EPOCHS, "LastDropped", "EvictedWhileLeased"),
            *("LeaseReturned", "DrawReturned", "PublishAfterClose", "ShortByDraining"),
        }
    ),
    "resumed": frozenset(
        {
            *(*_WAITS, *_RESTORES, "RestoredLeft", "Evicted", "NewEpoch", "BackInEpoch"),
            *("CaptureWhileWriterWaits", "CaptureWhileFilling", "CaptureAskWhileGathering"),
            *("CaptureWithQueue", "HeldOffByCapture", "TakenByWaiting", "TakenWhileGathering"),
            *("FlushedQueue", "WriterWaitsForGather"),
        }
    ),
    "orphaned": frozenset(
        {
            *(*_WAITS, *_EVICTIONS, *_KILLS, "KilledWhileCopying", "EvictedWhileCopying"),
            *("DrawnTwice", "CaptureWhileWriterWaits", "CaptureWhileFilling"),
        }
    ),
}


def _theme(bounds: Bounds) -> str:
    """Return what a graph is about; the name of a full one begins with that of the quick one."""
    return bounds.name.split("-")[0]


def tier(name: str) -> Mapping[str, Bounds]:
    """Return the graphs of a tier, "quick" or "full"."""
    return {"quick": QUICK, "full": FULL}[name]


def explore_outcome(
    bounds: Bounds,
    *,
    machine: Machine | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    witnesses: frozenset[str] | None = None,
    fault: str = "",
) -> Outcome:
    """Check every state property, step property and witness within these bounds.

    `machine` is another one than the honest machine of the bounds, and `fault` the name of what is
    planted in it, for a replay. `witnesses` have to come up; by default those of the theme that the
    bounds' name begins with, none where there is no such theme.
    """
    started = time.monotonic()
    report = check(machine or Machine(bounds), limits=limits, progress=_spoken(progress))
    if witnesses is None:
        witnesses = WITNESSES_OF.get(_theme(bounds), frozenset())
    name = f"explore {bounds.name}"
    failure: Counterexample | None = None
    if report.violation is not None:
        broken, path = report.violation.properties[0], report.violation.path
        token = token_of(SpecRun.of(path, bounds=bounds, broken=broken), fault=fault)
        failure = violation_shown(report.violation, bounds=bounds, name=name, token=token)
        verdict, detail = Verdict.VIOLATED, failure.as_text()
    else:
        verdict, detail = _judged(report, witnesses)
    return Outcome(
        name=name,
        verdict=verdict,
        bounds=bounds.line(),
        figures={
            "states": len(report.graph.states),
            "edges": report.graph.edge_count,
            "depth": report.graph.depth,
            "actions": len(report.actions),
            "witnesses": len(report.witnesses),
        },
        seconds=time.monotonic() - started,
        detail=detail,
        counterexample=failure,
        heat=heat_of(report.heat),
    )


def _judged(report: Report, witnesses: frozenset[str]) -> tuple[Verdict, str]:
    if report.graph.stopped:
        return Verdict.INCONCLUSIVE, f"The exploration was ended {report.graph.stopped}."
    missing = sorted(witnesses - report.witnesses)
    if missing:
        lines = [f"{name} never comes up: {WITNESSES[name].sentence}" for name in missing]
        return Verdict.VIOLATED, "\n".join(["The model shows less than it should:", *lines])
    return Verdict.HOLDS, ""


def liveness_outcome(
    bounds: Bounds = QUICK["liveness"],
    *,
    machine: Machine | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    strong: bool = False,
    fault: str = "",
) -> Outcome:
    """Check the liveness properties of the bounds' theme, under weak fairness or `strong`.

    `fault` is the name of what is planted in the machine, for a replay. Raises `KeyError` for a
    theme that no liveness property is about.
    """
    started = time.monotonic()
    name = f"explore {FOR_EVER[_theme(bounds)]}"
    props = [prop for prop in LIVENESS.values() if prop.theme == _theme(bounds)]
    graph = explore(machine or Machine(bounds), limits=limits, progress=_spoken(progress))
    figures: dict[str, Figure] = {
        "states": len(graph.states),
        "edges": graph.edge_count,
        "depth": graph.depth,
    }
    verdict, detail = Verdict.HOLDS, ""
    failures: list[Counterexample] = []
    if graph.stopped:
        verdict, detail = Verdict.INCONCLUSIVE, f"The exploration was ended {graph.stopped}."
    else:
        answers = [answer(graph, prop, strong=strong) for prop in props]
        figures |= {f"{found.name} owed in states": found.owed for found in answers}
        texts = []
        for found in answers:
            if found.starvation is not None:
                failures.append(_starved(bounds, name, found.name, found.starvation, fault))
                texts += [failures[-1].as_text(), meanwhile(found.starvation)]
            elif found.owed == 0:
                texts.append(f"{found.name} is about nobody: no state owes anything to anyone.")
        verdict = Verdict.VIOLATED if texts else Verdict.HOLDS
        detail = "\n\n".join(text for text in texts if text)
    return Outcome(
        name=name,
        verdict=verdict,
        bounds=f"{bounds.line()}; {'strong' if strong else 'weak'} fairness",
        figures=figures,
        seconds=time.monotonic() - started,
        detail=detail,
        counterexample=failures[0] if failures else None,
    )


def _starved(
    bounds: Bounds, name: str, broken: str, found: Starvation, fault: str
) -> Counterexample:
    token = token_of(SpecRun.of(found.path, bounds=bounds, broken=broken), fault=fault)
    return starvation_shown(broken, found, bounds=bounds, name=name, token=token)


def mutual_wait_expected(capacity: int, n: int, k: int) -> bool:
    """Tell whether writes of n and reads of k can wait for each other: n + k > C + gcd(n, k)."""
    return n + k > capacity + gcd(n, k)


def mutual_wait_outcome(
    max_capacity: int = 6, *, progress: Progress | None = None, limits: Limits | None = None
) -> Outcome:
    """Check the bound on mutual waits for each capacity up to `max_capacity`, all n and all k."""
    started = time.monotonic()
    figures = {"graphs": 0, "states": 0, "edges": 0, "mutual waits": 0}
    verdict, detail = Verdict.HOLDS, ""
    cases = [
        (capacity, n, k)
        for capacity in range(1, max_capacity + 1)
        for n in range(1, capacity + 1)
        for k in range(1, capacity + 1)
    ]
    for capacity, n, k in cases:
        if progress is not None:
            progress(f"{figures['graphs']} of {len(cases)} graphs, capacity {capacity}")
        bounds = mutual_wait_bounds(capacity, n, k)
        lookout = Lookout(bounds, WITNESSES["MutualWaitFound"])
        graph = explore(Machine(bounds), limits=limits, watch=lookout, keep_edges=False)
        figures["graphs"] += 1
        figures["states"] += len(graph.states)
        figures["edges"] += graph.edge_count
        figures["mutual waits"] += lookout.found
        if lookout.found != mutual_wait_expected(capacity, n, k):
            verdict = (
                Verdict.VIOLATED if lookout.found or not graph.stopped else Verdict.INCONCLUSIVE
            )
            detail = (
                f"C = {capacity}, n = {n}, k = {k}: a mutual wait is "
                f"{'' if lookout.found else 'not '}reached, against n + k > C + gcd(n, k)"
            )
            break
        if graph.stopped and not lookout.found:
            verdict, detail = Verdict.INCONCLUSIVE, f"{bounds.name} was ended {graph.stopped}."
            break
    return Outcome(
        name="explore mutual-wait",
        verdict=verdict,
        bounds=f"N=1, every C up to {max_capacity}, all n and k up to C, one producer, one reader",
        figures=figures,
        seconds=time.monotonic() - started,
        detail=detail,
    )


def _spoken(progress: Progress | None) -> Callable[[Tally], None] | None:
    """Turn a hearer of words into one of tallies."""
    if progress is None:
        return None
    hearer = progress
    return lambda tally: hearer(str(tally))
