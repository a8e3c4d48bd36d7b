"""Put results into pages: `python -m benchmarks.page build/bench.json [PAGE...]`.

What is between `<!-- bench:begin NAME -->` and `<!-- bench:end -->` is replaced by the part of that
name: `goals`, `results`, `run` or `short`. All else in a page is kept, so that what was written by
hand stays. Charts are drawn into `--charts`. Nothing is written if anything is wrong.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.charts import draw
from benchmarks.report import COLUMNS, cells, count_line, figure, machine_line, markdown
from benchmarks.results import Document, Row, Unreadable, load
from benchmarks.timing import OURS

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = (ROOT / "docs/reference/performance.md", ROOT / "README.md")
CHARTS: Final = ROOT / "docs/assets"
MARKED: Final = re.compile(
    r"(?P<begin><!-- bench:begin (?P<name>\S+) -->\n).*?(?P<end>^<!-- bench:end -->$)",
    re.DOTALL | re.MULTILINE,
)
SHORT: Final = (
    ("P1", "small, batch 32", "one thread"),
    ("P1", "small, batch 256", "one thread"),
    ("P1", "tokens, batch 256", "one thread"),
    ("P4", "small, batch 32", "two threads"),
    ("P5", "small, batch 32", "two processes"),
    ("P6", "tokens, batch 256", "two processes"),
    ("P10", "dumps of 1024 MiB", "to disk"),
)
"""The rows of the short table: case, what, and where."""


class NoMark(ValueError):
    """A page has no place for results, or one that nothing is known for."""


def goals(document: Document) -> str:
    """Return the table of all goals, and how many are met."""
    rows = [[row.case, *cells(row)] for row in document.rows if row.goal is not None]
    return f"{count_line(document)}.\n\n{markdown(['case', *COLUMNS], rows)}"


def results(document: Document) -> str:
    """Return a table for each case, with what has no goal too, and what was not measured."""
    parts = [
        f"### {name}: {title}\n\n{markdown(COLUMNS, [cells(row) for row in document.of(name)])}"
        for name, title in document.titles.items()
        if document.of(name)
    ]
    parts += [f"- {note}" for note in document.notes]
    return "\n\n".join(parts)


def run(document: Document) -> str:
    """Return on what was measured, and how."""
    return machine_line(document)


def short(document: Document) -> str:
    """Return a table of few rows."""
    found = [(where, row) for case, what, where in SHORT for row in _wanted(document, case, what)]
    lines = [
        [
            f"{where}, {row.size}",
            f"{figure(row.ours.median)} {row.unit}",
            row.peer,
            "" if row.theirs is None else f"{figure(row.theirs.median)} {row.unit}",
            "" if row.ratio is None else f"{figure(row.ratio.median)} ({row.goal})",
        ]
        for where, row in found
    ]
    columns = ["one batch", "forebay", "beside", "takes", "times as fast (goal)"]
    return f"{markdown(columns, lines)}\n\n{count_line(document)}; {machine_line(document)}."


def _wanted(document: Document, case: str, what: str) -> list[Row]:
    return [
        row
        for row in document.of(case)
        if row.size == what and row.who == OURS and row.goal is not None
    ]


PARTS: Final[Mapping[str, Callable[[Document], str]]] = {
    "goals": goals,
    "results": results,
    "run": run,
    "short": short,
}


def filled(text: str, document: Document) -> str:
    """Return a page with its marked places filled, and all else as it was.

    Raises:
        NoMark: there is no such place, or one of another name than the parts have.
    """
    names = [found["name"] for found in MARKED.finditer(text)]
    if text.count("<!-- bench:begin") != len(names) or not names:
        raise NoMark(
            "it has no place for results, or one that is not closed; a place is the two lines"
            " <!-- bench:begin NAME --> and <!-- bench:end -->"
        )
    if unknown := [name for name in names if name not in PARTS]:
        raise NoMark(f"no part is called {unknown[0]}; there are {', '.join(PARTS)}")
    return MARKED.sub(
        lambda found: f"{found['begin']}{PARTS[found['name']](document)}\n{found['end']}", text
    )


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.page", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("results", type=Path, metavar="FILE", help="what --json wrote")
    names = " and ".join(str(page.relative_to(ROOT)) for page in PAGES)
    parser.add_argument("pages", type=Path, nargs="*", metavar="PAGE", help=f"({names})")
    parser.add_argument("--charts", type=Path, default=CHARTS, metavar="DIR", help="(docs/assets)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Fill pages and draw charts; 2 if that cannot be done."""
    args = parse(argv)
    pages: dict[Path, str] = {}
    try:
        document = load(args.results)
        for page in args.pages or PAGES:
            try:
                pages[page] = filled(page.read_text(encoding="utf-8"), document)
            except (NoMark, OSError) as error:
                raise NoMark(f"{page}: {error}") from error
    except (NoMark, Unreadable) as error:
        print(f"python -m benchmarks.page: {error}", file=sys.stderr)
        return 2
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")
    for path in [*pages, *draw(document, args.charts)]:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
