"""A `BlockingReplayBuffer` on threads, one thread for each actor, moved step by step.

Each step brings one thread from one stop to the next: a call that is admitted stands before its
copy, one that has drawn stands before its gather, one that waits sleeps in the monitor. What stands
where is held against what the step should have done; the state is read from the ledger.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

import torch
from forebay import BlockingReplayBuffer, CancelToken, Lease
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Verdict
from forebay_spec.state import State

from forebay_models.adapters.abstraction import ENDS, Reader, limits_for
from forebay_models.adapters.adapter import (
    AFTER_COPY,
    IN_TRANSFORM,
    INTERRUPTED,
    LATE,
    USUAL,
    Mismatch,
    Observation,
    slots_of,
)
from forebay_models.adapters.records import batch_of, numbers_in, storage_of
from forebay_models.adapters.steering import steer
from forebay_models.stepping.board import PATIENCE, Asleep, Ended, Parked, Stop
from forebay_models.stepping.crew import Crew
from forebay_models.stepping.monitor import DOZING
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

SECONDS: Final = 1000.0
"""The timeout of calls that may expire, on a clock that moves only when it is put forward."""

_WRITER: Final = frozenset({"admitted", "woken"})
_READER: Final = frozenset({"drawn", "gathered", "returning", "woken"})
_LEASER: Final = frozenset({"drawn", "returning", "woken"})
_TRANSFORM: Final = "transforming"


class Injected(BaseException):
    """What a step throws into a call; no Exception, since a Ctrl-C is none either."""


class Found(NamedTuple):
    """What a step has shown; see `Observation`."""

    verdict: Verdict | None = None
    slots: tuple[int, ...] | None = None
    records: tuple[int, ...] | None = None


@dataclass(eq=False)
class _Held:
    """A batch in a reader's hands, with its lease once gathered, or its error once failed."""

    owner: str
    kind: str
    lease: Lease[object] | None = None
    error: BaseException | None = None


class LocalAdapter:
    """Drives one buffer.

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
        storage: StorageKind = "tensor",
        seed: int = 0,
        *,
        patience: float = PATIENCE,
        hands: Hands | None = None,
    ) -> None:
        self._bounds = bounds
        self._storage = storage
        self._crew = Crew(bounds.actors, patience, hands)
        self._monitor = self._crew.monitor
        self._buffer = BlockingReplayBuffer(
            storage_of(storage, bounds.capacity),
            consume_after_n_samples=bounds.uses,
            order=bounds.order,
            transform=self._transform,
            write_transform=None,
            seed=seed,
            stall_warning=None,
            limits=limits_for(bounds),
            monitor=self._monitor,
        )
        self._core = self._buffer._core
        self._tokens = {token: self._buffer.cancel_token() for token in bounds.tokens}
        rows = {token.row_for(self._core): name for name, token in self._tokens.items()}
        self._token_names = {row: name for row, name in rows.items() if row is not None}
        self._seconds = SECONDS if "Expire" in bounds.features else None
        self._holds: list[_Held] = []
        self._writing: dict[str, tuple[int, ...]] = {}
        self._asking: dict[str, str] = {}
        self._next_number = 1
        self._dozing: str | None = None
        self._reader = Reader(self._core.ledger, self._name_of, self._token_names, fifo=bounds.fifo)
        self._actions = self._steps()
        self._between: list[State] = []
        self._unreadable: list[Exception] = []
        self._monitor.at_leave = self._look

    def apply(self, label: Label, manner: str = USUAL) -> Observation:
        """Take one step; see `Adapter.apply`."""
        self._dozing = None
        self._between.clear()
        found = self._actions[label.name](manner, *label.args)
        return self._observation(found)

    def rest(self, due: Collection[str]) -> Observation:
        """Send those back to sleep who have nothing to do; see `Adapter.rest`."""
        self._between.clear()
        for name in self._living():
            if name != self._dozing:
                self._rest(name, name in due)
        return self._observation(Found())

    def counts(self) -> Mapping[str, int]:
        """Return the buffer's statistics and, as `len`, its length."""
        self._monitor.at_leave = None
        stats, length = self._buffer.stats(), len(self._buffer)
        self._monitor.at_leave = self._look
        counts: dict[str, int] = {**vars(stats), "len": length}
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

    # One method for each action.

    def _steps(self) -> Mapping[str, Callable[..., Found]]:
        return {
            "Arrive": self._arrive,
            "Admit": self._admit,
            "Publish": self._publish,
            "Abandon": self._abandon,
            "Ask": self._ask,
            "Draw": self._draw,
            "Ready": self._ready,
            "Fail": self._fail,
            "Deliver": self._deliver,
            "Return": self._return,
            "Expire": self._expire,
            "Cancel": self._leave,
            "Refuse": self._leave,
            "SetCancel": self._set_cancel,
            "Close": self._close,
            "Empty": self._empty,
        }

    def _arrive(self, manner: str, name: str, n: int) -> Found:
        numbers = tuple(range(self._next_number, self._next_number + n))
        self._next_number += n
        self._writing[name] = numbers
        batch = batch_of(self._storage, numbers)

        def call() -> torch.Tensor:
            return self._buffer.extend(
                batch, timeout=self._seconds, cancel_event=self._token_of(name)
            )

        stop = self._crew.start(name, call, _WRITER | self._doze(manner, name))
        return Found(self._verdict(name, stop, "admitted"))

    def _admit(self, manner: str, name: str) -> Found:
        return Found(self._verdict(name, self._look_again(name), "admitted"))

    def _publish(self, manner: str, name: str) -> Found:
        self._expect(name, Parked("admitted"))
        index = self._value(name, self._crew.go_on(name))
        assert isinstance(index, torch.Tensor)
        return Found(slots=tuple(index.tolist()), records=self._writing.pop(name))

    def _abandon(self, manner: str, name: str) -> Found:
        self._expect(name, Parked("admitted"))
        error = Injected()
        point = "copied" if manner == AFTER_COPY else "admitted"
        self._raises(name, self._crew.go_on(name, injected={point: error}), error)
        return Found()

    def _ask(self, manner: str, name: str, kind: str, k: int, m: int) -> Found:
        token, seconds = self._token_of(name), self._seconds

        def sample() -> object:
            return self._buffer.sample(
                k, return_info=True, at_least=m, timeout=seconds, cancel_event=token
            )

        def lease() -> object:
            return self._buffer.lease(k, at_least=m, timeout=seconds, cancel_event=token)

        self._asking[name] = kind
        steer(self._core.ledger, slots_of(manner))
        call, stops = (lease, _LEASER) if kind == "lease" else (sample, _READER)
        stop = self._crew.start(name, call, stops | self._doze(manner, name))
        return self._drawn(name, stop)

    def _draw(self, manner: str, name: str) -> Found:
        steer(self._core.ledger, slots_of(manner))
        return self._drawn(name, self._look_again(name))

    def _drawn(self, name: str, stop: Stop) -> Found:
        verdict = self._verdict(name, stop, "drawn")
        if verdict is Verdict.SERVE:
            self._holds.append(_Held(name, self._asking[name]))
        return Found(verdict)

    def _ready(self, manner: str, h: int) -> Found:
        held = self._holds[h]
        self._expect(held.owner, Parked("drawn"))
        stop = self._crew.go_on(held.owner)
        if held.kind == "plain":
            self._is(held.owner, stop, Parked("gathered"))
            return Found()
        lease = self._value(held.owner, stop)
        assert isinstance(lease, Lease)
        held.lease = lease
        return self._leased(lease)

    def _fail(self, manner: str, h: int) -> Found:
        held = self._holds[h]
        self._expect(held.owner, Parked("drawn"))
        held.error = Injected()
        point = _TRANSFORM if manner == IN_TRANSFORM else "drawn"
        stop = self._crew.go_on(held.owner, injected={point: held.error})
        self._is(held.owner, stop, Parked("returning"))
        return Found()

    def _deliver(self, manner: str, h: int) -> Found:
        held = self._holds.pop(h)
        if held.lease is not None:
            self._end(held.owner, held.lease.commit)
            return self._leased(held.lease)
        self._expect(held.owner, Parked("gathered"))
        value = self._value(held.owner, self._crew.go_on(held.owner))
        batch, info = cast(tuple[object, Mapping[str, torch.Tensor]], value)
        return Found(None, tuple(info["index"].tolist()), numbers_in(self._storage, batch))

    def _return(self, manner: str, h: int) -> Found:
        held = self._holds.pop(h)
        if held.lease is not None:
            self._end(held.owner, held.lease.release)
            return self._leased(held.lease)
        self._expect(held.owner, Parked("returning"))
        assert held.error is not None
        self._raises(held.owner, self._crew.go_on(held.owner), held.error)
        return Found()

    def _expire(self, manner: str, name: str) -> Found:
        interrupted = manner == INTERRUPTED
        stop = self._crew.rouse(name, ahead=0.0 if interrupted else 2 * SECONDS)
        self._is(name, stop, Parked("woken"))
        if not interrupted:
            return Found(self._verdict(name, self._crew.go_on(name), None))
        error = Injected()
        self._raises(name, self._crew.go_on(name, injected={"woken": error}), error)
        return Found()

    def _leave(self, manner: str, name: str) -> Found:
        return Found(self._verdict(name, self._look_again(name), None))

    def _set_cancel(self, manner: str, token: str) -> Found:
        self._tokens[token].set()
        return Found()

    def _close(self, manner: str, mode: str) -> Found:
        self._buffer.shutdown(immediate=mode == "stopped")
        return Found()

    def _empty(self, manner: str) -> Found:
        self._buffer.empty()
        return Found()

    # What they have in common.

    def _name_of(self, actor: int) -> str:
        """Return the name of an actor for its number in the ledger."""
        return self._crew.board.name_of(actor)

    def _state(self) -> State:
        """Return the state of the ledger."""
        return self._reader.state()

    def _living(self) -> Sequence[str]:
        """Return the actors that can be moved."""
        return self._bounds.actors

    def _rest(self, name: str, due: bool) -> None:
        stop = self._crew.lie_down(name)
        if due:
            if stop != Parked("woken"):
                raise Mismatch(
                    f"lost wake-up: {name}'s call has to go on, but it is {stop} and nothing has "
                    f"changed that would wake it"
                )
        elif stop == Parked("woken"):
            stop = self._crew.go_on(name)
            if not isinstance(stop, Asleep):
                raise Mismatch(f"{name} was woken, has to wait on, but is {stop}")

    def _look_again(self, name: str) -> Stop:
        self._expect(name, Parked("woken"))
        return self._crew.go_on(name)

    def _verdict(self, name: str, stop: Stop, served: str | None) -> Verdict:
        """Return what a call got, from where it stands now; `served` is the stop of the served."""
        if served is not None and stop == Parked(served):
            return Verdict.SERVE
        if isinstance(stop, Asleep) or stop in (Parked("woken"), Parked(DOZING)):
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

    def _leased(self, lease: Lease[object]) -> Found:
        records = numbers_in(self._storage, lease.batch)
        return Found(None, tuple(lease.index.tolist()), records)

    def _end(self, owner: str, end: Callable[[], None]) -> None:
        """End an actor's lease in its own thread, or in another one while it waits."""
        if self._crew.idle(owner):
            self._crew.runs(owner, end)
        else:
            end()

    def _token_of(self, name: str) -> CancelToken | None:
        return self._tokens.get(self._bounds.token(name) or "")

    def _doze(self, manner: str, name: str) -> frozenset[str]:
        if manner != LATE:
            return frozenset()
        self._dozing = name
        return frozenset({DOZING})

    def _transform(self, batch: object) -> object:
        self._monitor.point(_TRANSFORM)
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
