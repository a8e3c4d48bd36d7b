"""Runs of a real buffer on real threads, written down as traces."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal

import forebay
from forebay import BlockingReplayBuffer, ListStorage, Trace
from forebay_models.tracing.files import TraceFile, read_trace

JOINING: Final = 60.0
CAPACITY: Final = 8
ENDINGS: Final = (
    forebay.AdmissionTimeout,
    forebay.SampleTimeout,
    forebay.Cancelled,
    forebay.MutualWait,
    ArithmeticError,
    LookupError,
)


def busy_run(
    path: Path, *, order: Literal["fifo", "random"] = "fifo", uses: int = 1, writes: int = 150
) -> TraceFile:
    """Let three producers and two readers do everything that there is, and return the trace.

    Each producer makes so many calls; some have timeouts, some are cancelled, before they begin or
    while they wait. The readers sample and lease, give leases back, and every 17th transform
    raises. In the end the buffer is drained, stopped and emptied.
    """
    gathered = 0

    def transform(batch: object) -> object:
        nonlocal gathered
        gathered += 1
        if gathered % 17 == 0:
            raise ArithmeticError("planted")
        return batch

    trace = Trace(path)
    buffer = BlockingReplayBuffer(
        ListStorage(CAPACITY),
        batch_size=2,
        order=order,
        consume_after_n_samples=uses,
        transform=transform,
        seed=0,
        trace=trace,
    )

    def produce(dice: random.Random) -> None:
        token = buffer.cancel_token()
        for _ in range(writes):
            if dice.random() < 0.1:
                token.set()
            with suppress(*ENDINGS):
                buffer.extend(
                    [0] * dice.randint(1, 3),
                    timeout=dice.choice([None, 0.0, 0.001]),
                    cancel_event=token,
                )
            if token.is_set():
                token = buffer.cancel_token()

    def read(dice: random.Random) -> None:
        while True:
            with suppress(*ENDINGS):
                if dice.random() < 0.3:
                    try:
                        with buffer.lease(dice.randint(1, 2), timeout=dice.choice([None, 0.001])):
                            if dice.random() < 0.3:
                                raise LookupError("planted")
                    except forebay.ShutDown:
                        return
                else:
                    try:
                        buffer.sample(
                            dice.randint(1, 3), at_least=1, timeout=dice.choice([None, 0.0, 0.002])
                        )
                    except forebay.ShutDown:
                        return

    run_threads(
        {f"writer {number}": partial(produce, random.Random(number)) for number in range(3)},
        {f"reader {number}": partial(read, random.Random(9 + number)) for number in range(2)},
        between=buffer.shutdown,
    )
    with suppress(forebay.ShutDown):
        buffer.extend([1])
    buffer.empty()
    buffer.shutdown(immediate=True)
    with suppress(forebay.ShutDown):
        buffer.sample(1)
    trace.flush()
    return read_trace(path)


def run_threads(
    first: dict[str, Callable[[], None]],
    others: dict[str, Callable[[], None]],
    between: Callable[[], object],
) -> None:
    """Run all of these in threads of these names; `between` when the first ones have ended."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    def threads(works: dict[str, Callable[[], None]]) -> list[threading.Thread]:
        return [
            threading.Thread(target=guarded, args=(work,), name=name, daemon=True)
            for name, work in works.items()
        ]

    early, late = threads(first), threads(others)
    for thread in (*early, *late):
        thread.start()
    try:
        for thread in early:
            thread.join(JOINING)
    finally:
        between()
        for thread in late:
            thread.join(JOINING)
    assert failures == []
    assert not any(thread.is_alive() for thread in (*early, *late))
