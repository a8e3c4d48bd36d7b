"""Faults planted in captures and restores; see `forebay_models.mutants.local`."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import forebay._boundary
import forebay._capture
import forebay._checked
import forebay._rules
import forebay._snapshot
import numpy as np
from forebay import _layout as at
from forebay._actions import Actions
from forebay._boundary import Boundary
from forebay._calls import BATCH, Call
from forebay._capture import Capture
from forebay._crossing import Crossing
from forebay._layout import NONE, Layout
from forebay._ledger import Ledger
from forebay._restore import Restore
from forebay._snapshot import Snapshot, snapshot_of
from forebay._stages import Stage, held_off
from forebay._stores import Flags, Ints, Store
from forebay_spec.kernel import Phase

from forebay_models.mutants.planting import mutant

_deliver = Ledger.deliver
_restore = Boundary.restore


@mutant(
    "capture_before_quiet",
    Capture,
    "_is_quiet",
    "a capture does not wait until its process has gathered",
)
def _capture_at_once(self: Capture) -> bool:
    return True


@mutant(
    "filling_captured_as_live",
    forebay._snapshot,
    "to_copy",
    "a capture copies what is still being written",
)
def _copy_the_filling_too(ledger: Ledger) -> Flags:
    used = ledger.phase[: ledger.capacity - ledger.fresh]
    flags: Flags = (used == Phase.LIVE) | (used == Phase.FILLING)
    return flags


@mutant(
    "copied_slot_freed_at_once",
    Ledger,
    "deliver",
    "a record that a capture has still to copy leaves when it is spent",
)
def _deliver_unprotected(self: Ledger, call: Call, now: float) -> None:
    marks = self.copying
    self.copying = np.zeros_like(marks)
    try:
        _deliver(self, call, now)
    finally:
        self.copying = marks


@mutant(
    "copied_spent_slot_lost",
    Boundary,
    "_letting_go",
    "a record that was spent while it was copied never leaves",
)
def _unmark_only(self: Boundary, slots: Ints) -> list[Store]:
    return [(self._ledger.copying, slots, 0)] if len(slots) else []


@mutant(
    "queue_reversed",
    forebay._capture,
    "snapshot_of",
    "a snapshot has the batches that were drawn ahead in the wrong order",
)
def _reversed(*image: object) -> Snapshot:
    snapshot = snapshot_of(*image)  # type: ignore[arg-type]  # handed on as it came
    return replace(snapshot, queue=snapshot.queue[::-1], numbers=snapshot.numbers[::-1])


@mutant(
    "queue_not_captured",
    Capture,
    "_queued",
    "a snapshot lacks the batches that were drawn ahead, whose records it has as not drawn",
)
def _no_queue(self: Capture) -> list[tuple[int, object]]:
    return []


@mutant(
    "held_off_while_copied",
    forebay._rules,
    "held_off",
    "readers are held off until a capture has copied everything",
)
def _held_off_longer(layout: Layout, participant: int, *, reads: bool) -> bool:
    if layout.cells[at.STAGE] == Stage.COPYING and reads:
        return True
    return held_off(layout, participant, reads=reads)


@mutant(
    "admitted_while_restoring",
    forebay._rules,
    "held_off",
    "a writer is admitted while a restore waits for quiet",
)
def _readers_only(layout: Layout, participant: int, *, reads: bool) -> bool:
    return reads and held_off(layout, participant, reads=reads)


@mutant(
    "crossing_wakes_nobody", Crossing, "_step", "who was held off is not woken when it may go on"
)
def _step_silently(self: Crossing, step: Callable[[], object]) -> object:
    return Actions.look(self._core, step)


@mutant(
    "restore_before_quiet",
    Restore,
    "_is_quiet",
    "a restore does not wait until nobody writes or gathers",
)
def _load_at_once(self: Restore) -> bool:
    return True


@mutant("lease_not_void", Ledger, "holds_batch", "a lease of before a restore is still active")
def _any_batch(self: Ledger, call: Call) -> bool:
    return call.places[BATCH] != NONE


mutant(
    "counters_not_restored",
    forebay._boundary,
    "COUNTERS",
    "counters stay as they are in a restore",
)({})


@mutant("generator_rewound", Boundary, "restore", "a restored buffer draws as at its start")
def _rewind(self: Boundary, snapshot: Snapshot, owner: int, payloads: Sequence[Store] = ()) -> None:
    _restore(self, replace(snapshot, draws=0), owner, payloads)


@mutant(
    "restored_without_validation",
    forebay._checked,
    "_demand",
    "a state is loaded though its parts contradict each other",
)
def _demand_nothing(holds: bool, where: str, expected: str) -> None:
    pass
