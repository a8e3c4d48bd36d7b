"""The page of a report: verdicts with their bounds, coverage, times, and counterexamples."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

from forebay_spec.actions import ACTIONS

from forebay_models.coverage import STATE_CLASSES
from forebay_models.outcome import Outcome, Verdict
from forebay_models.pages import render
from forebay_models.pages.failure import view
from forebay_models.saved import SavedRun, coverage, verdict_of
from forebay_models.verdicts import figure_words

_STRONGEST: Final = 0.55


def report_page(runs: Sequence[SavedRun]) -> str:
    """Return several runs as one self-contained HTML page."""
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    longest = max((outcome.seconds for outcome in outcomes), default=0.0)
    failures = [it.counterexample for it in outcomes if it.counterexample is not None]
    shown = {id(failure): number for number, failure in enumerate(failures, 1)}
    return render(
        "report.html",
        {
            "verdict": verdict_of(runs),
            "held": sum(outcome.verdict is Verdict.HOLDS for outcome in outcomes),
            "count": len(outcomes),
            "runs": [
                {
                    "source": run.source,
                    "command": run.command,
                    "verdict": run.verdict,
                    "seconds": f"{run.seconds:.1f}",
                    "outcomes": [
                        _outcome(it, longest, shown.get(id(it.counterexample)))
                        for it in run.outcomes
                    ],
                }
                for run in runs
            ],
            "maps": [_map(kind, heat) for kind, heat in coverage(runs).items()],
            "classes": STATE_CLASSES,
            "failures": [view(failure) for failure in failures],
        },
    )


def _outcome(outcome: Outcome, longest: float, failure: int | None) -> dict[str, object]:
    """Return one row of the table of verdicts; `failure` is the number of its counterexample."""
    shown = outcome.counterexample.as_text() if outcome.counterexample is not None else ""
    return {
        "name": outcome.name,
        "verdict": outcome.verdict,
        "bounds": outcome.bounds,
        "figures": ", ".join(figure_words(name, it) for name, it in outcome.figures.items()),
        "seconds": f"{outcome.seconds:.1f}",
        "share": f"{100 * outcome.seconds / longest:.1f}" if longest else "0",
        "detail": outcome.detail.removeprefix(shown).strip("\n"),
        "open": not shown and outcome.verdict in (Verdict.VIOLATED, Verdict.COULD_NOT_RUN),
        "failure": failure,
    }


def _map(kind: str, heat: Mapping[str, Mapping[str, int]]) -> dict[str, object]:
    """Return one heat map: every action of the specification by every class of states."""
    most = max((times for row in heat.values() for times in row.values()), default=0)
    actions = [*ACTIONS, *(action for action in heat if action not in ACTIONS)]
    classes = [*STATE_CLASSES, *_unknown(heat)]
    return {
        "kind": kind,
        "classes": classes,
        "rows": [
            {
                "action": action,
                "cells": [_cell(heat.get(action, {}).get(name, 0), most) for name in classes],
                "total": f"{sum(heat.get(action, {}).values()):,}",
            }
            for action in actions
        ],
    }


def _unknown(heat: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the classes that another version counted and this one does not know."""
    return sorted({name for row in heat.values() for name in row} - set(STATE_CLASSES))


def _cell(times: int, most: int) -> dict[str, object]:
    """Return a count and how strongly it is coloured: by its logarithm, as counts differ widely."""
    strength = _STRONGEST * log(1 + times) / log(1 + most) if times else 0.0
    return {"times": f"{times:,}", "strength": f"{strength:.2f}", "never": times == 0}
