"""Measure a buffer on a CUDA device: `python -m benchmarks.device [CASE...] [--json]`.

`extend-host`, `extend-device` and `sample` are how many bytes of records a second are written and
drawn, beside a plain `index_copy_` and `index_select` on tensors of the same size, and beside
TorchRL's buffer where that is installed. `overlap-host` and `overlap-device` let a training kernel,
writes and draws run at once, each in a thread and a stream of its own: the time of that over the
sum of the three alone (one third is the best there is, if they last equally long, and 1 is no
overlap), and over the longest of them. All sides take turns in one run, and the clock is started
and stopped when the device has nothing left to do.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, NamedTuple

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import timing
from benchmarks.arguments import case_parser, parsed
from benchmarks.device_peers import Cuda, Device, NoDevice, Side, full_sides, has_torchrl
from benchmarks.records import RECORD
from benchmarks.timing import Spread, cycles_for, race, settle, spread

Work = Callable[[int], None]
"""Does something so many times, and leaves it queued."""

SIZES: Final[dict[str, tuple[int, ...]]] = {
    "extend-host": (32, 256, 1024),
    "extend-device": (32, 256, 1024),
    "sample": (32, 256, 1024),
    "overlap-host": (256,),
    "overlap-device": (256,),
}
"""Records of a batch, for each case; a record has 12 KiB."""

REPETITIONS: Final = 7
WIDTH: Final = 4096
"""Rows and columns of the matrices that the training kernel multiplies."""

TITLES: Final = {
    "extend-host": "extend-host: batches from host memory are written",
    "extend-device": "extend-device: batches from device memory are written",
    "sample": "sample: batches are drawn into device memory",
    "overlap-host": "overlap-host: training, writes from host memory and draws at once",
    "overlap-device": "overlap-device: training, writes from device memory and draws at once",
}


class Bandwidth(NamedTuple):
    """What one side moves: 10^9 bytes of records a second, and its time by ours."""

    name: str
    gigabytes: float
    times_ours: Spread


class Overlap(NamedTuple):
    """How long one side takes for all three at once: milliseconds, and shares of them alone."""

    name: str
    milliseconds: float
    of_the_sum: Spread
    of_the_longest: Spread


def finished(device: Device, work: Work) -> Work:
    """Return the same work, begun on an idle device and done when it returns."""

    def run(cycles: int) -> None:
        device.wait()
        work(cycles)
        device.wait()

    return run


def puts(side: Side) -> Work:
    """Return work that writes so many batches."""

    def run(cycles: int) -> None:
        for _ in range(cycles):
            side.put()

    return run


def gets(side: Side) -> Work:
    """Return work that draws so many batches."""

    def run(cycles: int) -> None:
        for _ in range(cycles):
            side.get()

    return run


def training(device: Device) -> Work:
    """Return work that multiplies two matrices so many times."""
    left, right = (
        torch.randn(WIDTH, WIDTH, device=device.where, dtype=torch.bfloat16) for _ in range(2)
    )
    product = torch.empty_like(left)

    def run(cycles: int) -> None:
        for _ in range(cycles):
            torch.mm(left, right, out=product)

    return run


def bandwidth(
    device: Device, works: Mapping[str, Work], rows: int, repetitions: int
) -> list[Bandwidth]:
    """Race works that each move a batch of so many records a cycle; ours is among them."""
    results = race({name: finished(device, work) for name, work in works.items()}, repetitions)
    return [
        Bandwidth(
            result.name,
            rows * RECORD / result.seconds / 1e9,
            result.times_ours,
        )
        for result in results
    ]


def at_once(device: Device, runs: Sequence[Callable[[], None]]) -> float:
    """Return the seconds until all of these, each in a thread of its own, have run."""
    with ThreadPoolExecutor(len(runs)) as threads:
        device.wait()
        started = time.perf_counter()
        for running in [threads.submit(run) for run in runs]:
            running.result()
        device.wait()
        return time.perf_counter() - started


def overlap(device: Device, sides: Mapping[str, Sequence[Work]], repetitions: int) -> list[Overlap]:
    """Measure for each side its works alone, one after the other, and then all at once.

    Each work is done as often as takes about as long as the others, in a stream of its own.
    """
    streams = [device.aside() for _ in max(sides.values(), key=len)]

    def in_stream(
        work: Work, stream: Callable[[], AbstractContextManager[object]], cycles: int
    ) -> None:
        with stream():
            work(cycles)

    runs = {
        name: [
            partial(in_stream, work, stream, cycles_for(finished(device, work), timing.SHORTEST))
            for work, stream in zip(works, streams, strict=True)
        ]
        for name, works in sides.items()
    }
    for works in runs.values():  # the first work of a stream costs more
        at_once(device, works)
    names = list(sides)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    sums: dict[str, list[float]] = {name: [] for name in names}
    longest: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repetitions):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            alone = [at_once(device, [run]) for run in runs[name]]
            together = at_once(device, runs[name])
            seconds[name].append(together)
            sums[name].append(together / sum(alone))
            longest[name].append(together / max(alone))
    return [
        Overlap(
            name,
            1e3 * statistics.median(seconds[name]),
            spread(sums[name]),
            spread(longest[name]),
        )
        for name in names
    ]


def measure(
    device: Device, case: str, rows: int, capacity: int, repetitions: int
) -> list[Bandwidth] | list[Overlap]:
    """Measure one case at one batch size, in buffers of that capacity."""
    sides = full_sides(device, rows, capacity, from_host=case.endswith("host"))
    if case == "sample":
        draws = {name: gets(side) for name, side in sides.items()}
        return bandwidth(device, draws, rows, repetitions)
    writes = {name: puts(side) for name, side in sides.items()}
    if case.startswith("extend"):
        return bandwidth(device, writes, rows, repetitions)
    train = training(device)
    works = {name: (train, writes[name], gets(side)) for name, side in sides.items()}
    return overlap(device, works, repetitions)


def table(case: str, results: Mapping[int, list[Bandwidth] | list[Overlap]]) -> Table:
    """Return the table of one case; results are by the records of a batch."""
    overlaps = case.startswith("overlap")
    columns = ("ms", "of the sum", "of the longest") if overlaps else ("GB/s", "times ours")
    found = Table("rows", "who", *columns, title=TITLES[case])
    for rows, each in results.items():
        for name, figure, *spreads in each:
            found.add_row(str(rows), name, f"{figure:.1f}", *(str(one) for one in spreads))
        found.add_section()
    return found


def plain(result: Bandwidth | Overlap) -> dict[str, object]:
    """Return a result as JSON has it."""
    return {
        name: value._asdict() if isinstance(value, Spread) else value
        for name, value in result._asdict().items()
    }


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = case_parser(
        "python -m benchmarks.device", __doc__.split("\n")[0], SIZES, usual=str(REPETITIONS)
    )
    parser.add_argument(
        "--mib", type=int, default=1024, help="size of the records of each side (1024)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    parser.set_defaults(repetitions=REPETITIONS)
    args = parsed(parser, argv, SIZES)
    largest = max(rows for case in args.cases for rows in SIZES[case])
    args.capacity = args.mib * 2**20 // RECORD // largest * largest
    if not args.capacity:
        parser.error(f"--mib is at least {-(-largest * RECORD // 2**20)}, for one batch")
    return args


def main(argv: list[str] | None = None) -> int:
    """Measure the cases asked for and print them; 2 if there is no CUDA device."""
    args = parse(argv)
    try:
        device: Device = Cuda()
    except NoDevice as error:
        print(f"python -m benchmarks.device needs a CUDA device: {error}", file=sys.stderr)
        return 2
    machine = f"{device.name}; {settle(cores=4)}"
    peers = "TorchRL is installed" if has_torchrl() else "TorchRL is not installed, so not measured"
    results: dict[str, dict[int, list[Bandwidth] | list[Overlap]]] = {}
    plan = [(case, rows) for case in args.cases for rows in SIZES[case]]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=len(plan))
        for case, rows in plan:
            progress.update(task, description=f"{case}, batches of {rows}")
            found = measure(device, case, rows, args.capacity, args.repetitions)
            results.setdefault(case, {})[rows] = found
            progress.advance(task)
    if args.json:
        flat = [
            {"case": case, "rows": rows, **plain(result)}
            for case, by_rows in results.items()
            for rows, each in by_rows.items()
            for result in each
        ]
        document = {"machine": machine, "capacity": args.capacity, "peers": peers}
        print(json.dumps({**document, "repetitions": args.repetitions, "results": flat}))
        return 0
    console = Console()
    for case, by_rows in results.items():
        console.print(table(case, by_rows))
    console.print(
        f"medians of {args.repetitions} turns, in brackets the smallest and the largest;"
        f" {args.capacity} records of {RECORD} bytes; {peers}; {machine}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
