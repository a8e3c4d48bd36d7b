"""A restore: a state takes the place of all that a buffer has, or nothing changes.

All that can be wrong is found before the boundary is asked for: the state is checked, and the
records are made ready, in memory of their own where the storage is this process's alone. Then the
restore waits until nothing is being filled or gathered, while nobody new begins, and only then is
the buffer loaded. Until that an exception leaves it as it was. Afterwards it is finished whatever
interrupts: an interrupt is raised once all is in its place. If that is not possible at all, as when
memory is not there any more, the buffer is empty and stopped, and its calls raise PeerLost with the
cause.

Leases of before are void, and batches that others had drawn ahead are gone. Who waits, waits on.
"""

from threading import get_ident

from forebay_spec.kernel import Closing

from forebay import _layout as at
from forebay._batches import HoldState
from forebay._checked import Checked
from forebay._core import SETTLING, Core
from forebay._crossing import Crossing
from forebay._describe import describe
from forebay._errors import CheckpointError
from forebay._homes import Arrived
from forebay._prefetch import Prefetcher
from forebay._saved_rows import Arrival
from forebay._stages import Stage
from forebay._stores import Store
from forebay._tickets import Kind
from forebay._transforms import Transforms

_UNTOUCHED = "the checkpoint cannot be loaded, nothing changed"


class Restore(Crossing):
    """One restore of a buffer.

    Args:
        core: the buffer's.
        transforms: those that get their states.
        prefetcher: where batches that were drawn ahead go, if the buffer draws ahead.
        state: what the buffer will be.
        arrival: its records.
        ahead: its batches that were drawn ahead.
    """

    def __init__(
        self,
        core: Core,
        transforms: Transforms,
        prefetcher: Prefetcher | None,
        state: Checked,
        arrival: Arrival,
        ahead: Arrived,
    ) -> None:
        super().__init__(core)
        self._transforms = transforms
        self._prefetcher = prefetcher
        self._state = state
        self._arrival = arrival
        self._ahead = ahead
        self._owner = 0 if prefetcher is None else prefetcher.owner()

    def run(self, timeout: float | None) -> None:
        """RestoreAsk, then Load; whoever runs it lets go in the end, which is Restore or Reject.

        Args:
            timeout: seconds to wait at most until everybody has paused, or None.

        Raises:
            CheckpointError: it took too long, the limits are too small, or a transform does not
                take its state.
            RuntimeError: it blocks the event loop that it waits for.
        """
        monitor = self._core.monitor
        deadline = None if timeout is None else monitor.clock() + timeout
        self._check_room()
        asked = self._wait_for(lambda: self._ask(Stage.RESTORING), deadline)
        monitor.point("restoring")
        if not asked or not self._has_paused(deadline):
            raise self._late(timeout)
        before = self._transforms.states()
        try:
            self._load_transforms()
            if not self._wait_for(self._load, deadline):
                raise self._late(timeout)
        except BaseException:
            if not self._is_loading():
                self._transforms.load(before)
            raise

    def let_go(self) -> None:
        """Restore, if the buffer is loaded, whatever interrupts; else Reject, if that is due.

        What has interrupted is raised afterwards.
        """
        interrupt: BaseException | None = None
        for _ in range(SETTLING):
            try:
                if self._is_loading():
                    self._core.monitor.point("loading")
                    self._arrival.settle()
                    self._step(self._restore)
                break
            except BaseException as error:
                interrupt = error
        else:
            self._core.close(Closing.STOPPED, interrupt)
        super().let_go()
        if interrupt is not None:
            raise interrupt

    def _is_loading(self) -> bool:
        """Tell whether the records of before are gone and those of the state not there yet."""
        return self._is_mine() and self._boundary.stage is Stage.LOADING

    def _has_paused(self, deadline: float | None) -> bool:
        """Wait until nobody is in the middle of anything; False if the deadline passes first."""
        prefetcher = self._prefetcher
        if prefetcher is not None and not prefetcher.wait_settled(deadline):
            return False  # it gathers what an exception has left, too
        return self._wait_for(self._is_quiet, deadline)

    def _is_quiet(self) -> bool:
        """Tell whether nobody is in the middle of anything; inside the section."""
        self._core.peers.recover()
        batches = self._ledger.batches
        for row in batches.rows_of():
            kind, state = batches.kind(row), batches.state(row)
            leased = kind is Kind.LEASE and state is HoldState.READY
            ahead = kind is Kind.PREFETCHED and state is not HoldState.GATHERING
            if not leased and not ahead:
                self._demand_loop(batches.view(row).owner)
                return False
        return True

    def _demand_loop(self, owner: int) -> None:
        """Raise if a batch can only be ended by the event loop that this restore keeps waiting."""
        if self._core.awaiting.get(owner) == get_ident():
            raise RuntimeError(
                "an asynchronous call of this event loop is in the middle of the buffer, and a "
                "restore that blocks the loop would wait for it for ever; await the call first, or "
                "restore in another thread, as by asyncio.to_thread"
            )

    def _load_transforms(self) -> None:
        try:
            self._transforms.load(self._state.transforms)
        except Exception as error:
            raise CheckpointError(
                f"{_UNTOUCHED}: the states of its transforms do not fit this buffer's: {error}"
            ) from error

    def _load(self) -> bool:
        """Load, if nobody is in the middle of anything; inside the section."""
        if not self._is_quiet():
            return False
        if not self._arrival.fits():
            raise CheckpointError(
                f"{_UNTOUCHED}: the first records were written to this buffer meanwhile, and they "
                f"may differ from those of the checkpoint; load it again to have them compared"
            )
        self._boundary.load()
        return True

    def _restore(self) -> None:
        """Restore; inside the section."""
        payloads: list[Store] = []
        queue, prefetcher = self._state.snapshot.queue, self._prefetcher
        if prefetcher is not None:
            prefetcher.forget()
            first = self._ledger.cells[at.NEXT_BATCH]
            payloads = prefetcher.adopt(
                [
                    (row, first + row, slots, batch)
                    for row, ((slots, _), batch) in enumerate(
                        zip(queue, self._ahead.batches, strict=True)
                    )
                ],
                self._ahead.event,
            )
        self._boundary.restore(self._state.snapshot, self._owner, payloads)

    def _check_room(self) -> None:
        """Make sure that the tables take the batches of the queue."""
        ledger, queue = self._ledger, self._state.snapshot.queue
        held = sum(len(slots) for slots, _ in queue)
        if held > ledger.layout.held or len(queue) > ledger.limits.calls:
            raise CheckpointError(
                f"{_UNTOUCHED}: {len(queue)} batches of {held} records were drawn ahead, which are "
                f"more than this buffer's limits allow; construct it with larger limits=Limits(...)"
            )

    def _late(self, timeout: float | None) -> CheckpointError:
        return CheckpointError(
            f"{_UNTOUCHED}: within {timeout} s there was no moment at which nothing was being "
            f"written, gathered, saved or restored\n{describe(self._core)}"
        )
