"""A private copy of a ledger's memory, made in one step of the critical section.

The memory is made beforehand, and only what counts is copied: the tables, what there is of slots
that were ever used, and those stretches of the circular arrays that are taken. So the step costs
what the buffer holds and not what it could hold, and no page of memory is made inside it.
"""

from typing import Final

from forebay._layout import (
    AGE_HEAD,
    AGE_TAIL,
    BACK_COUNT,
    BACK_HEAD,
    CAPACITY,
    FREE_HEAD,
    FREE_USED,
    FRESH,
    POOL_TOP,
    SAMPLEABLE,
    Layout,
)
from forebay._stores import Ints

_CELLS_IN_PAGE: Final = 512


def touch(layout: Layout, image: Layout) -> None:
    """Make the pages of an image full of zeros that `copy` would write now."""
    for _, target in _parts(layout, image):
        target[::_CELLS_IN_PAGE] = 0


def copy(layout: Layout, image: Layout) -> None:
    """Copy what counts into an image full of zeros; no capture may be in progress."""
    for source, target in _parts(layout, image):
        target[:] = source


def _parts(layout: Layout, image: Layout) -> list[tuple[Ints, Ints]]:
    """Return what counts, and its places in the image."""
    cells = layout.cells
    used = cells[CAPACITY] - cells[FRESH]
    pairs = [(layout.block[: layout.slots_base], image.block[: layout.slots_base])]

    def add(source: Ints, target: Ints, start: int, count: int) -> None:
        size = len(source)
        if count:
            start %= size
            end = start + count
            pairs.append((source[start:end], target[start:end]))
            if end > size:
                pairs.append((source[: end - size], target[: end - size]))

    for name in ("phase", "uses", "pins", "stamp", "entry"):
        add(getattr(layout, name), getattr(image, name), 0, used)
    if len(layout.places):
        add(layout.places, image.places, 0, used)
        add(layout.dense, image.dense, 0, cells[SAMPLEABLE])
    aged = cells[AGE_TAIL] - cells[AGE_HEAD]
    add(layout.order, image.order, cells[AGE_HEAD], aged)
    if not aged:  # without ages the array is a list
        add(layout.order, image.order, 0, cells[SAMPLEABLE])
    add(layout.back, image.back, cells[BACK_HEAD], cells[BACK_COUNT])
    add(layout.free, image.free, cells[FREE_HEAD], cells[FREE_USED])
    add(layout.pool_slots, image.pool_slots, 0, cells[POOL_TOP])
    add(layout.pool_stamps, image.pool_stamps, 0, cells[POOL_TOP])
    return pairs
