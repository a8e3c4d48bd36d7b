"""What a trace costs, when it is kept and when it is not.

All contenders are the same cycle as in P1. Without a trace the code still asks a `NoTrace` for
nothing at each action; `calls to NoTrace alone` makes just these calls, so its time by that of a
cycle is the share that they take. `the same again` shows how much of any difference is noise.
"""

from functools import partial
from pathlib import Path
from typing import Final

import forebay
from forebay._calls import Call
from forebay._tickets import Kind
from forebay._trace import NO_TRACE

from benchmarks.cycles import compared, half_full
from benchmarks.peers import CAPACITY, Ours
from benchmarks.plan import Part, Plan
from benchmarks.results import Row
from benchmarks.timing import OURS, Work, take_turns

ROWS: Final = (1, 32)


class Traced(Ours):
    """The same buffer, with a trace."""

    def __init__(self, rows: int, path: Path) -> None:
        self.buffer = forebay.BlockingReplayBuffer(
            forebay.TensorStorage(CAPACITY), batch_size=rows, seed=0, trace=forebay.Trace(path)
        )


def hooks() -> Work:
    """Return work that makes the calls to `NoTrace` of so many cycles, and nothing else."""
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


def tracing(plan: Plan) -> list[Part]:
    """A cycle without a trace, beside one with a trace and beside what is left of one."""

    def measure(rows: int) -> list[Row]:
        traced = partial(Traced, path=plan.scratch / f"{rows}.jsonl")
        works = {
            OURS: half_full(Ours, "small", rows),
            "the same again": half_full(Ours, "small", rows),
            "calls to NoTrace alone": hooks(),
            "with a trace": half_full(traced, "small", rows),
        }
        return compared(
            take_turns(works, plan.effort.repetitions, plan.effort.shortest),
            case="trace",
            size=f"small, batch {rows}",
            goals={},
        )

    return [Part(f"batch {rows}", partial(measure, rows)) for rows in ROWS]
