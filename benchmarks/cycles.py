"""A cycle of one write and one draw in one thread: P1, P2, P3, P14, and a ring that overwrites.

Nobody waits in these: the buffers are half full, or full where they overwrite. Each contender has a
batch of its own, since TorchRL writes into what it is given.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tensordict import LazyStackedTensorDict, TensorDictBase, lazy_stack

from benchmarks.peers import (
    CAPACITY,
    COPY,
    RANDOM,
    RING,
    TORCHRL,
    Copies,
    OurRing,
    Ours,
    Peer,
    Ring,
    fill,
)
from benchmarks.plan import Part, Plan
from benchmarks.records import BATCHES, small
from benchmarks.results import Goal, Row
from benchmarks.timing import OURS, Work, ratio, spread, take_turns

P1: Final[Mapping[tuple[str, int], float]] = {
    **{("small", 1): 12, ("small", 32): 15, ("small", 256): 50, ("small", 1024): 90},
    **{("tokens", 32): 8, ("tokens", 256): 8, ("medium", 32): 11, ("medium", 256): 9},
}
"""How many times TorchRL's speed is to be reached, by records and batch size."""

P2: Final = 30.0
P3: Final = 3.0
LAZY: Final = 256
"""Rows of a lazily stacked TensorDict."""

P14: Final = 15.0 / 4.0
"""4 ms at most where TorchRL takes 15 ms."""


def cycle(peer: Peer, batch: TensorDictBase) -> Work:
    """Return work that writes and draws a batch so many times."""

    def run(cycles: int) -> None:
        for _ in range(cycles):
            peer.put(batch)
            peer.get()

    return run


def half_full(
    make: Callable[[int], Ours | Ring], kind: str, rows: int, capacity: int = CAPACITY
) -> Work:
    """Return the cycle of a new buffer that was filled, and then half of it drawn.

    So all of its memory has been written to before.
    """
    peer, batch = make(rows), BATCHES[kind](rows)
    fill(peer, batch, capacity)
    peer.drop(capacity // 2)
    return cycle(peer, batch)


def full(make: Callable[[int], Peer], rows: int) -> Work:
    """Return the cycle of a new buffer of small records that was filled."""
    peer, batch = make(rows), small(rows)
    fill(peer, batch, CAPACITY)
    return cycle(peer, batch)


def compared(
    seconds: Mapping[str, list[float]],
    *,
    case: str,
    size: str,
    goals: Mapping[tuple[str, str], Goal],
    curve: str = "",
    x: float | None = None,
    who: tuple[str, ...] = (OURS,),
) -> list[Row]:
    """Return a row for each of ours beside each peer; ratios are the peer's time by ours."""
    peers = [name for name in seconds if name not in who]
    wanted = [(name, peer) for name in who if name in seconds for peer in peers]
    wanted += [pair for pair in goals if pair not in wanted]  # the peer is not installed
    return [
        Row(
            case=case,
            size=size,
            who=name,
            ours=spread(seconds[name]).by(1e6),
            unit="us",
            peer=peer,
            theirs=spread(seconds[peer]).by(1e6) if peer in seconds else None,
            ratio=ratio(seconds[peer], seconds[name]) if peer in seconds else None,
            goal=goals.get((name, peer)),
            curve=curve,
            x=x,
        )
        for name, peer in wanted
    ]


def has_torchrl(plan: Plan) -> bool:
    """Tell whether TorchRL is installed, and note it if not."""
    return plan.has("TorchRL", "torchrl", "torchrl")


def cycles(plan: Plan) -> list[Part]:
    """P1: half of 4096 slots are full."""

    def measure(kind: str, rows: int) -> list[Row]:
        batch = BATCHES[kind](rows)
        works = {
            OURS: half_full(Ours, kind, rows),
            RANDOM: half_full(partial(Ours, order="random"), kind, rows),
            COPY: cycle(Copies(batch), batch),
        }
        if has_torchrl(plan):
            works[TORCHRL] = half_full(partial(Ring, consuming=True), kind, rows)
        return compared(
            take_turns(works, plan.effort.repetitions, plan.effort.shortest),
            case="P1",
            size=f"{kind}, batch {rows}",
            goals={(OURS, TORCHRL): Goal("at least", P1[kind, rows])},
            curve=kind,
            x=rows,
            who=(OURS, RANDOM),
        )

    return [Part(f"{kind}, batch {rows}", partial(measure, kind, rows)) for kind, rows in P1]


def large(plan: Plan) -> list[Part]:
    """P2: half of a large buffer is full."""
    capacity = plan.effort.large

    def measure() -> list[Row]:
        works = {OURS: half_full(partial(Ours, capacity=capacity), "small", 32, capacity)}
        if has_torchrl(plan):
            make = partial(Ring, capacity=capacity, consuming=True)
            works[TORCHRL] = half_full(make, "small", 32, capacity)
        return compared(
            take_turns(works, plan.effort.repetitions, plan.effort.shortest),
            case="P2",
            size=f"capacity {capacity}, small, batch 32",
            goals={(OURS, TORCHRL): Goal("at least", P2)},
        )

    return [Part(f"capacity {capacity}", measure)]


def larger(plan: Plan) -> list[Part]:
    """P3: the same in a large buffer, over that in one of 4096 slots."""
    sizes = {"large": plan.effort.large, "usual": CAPACITY}
    makes: dict[str, Callable[[int, int], Ours | Ring]] = {
        OURS: lambda capacity, rows: Ours(rows, capacity)
    }

    def measure() -> list[Row]:
        if has_torchrl(plan):
            makes[TORCHRL] = lambda capacity, rows: Ring(rows, capacity, consuming=True)
        works = {
            f"{name} {size}": half_full(partial(make, capacity), "small", 32, capacity)
            for name, make in makes.items()
            for size, capacity in sizes.items()
        }
        seconds = take_turns(works, plan.effort.repetitions, plan.effort.shortest)
        growth = {
            name: [
                large / usual
                for large, usual in zip(
                    seconds[f"{name} large"], seconds[f"{name} usual"], strict=True
                )
            ]
            for name in makes
        }
        theirs = growth.get(TORCHRL)
        return [
            Row(
                case="P3",
                size=f"capacity {plan.effort.large} over {CAPACITY}, small, batch 32",
                ours=spread(growth[OURS]),
                unit="times",
                peer=TORCHRL,
                theirs=None if theirs is None else spread(theirs),
                ratio=None if theirs is None else ratio(theirs, growth[OURS]),
                goal=Goal("at most", P3, "ours"),
            )
        ]

    return [Part("both capacities", measure)]


def overwriting(plan: Plan) -> list[Part]:
    """Overwrite and draw with replacement in a full buffer."""

    def measure(rows: int) -> list[Row]:
        works = {OURS: full(OurRing, rows)}
        if has_torchrl(plan):
            works[RING] = full(Ring, rows)
        return compared(
            take_turns(works, plan.effort.repetitions, plan.effort.shortest),
            case="ring",
            size=f"small, batch {rows}",
            goals={},
        )

    return [Part(f"batch {rows}", partial(measure, rows)) for rows in (1, 32, 256, 1024)]


def writes(peer: Peer, batch: LazyStackedTensorDict) -> Work:
    """Return work that writes a batch so many times; the draws that make room do not count."""

    def run(cycles: int) -> float:
        took = 0.0
        for _ in range(cycles):
            started = time.perf_counter()
            peer.put(batch)
            took += time.perf_counter() - started
            peer.get()
        return took

    return run


def lazily_stacked(rows: int) -> LazyStackedTensorDict:
    """Return so many small records as a collector of single steps sends them."""
    found = lazy_stack([small(1)[0] for _ in range(rows)])
    assert isinstance(found, LazyStackedTensorDict)
    return found


def lazy(plan: Plan) -> list[Part]:
    """P14: write a lazily stacked TensorDict."""

    def measure() -> list[Row]:
        works = {OURS: writes(Ours(LAZY), lazily_stacked(LAZY))}
        given = lazily_stacked(LAZY)

        def contiguous(cycles: int) -> None:
            for _ in range(cycles):
                given.contiguous()

        works["contiguous() alone"] = contiguous
        if has_torchrl(plan):
            works[TORCHRL] = writes(Ring(LAZY, consuming=True), lazily_stacked(LAZY))
        return compared(
            take_turns(works, plan.effort.repetitions, plan.effort.shortest),
            case="P14",
            size=f"{LAZY} lazily stacked small records",
            goals={(OURS, TORCHRL): Goal("at least", P14)},
        )

    return [Part(f"{LAZY} rows", measure)]
