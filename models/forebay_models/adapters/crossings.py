"""The steps of captures and restores: `state_dict` and `load_state_dict`, stopped at each of them.

A capture copies one record at a time and stands still before each. What it has saved is read from
its own snapshot, and in the end from the state that it returns; a restore loads that very state.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from forebay import CheckpointError
from forebay._capture import Capture
from forebay._state import state_of
from forebay_spec.bounds import Bounds

from forebay_models.adapters.abstraction import saved_in, saved_of
from forebay_models.adapters.adapter import INTERRUPTED, Mismatch
from forebay_models.adapters.ahead import Ahead
from forebay_models.adapters.driven import SECONDS, Found, Held, Injected
from forebay_models.adapters.handles import Handle, handle_of
from forebay_models.adapters.records import COPYING, storage_of
from forebay_models.stepping.board import Asleep, Ended, Parked, Stop
from forebay_models.stepping.monitor import ROUSED
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

MANY: Final = 10
"""So many critical sections at most has a step of a capture or restore: it looks whether it may go
on, at what is queued up, and in the end whether there is anything to let go of."""

_CAPTURE: Final = frozenset({"capturing", COPYING, ROUSED})
_RESTORE: Final = frozenset({"restoring", "loading", ROUSED})


class Crossings(Ahead):
    """Moves those who capture and restore; see `DrivenBuffer`."""

    def __init__(
        self,
        bounds: Bounds,
        storage: StorageKind,
        seed: int,
        patience: float,
        hands: Hands | None,
    ) -> None:
        super().__init__(bounds, storage, seed, patience, hands)
        self._saved_state: Mapping[str, Any] | None = None
        self._restorer: str | None = None

    def _steps(self) -> dict[str, Callable[..., Found]]:
        return {
            **super()._steps(),
            "CaptureAsk": self._capture_ask,
            "Capture": self._capture,
            "CaptureDone": self._capture_done,
            "RestoreAsk": self._restore_ask,
            "Load": self._load,
            "Restore": self._restore,
            "Reject": self._reject,
        }

    def _is_left_alone(self, name: str) -> bool:
        # A restore that has nothing to load is only rejected.
        lost = name == self._restorer and self._reader.saved is None
        return lost or super()._is_left_alone(name)

    def _capture_ask(self, manner: str, name: str) -> Found:
        stop = self._start(name, self._handle(name).state_dict, _CAPTURE)
        self._is(name, stop, Parked("capturing"))
        return Found()

    def _capture(self, manner: str, name: str) -> Found:
        self._expect_either(name, "capturing")
        stop = self._crew.go_on(name)
        saved = saved_of(_capture_of(self._handle(name))._snapshot, self._bounds)
        self._between = [
            state if state.boundary.stage == "capturing" else state._replace(saved=saved)
            for state in self._between
        ]
        self._reader.saved = saved
        self._saved_state = None
        if stop != Parked(COPYING):
            self._save(self._value(name, stop))
        return Found(sections=MANY)

    def _capture_done(self, manner: str, name: str) -> Found:
        self._expect(name, Parked(COPYING))
        stop = self._crew.go_on(name)
        if stop == Parked(COPYING):
            return Found()
        state = self._save(self._value(name, stop))
        records = self._numbers_in(name, state["records"]["data"])
        return Found(None, tuple(state["records"]["slots"].tolist()), records, sections=MANY)

    def _save(self, state: object) -> Mapping[str, Any]:
        """Keep the state that a capture has returned, which has to say what its snapshot said."""
        assert isinstance(state, dict)
        if saved_in(state, self._bounds) != self._reader.saved:
            raise Mismatch("the state that a capture returns is not that of its snapshot")
        self._saved_state = state
        return state

    def _copy_the_rest(self, name: str) -> None:
        """Do what is left of a capture whose actor is killed, as if it had died right after it."""
        handle = self._handle(name)
        capture, copies = _capture_of(handle), self._copies
        snapshot = capture._snapshot
        assert copies is not None, "a capture that copies has begun to"
        copies.finish(snapshot.slots)
        payloads = capture.payloads()
        self._save(
            state_of(handle._settings(), snapshot, copies.data(), payloads, capture.transforms)
        )

    def _restore_ask(self, manner: str, name: str) -> Found:
        buffer = self._handle(name)
        state = self._saved_state or _nothing(self._storage, self._bounds)
        self._refuse(buffer, _broken(state))
        stop = self._start(name, lambda: buffer.load_state_dict(state, timeout=SECONDS), _RESTORE)
        self._is(name, stop, Parked("restoring"))
        self._restorer = name
        return Found()

    def _refuse(self, buffer: Handle, state: Mapping[str, Any]) -> None:
        """See that a state is not loaded, which must not even begin."""
        try:
            buffer.load_state_dict(state, timeout=0.0)
        except CheckpointError:
            return
        raise Mismatch("a state was loaded though it has a slot twice")

    def _load(self, manner: str, name: str) -> Found:
        self._expect_either(name, "restoring")
        self._is(name, self._crew.go_on(name), Parked("loading"))
        held = [held.lease for held in self._holds if held.lease is not None]
        if any(lease.active for lease in held):
            raise Mismatch("a lease is still active though the buffer was loaded")
        self._holds = []
        return Found(sections=MANY)

    def _restore(self, manner: str, name: str) -> Found:
        self._expect(name, Parked("loading"))
        self._value(name, self._crew.go_on(name))
        self._restorer = None
        process = self._bounds.process(name)
        queue = self._queues.get(process)
        if queue is not None:
            self._holds = [
                Held(process, "prefetched", payload=payload) for payload in queue.payloads()
            ]
        return Found(sections=MANY)

    def _reject(self, manner: str, name: str) -> Found:
        stop = self._crew.where(name)
        late = manner != INTERRUPTED and isinstance(stop, Asleep)
        if isinstance(stop, Asleep):
            stop = self._crew.rouse(name, ahead=2 * SECONDS if late else 0.0)
        self._restorer = None
        if late:
            self._is_late(self._crew.go_on(name))
        else:
            error = Injected()
            assert isinstance(stop, Parked)
            self._raises(name, self._crew.go_on(name, injected={stop.label: error}), error)
        return Found(sections=MANY)

    def _is_late(self, stop: Stop) -> None:
        if not isinstance(stop, Ended) or not isinstance(stop.error, CheckpointError):
            raise Mismatch(f"a restore that is late should be rejected, but it is {stop}")

    def _expect_either(self, name: str, label: str) -> None:
        """See that a call stands before the look with which it goes on."""
        if self._crew.where(name) != Parked(ROUSED):
            self._expect(name, Parked(label))


def _capture_of(handle: Handle) -> Capture:
    assert handle.capture is not None, "nobody has captured"
    return handle.capture


def _broken(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a state that differs from a good one in that a slot is there twice."""
    slots, order = state["records"]["slots"].clone(), state["free"]["order"].clone()
    changed = order if len(order) else slots
    changed[0] = next(n for n in [*slots.tolist(), *order.tolist()] if n != changed[0])
    return {
        **state,
        "records": {**state["records"], "slots": slots},
        "free": {**state["free"], "order": order},
    }


@lru_cache
def _nothing(storage: StorageKind, bounds: Bounds) -> Mapping[str, Any]:
    """Return the state of a buffer that nothing has happened to."""
    empty = storage_of(storage, bounds.capacity)
    return handle_of(bounds, empty, write_transform=None).state_dict()
