"""How the cost of a call grows with capacity, batch size, leaves and waiters, as curves.

Along one axis the points take turns, and in each turn every call is timed by itself. What waits is
there for good: readers that want more than there will ever be, or writers that need more room.
"""

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Final

import forebay
import torch
from tensordict import TensorDict

from benchmarks.children import PATIENCE
from benchmarks.peers import FILL
from benchmarks.plan import Part, Plan
from benchmarks.records import small
from benchmarks.results import Row
from benchmarks.timing import OURS, spread, timed

SHARED: Final = "forebay, shared"
BATCH: Final = 32
CAPACITY: Final = 2**14
WAITED_FOR: Final = 2**15
"""Slots of a buffer in which somebody waits; the calls that are timed never use up that many."""

CALLS: Final = 20
"""Calls of each kind in one turn."""

Buffer = forebay.BlockingReplayBuffer
Calls = Mapping[str, Callable[[], object]]


def wide(leaves: int) -> TensorDict:
    """Return a batch of records with so many leaves of one number each."""
    return TensorDict(
        {f"leaf {number}": torch.zeros(BATCH) for number in range(leaves)}, batch_size=[BATCH]
    )


def buffer_of(who: str, capacity: int, batch: TensorDict) -> Buffer:
    """Return a buffer for such batches, on threads or shared."""
    storage = (
        forebay.SharedStorage(capacity, example=batch[0])
        if who == SHARED
        else forebay.TensorStorage(capacity, example=batch[0])
    )
    return Buffer(storage, batch_size=len(batch))


def leased(buffer: Buffer) -> None:
    """Draw a batch by a lease and use it up."""
    with buffer.lease():
        pass


def calls_on(buffer: Buffer, batch: TensorDict) -> Calls:
    """Return every call, in an order in which there is as much afterwards as before."""
    return {
        "extend": lambda: buffer.extend(batch),
        "sample": buffer.sample,
        "extend again": lambda: buffer.extend(batch),
        "lease": lambda: leased(buffer),
        "stats": buffer.stats,
    }


def half_full(who: str, capacity: int, batch: TensorDict) -> Calls:
    """Return the calls on a new buffer, half of which is full."""
    buffer = buffer_of(who, capacity, batch)
    for start in range(0, capacity // 2, FILL):
        wanted = min(FILL, capacity // 2 - start)
        buffer.extend(batch[torch.arange(wanted) % len(batch)])
    return calls_on(buffer, batch)


@contextmanager
def waiting(
    work: Callable[[], object], waiters: int, waits: Callable[[], int], buffer: Buffer
) -> Iterator[None]:
    """Have so many threads wait in a call meanwhile, until the buffer is closed."""

    def wait() -> None:
        with suppress(forebay.ShutDown):
            work()

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(waiters)]
    for thread in threads:
        thread.start()
    try:
        latest = time.monotonic() + PATIENCE
        while waits() < waiters:
            if time.monotonic() > latest:
                raise TimeoutError("not all threads have come to wait")
            time.sleep(0.001)
        yield
    finally:
        buffer.shutdown(immediate=True)
        for thread in threads:
            thread.join()


def beside_waiters(stack: ExitStack, waiters: int) -> Calls:
    """Return `extend` and `stats` beside readers that wait, and the others beside writers that do.

    The readers want as many records as there are slots, and the writers as many slots.
    """
    batch = small(BATCH)
    wanted, full = (buffer_of(OURS, WAITED_FOR, batch) for _ in range(2))
    whole = small(WAITED_FOR)
    full.extend(whole)
    stack.enter_context(
        waiting(
            lambda: wanted.sample(WAITED_FOR),
            waiters,
            lambda: wanted.stats().waiting_readers,
            wanted,
        )
    )
    stack.enter_context(
        waiting(lambda: full.extend(whole), waiters, lambda: full.stats().waiting_writers, full)
    )
    return {
        "extend": lambda: wanted.extend(batch),
        "sample": full.sample,
        "lease": lambda: leased(full),
        "stats": wanted.stats,
    }


def turn(calls: Calls) -> dict[str, float]:
    """Make all calls in turn, some times, and return the median seconds of each."""
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(CALLS):
        for name, call in calls.items():
            found[name].append(timed(call))
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def curves(axis: str, points: Mapping[tuple[str, int], Calls], repetitions: int) -> list[Row]:
    """Let all points of an axis take turns, and return a row for each call at each point."""
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for calls in points.values():
        turn(calls)
    for _ in range(repetitions):
        for (who, x), calls in points.items():
            for name, seconds in turn(calls).items():
                found[who, x, name].append(seconds)
    return [
        Row(
            case="growth",
            size=f"{name}, {axis} {x}",
            who=who,
            ours=spread(seconds).by(1e6),
            unit="us",
            curve=f"{axis}: {name}",
            x=x,
        )
        for (who, x, name), seconds in sorted(found.items(), key=lambda it: (it[0][2], it[0][:2]))
        if name != "extend again"
    ]


def growing(plan: Plan) -> list[Part]:
    """The cost of a call along each axis."""
    effort = plan.effort

    def along(axis: str, xs: Sequence[int], make: Callable[[str, int], Calls]) -> list[Row]:
        points = {(who, x): make(who, x) for who in (OURS, SHARED) for x in xs}
        return curves(axis, points, effort.repetitions)

    def beside() -> list[Row]:
        with ExitStack() as stack:
            points = {(OURS, x): beside_waiters(stack, x) for x in effort.waiters}
            return curves("waiters", points, effort.repetitions)

    axes: dict[str, tuple[Sequence[int], Callable[[str, int], Calls]]] = {
        "capacity": (effort.capacities, lambda who, x: half_full(who, x, small(BATCH))),
        "batch": (effort.rows, lambda who, x: half_full(who, max(CAPACITY, 4 * x), small(x))),
        "leaves": (effort.leaves, lambda who, x: half_full(who, CAPACITY, wide(x))),
    }
    return [
        *(Part(axis, partial(along, axis, xs, make)) for axis, (xs, make) in axes.items()),
        Part("waiters", beside),
    ]
