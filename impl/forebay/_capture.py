"""A capture: one moment of a buffer, taken while everybody else goes on.

`begin` waits until nobody else has the boundary and until nothing of this process gathers, for
which its readers are held off shortly. What is queued up is copied then, since nobody can be given
it meanwhile. In the critical section only the ledger's block is copied and all live slots are
marked; from there on readers and writers go on. The rows are copied part by part, and each part's
slots are let go at once.
"""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from forebay import _image
from forebay._batches import HoldState
from forebay._core import Core
from forebay._crossing import Crossing
from forebay._homes import Home
from forebay._layout import Layout
from forebay._prefetch import Prefetcher
from forebay._snapshot import Snapshot, copying_order, snapshot_of
from forebay._stages import Stage
from forebay._state import Saved
from forebay._stores import Ints
from forebay._threads import participant_of
from forebay._transforms import Transforms


class Capture(Crossing):
    """One capture; whoever begins it calls `let_go` in the end, in a `finally`.

    Args:
        core: the buffer's.
        transforms: those whose states belong to the snapshot.
        prefetcher: the queue that belongs to it, if there is one.
        home: where its batches are.

    Attributes:
        transforms: the states of the transforms, once it has begun.
    """

    def __init__(
        self, core: Core, transforms: Transforms, prefetcher: Prefetcher | None, home: Home
    ) -> None:
        super().__init__(core)
        self._transforms = transforms
        self._prefetcher = prefetcher
        self._home = home
        self.transforms: list[object] = []
        self._copies: dict[int, Saved] = {}

    def begin(self) -> Snapshot:
        """CaptureAsk and Capture: return the snapshot, whose rows are still to be copied."""
        monitor, ledger = self._core.monitor, self._ledger
        image = ledger.layout.over(np.zeros(len(ledger.layout.block), np.int64))
        _image.touch(ledger.layout, image)
        self._wait_for(lambda: self._ask(Stage.CAPTURING))
        monitor.point("capturing")
        if self._prefetcher is not None:
            self._prefetcher.wait_settled(None)  # which gathers what an exception has left
        self._wait_for(self._is_quiet)
        self._copies = {number: self._home.saved(batch) for number, batch in self._queued()}
        self.transforms = self._transforms.states()
        self._step(lambda: self._capture(image))
        monitor.point("captured")
        copied = ledger.over(image)
        self._snapshot = snapshot_of(copied, self._copies.keys(), copying_order(copied))
        return self._snapshot

    def payloads(self) -> list[Saved]:
        """Return copies of the batches that are queued up in the snapshot, oldest first."""
        return [self._copies[number] for number in self._snapshot.numbers]

    def parts(self, rows: int) -> Iterator[Ints]:
        """Yield all slots in copying order, so many at a time; those before are copied.

        CaptureDone for each part, once the next one is asked for.
        """
        slots = self._snapshot.slots
        for start in range(0, len(slots), rows):
            part = slots[start : start + rows]
            yield part
            self._step(lambda part=part: self._boundary.copied(part))  # type: ignore[misc]  # a default that binds
            self._core.monitor.point("copied out")

    def _is_quiet(self) -> bool:
        """Tell whether nothing of this process gathers; inside the section."""
        return not self._ledger.batches.gathers(participant_of(self._call.actor))

    def _queued(self) -> list[tuple[int, object]]:
        """Return the numbers and the payloads of all ready batches of the queue.

        Readers are held off, so no batch is taken while it is copied; what is dropped meanwhile is
        not in the snapshot.
        """
        prefetcher, batches = self._prefetcher, self._ledger.batches
        if prefetcher is None:
            return []
        queue = prefetcher

        def ready() -> list[tuple[int, object]]:
            found = []
            for row, number in queue.settled_queue():
                if batches.state(row) is HoldState.READY:
                    with suppress(KeyError):
                        found.append((number, queue.payload(number)))
            return found

        prefetcher.owner()
        return self._step(ready)

    def _capture(self, image: Layout) -> None:
        """Copy the ledger and mark what is still to be copied; inside the section."""
        _image.copy(self._ledger.layout, image)
        self._boundary.capture()
