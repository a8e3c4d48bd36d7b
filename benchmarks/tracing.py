"""What a trace costs, when it is kept and when it is not: `python -m benchmarks.tracing`.

All contenders are the same cycle as in P1. Without a trace the code still asks a `NoTrace` for
nothing at each action; `calls to NoTrace alone` makes just these calls, so its ratio is the share
of a cycle that they take. `the same again` shows how much of any difference is noise.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import forebay
from forebay._calls import Call
from forebay._tickets import Kind
from forebay._trace import NO_TRACE

from benchmarks.cases import cycle
from benchmarks.peers import CAPACITY, Ours
from benchmarks.timing import OURS, Result, race, settle

ROWS = (1, 32)


class Traced(Ours):
    """The same buffer, with a trace."""

    def __init__(self, rows: int, path: Path) -> None:
        self.buffer = forebay.BlockingReplayBuffer(
            forebay.TensorStorage(CAPACITY), batch_size=rows, seed=0, trace=forebay.Trace(path)
        )


def hooks() -> Callable[[int], None]:
    """Return a function that makes the calls to `NoTrace` of so many cycles, and nothing else."""
    call = Call(kind=Kind.WRITE, actor=0, n=1, m=1)

    def run(cycles: int) -> None:
        for _ in range(cycles):
            NO_TRACE.relieve()
            NO_TRACE.served(call)
            NO_TRACE.acts("Publish", call)
            NO_TRACE.relieve()
            NO_TRACE.served(call)
            NO_TRACE.acts("Ready", call)
            NO_TRACE.acts("Deliver", call)

    return run


def measure(rows: int, repetitions: int, directory: Path) -> list[Result]:
    """Race a buffer without a trace against the others; ratios above 1 are slower than it."""
    return race(
        {
            OURS: cycle(Ours(rows), rows),
            "the same again": cycle(Ours(rows), rows),
            "calls to NoTrace alone": hooks(),
            "with a trace": cycle(Traced(rows, directory / f"{rows}.jsonl"), rows),
        },
        repetitions,
    )


def main() -> int:
    """Print a line for each contender and batch size."""
    print(f"one write and one draw in one thread, without waiting; {settle()}")
    with tempfile.TemporaryDirectory() as name:
        for rows in ROWS:
            for result in measure(rows, 9, Path(name)):
                print(
                    f"batches of {rows:2}: {result.name:22} {result.seconds * 1e6:7.2f} us,"
                    f" {result.ratio:.3f} ({result.smallest:.3f} to {result.largest:.3f})"
                    f" of a buffer without a trace"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
