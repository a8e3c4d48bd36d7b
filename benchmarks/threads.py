"""From one thread to another, P4: waiting and the interpreter lock are part of it."""

import threading
from functools import partial
from typing import Final

from tensordict import TensorDictBase

from benchmarks.cycles import compared, has_torchrl
from benchmarks.peers import CLONES, RANDOM, TORCHRL, BatchQueue, Ours, Peer, Polled
from benchmarks.plan import Part, Plan
from benchmarks.records import small
from benchmarks.results import Goal, Row
from benchmarks.timing import OURS, Work, take_turns

POLLED: Final = f"{TORCHRL}, polled"
P4: Final = {1: 10.0, 32: 15.0, 256: 40.0}
"""How many times TorchRL's speed is to be reached, by batch size."""


def hand_over(peer: Peer, batch: TensorDictBase) -> Work:
    """Return work that hands so many batches from one thread to another."""

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


def handing_over(plan: Plan) -> list[Part]:
    """P4: one thread writes small records, one reads them."""

    def measure(rows: int) -> list[Row]:
        peers: dict[str, Peer] = {
            OURS: Ours(rows),
            RANDOM: Ours(rows, order="random"),
            CLONES: BatchQueue(rows),
        }
        if has_torchrl(plan):
            peers[POLLED] = Polled(rows)
        works = {name: hand_over(peer, small(rows)) for name, peer in peers.items()}
        return compared(
            take_turns(works, plan.effort.repetitions, plan.effort.shortest),
            case="P4",
            size=f"small, batch {rows}",
            goals={(OURS, POLLED): Goal("at least", P4[rows])},
            curve="small",
            x=rows,
            who=(OURS, RANDOM),
        )

    return [Part(f"batch {rows}", partial(measure, rows)) for rows in P4]
