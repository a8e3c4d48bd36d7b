"""A failing schedule as a counterexample: who ran, up to which point, and what it did."""

from collections.abc import Iterator

from forebay_spec.actions import Machine

from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe
from forebay_models.scheduling.oracle import LostWakeup, WrongStep
from forebay_models.scheduling.play import FOR_NOTHING, TIME_IS_UP, Run
from forebay_models.scheduling.scenario import Scenario
from forebay_models.scheduling.stage import Failure


def counterexample_of(
    scenario: Scenario, run: Run, *, name: str, token: str = ""
) -> Counterexample:
    """Return a failing run as a counterexample.

    Args:
        scenario: what was run.
        run: how it went.
        name: of the check that found it.
        token: with which it can be run again.
    """
    start = Machine(scenario.bounds).initial()
    failure = run.failure
    wrong = failure if isinstance(failure, WrongStep) else None
    return Counterexample(
        name=name,
        setting=scenario.line(),
        rows=(Row(label="initially", state=describe(start)), *_rows(run)),
        what=(str(failure),),
        token=token,
        expected=() if wrong is None else tuple(describe(state) for state in wrong.expected),
        seen=None if wrong is None else describe(wrong.seen),
    )


def _rows(run: Run) -> Iterator[Row]:
    """Yield a row for each step, and for each stretch of one actor up to where another one runs."""
    slices = run.slices
    for number, it in enumerate(slices):
        following = slices[number + 1] if number + 1 < len(slices) else None
        goes_on = following is not None and following.actor == it.actor
        if it.label in (TIME_IS_UP, FOR_NOTHING):
            yield Row(label=it.label, actor=it.actor)
        elif it.step is not None:
            yield Row(label=str(it.step), actor=it.actor, state=describe(it.state))
        elif following is None:
            yield Row(label=f"goes to {it.label!r}", actor=it.actor, notes=_notes(run.failure))
        elif not goes_on:
            yield Row(label=f"goes to {it.label!r}", actor=it.actor)


def _notes(failure: Failure | None) -> tuple[str, ...]:
    """Return what there is to say of the last stretch."""
    if isinstance(failure, LostWakeup):
        return ("nobody can go on",)
    return () if isinstance(failure, WrongStep) else ("here they part",)
