"""How old records get before they are drawn, by order: `python -m benchmarks.staleness`.

A full buffer, each record used once: every learner step draws a batch and writers refill it. Age is
counted in learner steps between write and draw. No clock is involved, so the figures are exact and
the same on every machine.
"""

import sys

import forebay
import numpy as np
import torch
from tensordict import TensorDict

from benchmarks.peers import Order

ORDERS: tuple[Order, ...] = ("fifo", "random")


def ages(order: Order, *, capacity: int, batch: int, steps: int) -> list[int]:
    """Return the age of every record that was drawn, after the buffer has settled."""
    buffer = forebay.BlockingReplayBuffer(
        forebay.TensorStorage(capacity), batch_size=batch, order=order, seed=0
    )
    # The first content counts as written one batch a step, the newest last.
    buffer.extend({"written": torch.arange(capacity) // batch - capacity // batch})
    settled = steps // 2
    found: list[int] = []
    for step in range(steps):
        drawn = buffer.sample()
        assert isinstance(drawn, TensorDict)  # what this storage gives back
        buffer.extend({"written": torch.full((batch,), step)})
        if step >= settled:
            found += (step - drawn["written"]).tolist()
    return found


def main() -> int:
    """Print median, 99th percentile and maximum for both orders."""
    print("age in learner steps, capacity 4096, batches of 256, each record once, 4000 steps")
    for order in ORDERS:
        found = ages(order, capacity=4096, batch=256, steps=4000)
        middle, late = np.percentile(found, [50, 99])
        print(f"{order:7} median {middle:.0f}, 99th percentile {late:.0f}, at most {max(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
