"""Turns what the two judges found about a trace into outcomes.

A trace is never accepted for nothing: one without events is inconclusive, and an outcome that holds
says how many events there were, all of which were steps.
"""

import time
from dataclasses import replace
from pathlib import Path

from forebay_spec.events import Event

from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe
from forebay_models.outcome import Figure, Outcome, Verdict, could_not_run
from forebay_models.progress import Observer
from forebay_models.tlc.java import ToolMissing, find_tools
from forebay_models.tlc.manifest import ManifestError, find_models
from forebay_models.tracing.files import FIRST_EVENT, OF_HOLDS, BadTrace, shown
from forebay_models.tracing.replay import MOST_STATES, REMEMBERED, Replayed, replay
from forebay_models.tracing.setting import Setting
from forebay_models.tracing.with_tlc import Followed, TlcFailed, follow

SPEC = "trace spec"
TLC = "trace tlc"
AGREEMENT = "trace agreement"
LARGEST_FOR_TLC = 64
"""Slots. The time that TLC takes for an event grows with the square of the capacity."""

_NEST = (
    "a call that begins within a call of the same thread, in a transform or a signal handler, is "
    "outside the models"
)


def could_not_read(error: BadTrace) -> Outcome:
    """Return the outcome of a file that is no trace."""
    return could_not_run("trace", error)


def judge_with_spec(setting: Setting, *, most: int = MOST_STATES, observer: Observer) -> Outcome:
    """Judge a trace with the specification in Python."""
    observer.begins(SPEC)
    started = time.monotonic()
    total = len(setting.trace.events)
    found = replay(
        setting,
        most=most,
        progress=lambda judged: observer.says(SPEC, f"{judged:,} of {total:,} events"),
    )
    seconds = time.monotonic() - started
    figures = {**_figures(setting, found.judged), "states at once": found.widest}
    outcome = _outcome(SPEC, setting, figures, seconds)
    if found.rejected:
        counterexample = _counterexample(setting, found)
        outcome = _rejected(outcome, counterexample)
    elif found.gave_up:
        outcome = replace(
            outcome, verdict=Verdict.INCONCLUSIVE, detail=_too_many(found.gave_up, setting)
        )
    observer.ends(SPEC, outcome)
    return outcome


def judge_with_tlc(setting: Setting, *, models: Path | None = None, observer: Observer) -> Outcome:
    """Judge a trace with TLC."""
    observer.begins(TLC)
    started = time.monotonic()
    total = len(setting.trace.events)
    try:
        _check_capacity(setting.trace.header.capacity)
        (found,) = follow(
            [setting],
            tools=find_tools(),
            models=find_models(models),
            progress=lambda judged: observer.says(TLC, f"{judged:,} of {total:,} events"),
        )
    except (ManifestError, ToolMissing, TlcFailed, OSError) as error:
        outcome = _outcome(TLC, setting, _figures(setting, 0), time.monotonic() - started)
        outcome = replace(outcome, verdict=Verdict.COULD_NOT_RUN, detail=str(error))
    else:
        outcome = outcome_of_tlc(setting, found, time.monotonic() - started)
    observer.ends(TLC, outcome)
    return outcome


def outcome_of_tlc(setting: Setting, found: Followed, seconds: float) -> Outcome:
    """Return the outcome of a trace that TLC has followed so far."""
    figures = {**_figures(setting, found.judged), "states": found.states}
    outcome = _outcome(TLC, setting, figures, seconds)
    if found.judged == len(setting.trace.events):
        return outcome
    if found.gave_up:
        why = f"more than {found.states:,} states are possible"
        return replace(outcome, verdict=Verdict.INCONCLUSIVE, detail=_too_many(why, setting))
    rows = _rows_before(setting, found.judged)
    what = (
        f"{_where(setting, found.judged)} is no step of tla/ReplayBuffer.tla after the "
        f"{found.judged:,} events before it",
    )
    return _rejected(
        outcome, Counterexample(name=TLC, setting=setting.line(), rows=rows, what=what)
    )


def agreement(spec: Outcome, tlc: Outcome) -> list[Outcome]:
    """Return an outcome if the judges came to different ends, which is an error of a model."""
    ended = (Verdict.HOLDS, Verdict.VIOLATED)
    if spec.verdict not in ended or tlc.verdict not in ended:
        return []
    if (spec.verdict, spec.figures["steps"]) == (tlc.verdict, tlc.figures["steps"]):
        return []
    return [
        Outcome(
            name=AGREEMENT,
            verdict=Verdict.VIOLATED,
            bounds=spec.bounds,
            figures={},
            seconds=0.0,
            detail=f"the two models disagree about this trace: forebay_spec follows "
            f"{spec.figures['steps']} of {spec.figures['events']} events, TLC "
            f"{tlc.figures['steps']}; one of the models, or how one of them reads traces, is wrong",
        )
    ]


def _check_capacity(capacity: int) -> None:
    """Refuse what TLC would take hours for: in each step it compares every slot with every other.

    Raises `TlcFailed`.
    """
    if capacity > LARGEST_FOR_TLC:
        raise TlcFailed(
            f"TLC is too slow for a buffer of {capacity:,} records; it judges traces of up to "
            f"{LARGEST_FOR_TLC}. Use --with spec, or trace a smaller buffer"
        )


def _figures(setting: Setting, judged: int) -> dict[str, Figure]:
    events = setting.trace.events
    figures: dict[str, Figure] = {
        "events": len(events),
        "steps": judged,
        "delivered": sum(event.name == "Deliver" for event in events),
    }
    if setting.trace.torn:
        figures["torn lines"] = 1
    return figures


def _outcome(name: str, setting: Setting, figures: dict[str, Figure], seconds: float) -> Outcome:
    """Return the outcome of a trace of which every event was a step."""
    empty = not setting.trace.events
    return Outcome(
        name=name,
        verdict=Verdict.INCONCLUSIVE if empty else Verdict.HOLDS,
        bounds=setting.line(),
        figures=figures,
        seconds=seconds,
        detail="the trace has no events, so nothing was judged" if empty else _remark(setting),
    )


def _remark(setting: Setting) -> str:
    if not setting.trace.torn:
        return ""
    return "the last line has no end and was left out: the trace was cut short there"


def _rejected(outcome: Outcome, counterexample: Counterexample) -> Outcome:
    return replace(
        outcome,
        verdict=Verdict.VIOLATED,
        detail=counterexample.as_text(),
        counterexample=counterexample,
    )


def _too_many(why: str, setting: Setting) -> str:
    if not setting.unobserved:
        return why
    return (
        f"{why}; say which kinds of calls are missing, as in --unobserved 'NAME:write' or "
        f"'NAME:plain,lease'"
    )


def _counterexample(setting: Setting, found: Replayed) -> Counterexample:
    """Return the last steps before the event that is none, and what could have happened."""
    event = setting.trace.events[found.judged]
    rows = [
        Row(
            label=taken.label,
            actor=taken.actor,
            notes=(taken.note,) if taken.note else (),
            state=describe(taken.state),
        )
        for taken in found.trail
    ]
    what = [
        f"{_where(setting, found.judged)} is no step of the specification after the "
        f"{found.judged:,} events before it",
        *(f"possible there: {line}" for line in found.allowed),
    ]
    if _nests(setting.trace.events[: found.judged], event):
        what.append(_NEST)
    return Counterexample(name=SPEC, setting=setting.line(), rows=tuple(rows), what=tuple(what))


def _rows_before(setting: Setting, judged: int) -> tuple[Row, ...]:
    """Return the last events before one that is no step, as rows without states."""
    first = max(0, judged - REMEMBERED)
    rows = [
        Row(label=shown(event), actor=event.actor, notes=(f"line {number + FIRST_EVENT}",))
        for number, event in enumerate(setting.trace.events[first:judged], first)
    ]
    return (Row(label=f"after {first:,} events"), *rows)


def _where(setting: Setting, judged: int) -> str:
    return f"line {judged + FIRST_EVENT}: {shown(setting.trace.events[judged])}"


def _nests(before: tuple[Event, ...], event: Event) -> bool:
    """Tell whether an event begins a call of an actor who is in one."""
    if event.name not in ("Arrive", "Ask"):
        return False
    last = next((earlier for earlier in reversed(before) if earlier.actor == event.actor), None)
    return last is not None and (
        last.outcome in ("SERVE", "WAIT") or last.name in ("Admit", "Draw", *OF_HOLDS[:2])
    )
