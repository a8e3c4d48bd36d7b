"""The level "walk": steps taken in the specification and in the library's buffer at once.

It holds the whole setting and every step with its manner, and not the seed of the search, so that a
failure can be run again after the search has changed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

from forebay_spec.bounds import Bounds

from forebay_models.adapters.adapter import has_manner, slots_of
from forebay_models.adapters.records import STORAGES
from forebay_models.adapters.start import start
from forebay_models.campaign.driver import Divergence
from forebay_models.campaign.quiet import quiet_library
from forebay_models.campaign.replay import Move, walk
from forebay_models.campaign.settings import Setting
from forebay_models.campaign.shown import counterexample_of
from forebay_models.documents import DocumentError, Fields, Json, text
from forebay_models.outcome import Outcome, Verdict
from forebay_models.runs.values import (
    bounds_json,
    exactly,
    label_json,
    read_bounds,
    read_label,
)
from forebay_models.targets import StorageKind
from forebay_models.tokens import LEVELS, TokenError, token_of


@dataclass(frozen=True)
class WalkRun:
    """One walk: what it runs with, and its steps."""

    setting: Setting
    moves: tuple[Move, ...]

    level: ClassVar[str] = "walk"

    @classmethod
    def of(cls, failure: Divergence) -> "WalkRun":
        """Return the walk that led to a failure."""
        return cls(failure.setting, tuple(Move(it.label, it.manner) for it in failure.steps))

    def as_json(self) -> dict[str, Json]:
        """Return the run as one JSON object."""
        return {
            "bounds": bounds_json(self.setting.bounds),
            "storage": self.setting.storage,
            "seed": self.setting.seed,
            "moves": [[label_json(label), manner] for label, manner in self.moves],
        }

    @classmethod
    def from_json(cls, document: object) -> "WalkRun":
        """Return the run that `as_json` gave, or raise `DocumentError`."""
        fields = Fields(document, "walk")
        setting = Setting(
            read_bounds(fields.take("bounds")),
            _storage(fields.text("storage")),
            fields.whole("seed"),
        )
        moves = tuple(_move(it, setting.bounds) for it in fields.items("moves"))
        fields.end()
        return cls(setting, moves)

    def again(self, fault: str) -> Outcome:
        """Take the walk once more; inconclusive if the specification does not allow it any more."""
        started = time.monotonic()
        verdict, detail, failure = Verdict.HOLDS, "every step is as the specification says", None
        with quiet_library(), planted(fault):
            try:
                found = walk(start, self.setting, self.moves)
            except ValueError as error:
                found, verdict = None, Verdict.INCONCLUSIVE
                detail = f"the walk cannot be taken any more: {error}"
        if found is not None:
            token = token_of(self, fault=fault)
            failure = counterexample_of(found, name="replay walk", token=token)
            verdict, detail = Verdict.VIOLATED, failure.as_text()
        return Outcome(
            name="replay walk",
            verdict=verdict,
            bounds=self.setting.line(),
            figures={"steps": len(self.moves)},
            seconds=time.monotonic() - started,
            detail=detail,
            counterexample=failure,
        )


@contextmanager
def planted(fault: str) -> Iterator[None]:
    """Plant the fault of that name for the length of the block; nothing without a name.

    Raises:
        TokenError: no fault has that name.
    """
    # Loaded only here: the faults take hold of many of the library's parts.
    from forebay_models.mutants.device import DEVICE_MUTANTS
    from forebay_models.mutants.local import LOCAL_MUTANTS

    faults = {**LOCAL_MUTANTS, **DEVICE_MUTANTS}
    if fault and fault not in faults:
        raise TokenError(f"no fault is called {fault!r}; there are: {', '.join(faults)}")
    with faults[fault].plant() if fault else nullcontext():
        yield


def _storage(name: str) -> StorageKind:
    for known in STORAGES:
        if name == known:
            return known
    raise DocumentError(f"storage: {name!r} is none of {', '.join(STORAGES)}")


def _move(document: object, bounds: Bounds) -> Move:
    step, manner = exactly(document, "move", 2)
    label = read_label(step, bounds)
    move = Move(label, text(manner, "manner"))
    if not has_manner(label.name, move.manner):
        raise DocumentError(f"move: {label.name} cannot happen in the manner {manner!r}")
    slots = slots_of(move.manner)
    repeated = len(set(slots)) < len(slots) and bounds.order != "replacement"
    if repeated or any(slot >= bounds.capacity for slot in slots):
        raise DocumentError(f"move: no batch has the slots of the manner {manner!r}")
    return move


LEVELS[WalkRun.level] = WalkRun.from_json
