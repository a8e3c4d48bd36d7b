"""A failure of an implementation, step by step, in the form in which every failure is shown."""

from forebay_models.campaign.driver import Divergence
from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe


def counterexample_of(failure: Divergence, *, name: str, token: str = "") -> Counterexample:
    """Return the steps that led to a failure, and at the last one what was expected and seen.

    Args:
        failure: what was found.
        name: of the check that found it, such as "stateful local".
        token: with which it can be replayed.
    """
    rows = [Row(label="initially", state=describe(failure.start))]
    for step in failure.steps:
        manner = (f"({step.manner})",) if step.manner else ()
        parts = step.after is None and not failure.expected
        rows.append(
            Row(
                label=str(step.label),
                actor=step.actor,
                notes=(*manner, "here they part") if parts else manner,
                state=None if step.after is None else describe(step.after),
            )
        )
    return Counterexample(
        name=name,
        setting=failure.setting.line(),
        rows=tuple(rows),
        what=failure.what,
        token=token,
        expected=tuple(describe(state) for state in failure.expected),
        seen=None if failure.seen is None else describe(failure.seen),
    )
