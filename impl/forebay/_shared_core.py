"""The core of a buffer that several processes share: how it is made, travels and is found again.

Everything lies in one block of shared memory: the monitor's words, the cause of a failure, the
ledger and its journal. What travels is that block and the few numbers that say how it is divided.
A process has one core for each block, however often it is handed one.
"""

import os
from threading import RLock
from typing import Final, NamedTuple
from weakref import WeakValueDictionary, ref

import numpy as np

from forebay._core import Core
from forebay._failure import FAILURE_BYTES
from forebay._journal import COLUMNS, ENTRY, Journal
from forebay._layout import BATCH_FIELDS, SCALARS, Layout, Limits, held_limit, sizes_of
from forebay._ledgers import make_ledger
from forebay._monitor import Monitor
from forebay._one_process import ON_DEVICE, bind_to_process
from forebay._participants import Participants
from forebay._process_monitor import MONITOR_BYTES, ProcessMonitor, make_monitor
from forebay._samplers import Sampler, Sampling
from forebay._shared_block import ALIGNMENT, Identity, SharedBlock
from forebay._shared_peers import SharedPeers
from forebay._stores import Ints

NAP: Final = 0.5
"""Seconds that a sleeper sleeps at most; with a look for the dead each half second, what a dead
participant had is given back within a second."""

_FAILURE: Final = MONITOR_BYTES
_LEDGER: Final = _FAILURE + FAILURE_BYTES


class Plan(NamedTuple):
    """What the processes of a buffer have to agree on."""

    capacity: int
    sampling: Sampling | Sampler
    limits: Limits
    stall_warning: float | None
    owned: bool = False
    """Whether the records are in memory that goes when the process ends that made the buffer."""

    def ledger_length(self) -> int:
        """Return how many integers the ledger takes."""
        return sum(self._sizes().values())

    def journal_words(self) -> int:
        """Return how long the journal is: two words for each cell, and the entries of columns."""
        return 2 * self.journal_length() + ENTRY * COLUMNS

    def journal_length(self) -> int:
        """Return how many cells the largest action can change.

        That is a Restore, which may change seven cells for each slot, or eight where records are
        overwritten, enter a batch in each row of their table and fill half of the pool. An Empty,
        which ends prefetched batches and changes all stamps in the pool, a Load, and the closing of
        the gaps in the pool need no more.
        """
        held = held_limit(self.capacity, self._uses, self.limits, self._overwriting)
        by_slot = (7 + self._overwriting) * self.capacity
        return 2 * held + by_slot + BATCH_FIELDS * self.limits.calls + SCALARS

    def layout(self, block: Ints) -> Layout:
        """Return how the memory of the ledger is divided."""
        limits = self.limits
        return Layout(
            self.capacity, self._uses, limits, limits.participants, block, self._overwriting
        )

    @property
    def _uses(self) -> int:
        return self.sampling.consume_after_n_samples if isinstance(self.sampling, Sampling) else 1

    @property
    def _overwriting(self) -> bool:
        return not isinstance(self.sampling, Sampling)

    def _sizes(self) -> dict[str, int]:
        limits = self.limits
        return sizes_of(self.capacity, self._uses, limits, limits.participants, self._overwriting)


class SharedCore(Core):
    """A core that other processes can have too; pickled it is a handle, never a copy."""

    def __init__(
        self,
        block: SharedBlock,
        plan: Plan,
        key: tuple[int, int] | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        length = plan.ledger_length()
        ledger_block = block.array(np.int64, (length,), _LEDGER)
        layout = plan.layout(ledger_block)
        journal_at = _LEDGER + _aligned(8 * length)
        journal = Journal(layout, block.array(np.int64, (plan.journal_words(),), journal_at))
        layout.commit = journal.commit
        table = layout.cells[layout.participant_base :][: len(layout.participants)]
        ledger = make_ledger(
            plan.capacity,
            plan.sampling,
            key or (0, 0),
            plan.limits,
            layout=layout,
            prepared=key is None,
        )
        # No cycle: the memory goes with the last handle, not with the next garbage collection.
        core = ref(self)
        peers = SharedPeers(
            ledger,
            journal,
            Participants(table),
            block.array(np.uint8, (FAILURE_BYTES,), _FAILURE),
            lambda: _alive(core()).monitor,
        )
        monitor = monitor or ProcessMonitor(block, 0, peers.repair, NAP)
        super().__init__(ledger, monitor, plan.stall_warning, peers)
        self._block = block
        self._plan = plan
        if plan.owned:
            bind_to_process(self, ON_DEVICE)
            if key is not None:
                self.look(peers.own)

    def __reduce__(self) -> "tuple[object, tuple[SharedBlock, Plan]]":
        return _find, (self._block, self._plan)


_cores: "WeakValueDictionary[Identity, SharedCore]" = WeakValueDictionary()
"""The cores of this process, by what identifies their memory: threads that load one handle at the
same time may have mapped it twice."""

_finding = RLock()
"""Held while a core is looked up or made, so that there is one of each."""


def make_core(plan: Plan, key: tuple[int, int], monitor: Monitor | None = None) -> SharedCore:
    """Return a new core in new memory, all of it reserved.

    Raises:
        NotImplementedError: this system cannot share buffers between processes.
        MemoryError: so much memory is not free.
    """
    journal = 8 * plan.journal_words()
    block = SharedBlock(_LEDGER + _aligned(8 * plan.ledger_length()) + journal)
    make_monitor(block, 0)
    core = SharedCore(block, plan, key, monitor)
    with _finding:
        _cores[block.identity] = core
    return core


def _find(block: SharedBlock, plan: Plan) -> SharedCore:
    """Return this process's core for a block that has come from another one."""
    with _finding:
        known = _cores.get(block.identity)
        if known is None:
            known = _cores.setdefault(block.identity, SharedCore(block, plan))
        return known


def _alive(core: SharedCore | None) -> SharedCore:
    assert core is not None, "only a core asks its peers"
    return core


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _renew_lock() -> None:
    """Forget a lock that a thread of the parent may have held when it forked."""
    global _finding
    _finding = RLock()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_renew_lock)
