"""A shared buffer whose participants are threads of one process, moved and killed step by step.

Ledger, journal, recovery and everything above are those of processes. Only the lock and the sleep
are the stepped monitor's, and who is alive is what the driver says: each thread takes part like a
process of its own. A killed thread stays where it is and is never moved again; whatever it would do
when the example ends comes to nothing, as if it had been forked off. That real processes can be
killed anywhere is the business of the campaign `faults`.
"""

from typing import Final

from forebay._ledger import Ledger
from forebay._participants import Participants
from forebay._shared_core import SharedCore
from forebay._shared_peers import SharedPeers
from forebay._threads import number_in_process, thread_number
from forebay_spec.bounds import Bounds
from forebay_spec.state import State

from forebay_models.adapters.adapter import Mismatch
from forebay_models.adapters.local import Found, LocalAdapter
from forebay_models.stepping.board import PATIENCE
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

_ALIVE: Final = 0
_DEAD: Final = 1


class Cast(Participants):
    """The table of participants, in which each thread has a row and dies when it is told to.

    Args:
        cells: the table in the ledger.
    """

    def __init__(self, cells: memoryview) -> None:
        super().__init__(cells)
        self.rows: dict[int, int] = {}
        self.killed: set[int] = set()
        self.noticed: list[int] = []

    def register(self) -> int:
        """Take a row for the present thread."""
        row = next(row for row in range(self.limit) if self.process(row) == 0)
        number = thread_number()
        # No process is called 0, and a thread is.
        self._cells[self.place(row)] = number + 1
        self.rows[number] = row
        return row

    def living(self, row: int) -> bool:
        """Tell whether the thread that has a row was not killed."""
        return self.process(row) - 1 not in self.killed

    def dead(self) -> list[int]:
        """Return the rows of the dead whom the driver wants to be noticed."""
        return self.noticed


class CastPeers(SharedPeers):
    """The peers of the present thread."""

    def __init__(self, core: SharedCore, ledger: Ledger) -> None:
        peers = core.peers
        assert isinstance(peers, SharedPeers)
        layout = ledger.layout
        table = layout.cells[layout.participant_base :][: len(layout.participants)]
        self.cast = Cast(table)
        self._core = core
        super().__init__(ledger, peers._journal, self.cast, peers._area, lambda: core.monitor)

    @property
    def life(self) -> int:
        """Whose calls have an end: the dead have none."""
        return _DEAD if thread_number() in self.cast.killed else _ALIVE

    @life.setter
    def life(self, value: int) -> None:
        pass

    @property
    def enlisted(self) -> bool:
        """Whether the present thread takes part: always, so that no step has a section for it."""
        return True

    def participant(self) -> int:
        """Return the row of the present thread, which it takes when it is first asked for."""
        row = self.cast.rows.get(thread_number())
        return self.cast.register() if row is None else row

    def due(self) -> bool:
        """Never look for the dead by oneself: that is a step, and the driver's."""
        return False

    def anybody_dead(self) -> bool:
        """Tell whether anybody was killed and not recovered."""
        return bool(self.cast.killed & self.cast.rows.keys())


class SharedAdapter(LocalAdapter):
    """Drives one buffer over a `SharedStorage`; actors can be killed.

    Args:
        bounds: what actors, sizes and features there are.
        storage: `"shared"`.
        seed: of the buffer's random order.
        patience: seconds within which a thread has to come to a stop.
        hands: lends the threads; see `Crew`.
    """

    def __init__(
        self,
        bounds: Bounds,
        storage: StorageKind = "shared",
        seed: int = 0,
        *,
        patience: float = PATIENCE,
        hands: Hands | None = None,
    ) -> None:
        super().__init__(bounds, storage, seed, patience=patience, hands=hands)
        core = self._core
        assert isinstance(core, SharedCore)
        self._peers = CastPeers(core, core.ledger)
        core.peers = self._peers
        core.use(self._monitor)
        self._dead: dict[str, int] = {}
        self._actions = {**self._actions, "Kill": self._kill, "Recover": self._recover}

    def _name_of(self, actor: int) -> str:
        return super()._name_of(number_in_process(actor))

    def _state(self) -> State:
        return super()._state()._replace(dead=frozenset(self._dead))

    def _living(self) -> list[str]:
        return [name for name in super()._living() if name not in self._dead]

    def _kill(self, manner: str, name: str) -> Found:
        number = self._crew.bury(name)
        if number not in self._peers.cast.rows:
            raise Mismatch(f"{name} was to be killed, but takes no part")
        self._peers.cast.killed.add(number)
        self._dead[name] = number
        for held in self._holds:
            if held.owner == name and held.lease is not None:
                held.lease._call.life = _DEAD
        return Found()

    def _recover(self, manner: str, name: str) -> Found:
        cast, number = self._peers.cast, self._dead[name]
        cast.noticed = [cast.rows[number]]
        with self._core.section:
            found = self._peers.recover()
            del self._dead[name], cast.rows[number]
        cast.noticed = []
        if not found:
            raise Mismatch(f"{name} is dead, and nobody noticed")
        self._holds = [held for held in self._holds if held.owner != name]
        self._crew.join(name)
        return Found()
