"""What a campaign has to say: what was exercised how often, and a failure as a table of steps."""

from collections import Counter
from collections.abc import Iterable

from forebay_spec.actions import ACTIONS
from forebay_spec.properties import WITNESSES

from forebay_models.adapters.adapter import MANNERS, USUAL
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import BOUNDS
from forebay_models.describe import describe
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.tables import Step, changes, steps_table, text_table


def outcome_of(session: Session, *, target: str, repeat: str, steps: int) -> Outcome:
    """Return a campaign's result.

    Args:
        session: the campaign.
        target: what was driven.
        repeat: the command line without the wanted number of examples.
        steps: how many steps an example had at most.
    """
    exercise = session.exercise
    missed = never(exercise.actions, ACTIONS)
    unseen = never(exercise.witnesses, WITNESSES)
    parts = [exercise_table(exercise)]
    verdict = Verdict.HOLDS
    if session.failure is not None:
        verdict = Verdict.VIOLATED
        again = f"to repeat: {repeat} --examples {session.failed_example}"
        parts = [failure_table(session.failure), again]
        if session.flaky:
            parts.append("not every repetition of this failed: something here is left to chance")
    elif missed:
        verdict = Verdict.VIOLATED
        parts.append(
            f"a failure of the campaign: {', '.join(missed)} never happened, so nothing is known "
            f"about that; give it more time"
        )
    elif unseen:
        verdict = Verdict.INCONCLUSIVE
        parts.append(f"never seen: {', '.join(unseen)}; give it more time")
    return Outcome(
        name=f"stateful {target}",
        verdict=verdict,
        bounds=bounds_line(steps),
        figures=figures(exercise),
        seconds=session.elapsed,
        detail="\n\n".join(parts),
    )


def figures(exercise: Exercise) -> dict[str, Figure]:
    """Return the counts of a campaign."""
    return {
        "examples": exercise.examples,
        "steps": exercise.steps,
        "actions": f"{len(ACTIONS) - len(never(exercise.actions, ACTIONS))} of {len(ACTIONS)}",
        "witnesses": (
            f"{len(WITNESSES) - len(never(exercise.witnesses, WITNESSES))} of {len(WITNESSES)}"
        ),
    }


def counts(exercise: Exercise) -> dict[str, Figure]:
    """Return how often each action and witness was exercised, for machines."""
    actions: dict[str, Figure] = {name: exercise.actions[name] for name in ACTIONS}
    return {**actions, **{name: exercise.witnesses[name] for name in WITNESSES}}


def never(counted: Counter[str], names: Iterable[str]) -> list[str]:
    """Return the names that were never counted."""
    return [name for name in names if not counted[name]]


def bounds_line(steps: int) -> str:
    """Return on one line what a campaign is limited to."""
    capacities = [bounds.capacity for bounds in BOUNDS]
    uses = [bounds.uses for bounds in BOUNDS]
    actors = max(len(bounds.actors) for bounds in BOUNDS)
    return (
        f"C={min(capacities)}..{max(capacities)} N={min(uses)}..{max(uses)}, both orders, both "
        f"storages, up to {actors} actors, {steps} steps an example; random walks, not exhaustive"
    )


def exercise_table(exercise: Exercise) -> str:
    """Return how often each action, manner and witness was exercised."""
    rows = []
    for name in ACTIONS:
        rows.append(["action", name, _times(exercise.actions[name])])
        rows += [
            ["", f"  {manner}", _times(exercise.manners[f"{name}: {manner}"])]
            for manner in MANNERS.get(name, ())
            if manner != USUAL
        ]
    rows += [["witness", name, _times(exercise.witnesses[name])] for name in WITNESSES]
    return text_table(["", "exercised", "times"], rows)


def failure_table(failure: Divergence) -> str:
    """Return the steps that led to a failure, and at the last one what was expected and seen."""
    state = failure.start
    before = describe(state)
    rows = [Step("initially", None, changes(None, before))]
    for step in failure.steps:
        manner = (f"({step.manner})",) if step.manner else ()
        if step.after is None:
            rows.append(Step(str(step.label), step.actor, (*manner, *_parting(failure, before))))
            continue
        after = describe(step.after)
        rows.append(Step(str(step.label), step.actor, (*manner, *changes(before, after))))
        before = after
    return f"{failure.setting.line()}\n\n{steps_table(rows)}\n\n" + "\n".join(failure.what)


def _parting(failure: Divergence, before: dict[str, str]) -> tuple[str, ...]:
    """Return what the last step should have done, and what it did instead."""
    if not failure.expected:
        return ("here they part",)
    seen = None if failure.seen is None else describe(failure.seen)
    allowed = [describe(state) for state in failure.expected]
    if seen is not None:
        allowed.sort(key=lambda state: sum(state[name] != seen[name] for name in state))
    nearest = allowed[0]
    lines = [f"expected: {line}" for line in changes(before, nearest)]
    if len(allowed) > 1:
        lines.append(f"(or {len(allowed) - 1} other states, since the draw is random)")
    if seen is None:
        return (*lines, "seen: see below")
    wrong = [f"seen: {name} = {text}" for name, text in seen.items() if text != nearest[name]]
    return (*lines, *(wrong or ["seen: the same state, see below"]))


def _times(number: int) -> str:
    return f"{number:,}" if number else "never"
