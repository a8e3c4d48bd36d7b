"""Results as tables, for a terminal and for a page."""

import re
from collections.abc import Sequence

from rich.table import Table

from benchmarks.results import Document, Row, counted
from benchmarks.timing import Spread

COLUMNS = ("what", "who", "ours", "beside", "theirs", "ratio", "smallest to largest", "goal", "met")
MET = {True: "yes", False: "no", None: ""}
STYLES = {True: "green", False: "yellow", None: ""}


def figure(value: float) -> str:
    """Return a number with three figures, or all of them where there are more before the point."""
    if value == 0:
        return "0"
    digits = max(0, 2 - _magnitude(value))
    return f"{value:,.{min(digits, 6)}f}"


def _magnitude(value: float) -> int:
    """Return the power of ten of a number as it will be rounded."""
    return int(f"{abs(value):.2e}".partition("e")[2])


def between(values: Spread | None) -> str:
    """Return what a median lies between."""
    if values is None or values.smallest == values.largest:
        return ""
    return f"{figure(values.smallest)} to {figure(values.largest)}"


def cells(row: Row) -> list[str]:
    """Return the cells of a row, as in `COLUMNS`; the spread is that of the ratio, if any."""
    judged = ""
    if row.goal is not None:
        unit = f" {row.unit}" if row.goal.of == "ours" else ""
        judged = f"{row.goal}{unit}"
    met = "not measured" if row.goal is not None and row.met is None else MET[row.met]
    return [
        row.size,
        row.who,
        f"{figure(row.ours.median)} {row.unit}",
        row.peer,
        "" if row.theirs is None else f"{figure(row.theirs.median)} {row.unit}",
        "" if row.ratio is None else figure(row.ratio.median),
        between(row.ratio or row.ours),
        judged,
        met,
    ]


def case_table(title: str, rows: Sequence[Row]) -> Table:
    """Return the table of one case, with a line between what begins differently."""
    table = Table(*COLUMNS, title=title, title_justify="left")
    before = ""
    for row in rows:
        first = re.split("[,:]", row.size)[0]
        if before and first != before:
            table.add_section()
        before = first
        table.add_row(*cells(row), style=STYLES[row.met])
    return table


def goal_table(document: Document) -> Table:
    """Return the table of all goals."""
    table = Table("case", *COLUMNS, title="Goals", title_justify="left")
    for row in document.rows:
        if row.goal is not None:
            table.add_row(row.case, *cells(row), style=STYLES[row.met])
    return table


def count_line(document: Document) -> str:
    """Return how many goals are met, in words."""
    met, missed, unknown = counted(document.rows)
    line = f"{met} of {met + missed + unknown} goals are met"
    return f"{line}, {unknown} could not be judged" if unknown else line


def machine_line(document: Document) -> str:
    """Return on what was measured, and how."""
    versions = ", ".join(f"{name} {version}" for name, version in document.versions.items())
    how = "cut short by --quick; " if document.quick else ""
    return (
        f"{how}medians of {document.repetitions} interleaved turns; {document.machine}; {versions}"
    )


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of a page."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
