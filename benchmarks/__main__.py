"""Measure speed beside peers, all sides in one run: `python -m benchmarks [CASE...] [--quick]`.

P1 to P14 have goals, most of them ratios, which are printed with what was reached. Exit codes: 0
whether goals are met or not, 2 if something could not be measured, 130 after Ctrl-C.
"""

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.arguments import case_parser, parsed
from benchmarks.cases import CASES
from benchmarks.charts import draw
from benchmarks.plan import FULL, QUICK, Effort, Plan
from benchmarks.report import case_table, count_line, goal_table, machine_line
from benchmarks.results import Document
from benchmarks.timing import settle

PACKAGES: Final = ("torch", "tensordict", "numpy", "torchrl", "faster-fifo", "ray")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    usual = f"{FULL.repetitions}, or {QUICK.repetitions} with --quick"
    description = __doc__.split("\n\n")[0]
    parser = case_parser("python -m benchmarks", description, CASES, usual=usual)
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes and shorter turns, in two minutes"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    parser.add_argument("--charts", type=Path, metavar="DIR", help="write charts there, as PNG")
    parser.add_argument(
        "--place", type=Path, metavar="DIR", help="where checkpoints go (the usual scratch place)"
    )
    args = parsed(parser, argv, CASES)
    if args.place is not None and not args.place.is_dir():
        parser.error(f"--place {args.place} is no folder")
    return args


def versions() -> dict[str, str]:
    """Return the versions of what is measured."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end what runs like Ctrl-C, so that no process is left behind."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def measure(
    cases: list[str], effort: Effort, place: Path | None, *, quick: bool
) -> tuple[Document, list[str]]:
    """Measure some cases; return the results, and in words what failed."""
    document = Document(
        machine=f"{settle()}; load {os.getloadavg()[0]:.1f} at the start",
        versions=versions(),
        repetitions=effort.repetitions,
        quick=quick,
        titles={name: CASES[name].title for name in cases},
    )
    failures = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        tempfile.TemporaryDirectory(dir=place, prefix="forebay-bench-") as scratch,
        Progress(
            *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        ) as progress,
    ):
        plan = Plan(effort, Path(scratch), document.notes)
        parts = [(name, part) for name in cases for part in CASES[name].parts(plan)]
        task = progress.add_task("measuring", total=len(parts))
        for name, part in parts:
            progress.update(task, description=f"{name}: {part.label}")
            started = time.monotonic()
            try:
                document.rows += part.measure()
            except Exception:
                failures.append(f"{name}, {part.label}: {traceback.format_exc()}")
            took = time.monotonic() - started
            document.seconds[name] = document.seconds.get(name, 0.0) + took
            progress.advance(task)
            if not progress.console.is_terminal:
                print(f"{name}: {part.label}, {took:.1f} s", file=sys.stderr, flush=True)
    return document, failures


def show(document: Document, failures: list[str], console: Console) -> None:
    """Print all tables, what was not measured, and how many goals are met."""
    for name, title in document.titles.items():
        rows = document.of(name)
        if rows:
            console.print(case_table(f"{name}: {title}", rows))
    if any(row.goal is not None for row in document.rows):
        console.print(goal_table(document))
    for note in document.notes:
        console.print(f"note: {note}", markup=False)
    console.print(machine_line(document), markup=False)
    for failure in failures:
        print(f"could not be measured: {failure}", file=sys.stderr)
    console.print(count_line(document))


def main(argv: list[str] | None = None) -> int:
    """Measure the cases asked for, print them, and write what was asked for."""
    args = parse(argv)
    console = Console()
    if not sys.stdout.isatty():
        console = Console(width=180)
    if args.list:
        for name, case in CASES.items():
            console.print(f"{name:7} {case.title}", markup=False)
        return 0
    effort = QUICK if args.quick else FULL
    if args.repetitions is not None:
        turns = min(effort.turns, args.repetitions)
        effort = replace(effort, repetitions=args.repetitions, turns=turns)
    try:
        with stopped_like_ctrl_c():
            document, failures = measure(args.cases, effort, args.place, quick=args.quick)
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return 130
    if args.json is not None:
        document.save(args.json)
    if args.charts is not None:
        draw(document, args.charts)
    show(document, failures, console)
    return 2 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
