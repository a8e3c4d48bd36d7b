"""The ledger of a scenario's buffer, seen from outside: as a state, and what must not be left.

It is read without entering the critical section, at times when nobody changes it. If somebody has
died, or stands, in the middle of a step that the journal knows, the ledger is what it will be when
the step is finished: that is what the journal promises.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import torch
from forebay import BlockingReplayBuffer, Limits, SharedStorage
from forebay import _layout as at
from forebay._layout import PARTICIPANT_FIELDS, Layout
from forebay._ledger import Ledger
from forebay._shared_peers import SharedPeers
from forebay._stores import Ints
from forebay._threads import participant_of
from forebay_spec.bounds import Bounds
from forebay_spec.state import State

from forebay_models.adapters.abstraction import state_of
from forebay_models.runs.values import read_consuming_order

LIMITS: Final = Limits(calls=24, tokens=4, participants=8)
EXAMPLE: Final = {"number": torch.tensor(0), "copies": torch.zeros(3, dtype=torch.int32)}


def make_buffer(bounds: Bounds) -> BlockingReplayBuffer:
    """Return a new shared buffer with these constants."""
    return BlockingReplayBuffer(
        SharedStorage(bounds.capacity, example=EXAMPLE),
        consume_after_n_samples=bounds.uses,
        order=read_consuming_order(bounds.order),
        seed=0,
        stall_warning=None,
        limits=LIMITS,
    )


class Image(NamedTuple):
    """A copy of a ledger, every step of it finished."""

    ledger: Ledger
    unfinished: bool

    def scalar(self, name: str) -> int:
        """Return a scalar of the ledger by its name in `forebay._layout`."""
        value: int = self.ledger.cells[getattr(at, name)]
        return value


class Watch:
    """Reads the ledger of one buffer.

    Args:
        buffer: the buffer.
        bounds: its constants.
        names: of its processes, by their numbers; may grow.
    """

    def __init__(
        self, buffer: BlockingReplayBuffer, bounds: Bounds, names: Mapping[int, str]
    ) -> None:
        peers = buffer._core.peers
        assert isinstance(peers, SharedPeers)
        self._ledger = buffer._core.ledger
        self._journal = peers._journal
        self._bounds = bounds
        self._names = names

    def busy(self) -> int:
        """Return how many calls wait, with a ticket or as observers."""
        cells = self._ledger.cells
        return cells[at.WRITERS] + cells[at.READERS] + cells[at.OBSERVERS]

    def bytes(self) -> bytes:
        """Return the ledger as it is."""
        return self._ledger.layout.block.tobytes()

    def image(self) -> Image:
        """Return a copy of the ledger in which every step is finished."""
        block: Ints = self._ledger.layout.block.copy()
        unfinished = self._journal.unfinished()
        for _, index, value in unfinished:
            block[index] = value
        block[at.JOURNALED] = 0
        bounds = self._bounds
        layout = Layout(bounds.capacity, bounds.uses, LIMITS, LIMITS.participants, block)
        ledger = Ledger(
            bounds.capacity,
            bounds.uses,
            bounds.fifo,
            limits=LIMITS,
            layout=layout,
            prepared=True,
        )
        return Image(ledger, bool(unfinished))

    def state(self, image: Image) -> State:
        """Return a copy as a state of the specification."""
        rows: list[int] = image.ledger.layout.participants[::PARTICIPANT_FIELDS].tolist()

        def name_of(actor: int) -> str:
            process = rows[participant_of(actor)]
            return self._names.get(process, f"process {process}")

        return state_of(image.ledger, name_of, {}, self._bounds)._replace(cancelled=frozenset())

    def leftovers(self, living: set[int]) -> list[str]:
        """Return what is left of processes that are dead, after all is healed, as sentences.

        Args:
            living: the numbers of the processes that live.
        """
        layout, cells = self._ledger.layout, self._ledger.cells
        rows: list[int] = layout.participants[::PARTICIPANT_FIELDS].tolist()
        gone = [row for row, process in enumerate(rows) if process not in living]
        found = []
        if any(rows[row] for row in gone):
            found.append("a dead process still has its row among the participants")
        if cells[at.JOURNALED]:
            found.append("the journal still has an unfinished step")
        for what, total, base in (
            ("observers", at.OBSERVERS, layout.observer_base),
            ("registered producers", at.PRODUCERS, layout.producer_base),
        ):
            each = [cells[base + row] for row in range(len(rows))]
            if cells[total] != sum(each) or any(each[row] for row in gone):
                found.append(f"{cells[total]} {what} are counted, {each} by row, {gone} are free")
        owners: list[int] = layout.token_owners.tolist()
        if any(owner > 0 and owner - 1 in gone for owner in owners):
            found.append("a token of a dead process is still there")
        return found
