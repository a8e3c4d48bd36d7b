"""From one process to another, P5 to P7, the writer being spawned; each has a core of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from tensordict import TensorDict

from benchmarks.channels import (
    FASTER_FIFO,
    MP_QUEUE,
    RAY,
    TORCH_QUEUE,
    Channel,
    FasterFifo,
    SharedOurs,
    SharedQueue,
    TorchQueue,
    draws,
    serve,
)
from benchmarks.children import Method, child
from benchmarks.cycles import compared, cycle
from benchmarks.peers import COPY, RANDOM, Copies
from benchmarks.plan import Part, Plan
from benchmarks.ray_queue import RayQueue, ray_runs
from benchmarks.records import BATCHES
from benchmarks.results import Goal, Row
from benchmarks.timing import OURS, Work, pinned, take_turns

P5: Final[Mapping[int, tuple[float, float]]] = {1: (1.3, 0.7), 32: (1.5, 0.7), 256: (2.0, 0.9)}
"""How many times a queue's speed is to be reached, in order and at random, by batch size."""

P6: Final = (12.0, 7.0)
P7: Final = (0.7, 0.4)
METHOD: Final[Method] = "spawn"
ROWS: Final = 256
"""Records of tokens in a batch, for P6 and P7."""


@contextmanager
def written_by_another(
    channels: dict[str, Channel], batch: TensorDict
) -> Iterator[dict[str, Work]]:
    """Spawn a writer, and give the work of drawing from each channel."""
    try:
        with pinned() as core, child(serve, core, channels, batch, method=METHOD) as writer:
            writer.hear()
            yield {name: draws(writer, name, channel) for name, channel in channels.items()}
    finally:
        for channel in channels.values():
            channel.close()


def ours(batch: TensorDict) -> dict[str, Channel]:
    """Return our buffer, in arrival order and in random order."""
    return {OURS: SharedOurs(batch), RANDOM: SharedOurs(batch, order="random")}


def peers(plan: Plan, batch: TensorDict) -> dict[str, Channel]:
    """Return the queues that are installed."""
    found: dict[str, Channel] = {MP_QUEUE: SharedQueue(batch), TORCH_QUEUE: TorchQueue(batch)}
    if plan.has(FASTER_FIFO, "faster_fifo", "bench"):
        found[FASTER_FIFO] = FasterFifo(batch)
    if plan.has(RAY, "ray", "ray"):
        found[RAY] = RayQueue(batch)
    return found


def beside_queues(
    plan: Plan, case: str, kind: str, rows: int, goals: tuple[float, float]
) -> list[Row]:
    """Measure ours beside every queue; the goals are about `multiprocessing.Queue`."""
    batch = BATCHES[kind](rows)
    with ray_runs(), written_by_another(ours(batch) | peers(plan, batch), batch) as works:
        seconds = take_turns(works, plan.effort.repetitions, plan.effort.shortest)
    in_order, at_random = goals
    return compared(
        seconds,
        case=case,
        size=f"{kind}, batch {rows}",
        goals={
            (OURS, MP_QUEUE): Goal("at least", in_order),
            (RANDOM, MP_QUEUE): Goal("at least", at_random),
        },
        curve=kind,
        x=rows,
        who=(OURS, RANDOM),
    )


def small_records(plan: Plan) -> list[Part]:
    """P5: small records beside every queue."""
    return [
        Part(f"small, batch {rows}", partial(beside_queues, plan, "P5", "small", rows, goals))
        for rows, goals in P5.items()
    ]


def tokens(plan: Plan) -> list[Part]:
    """P6: large batches beside every queue."""
    measure = partial(beside_queues, plan, "P6", "tokens", ROWS, P6)
    return [Part(f"tokens, batch {ROWS}", measure)]


def beside_copies(plan: Plan) -> list[Part]:
    """P7: the same beside a copy of the batch in and out, in one process."""

    def measure() -> list[Row]:
        batch = BATCHES["tokens"](ROWS)
        with written_by_another(ours(batch), batch) as works:
            works[COPY] = cycle(Copies(batch), batch)
            seconds = take_turns(works, plan.effort.repetitions, plan.effort.shortest)
        in_order, at_random = P7
        return compared(
            seconds,
            case="P7",
            size=f"tokens, batch {ROWS}",
            goals={
                (OURS, COPY): Goal("at least", in_order),
                (RANDOM, COPY): Goal("at least", at_random),
            },
            who=(OURS, RANDOM),
        )

    return [Part(f"tokens, batch {ROWS}", measure)]
