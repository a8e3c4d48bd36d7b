"""The buffers that are driven: the class and the sampler that a model's order asks for."""

from typing import Any

from forebay import (
    BlockingReplayBuffer,
    RandomSampler,
    ReplayBuffer,
    SamplerWithoutReplacement,
    Storage,
)
from forebay._capture import Capture
from forebay._read_write import ReadWriteBase
from forebay._samplers import ORDERS
from forebay_spec.bounds import Bounds


class Handle(ReadWriteBase):
    """A buffer that remembers its last capture."""

    capture: Capture | None = None

    def _capture(self) -> Capture:
        self.capture = super()._capture()
        return self.capture


class BlockingHandle(Handle, BlockingReplayBuffer):
    """One whose records are used up."""


class RingHandle(Handle, ReplayBuffer):
    """One whose records are overwritten."""


def handle_of(bounds: Bounds, storage: Storage, **options: Any) -> Handle:
    """Return a buffer that samples as a model does.

    Args:
        bounds: the model's constants.
        storage: where the records are.
        options: of either class, handed on.
    """
    if bounds.order == "replacement":
        return RingHandle(storage, RandomSampler(), **options)
    if bounds.order == "epochs":
        return RingHandle(storage, SamplerWithoutReplacement(bounds.drop_last), **options)
    order = next(order for order in ORDERS if order == bounds.order)
    return BlockingHandle(storage, order=order, consume_after_n_samples=bounds.uses, **options)
