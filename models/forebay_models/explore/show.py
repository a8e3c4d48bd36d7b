"""Puts what the explorer found into words: the promise that is broken, and how it comes to that."""

from collections.abc import Iterable, Mapping, Sequence

from forebay_spec.actions import actor_of
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS
from forebay_spec.state import State

from forebay_models.describe import describe
from forebay_models.explore.check import Violation
from forebay_models.explore.graph import Move
from forebay_models.explore.liveness import Starvation
from forebay_models.tables import Step, changes, steps_table

SENTENCES: Mapping[str, str] = {
    name: row.sentence for rows in (INVARIANTS, STEPS, LIVENESS) for name, row in rows.items()
}


def violation_text(violation: Violation) -> str:
    """Return what is violated and the path to it, its last step being the one that does it."""
    promises = [f"{name} is violated: {SENTENCES[name]}" for name in violation.properties]
    return "\n".join([*promises, "", path_table(violation.path)])


def starvation_text(name: str, found: Starvation) -> str:
    """Return who waits for ever, how it comes to that, and what goes on meanwhile."""
    if found.round:
        rest = (
            f"After step {len(found.path) - 1} these steps can be repeated for ever, "
            f"nothing fair being put off, while {found.actor} waits:"
        )
        meanwhile = [rest, "", path_table([found.path[-1]._replace(label=None), *found.round])]
    else:
        meanwhile = [f"Then nothing more has to happen, and {found.actor} waits for ever."]
    head = f"{name} is violated: {SENTENCES[name]}"
    return "\n".join([head, "", path_table(found.path), "", *meanwhile])


def path_table(path: Iterable[Move]) -> str:
    """Return a path as a table: actors as columns, steps as rows, and what each step changes."""
    return steps_table(_steps(list(path)))


def _steps(path: Sequence[Move]) -> list[Step]:
    steps: list[Step] = []
    before: State | None = None
    for label, state in path:
        known = describe(before) if before is not None else None
        actor = actor_of(before, label) if label is not None and before is not None else None
        lines = changes(known, describe(state))
        steps.append(Step(str(label) if label is not None else "initially", actor, lines))
        before = state
    return steps
