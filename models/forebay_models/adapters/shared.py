"""A shared buffer whose participants are threads of one process, moved and killed step by step.

Ledger, journal, recovery and everything above are those of processes. Only the lock and the sleep
are the stepped monitor's, and who is alive is what the driver says: each thread takes part like a
process of its own. A killed thread stays where it is and is never moved again; whatever it would do
when the example ends comes to nothing, as if it had been forked off. That real processes can be
killed anywhere is the business of the campaign `faults`.
"""

from collections.abc import Callable
from typing import Final

from forebay import PeerLost
from forebay._ledger import Ledger
from forebay._participants import Participants
from forebay._shared_core import SharedCore
from forebay._shared_peers import SharedPeers
from forebay._threads import number_in_process, thread_number
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Verdict
from forebay_spec.state import State

from forebay_models.adapters.adapter import Mismatch
from forebay_models.adapters.ahead import SteppedQueue
from forebay_models.adapters.driven import Found
from forebay_models.adapters.handles import Handle
from forebay_models.adapters.local import LocalAdapter
from forebay_models.stepping.board import PATIENCE, Ended, Stop
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
        self._handles: dict[str, Handle] = {}
        self._dead: dict[str, int] = {}
        self._lost = False
        super().__init__(bounds, storage, seed, patience=patience, hands=hands)

    def _steps(self) -> dict[str, Callable[..., Found]]:
        return {**super()._steps(), "Kill": self._kill, "Recover": self._recover}

    def _make(self) -> Handle:
        buffer = super()._make()
        core = buffer._core
        assert isinstance(core, SharedCore)
        self._peers = CastPeers(core, core.ledger)
        core.peers = self._peers
        core.use(self._monitor)
        return buffer

    def _open_queues(self) -> None:
        for name in self._bounds.actors:
            self._come(name)

    def _come(self, name: str) -> None:
        """Give an actor, which is a process, a handle of its own, as if it was handed one."""
        kind = type(self._buffer)
        handle = self._handles[name] = kind.__new__(kind)
        vars(handle).update(vars(self._buffer))
        self._crew.runs(name, lambda: self._open_queue(name, handle))

    def _handle(self, name: str) -> Handle:
        return self._handles.get(name, self._buffer)

    def _name_of(self, actor: int) -> str:
        return self._owners.get(actor) or super()._name_of(number_in_process(actor))

    def _state(self) -> State:
        return super()._state()._replace(dead=frozenset(self._dead))

    def _living(self) -> list[str]:
        return [name for name in super()._living() if name not in self._dead]

    def _living_queues(self) -> dict[str, SteppedQueue]:
        reading = self._bounds.reading
        return {
            name: queue
            for name, queue in self._queues.items()
            if name in reading and name not in self._dead
        }

    def _is_left_alone(self, name: str) -> bool:
        # Whoever waits for a moment to load would look for the dead first, which is a step.
        return (name == self._restorer and bool(self._dead)) or super()._is_left_alone(name)

    def _verdict(self, name: str, stop: Stop, served: str | None) -> Verdict:
        if self._lost and isinstance(stop, Ended) and type(stop.error) is PeerLost:
            return Verdict.SHUT_DOWN
        return super()._verdict(name, stop, served)

    def _kill(self, manner: str, name: str) -> Found:
        boundary = self._state().boundary
        if (boundary.stage, boundary.actor) == ("copying", name):
            self._copy_the_rest(name)
        number = self._crew.bury(name)
        if number not in self._peers.cast.rows:
            raise Mismatch(f"{name} was to be killed, but takes no part")
        self._peers.cast.killed.add(number)
        self._dead[name] = number
        calls = [held.lease._call for held in self._holds if held.owner == name and held.lease]
        if name in self._queues:
            calls += [payload.call for payload in self._queues[name].payloads()]
        for call in calls:
            call.life = _DEAD
        return Found()

    def _recover(self, manner: str, name: str) -> Found:
        cast, number, boundary = self._peers.cast, self._dead[name], self._state().boundary
        cast.noticed = [cast.rows[number]]
        with self._core.section:
            found = self._peers.recover()
            del self._dead[name], cast.rows[number]
        cast.noticed = []
        if not found:
            raise Mismatch(f"{name} is dead, and nobody noticed")
        self._holds = [held for held in self._holds if held.owner != name]
        if boundary.actor == name:
            self._restorer = None
            self._lost = self._lost or boundary.stage == "loading"
        self._crew.join(name)
        if name in self._queues:
            self._queues.pop(name).end()
            self._come(name)
        return Found()
