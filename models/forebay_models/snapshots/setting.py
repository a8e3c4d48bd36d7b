"""What a round of snapshots is taken of: how the buffer is made, who writes and who reads."""

import random
from typing import Final, Literal, NamedTuple

from forebay import BlockingReplayBuffer, ListStorage, SharedStorage, TensorStorage

from forebay_models.snapshots.records import records
from forebay_models.targets import StorageKind, Target

Manner = Literal["sample", "lease"]


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
    """

    order: Literal["fifo", "random"]
    uses: int
    prefetch: int
    capacity: int
    batch_size: int
    storage: StorageKind
    writers: tuple[int, ...]
    readers: tuple[Reader, ...]
    empties: bool

    @property
    def in_order(self) -> bool:
        """Whether records are given in the order in which they were written."""
        (first, *others) = self.readers
        alone = not others and first.manner == "sample"
        return self.order == "fifo" and self.uses == 1 and alone and not self.empties

    def line(self) -> str:
        """Return the setting on one line."""
        readers = ", ".join(
            f"{reader.manner} {reader.size}{'' if reader.inside else ' elsewhere'}"
            for reader in self.readers
        )
        return (
            f"C={self.capacity} N={self.uses} {self.order} B={self.batch_size} D={self.prefetch}, "
            f"{self.storage} storage; writers of {' '.join(map(str, self.writers))}; readers: "
            f"{readers}{'; emptied now and then' if self.empties else ''}"
        )

    def make(self, seed: int = 0) -> BlockingReplayBuffer:
        """Return a new buffer."""
        storage: TensorStorage | ListStorage | SharedStorage
        if self.storage == "shared":
            storage = SharedStorage(self.capacity, example=records(0, 0, 1)[0])
        else:
            storage = (TensorStorage if self.storage == "tensor" else ListStorage)(self.capacity)
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
}


def setting_of(target: Target, seed: int, number: int) -> Setting:
    """Return the setting of a round of a campaign."""
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
