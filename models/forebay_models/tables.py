"""Plain-text tables of steps: one row a step, one column an actor, the state's changes beside it.

A counterexample is read by asking who did what, in which order, and what became of the state.
Printing whole states hides that; this table shows each label under the actor that takes the step
and only the variables that the step changed. It is plain text so that it can be pasted into a
report and compared by a test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OUTSIDE = "outside"  # for steps that no actor takes: Close, SetCancel, Empty, Kill, Recover


@dataclass(frozen=True)
class Step:
    """One row: the label, the actor that takes the step, and the lines that describe the state.

    The first row of a table is usually the initial state: `Step("initially", None, lines)`.
    """

    label: str
    actor: str | None
    lines: tuple[str, ...] = ()


def changes(before: Mapping[str, str] | None, after: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line `name = text` for each variable of `after` that differs from `before`.

    Without `before` every variable gets a line. One that `after` says nothing of any more has
    nothing. A step that changes nothing says so.
    """
    gone = {name: "-" for name in before or () if name not in after}
    lines = tuple(
        f"{name} = {text}"
        for name, text in {**after, **gone}.items()
        if before is None or before.get(name) != text
    )
    return lines or ("(nothing changes)",)


def steps_table(steps: Sequence[Step]) -> str:
    """Return the steps as a table; the columns are the actors in order of their first step.

    Steps without an actor get the column "outside", except the first row, which is the initial
    state and stands in the first column. A state of several lines takes several lines.
    """
    actors: list[str] = []
    for number, step in enumerate(steps):
        column = step.actor or OUTSIDE
        if column not in actors and (number > 0 or step.actor is not None):
            actors.append(column)
    if not actors:
        actors.append(OUTSIDE)

    rows: list[list[str]] = []
    for number, step in enumerate(steps):
        initial = number == 0 and step.actor is None
        column = actors[0] if initial else step.actor or OUTSIDE
        labels = [step.label if actor == column else "" for actor in actors]
        lines = step.lines or ("",)
        rows.append([str(number), *labels, lines[0]])
        rows.extend(["", *([""] * len(actors)), line] for line in lines[1:])
    return text_table(["step", *actors, "state"], rows)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with aligned columns, a rule under the header and no trailing blanks."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return " | ".join(padded).rstrip()

    rule = "-+-".join("-" * width for width in widths)
    return "\n".join([line(header), rule, *(line(row) for row in rows)])
