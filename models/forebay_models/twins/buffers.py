"""The buffers of twin runs: how they are made, and what they do before they become a twin."""

from contextlib import suppress
from typing import Any, Final

from forebay import (
    BlockingReplayBuffer,
    Lease,
    ListStorage,
    RandomSampler,
    ReplayBuffer,
    SamplerWithoutReplacement,
    SharedStorage,
    TensorStorage,
)
from forebay._device_storage import DeviceStorage

from forebay_models.device.prompt import device_storage
from forebay_models.targets import StorageKind
from forebay_models.twins.program import Recipe
from forebay_models.twins.schemas import TRANSFORMS, example, records

Buffer = BlockingReplayBuffer | ReplayBuffer

ELSEWHERE: Final = 10_000_000
"""The first number of the records that a buffer has which is used before it becomes a twin."""


def made(recipe: Recipe, storage: StorageKind, seed: int, appended: tuple[str, ...]) -> Buffer:
    """Return a new buffer, with its records in `storage`, and transforms appended."""
    where: TensorStorage | ListStorage | SharedStorage | DeviceStorage
    on_device = device_storage(storage, recipe.capacity, seed)
    if on_device is not None:
        where = on_device
    elif storage == "shared":
        where = SharedStorage(recipe.capacity, example=example(recipe.schema))
    else:
        where = (TensorStorage if storage == "tensor" else ListStorage)(recipe.capacity)
    transform = TRANSFORMS[recipe.transform]() if recipe.transform else None
    buffer: Buffer
    if recipe.order == "fifo" or recipe.order == "random":
        buffer = BlockingReplayBuffer(
            where,
            batch_size=recipe.batch_size,
            consume_after_n_samples=recipe.uses,
            order=recipe.order,
            prefetch=recipe.prefetch,
            transform=transform,
            seed=seed,
        )
    else:
        uniform = recipe.order == "replacement"
        buffer = ReplayBuffer(
            where,
            RandomSampler() if uniform else SamplerWithoutReplacement(drop_last=recipe.drop_last),
            batch_size=recipe.batch_size,
            prefetch=recipe.prefetch,
            transform=transform,
            seed=seed,
        )
    for name in appended:
        buffer.append_transform(TRANSFORMS[name]())
    return buffer


def use(buffer: Buffer, recipe: Recipe) -> list[Lease[Any]]:
    """Leave records, a use, a lease that a restore makes void, and batches drawn ahead.

    What is overwritten is some of that. Returns the lease, which has to be kept.
    """
    leases: list[Lease[Any]] = []
    buffer.extend(records(recipe.schema, ELSEWHERE, recipe.capacity), timeout=0)
    with suppress(TimeoutError, RuntimeError, ArithmeticError):  # whatever that comes to
        buffer.sample(1, timeout=0)
        leases.append(buffer.lease(1, timeout=0))
        buffer.sample(timeout=0)
        if recipe.overwrites:
            buffer.extend(records(recipe.schema, ELSEWHERE + recipe.capacity, 2), timeout=0)
    return leases
