"""What a round of snapshots is taken of: how the buffer is made, who writes and who reads."""

import random
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from forebay import (
    BlockingReplayBuffer,
    ListStorage,
    RandomSampler,
    ReplayBuffer,
    SamplerWithoutReplacement,
    SharedStorage,
    TensorStorage,
)
from forebay._device_storage import DeviceStorage

from forebay_models.device.prompt import device_storage
from forebay_models.snapshots.records import records
from forebay_models.targets import StorageKind, Target

Manner = Literal["sample", "lease"]
Buffer = BlockingReplayBuffer | ReplayBuffer


class Reader(NamedTuple):
    """One who reads: how, how many records at a time, and where."""

    manner: Manner
    size: int
    inside: bool


class Setting(NamedTuple):
    """A round.

    Attributes:
        order, uses, prefetch, capacity, batch_size, storage: of the buffer.
        writers: how many records each of them writes at a time.
        readers: those who read; on a shared buffer the inner ones are threads of the process that
            takes the snapshots, and all others processes.
        empties: whether the buffer is emptied now and then.
        drop_last: of a buffer that samples in epochs.
    """

    order: Literal["fifo", "random", "replacement", "epochs"]
    uses: int
    prefetch: int
    capacity: int
    batch_size: int
    storage: StorageKind
    writers: tuple[int, ...]
    readers: tuple[Reader, ...]
    empties: bool
    drop_last: bool = False

    @property
    def overwrites(self) -> bool:
        """Whether the buffer overwrites its oldest records."""
        return self.order not in ("fifo", "random")

    @property
    def most_pinned(self) -> int:
        """How many records can be gathered at one moment: by every reader, and by every process
        for its queue."""
        processes = 1 + sum(not reader.inside for reader in self.readers)
        ahead = self.prefetch * self.batch_size * (processes if self.storage == "shared" else 1)
        return ahead + sum(reader.size for reader in self.readers)

    @property
    def in_order(self) -> bool:
        """Whether records are given in the order in which they were written."""
        (first, *others) = self.readers
        alone = not others and first.manner == "sample"
        return self.order == "fifo" and self.uses == 1 and alone and not self.empties

    def surely_written(self, earlier: Sequence[int], later: Sequence[int]) -> int:
        """Return how many records were certainly admitted between two looks at the board.

        A call that was done by the second look may have been admitted before the first.
        """
        places = range(1, len(self.writers) + 1)
        calls = [max(0, later[place] - earlier[place] - 1) for place in places]
        return sum(n * size for n, size in zip(calls, self.writers, strict=True))

    def line(self) -> str:
        """Return the setting on one line."""
        readers = ", ".join(
            f"{reader.manner} {reader.size}{'' if reader.inside else ' elsewhere'}"
            for reader in self.readers
        )
        uses = "" if self.overwrites else f" N={self.uses}"
        order = f"{self.order}{', drop last' if self.drop_last else ''}"
        return (
            f"C={self.capacity}{uses} {order} B={self.batch_size} D={self.prefetch}, "
            f"{self.storage} storage; writers of {' '.join(map(str, self.writers))}; readers: "
            f"{readers}{'; emptied now and then' if self.empties else ''}"
        )

    def make(self, seed: int = 0) -> Buffer:
        """Return a new buffer."""
        storage: TensorStorage | ListStorage | SharedStorage | DeviceStorage
        on_device = device_storage(self.storage, self.capacity, seed)
        if on_device is not None:
            storage = on_device
        elif self.storage == "shared":
            storage = SharedStorage(self.capacity, example=records(0, 0, 1)[0])
        else:
            storage = (TensorStorage if self.storage == "tensor" else ListStorage)(self.capacity)
        if self.order == "replacement" or self.order == "epochs":
            uniform = self.order == "replacement"
            return ReplayBuffer(
                storage,
                RandomSampler() if uniform else SamplerWithoutReplacement(drop_last=self.drop_last),
                batch_size=self.batch_size,
                prefetch=self.prefetch,
                seed=seed,
            )
        return BlockingReplayBuffer(
            storage,
            batch_size=self.batch_size,
            consume_after_n_samples=self.uses,
            order=self.order,
            prefetch=self.prefetch,
            seed=seed,
        )


_STORAGES: Final[dict[Target, tuple[StorageKind, ...]]] = {
    Target.LOCAL: ("tensor", "tensor", "list"),
    Target.SHARED: ("shared",),
    Target.SIMULATED: ("simulated",),
    Target.CUDA: ("cuda",),
}


_RINGS: Final[tuple[tuple[Literal["replacement", "epochs"], bool], ...]] = (
    ("replacement", False),
    ("epochs", False),
    ("epochs", True),
)
"""Order and `drop_last` of buffers that overwrite, in turn."""


def setting_of(target: Target, seed: int, number: int) -> Setting:
    """Return the setting of a round of a campaign; in every second one the buffer overwrites."""
    if number % 2:
        order, drop_last = _RINGS[number // 2 % len(_RINGS)]
        ring = _setting(target, seed, number)
        return ring._replace(order=order, uses=1, drop_last=drop_last)
    return _setting(target, seed, number)


def _setting(target: Target, seed: int, number: int) -> Setting:
    choice = random.Random(f"snapshots {target.value} {seed} {number}")
    shared = target is Target.SHARED
    batch_size = choice.randint(1, 4)
    sizes = [batch_size, batch_size, choice.randint(1, 4)]
    alone = choice.random() < 0.3
    first = Reader("sample", batch_size, inside=True)
    others = [
        Reader(choice.choice(("sample", "lease")), choice.choice(sizes), inside=not shared)
        for _ in range(choice.randint(1, 2))
    ]
    return Setting(
        order="fifo" if alone else choice.choice(("fifo", "random")),
        uses=1 if alone else choice.randint(1, 3),
        prefetch=choice.randint(0, 4),
        capacity=choice.choice((16, 24, 48)),
        batch_size=batch_size,
        storage=choice.choice(_STORAGES[target]),
        writers=tuple(choice.randint(1, 6) for _ in range(choice.randint(1, 2))),
        readers=(first,) if alone else (first, *others),
        empties=not alone and choice.random() < 0.2,
    )
