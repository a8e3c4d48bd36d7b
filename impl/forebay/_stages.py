"""How far a capture or a restore has got, and who is held off meanwhile.

There is one of them at a time, and this is what it means for everybody else: a restore lets nobody
begin, a capture keeps the readers of its own process from drawing until it has its snapshot.
"""

from enum import IntEnum

from forebay import _layout as at
from forebay._layout import Layout
from forebay._threads import participant_of


class Stage(IntEnum):
    """The stage of `boundary`."""

    NONE = 0
    CAPTURING = 1
    COPYING = 2
    RESTORING = 3
    LOADING = 4


def held_off(layout: Layout, participant: int, *, reads: bool) -> bool:
    """Tell whether the calls of a process are held off: those that read, or those that write."""
    cells = layout.cells
    stage = cells[at.STAGE]
    if stage == Stage.CAPTURING:
        return reads and participant_of(cells[at.BOUNDARY_ACTOR]) == participant
    return stage == Stage.RESTORING or stage == Stage.LOADING
