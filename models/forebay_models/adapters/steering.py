"""Steers a draw at random to the slots that a path wants; the draw itself is the library's.

A draw reads a stream that the seed and the number of the draw decide. So nothing has to be replaced
for it to take certain slots: it is enough to choose the seed, by asking the library what it would
take with one seed after the other.
"""

from typing import Final

from forebay._layout import KEY_LOW
from forebay._ledger import Ledger

from forebay_models.adapters.adapter import Mismatch

SEEDS: Final = 1000
"""How many seeds are tried; an honest draw of a few rows needs a few dozen."""


def steer(ledger: Ledger, wanted: tuple[int, ...]) -> None:
    """Choose a seed with which the next draw takes these slots, in this order.

    The seed stays where nothing is wanted, and where the slots cannot be drawn now.

    Raises:
        Mismatch: no seed does it, though each slot can be sampled.
    """
    if not wanted or not ledger.sampleable_slots()[list(wanted)].all():
        return
    for seed in range(SEEDS):
        ledger.cells[KEY_LOW] = seed
        if tuple(ledger.order.select(len(wanted)).tolist()) == wanted:
            return
    raise Mismatch(f"the draw cannot be steered: no seed below {SEEDS} takes {wanted}")
