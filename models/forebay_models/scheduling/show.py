"""A failing schedule as a counterexample: who ran, up to which point, and what it did."""

from collections.abc import Iterator

from forebay_spec.actions import Machine
from forebay_spec.state import State

from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe
from forebay_models.scheduling.oracle import LostWakeup
from forebay_models.scheduling.play import FOR_NOTHING, TIME_IS_UP, Run
from forebay_models.scheduling.scenario import Scenario


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
    return Counterexample(
        name=name,
        setting=scenario.line(),
        rows=(Row(label="initially", state=describe(start)), *_rows(start, run)),
        what=(str(run.failure),),
        token=token,
    )


def _rows(before: State, run: Run) -> Iterator[Row]:
    """Yield a row for each step, and for each stretch of one actor up to where another one runs."""
    slices = run.slices
    end = "nobody can go on" if isinstance(run.failure, LostWakeup) else "here they part"
    for number, it in enumerate(slices):
        following = slices[number + 1] if number + 1 < len(slices) else None
        goes_on = following is not None and following.actor == it.actor
        if it.label in (TIME_IS_UP, FOR_NOTHING):
            yield Row(label=it.label, actor=it.actor)
        elif it.step is not None:
            yield Row(label=str(it.step), actor=it.actor, state=describe(it.state))
        elif following is None:
            changed = it.state != before
            yield Row(
                label=f"goes to {it.label!r}",
                actor=it.actor,
                notes=(end,),
                state=describe(it.state) if changed else None,
            )
        elif not goes_on:
            yield Row(label=f"goes to {it.label!r}", actor=it.actor)
        before = it.state
