"""Steers a draw at random to the slots that a path wants; the draw itself is the library's.

A draw reads a stream that the seed and the number of the draw decide. So nothing has to be replaced
for it to take certain slots: it is enough to choose the seed, by asking the library what it would
take with one seed after the other.
"""

from typing import Final

from forebay._layout import KEY_LOW
from forebay._ledger import Ledger
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import batch_rows
from forebay_spec.state import State, sampleable
from forebay_spec.steps import may_draw

from forebay_models.adapters.adapter import Mismatch

SEEDS: Final = 1000
"""How many seeds are tried; an honest draw of a few rows needs a few dozen."""


def may_take(bounds: Bounds, state: State, wanted: tuple[int, ...], k: int) -> bool:
    """Tell whether a draw of k records may take these slots, in this order; never none."""
    if not wanted:
        return False
    if bounds.order == "replacement":
        return len(wanted) == k and set(wanted) <= set(sampleable(bounds, state))
    there = may_draw(bounds, state, k) if bounds.overwriting else set(sampleable(bounds, state))
    rows = batch_rows(k, len(there))
    return len(wanted) == rows == len(set(wanted)) and there.issuperset(wanted)


def steer(ledger: Ledger, wanted: tuple[int, ...], k: int) -> None:
    """Choose a seed with which the next draw of k records takes these slots, in this order.

    Raises:
        Mismatch: no seed does it.
    """
    rows = k if ledger.overwrites else len(wanted)
    for seed in range(SEEDS):
        ledger.cells[KEY_LOW] = seed
        if tuple(ledger.order.select(rows).tolist()) == wanted:
            return
    raise Mismatch(f"the draw cannot be steered: no seed below {SEEDS} takes {wanted}")
