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

from forebay._samplers import Sampler, SamplerWithoutReplacement, Sampling
from forebay._snapshot import Snapshot
from forebay._stores import Ints

FORMAT: Final = "forebay"
VERSION: Final = 1
PREFETCHED_VERSION: Final = 1
KINDS: Final = {"blocking": "BlockingReplayBuffer", "overwriting": "ReplayBuffer"}
"""The kinds of buffers in states, and their classes."""

State = dict[str, Any]
"""Nested, so that no type says what is in it; `checked` does."""


class Settings(NamedTuple):
    """How a buffer was made, as far as a state has to agree with it."""

    capacity: int
    sampling: Sampling | Sampler
    batch_size: int | None
    prefetch: int

    @property
    def kind(self) -> str:
        """Which kind of buffer it is."""
        return "blocking" if isinstance(self.sampling, Sampling) else "overwriting"

    @property
    def uses(self) -> int:
        """How often a record is drawn before it is spent; 0 in an overwriting buffer."""
        return self.sampling.consume_after_n_samples if isinstance(self.sampling, Sampling) else 0

    @property
    def fifo(self) -> bool:
        """Whether the oldest records are drawn first, so that nothing is drawn at random."""
        return isinstance(self.sampling, Sampling) and self.sampling.order == "fifo"

    @property
    def order(self) -> str:
        """The order, as the models call it."""
        return self.sampling.order

    @property
    def aged(self) -> bool:
        """Whether records have ages."""
        return self.kind == "overwriting" or self.fifo

    @property
    def short(self) -> bool:
        """Whether a batch that is drawn ahead may be short, as the last one of an epoch."""
        return self.sampling == SamplerWithoutReplacement(drop_last=False)

    def sampled(self) -> dict[str, object]:
        """Return how the buffer samples, by the names that a state has."""
        if isinstance(self.sampling, Sampling):
            return self.sampling._asdict()
        return {"order": self.sampling.order, "drop_last": self.sampling.drop_last}

    def entry(self) -> dict[str, object]:
        """Return what a state says of how it was made."""
        sizes = {"batch_size": self.batch_size, "prefetch": self.prefetch}
        return {"kind": self.kind, "capacity": self.capacity, **self.sampled(), **sizes}


class Saved(NamedTuple):
    """A batch that was drawn ahead, as a state has it.

    Attributes:
        batch: a copy of it, on the host.
        elsewhere: the numbers of those of its tensors that were not where the storage gathers
            batches, and are where they were.
    """

    batch: object
    elsewhere: list[int]


def state_of(
    settings: Settings,
    snapshot: Snapshot,
    data: object,
    payloads: Sequence[Saved],
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
        {
            "slots": _tensor(slots),
            "stamps": _tensor(stamps),
            "batch": payload.batch,
            **({"elsewhere": payload.elsewhere} if payload.elsewhere else {}),
        }
        for (slots, stamps), payload in zip(snapshot.queue, payloads, strict=True)
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "buffer": settings.entry(),
        "counters": dict(snapshot.counters),
        "generator": {"key": list(snapshot.key), "draws": snapshot.draws},
        "records": {
            "slots": _tensor(snapshot.slots),
            "uses": _tensor(snapshot.uses),
            "stamps": _tensor(snapshot.stamps),
            "data": data,
        },
        "free": {"order": _tensor(snapshot.free), "fresh": snapshot.fresh},
        "sampler": {
            **({} if settings.fifo else {"dense": _tensor(snapshot.dense)}),
            **({"drawn": _tensor(snapshot.drawn)} if settings.order == "epochs" else {}),
        },
        "prefetched": {
            "version": PREFETCHED_VERSION,
            "depth": settings.prefetch,
            "batches": queue,
        },
        "transforms": transforms,
    }


def _tensor(values: Ints) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype=np.int64))
