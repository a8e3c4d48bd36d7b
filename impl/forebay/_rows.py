"""The kernel's decisions about single slots, for all slots of a batch at once.

`forebay_spec.kernel` decides for one slot, in plain integers, which is what its contracts are
confirmed for. A batch of slots needs the same answers without a Python step a row; these twins
give them, and a test compares them with the kernel on every small value. What is the same for all
slots of a batch may be given as one number (see `_stores.common`); if everything is, so is the
answer.
"""

from typing import Final, overload

import numpy as np
from forebay_spec.kernel import Phase

from forebay._stores import Flags, Ints

# Plain integers: numpy takes several times as long to look at an IntEnum.
LIVE: Final = int(Phase.LIVE)
DROPPED: Final = int(Phase.DROPPED)


@overload
def are_sampleable(phase: Ints, uses: Ints | int, limit: int) -> Flags: ...


@overload
def are_sampleable(phase: Ints | int, uses: Ints | int, limit: int) -> Flags | bool: ...


def are_sampleable(phase: Ints | int, uses: Ints | int, limit: int) -> Flags | bool:
    """Tell which slots `kernel.is_sampleable` holds for."""
    flags: Flags | bool = (phase == LIVE) & (uses < limit)
    return flags


def are_evictable(phase: Ints, pins: Ints, to_copy: Flags) -> Flags:
    """Tell which slots `kernel.is_evictable` holds for."""
    flags: Flags = (phase == LIVE) & (pins == 0) & ~to_copy
    return flags


def become_free(phase: Ints | int, uses: Ints | int, limit: int, pins: Ints | int) -> Flags | bool:
    """Tell which slots `kernel.becomes_free` holds for.

    A slot that is still to be copied counts as pinned once more.
    """
    done = (phase == DROPPED) | ((phase == LIVE) & (uses == limit))
    flags: Flags | bool = (pins == 0) & done
    return flags


def returned_stamps(current: Ints, remembered: Ints) -> Ints:
    """Return `kernel.returned_stamp` of each pair."""
    return np.minimum(current, remembered)


def are_blocked(phase: Ints, uses: Ints, limit: int, pins: Ints, own: Ints) -> Flags:
    """Tell which slots `kernel.lease_blocks` holds for."""
    kept = (phase == DROPPED) | ((phase == LIVE) & (uses - (pins - own) == limit))
    flags: Flags = (own > 0) & kept
    return flags
