"""Measure the buffer between processes: `python -m benchmarks.processes [P5 P8 P9 memory]`.

P5 is throughput beside a `multiprocessing.Queue`, P8 how soon a blocked writer returns and a death
is got over, P9 what blocked readers use, memory what a buffer takes and how long making it lasts.
The load of the machine is printed, since the figures depend on it.
"""

import argparse
import os
import sys
import time
from contextlib import ExitStack
from multiprocessing import get_context

import forebay

from benchmarks.between import BATCHES, Channel, SharedOurs, SharedQueue, writer
from benchmarks.peers import small
from benchmarks.timing import OURS, race, settle
from benchmarks.waiting import (
    after_a_death_inside,
    after_a_death_with_a_lease,
    blocked_readers,
    middle,
    wake_up,
)

ROWS = (1, 32, 256)
CAPACITIES = (4096, 65536, 1048576)


def throughput(repetitions: int) -> None:
    """P5: from one spawned process to another, records and batches of several sizes."""
    context = get_context("spawn")
    for kind, make in BATCHES.items():
        for rows in ROWS:
            batch = make(rows)
            channels: dict[str, Channel] = {
                OURS: SharedOurs(batch),
                "multiprocessing.Queue": SharedQueue(batch, context),
            }
            with ExitStack() as stack:
                runs = {
                    name: stack.enter_context(writer(channel, batch, context))
                    for name, channel in channels.items()
                }
                for result in race(runs, repetitions):
                    print(
                        f"P5 {kind:6} batches of {rows:3}: {result.name:22}"
                        f" {result.seconds * 1e6:8.1f} us, {rows / result.seconds:9.0f} records/s,"
                        f" {result.ratio:.2f} times ours"
                        f" ({result.smallest:.2f} to {result.largest:.2f})",
                        flush=True,
                    )


def waking(repetitions: int) -> None:
    """P8: from the call that frees space to the return of the writer that waited for it."""
    found = wake_up(30 * repetitions)
    theirs = middle(found["multiprocessing.Queue"])[0]
    for name, seconds in found.items():
        median, smallest, largest = (1e6 * value for value in middle(seconds))
        print(
            f"P8 a blocked writer returns: {name:30} {median:7.1f} us"
            f" ({smallest:.1f} to {largest:.1f}), {median / theirs / 1e6:.2f} of the queue's"
        )
    for what, measure in (
        ("holder of the lock is killed, next call done", after_a_death_inside),
        ("lessee is killed, waiting reader has its record", after_a_death_with_a_lease),
    ):
        median, smallest, largest = (1e3 * value for value in middle(measure(repetitions)))
        print(f"P8 {what:48} {median:7.2f} ms ({smallest:.2f} to {largest:.2f})", flush=True)


def idling(repetitions: int) -> None:
    """P9: what sixteen blocked readers use."""
    shares = blocked_readers(16, float(repetitions))
    median, _, largest = (100 * value for value in middle(shares))
    print(
        f"P9 {len(shares)} blocked readers for {repetitions} s: {median:.2f} % of a core each in"
        f" the median, {largest:.2f} % at most",
        flush=True,
    )


def memory(repetitions: int) -> None:
    """What a buffer of small records takes, and how long it takes to make it."""
    record = small(1)[0]
    for capacity in CAPACITIES:
        times = []
        for _ in range(repetitions):
            start = time.perf_counter()
            storage = forebay.SharedStorage(capacity, example=record)
            buffer = forebay.BlockingReplayBuffer(storage, batch_size=1)
            times.append(time.perf_counter() - start)
        ledger = buffer._core._block.nbytes  # type: ignore[attr-defined]  # a SharedCore's
        median, smallest, largest = (1e3 * value for value in middle(times))
        print(
            f"memory, capacity {capacity:7}: ledger and journal {ledger} bytes,"
            f" {ledger / capacity:.1f} a slot; records {storage._block.nbytes} bytes,"
            f" {storage._block.nbytes / capacity:.1f} a slot; made in {median:.1f} ms"
            f" ({smallest:.1f} to {largest:.1f})",
            flush=True,
        )


CASES = {"P5": throughput, "P8": waking, "P9": idling, "memory": memory}


def main(argv: list[str] | None = None) -> int:
    """Measure the cases asked for and print them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processes", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}; or all")
    parser.add_argument("--repetitions", type=int, default=7, help="turns of each side (7)")
    args = parser.parse_args(argv)
    if unknown := [case for case in args.cases if case not in CASES]:
        parser.error(f"unknown case {unknown[0]}; there are {', '.join(CASES)}")
    if args.repetitions < 1:
        parser.error("--repetitions is at least 1")
    print(f"{settle()}; {os.getloadavg()[0]:.1f} processes want to run", flush=True)
    for case in args.cases or CASES:
        CASES[case](args.repetitions)
    print(f"at the end {os.getloadavg()[0]:.1f} processes want to run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
