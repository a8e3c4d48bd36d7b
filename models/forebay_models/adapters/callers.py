"""The steps of writers and readers, and of those who steer a buffer from outside."""

from collections.abc import Callable, Mapping
from typing import Final, cast

import forebay._layout as at
import torch
from forebay import CancelToken, Lease
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Verdict
from forebay_spec.state import ticket_of

from forebay_models.adapters.adapter import (
    AFTER_COPY,
    IN_TRANSFORM,
    INTERRUPTED,
    slots_of,
)
from forebay_models.adapters.driven import (
    SECONDS,
    TRANSFORM,
    WOKEN,
    DrivenBuffer,
    Found,
    Held,
    Injected,
)
from forebay_models.adapters.steering import may_take, steer
from forebay_models.stepping.board import Parked, Stop
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

_WRITER: Final = frozenset({"admitted", "woken"})
_READER: Final = frozenset({"drawn", "gathered", "returning", "woken"})
_LEASER: Final = frozenset({"drawn", "returning", "woken"})


class Callers(DrivenBuffer):
    """Moves those who write, draw, and end what they have; see `DrivenBuffer`."""

    def __init__(
        self,
        bounds: Bounds,
        storage: StorageKind,
        seed: int,
        patience: float,
        hands: Hands | None,
    ) -> None:
        super().__init__(bounds, storage, seed, patience, hands)
        self._writing: dict[str, tuple[int, ...]] = {}
        self._asking: dict[str, str] = {}
        self._next_number = 1

    def _steps(self) -> dict[str, Callable[..., Found]]:
        return {
            **super()._steps(),
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
        written, buffer, token = self._written(numbers), self._handle(name), self._token_of(name)

        def call() -> torch.Tensor:
            with written as batch:
                return buffer.extend(batch, timeout=self._seconds, cancel_event=token)

        stop = self._start(name, call, _WRITER | self._doze(manner, name))
        return self._decided(self._verdict(name, stop, "admitted"))

    def _decided(self, verdict: Verdict) -> Found:
        """Return what a call got; one that waits looks whether it does so for its own capture."""
        looks = verdict is Verdict.WAIT and self._core.ledger.cells[at.STAGE]
        return Found(verdict, sections=2 if looks else 1)

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
        buffer, token, seconds = self._handle(name), self._token_of(name), self._seconds

        def sample() -> object:
            return buffer.sample(
                k, return_info=True, at_least=m, timeout=seconds, cancel_event=token
            )

        def lease() -> object:
            return buffer.lease(k, at_least=m, timeout=seconds, cancel_event=token)

        self._asking[name] = kind
        self._steer(manner, k)
        call, stops = (lease, _LEASER) if kind == "lease" else (sample, _READER)
        stop = self._start(name, call, stops | self._doze(manner, name))
        return self._drawn(name, stop)

    def _draw(self, manner: str, name: str) -> Found:
        ticket = ticket_of(self._state(), name)
        self._steer(manner, 0 if ticket is None else ticket.n)
        return self._drawn(name, self._look_again(name))

    def _steer(self, manner: str, k: int) -> None:
        """Have the next draw of k records take the slots that a step's manner names, if any."""
        wanted = slots_of(manner)
        if may_take(self._bounds, self._state(), wanted, k):
            steer(self._core.ledger, wanted, k)

    def _drawn(self, name: str, stop: Stop) -> Found:
        verdict = self._verdict(name, stop, "drawn")
        if verdict is Verdict.SERVE:
            self._holds.append(Held(name, self._asking[name]))
        return self._decided(verdict)

    def _ready(self, manner: str, h: int) -> Found:
        held = self._holds[h]
        self._expect(held.owner, Parked("drawn"))
        return self._gathered(held, self._crew.go_on(held.owner))

    def _gathered(self, held: Held, stop: Stop) -> Found:
        """Look where a reader stands whose batch is gathered: a lease is in its hands by now."""
        if held.kind == "plain":
            self._is(held.owner, stop, Parked("gathered"))
            return Found()
        lease = self._value(held.owner, stop)
        assert isinstance(lease, Lease)
        held.lease = lease
        return self._leased(held.owner, lease)

    def _fail(self, manner: str, h: int) -> Found:
        held = self._holds[h]
        self._expect(held.owner, Parked("drawn"))
        held.error = Injected()
        point = TRANSFORM if manner == IN_TRANSFORM else "drawn"
        stop = self._crew.go_on(held.owner, injected={point: held.error})
        self._is(held.owner, stop, Parked("returning"))
        return Found()

    def _deliver(self, manner: str, h: int) -> Found:
        held = self._holds.pop(h)
        if held.lease is not None:
            self._end(held.owner, held.lease.commit)
            return self._leased(held.owner, held.lease)
        self._expect(held.owner, Parked("gathered"))
        value = self._value(held.owner, self._crew.go_on(held.owner))
        batch, info = cast(tuple[object, Mapping[str, torch.Tensor]], value)
        return Found(None, tuple(info["index"].tolist()), self._numbers_in(held.owner, batch))

    def _return(self, manner: str, h: int) -> Found:
        held = self._holds.pop(h)
        if held.lease is not None:
            self._end(held.owner, held.lease.release)
            return self._leased(held.owner, held.lease)
        self._expect(held.owner, Parked("returning"))
        assert held.error is not None
        self._raises(held.owner, self._crew.go_on(held.owner), held.error)
        return Found()

    def _expire(self, manner: str, name: str) -> Found:
        interrupted = manner == INTERRUPTED
        stop = self._crew.rouse(name, ahead=0.0 if interrupted else 2 * SECONDS)
        self._is(name, stop, WOKEN)
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

    def _end(self, owner: str, end: Callable[[], None]) -> None:
        """End an actor's lease in its own thread, or in another one while it is in a call."""
        if self._crew.idle(owner):
            self._crew.runs(owner, end)
        else:
            end()

    def _token_of(self, name: str) -> CancelToken | None:
        return self._tokens.get(self._bounds.token(name) or "")
