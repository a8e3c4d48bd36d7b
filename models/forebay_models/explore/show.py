"""Puts what the explorer found into words: the promise that is broken, and how it comes to that."""

from collections.abc import Iterable, Mapping

from forebay_spec.actions import actor_of
from forebay_spec.bounds import Bounds
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS
from forebay_spec.state import State

from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe
from forebay_models.explore.check import Violation
from forebay_models.explore.graph import Move
from forebay_models.explore.liveness import Starvation

SENTENCES: Mapping[str, str] = {
    name: row.sentence for rows in (INVARIANTS, STEPS, LIVENESS) for name, row in rows.items()
}


def violation_shown(
    violation: Violation, *, bounds: Bounds, name: str, token: str = ""
) -> Counterexample:
    """Return what is violated and the path to it, its last step being the one that does it.

    Args:
        violation: what was found.
        bounds: of the machine.
        name: of the check that found it, such as "explore writers".
        token: with which it can be replayed.
    """
    return Counterexample(
        name=name,
        setting=_setting(bounds),
        rows=rows_of(violation.path),
        what=tuple(map(_promise, violation.properties)),
        token=token,
    )


def starvation_shown(
    broken: str, found: Starvation, *, bounds: Bounds, name: str, token: str = ""
) -> Counterexample:
    """Return who is owed for ever and how it comes to that; `meanwhile` tells what goes on.

    Args:
        broken: the liveness property.
        found: what was found.
        bounds: of the machine.
        name: of the check that found it, such as "explore for-ever".
        token: with which it can be replayed.
    """
    stays = "stays dead" if found.actor in found.path[-1].state.dead else "waits"
    if found.round:
        rest = (
            f"After step {len(found.path) - 1} these steps can be repeated for ever, "
            f"nothing fair being put off, while {found.actor} {stays}: "
            f"{', '.join(str(label) for label, _ in found.round)}"
        )
    else:
        rest = f"Then nothing more has to happen, and {found.actor} {stays} for ever."
    return Counterexample(
        name=name,
        setting=_setting(bounds),
        rows=rows_of(found.path),
        what=(_promise(broken), rest),
        token=token,
    )


def meanwhile(found: Starvation) -> str:
    """Return the steps that are repeated for ever as a second table, or nothing."""
    if not found.round:
        return ""
    table = path_table([found.path[-1]._replace(label=None), *found.round])
    return f"again and again from step {len(found.path) - 1}:\n\n{table}"


def path_table(path: Iterable[Move]) -> str:
    """Return a path as a table: actors as columns, steps as rows, and what each step changes."""
    return Counterexample(name="", setting="", rows=rows_of(path), what=()).as_text()


def rows_of(path: Iterable[Move]) -> tuple[Row, ...]:
    """Return the steps of a path with their actors; the first has no label and is "initially"."""
    rows: list[Row] = []
    before: State | None = None
    for label, state in path:
        actor = actor_of(before, label) if label is not None and before is not None else None
        name = str(label) if label is not None else "initially"
        rows.append(Row(label=name, actor=actor, state=describe(state)))
        before = state
    return tuple(rows)


def _promise(name: str) -> str:
    return f"{name} is violated: {SENTENCES[name]}"


def _setting(bounds: Bounds) -> str:
    return f"{bounds.name}: {bounds.line()}"
