"""What a campaign has to say: what was exercised how often, and a failure step by step."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from forebay_models.adapters.adapter import MANNERS, USUAL
from forebay_models.campaign.driver import Exercise
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import bounds_of
from forebay_models.campaign.shown import counterexample_of
from forebay_models.counterexample import Counterexample
from forebay_models.coverage import heat_of
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.runs.walk import WalkRun
from forebay_models.tables import text_table
from forebay_models.targets import Scope
from forebay_models.tokens import token_of

RARE: Final = frozenset(
    {
        *("TakenByWaiting", "TakenFailed", "RestoredWithQueue", "LeaseMadeVoid"),
        *("KilledWhileLeasing", "RestoredLeft", "BackInEpoch", "TooLateForEpoch"),
    }
)
"""The witnesses that a random walk comes to once in hundreds of examples: they are counted, but not
demanded. Each is in a quick graph, of which the cover takes every edge."""


def outcome_of(session: Session, *, repeat: str, steps: int, fault: str = "") -> Outcome:
    """Return a campaign's result.

    Args:
        session: the campaign.
        repeat: the command line without the wanted number of examples.
        steps: how many steps an example had at most.
        fault: the planted fault with which it ran, if any; a replay plants it again.
    """
    exercise, scope = session.exercise, session.scope
    name = f"stateful {scope.target.value}"
    missed = never(exercise.actions, scope.actions)
    unseen = [name for name in never(exercise.witnesses, scope.witnesses) if name not in RARE]
    parts = [exercise_table(exercise, scope)]
    verdict = Verdict.HOLDS
    failure: Counterexample | None = None
    if session.failure is not None:
        verdict = Verdict.VIOLATED
        token = token_of(WalkRun.of(session.failure), fault=fault)
        failure = counterexample_of(session.failure, name=name, token=token)
        again = f"to repeat the search: {repeat} --examples {session.failed_example}"
        parts = [failure.as_text(), again]
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
        name=name,
        verdict=verdict,
        bounds=bounds_line(steps, scope),
        figures=figures(exercise, scope),
        seconds=session.elapsed,
        detail="\n\n".join(parts),
        counterexample=failure,
        heat=heat_of(exercise.heat),
    )


def figures(exercise: Exercise, scope: Scope) -> dict[str, Figure]:
    """Return the counts of a campaign."""
    return {
        "examples": exercise.examples,
        "steps": exercise.steps,
        "actions": _seen(exercise.actions, scope.actions),
        "witnesses": _seen(exercise.witnesses, scope.witnesses),
        "edges": len(exercise.edges.edges),
    }


def counts(exercise: Exercise, scope: Scope) -> dict[str, Figure]:
    """Return how often each action and witness was exercised, for machines."""
    actions: dict[str, Figure] = {name: exercise.actions[name] for name in scope.actions}
    return {**actions, **{name: exercise.witnesses[name] for name in scope.witnesses}}


def never(counted: Counter[str], names: Iterable[str]) -> list[str]:
    """Return the names that were never counted."""
    return [name for name in names if not counted[name]]


def bounds_line(steps: int, scope: Scope) -> str:
    """Return on one line what a campaign is limited to."""
    drawn = bounds_of(scope)
    capacities = [bounds.capacity for bounds in drawn]
    uses = [bounds.uses for bounds in drawn]
    actors = max(len(bounds.actors) for bounds in drawn)
    return (
        f"C={min(capacities)}..{max(capacities)} N={min(uses)}..{max(uses)}, all orders, "
        f"{scope.where}, up to {actors} actors, {steps} steps an example; random walks, not "
        f"exhaustive"
    )


def exercise_table(exercise: Exercise, scope: Scope) -> str:
    """Return how often each action, manner and witness was exercised."""
    rows = []
    for name in scope.actions:
        rows.append(["action", name, _times(exercise.actions[name])])
        rows += [
            ["", f"  {manner}", _times(exercise.manners[f"{name}: {manner}"])]
            for manner in MANNERS.get(name, ())
            if manner != USUAL
        ]
    rows += [["witness", name, _times(exercise.witnesses[name])] for name in scope.witnesses]
    return text_table(["", "exercised", "times"], rows)


def _seen(counted: Counter[str], names: Sequence[str]) -> str:
    return f"{len(names) - len(never(counted, names))} of {len(names)}"


def _times(number: int) -> str:
    return f"{number:,}" if number else "never"
