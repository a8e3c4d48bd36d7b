"""A buffer with one thread for each actor, and how a step of it is looked at.

Each step brings one thread from one stop to the next: a call that is admitted stands before its
copy, one that has drawn stands before its gather, one that waits sleeps in the monitor. What stands
where is held against what the step should have done; the state is read from the ledger. Which step
moves whom is said by the classes that build on this one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, NamedTuple

import forebay._layout as at
from forebay import Lease
from forebay._prefetch import Payload
from forebay._saved_rows import RowCopy
from forebay._stores import Ints
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Verdict
from forebay_spec.state import State

from forebay_models.adapters.abstraction import ENDS, Reader, limits_for
from forebay_models.adapters.adapter import LATE, Mismatch, Observation
from forebay_models.adapters.handles import Handle, handle_of
from forebay_models.adapters.records import (
    StepByStep,
    Stepped,
    batch_of,
    numbers_in,
    storage_of,
)
from forebay_models.stepping.board import Asleep, Calls, Ended, Parked, Stop
from forebay_models.stepping.crew import Crew
from forebay_models.stepping.monitor import DOZING, ROUSED
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

SECONDS: Final = 1000.0
"""The timeout of calls that may expire, on a clock that moves only when it is put forward."""

READ: Final = "reading"
TRANSFORM: Final = "transforming"
WOKEN: Final = Parked("woken")
_LOOKS_AGAIN: Final = (WOKEN, Parked(ROUSED), Parked("capturing"), Parked("restoring"))
"""Where a call stands that is about to look whether it can go on."""


class Injected(BaseException):
    """What a step throws into a call; no Exception, since a Ctrl-C is none either."""


class Found(NamedTuple):
    """What a step has shown; see `Observation`."""

    verdict: Verdict | None = None
    slots: tuple[int, ...] | None = None
    records: tuple[int, ...] | None = None
    sections: int = 1


@dataclass(eq=False)
class Held:
    """A drawn batch.

    Attributes:
        owner: whose it is, a process as long as it is prefetched.
        kind: of the hold.
        lease: what a reader has of it, once that is gathered.
        error: what gathering it raised, once it failed.
        payload: what the library's queue knows of it, if it was drawn ahead.
        gather: gathers it, until that is done; for one that was drawn ahead.
    """

    owner: str
    kind: str
    lease: Lease[object] | None = None
    error: BaseException | None = None
    payload: Payload | None = None
    gather: Callable[[], None] | None = None


class DrivenBuffer:
    """The threads and the buffer of one example.

    Args:
        bounds: what actors, sizes and features there are.
        storage: where the records are kept.
        seed: of the buffer's random order.
        patience: seconds within which a thread has to come to a stop.
        hands: lends the threads; see `Crew`.
    """

    def __init__(
        self,
        bounds: Bounds,
        storage: StorageKind,
        seed: int,
        patience: float,
        hands: Hands | None,
    ) -> None:
        self._bounds = bounds
        self._storage = storage
        self._crew = Crew(bounds.actors, patience, hands)
        self._monitor = self._crew.monitor
        self._ill: dict[str, BaseException] = {}
        self._copies: StepByStep | None = None
        self._seed = seed
        self._buffer = self._make()
        self._core = self._buffer._core
        self._tokens = {token: self._buffer.cancel_token() for token in bounds.tokens}
        rows = {token.row_for(self._core): name for name, token in self._tokens.items()}
        names = {row: name for row, name in rows.items() if row is not None}
        self._seconds = SECONDS if "Expire" in bounds.features else None
        self._holds: list[Held] = []
        self._owners: dict[int, str] = {}
        self._dozing: str | None = None
        self._reader = Reader(self._core.ledger, self._name_of, names, bounds)
        self._actions: Mapping[str, Callable[..., Found]] = self._steps()
        self._between: list[State] = []
        self._unreadable: list[Exception] = []
        self._monitor.at_leave = self._look

    def rest(self, due: Collection[str]) -> Observation:
        """Send those back to sleep who have nothing to do; see `Adapter.rest`."""
        self._between.clear()
        for name in self._living():
            if not self._is_left_alone(name):
                self._rest(name, name in due)
        return self._observation(Found())

    def counts(self) -> Mapping[str, int]:
        """Return the buffer's statistics, and its length as `len`.

        Besides how many `draws` there were, and how many records are `evictable`.
        """
        self._monitor.at_leave = None
        stats, length = self._buffer.stats(), len(self._buffer)
        self._monitor.at_leave = self._look
        cells = self._core.ledger.cells
        inside = {"draws": cells[at.DRAWS], "evictable": cells[at.EVICTABLE]}
        counts: dict[str, int] = {**vars(stats), "len": length, **inside}
        del counts["utilization"]
        return counts

    def close(self) -> None:
        """End all calls and threads; see `Adapter.close`."""
        self._monitor.at_leave = None
        ends, left = self._crew.end()
        if left:
            raise Mismatch(f"the threads of {', '.join(left)} do not end")
        leases = [held.lease for held in self._holds]
        leases += [stop.value for stop in ends if isinstance(stop.value, Lease)]
        for lease in leases:
            if lease is not None and lease.active:
                lease.release()

    def _steps(self) -> dict[str, Callable[..., Found]]:
        """Return what takes a step, by the names of the actions."""
        return {}

    def _make(self) -> Handle:
        bounds = self._bounds
        return handle_of(
            bounds,
            self._watched(self._empty_storage()),
            batch_size=bounds.batch_size if bounds.prefetch else None,
            prefetch=bounds.prefetch,
            transform=self._transform,
            write_transform=None,
            seed=self._seed,
            stall_warning=None,
            limits=limits_for(bounds),
            monitor=self._monitor,
        )

    def _empty_storage(self) -> Stepped:
        """Return the storage of a new buffer."""
        return storage_of(self._storage, self._bounds.capacity, self._seed)

    def _handle(self, name: str) -> Handle:
        """Return the buffer as an actor has it."""
        return self._buffer

    def _start(self, name: str, call: Calls, stops: frozenset[str]) -> Stop:
        """Make a call in an actor's thread and return its first stop."""
        return self._crew.start(name, call, stops)

    def _written(self, numbers: Sequence[int]) -> AbstractContextManager[object]:
        """Let an actor have a batch of the records with these numbers while it writes them."""
        return nullcontext(batch_of(self._storage, numbers))

    def _numbers_in(self, owner: str | None, batch: object) -> tuple[int, ...]:
        """Return the numbers of a batch's records; its owner looks, or whoever draws ahead."""
        return numbers_in(self._storage, batch)

    def _name_of(self, actor: int) -> str:
        """Return the name of an actor, or of a queue's process, for its number in the ledger."""
        return self._owners.get(actor) or self._crew.board.name_of(actor)

    def _state(self) -> State:
        """Return the state of the ledger."""
        return self._reader.state()

    def _living(self) -> Sequence[str]:
        """Return the actors that can be moved."""
        return self._bounds.actors

    def _is_left_alone(self, name: str) -> bool:
        """Tell whether an actor is not to be moved between two steps."""
        return name == self._dozing

    def _rest(self, name: str, due: bool) -> None:
        stop = self._crew.lie_down(name)
        if due:
            if stop not in _LOOKS_AGAIN:
                raise Mismatch(
                    f"lost wake-up: {name}'s call has to go on, but it is {stop} and nothing has "
                    f"changed that would wake it"
                )
        elif stop in _LOOKS_AGAIN:
            stop = self._crew.go_on(name)
            if not isinstance(stop, Asleep):
                raise Mismatch(f"{name} was woken, has to wait on, but is {stop}")

    def _look_again(self, name: str) -> Stop:
        self._expect(name, WOKEN)
        return self._crew.go_on(name)

    def _verdict(self, name: str, stop: Stop, served: str | None) -> Verdict:
        """Return what a call got, from where it stands now; `served` is the stop of the served."""
        if served is not None and stop == Parked(served):
            return Verdict.SERVE
        if isinstance(stop, Asleep) or stop in (WOKEN, Parked(DOZING)):
            return Verdict.WAIT
        if isinstance(stop, Ended) and stop.error is not None and type(stop.error) in ENDS:
            return ENDS[type(stop.error)]
        raise Mismatch(f"{name} should have been served, put to wait or refused, but it is {stop}")

    def _value(self, name: str, stop: Stop) -> object:
        if not isinstance(stop, Ended) or stop.error is not None:
            raise Mismatch(f"{name}'s call should have returned, but it is {stop}")
        return stop.value

    def _raises(self, name: str, stop: Stop, error: BaseException) -> None:
        if not isinstance(stop, Ended) or stop.error is not error:
            raise Mismatch(f"{name}'s caller should have got the error from inside; it is {stop}")

    def _expect(self, name: str, stop: Stop) -> None:
        self._is(name, self._crew.where(name), stop)

    def _is(self, name: str, found: Stop, expected: Stop) -> None:
        if found != expected:
            raise Mismatch(f"{name} should be {expected}, but it is {found}")

    def _leased(self, owner: str, lease: Lease[object]) -> Found:
        records = self._numbers_in(owner, lease.batch)
        return Found(None, tuple(lease.index.tolist()), records)

    def _doze(self, manner: str, name: str) -> frozenset[str]:
        if manner != LATE:
            return frozenset()
        self._dozing = name
        return frozenset({DOZING})

    def _watched(self, storage: Stepped) -> Stepped:
        """Let a storage stop before each record that a capture copies, and fail to read."""
        begin_copy, read = storage.begin_copy, storage.read

        def begin_step_by_step(length: int) -> RowCopy | None:
            copies = begin_copy(length)
            if copies is not None:
                self._copies = copies = StepByStep(copies, self._monitor.point)
            return copies

        def read_unless_ill(slots: Ints) -> object:
            if READ in self._ill:
                raise self._ill.pop(READ)
            return read(slots)

        if "Capture" in self._bounds.features:
            storage.begin_copy = begin_step_by_step  # type: ignore[method-assign]  # this one object
        if self._bounds.prefetch:
            storage.read = read_unless_ill  # type: ignore[method-assign]  # this one object
        return storage

    def _transform(self, batch: object) -> object:
        self._monitor.point(TRANSFORM)
        if TRANSFORM in self._ill:
            raise self._ill.pop(TRANSFORM)
        return batch

    def _look(self) -> None:
        """Note the state at the end of a critical section; nothing may get out of here."""
        try:
            state = self._state()
        except Exception as error:
            self._unreadable.append(error)
        else:
            self._between.append(state)

    def _observation(self, found: Found) -> Observation:
        if self._unreadable:
            raise Mismatch(f"the ledger contradicts itself: {self._unreadable[0]!r}")
        state, between = self._state(), tuple(self._between)
        return Observation(state=state, between=between, **found._asdict())
