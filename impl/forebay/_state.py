"""The state of a buffer as plain values: what `state_dict` returns and what checkpoints hold.

A state is a nested dict of ints, strings, lists and tensors, and the records in the form in which
they are read. It says how it was made (`buffer`), where the records are (`records`, `free`,
`sampler`), what was drawn ahead (`prefetched`), what has happened (`counters`) and how the random
order goes on (`generator`).
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from forebay._snapshot import Snapshot
from forebay._stores import Ints

FORMAT: Final = "forebay"
VERSION: Final = 1
PREFETCHED_VERSION: Final = 1
KIND: Final = "blocking"

State = dict[str, Any]
"""Nested, so that no type says what is in it; `checked` does."""


class Settings(NamedTuple):
    """How a buffer was made, as far as a state has to agree with it."""

    capacity: int
    consume_after_n_samples: int
    order: str
    batch_size: int | None
    prefetch: int


def state_of(
    settings: Settings,
    snapshot: Snapshot,
    data: object,
    payloads: Sequence[object],
    transforms: list[object],
) -> State:
    """Return a snapshot as a state.

    Args:
        settings: how the buffer was made.
        snapshot: what the ledger said.
        data: the records, in copying order; None when there never was one.
        payloads: the batches that were drawn ahead, oldest first.
        transforms: the states of the transforms.
    """
    queue = [
        {"slots": _tensor(slots), "stamps": _tensor(stamps), "batch": payload}
        for (slots, stamps), payload in zip(snapshot.queue, payloads, strict=True)
    ]
    random = settings.order == "random"
    return {
        "format": FORMAT,
        "version": VERSION,
        "buffer": {"kind": KIND, **settings._asdict()},
        "counters": dict(snapshot.counters),
        "generator": {"key": list(snapshot.key), "draws": snapshot.draws},
        "records": {
            "slots": _tensor(snapshot.slots),
            "uses": _tensor(snapshot.uses),
            "stamps": _tensor(snapshot.stamps),
            "data": data,
        },
        "free": {"order": _tensor(snapshot.free), "fresh": snapshot.fresh},
        "sampler": {"dense": _tensor(snapshot.dense)} if random else {},
        "prefetched": {
            "version": PREFETCHED_VERSION,
            "depth": settings.prefetch,
            "batches": queue,
        },
        "transforms": transforms,
    }


def _tensor(values: Ints) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype=np.int64))
