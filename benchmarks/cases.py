"""What is measured: a cycle in one thread (P1, ring), and a hand-over between two threads (P4).

P1 is the cost of one write and one draw in a buffer that is half full, without anybody waiting. P4
is how fast batches get from one thread to another, with waiting and the interpreter lock in it. The
ring is one write and one draw in a full buffer that overwrites its oldest records.
"""

import threading
from collections.abc import Callable

from benchmarks.peers import CAPACITY, BatchQueue, OurRing, Ours, Peer, PolledRing, Ring, small
from benchmarks.timing import OURS, Result, race

SIZES = {"P1": (1, 32, 256, 1024), "P4": (1, 32, 256), "ring": (1, 32, 256, 1024)}


def cycle(peer: Peer, rows: int, written: int = CAPACITY // 2) -> Callable[[int], None]:
    """Return a function that writes and draws a batch so many times, in a buffer half full.

    Args:
        peer: the buffer.
        rows: records of a batch.
        written: how many records are written before.
    """
    batch = small(rows)
    for _ in range(written // rows):
        peer.put(batch)

    def run(cycles: int) -> None:
        for _ in range(cycles):
            peer.put(batch)
            peer.get()

    return run


def hand_over(peer: Peer, rows: int) -> Callable[[int], None]:
    """Return a function that hands so many batches from one thread to another."""
    batch = small(rows)

    def run(cycles: int) -> None:
        def write() -> None:
            for _ in range(cycles):
                peer.put(batch)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        for _ in range(cycles):
            peer.get()
        writer.join()

    return run


def measure(case: str, rows: int, repetitions: int) -> list[Result]:
    """Measure one case at one batch size; `forebay (random)` is ours in random order."""
    if case == "P1":
        peers = {
            OURS: cycle(Ours(rows), rows),
            "forebay (random)": cycle(Ours(rows, order="random"), rows),
            "TorchRL ring": cycle(Ring(rows), rows),
        }
    elif case == "ring":
        peers = {
            OURS: cycle(OurRing(rows), rows, CAPACITY),
            "TorchRL ring": cycle(Ring(rows), rows, CAPACITY),
        }
    else:
        peers = {
            OURS: hand_over(Ours(rows), rows),
            "TorchRL ring, polled": hand_over(PolledRing(rows), rows),
            "queue of clones": hand_over(BatchQueue(rows), rows),
        }
    return race(peers, repetitions)
