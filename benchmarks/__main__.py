"""Measure speed beside peers and print ratios: `python -m benchmarks [P1 P4 ring] [--json]`."""

import argparse
import dataclasses
import json
import sys

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.arguments import case_parser, parsed
from benchmarks.cases import SIZES, measure
from benchmarks.timing import settle

TITLES = {
    "P1": "P1: write and draw in one thread, capacity 4096 half full, small records",
    "P4": "P4: from one thread to another, capacity 4096, small records",
    "ring": "ring: overwrite and draw with replacement in one thread, capacity 4096, small records",
}


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = case_parser("python -m benchmarks", __doc__, SIZES)
    return parsed(parser, argv, SIZES)


def main(argv: list[str] | None = None) -> int:
    """Measure the cases asked for and print them."""
    args = parse(argv)
    machine = settle()
    plan = [(case, rows) for case in args.cases for rows in SIZES[case]]
    results = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=len(plan))
        for case, rows in plan:
            progress.update(task, description=f"{case}, batches of {rows}")
            results[case, rows] = measure(case, rows, args.repetitions)
            progress.advance(task)
    if args.json:
        flat = [
            {"case": case, "rows": rows, **dataclasses.asdict(result)}
            for (case, rows), found in results.items()
            for result in found
        ]
        print(json.dumps({"machine": machine, "repetitions": args.repetitions, "results": flat}))
        return 0
    console = Console()
    for case in args.cases:
        table = Table("rows", "who", "us a cycle", "times ours", "smallest", "largest")
        table.title = TITLES[case]
        for rows in SIZES[case]:
            for result in results[case, rows]:
                table.add_row(
                    str(rows),
                    result.name,
                    f"{result.seconds * 1e6:.1f}",
                    f"{result.ratio:.2f}",
                    f"{result.smallest:.2f}",
                    f"{result.largest:.2f}",
                )
            table.add_section()
        console.print(table)
    console.print(f"medians of {args.repetitions} turns; {machine}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
