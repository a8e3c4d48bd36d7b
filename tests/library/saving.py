"""What the tests of captures and restores share: buffers whose records can be saved."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from forebay import BlockingReplayBuffer, ListStorage, ReplayBuffer, TensorStorage
from forebay._checked import checked
from forebay._layout import BOUNDARY_ACTOR, STAGE, TO_COPY
from forebay._stages import Stage as Crossing
from tensordict import TensorDict

from tests.library.support import Stage, assert_consistent, ledger_of

State = dict[str, Any]


def make(capacity: int = 4, stage: Stage | None = None, **options: Any) -> BlockingReplayBuffer:
    """Return a buffer of Python objects."""
    return BlockingReplayBuffer(ListStorage(capacity), monitor=stage, **options)


def make_tensors(capacity: int = 8, **options: Any) -> BlockingReplayBuffer:
    """Return a buffer of tensors."""
    return BlockingReplayBuffer(TensorStorage(capacity), **options)


def numbers(first: int, count: int) -> TensorDict:
    """Return records that tell which ones they are, twice."""
    number = torch.arange(first, first + count)
    return TensorDict({"x": number, "y": number.unsqueeze(1).expand(count, 3) * 0.5}, [count])


def plain(value: Any) -> Any:
    """Return a state, or any part of one, as lists and numbers that can be compared."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, TensorDict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def crossing(buffer: BlockingReplayBuffer | ReplayBuffer) -> Crossing:
    """Return the stage of the buffer's capture or restore."""
    return Crossing(ledger_of(buffer).cells[STAGE])


def assert_nothing_left(buffer: BlockingReplayBuffer | ReplayBuffer) -> None:
    """Check that no capture or restore is in progress, and that the ledger tells one story."""
    ledger = ledger_of(buffer)
    assert crossing(buffer) is Crossing.NONE
    assert ledger.cells[TO_COPY] == 0
    assert not ledger.copying.any()
    assert buffer.stats().waiting_observers == 0
    assert ledger.cells[BOUNDARY_ACTOR] >= 0
    assert_consistent(buffer)


def assert_whole(state: State, buffer: BlockingReplayBuffer | ReplayBuffer) -> None:
    """CaptureAtomic: a state is one that the buffer could have come to, with nobody busy."""
    snapshot = checked(state, buffer._settings()).snapshot
    counts, live = snapshot.counters, len(snapshot.slots)
    gone = counts["spent"] + counts["dropped"] + counts["evicted"]
    assert counts["admitted"] == live + gone
    if isinstance(buffer, ReplayBuffer):
        return
    held = [slot for slots, _ in snapshot.queue for slot in slots.tolist()]
    pins = np.bincount(np.array(held, dtype=np.int64), minlength=buffer.capacity)
    assert (pins[snapshot.slots] <= snapshot.uses).all()


@contextmanager
def at_point(stage: Stage, label: str, work: Callable[[], object]) -> Iterator[None]:
    """Do something the next time that a call comes to a place."""

    def once() -> None:
        del stage.at[label]
        work()

    stage.at[label] = once
    yield
    assert label not in stage.at, f"nobody came to {label!r}"
