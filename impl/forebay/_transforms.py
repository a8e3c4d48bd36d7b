"""What batches go through on their way in and out.

A transform is anything that takes a batch and returns one. TorchRL's transforms also have an
`inv`, which by default runs on what is written, so that `transform` undoes on samples what `inv`
did, as in TorchRL's buffers. Nothing here knows TorchRL: whatever has a callable `inv` is treated
like that.
"""

from collections.abc import Callable
from threading import get_ident
from typing import Literal

import torch
from tensordict import TensorDict

from forebay._forms import is_collection
from forebay._payloads import copy_of

Transform = Callable[[TensorDict], object]
"""From a batch to a batch; over a `ListStorage` it gets what that storage gives."""


class Transforms:
    """The transforms of one buffer, for samples and for writes.

    Args:
        transform: applied to every batch that is sampled.
        write_transform: applied to every batch before it is written; `"inverse"` for the `inv` of
            `transform` where it has one, None for nothing.
    """

    def __init__(
        self,
        transform: Transform | None = None,
        write_transform: Transform | Literal["inverse"] | None = "inverse",
    ) -> None:
        self._running: set[int] = set()
        self._given: tuple[object, ...] = ()
        self._on_sample: tuple[Transform, ...] = ()
        self._on_write: tuple[Transform, ...] = ()
        if transform is not None:
            self._on_sample = (_checked("transform", transform),)
            self._given = (transform,)
        if write_transform == "inverse":
            inverse = inverse_of(transform)
            self._on_write = () if inverse is None else (inverse,)
        elif write_transform is not None:
            self._on_write = (_checked("write_transform", write_transform),)
            self._given = (*self._given, write_transform)

    def append(self, transform: Transform, *, invert: bool = False) -> None:
        """Add a transform behind those that samples go through.

        Writes go through its `inv`, if it has one, before they go through what is there.

        Args:
            transform: the transform.
            invert: samples go through `inv` and writes through the transform itself.

        Raises:
            ValueError: `invert` is asked for and there is no `inv`.
        """
        forward: Transform | None = _checked("transform", transform)
        backward = inverse_of(transform)
        if invert:
            if backward is None:
                raise ValueError(f"invert=True needs a transform with an inv, got {transform!r}")
            forward, backward = backward, forward
        self._given = (*self._given, transform)
        if forward is not None:
            self._on_sample = (*self._on_sample, forward)
        if backward is not None:
            self._on_write = (backward, *self._on_write)

    def sample(self, batch: object) -> object:
        """Return a sampled batch transformed.

        Raises:
            TypeError: a transform returned None, as one does that only works in place.
        """
        if not self._on_sample:
            return batch
        me = get_ident()
        self._running.add(me)
        try:
            for transform in self._on_sample:
                batch = transform(batch)
                if batch is None:
                    raise TypeError(f"the transform {transform!r} returned None instead of a batch")
        finally:
            self._running.discard(me)
        return batch

    def run_here(self) -> bool:
        """Tell whether the caller is called by a transform of a sample."""
        return get_ident() in self._running

    def become(self, other: "Transforms") -> None:
        """Take the transforms of another instead of these."""
        self._given, self._on_sample = other._given, other._on_sample
        self._on_write = other._on_write

    def states(self) -> list[object]:
        """Return copies of the states of all transforms as given; None for one without a state."""
        return [_state(transform) for transform in self._given]

    def load(self, states: list[object]) -> None:
        """Give the transforms these states, copies of which are taken; or, if one raises, to none.

        Raises:
            ValueError: there are more or fewer transforms, or of another kind.
            Exception: whatever a transform raises that does not take its state.
        """
        before = self.states()
        have = [state is not None for state in before]
        if have != [state is not None for state in states]:
            raise ValueError(
                f"expected states of {len(have)} transforms, {sum(have)} of which have one, got "
                f"{len(states)}, {sum(state is not None for state in states)} of which are one"
            )
        try:
            _load(self._given, states)
        except BaseException:
            _load(self._given, before)
            raise

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_running": set()}

    def write(self, batch: object) -> object:
        """Return a batch to be written transformed; None when there is nothing left to write.

        A list of one record - what `add` writes - goes through as a batch of one where it is a
        TensorDict or tensorclass, since transforms of these take nothing else.
        """
        if not self._on_write:
            return batch
        record = batch[0] if isinstance(batch, list) and len(batch) == 1 else None
        if is_collection(record):
            batch = record.unsqueeze(0)
        for transform in self._on_write:
            batch = transform(batch)
            if batch is None:
                return None
        if is_collection(record) and is_collection(batch) and len(batch) == 1:
            return [batch[0]]
        return batch


def _state(transform: object) -> object:
    """Return a copy of a transform's state, or None if it has none to give and take."""
    give, take = getattr(transform, "state_dict", None), getattr(transform, "load_state_dict", None)
    if not callable(give) or not callable(take):
        return None
    return copy_of(dict(give()))


def _load(transforms: tuple[object, ...], states: list[object]) -> None:
    for transform, state in zip(transforms, states, strict=True):
        if state is not None:
            transform.load_state_dict(copy_of(state))  # type: ignore[attr-defined]  # it gave one


def inverse_of(transform: Transform | None) -> Transform | None:
    """Return a transform's `inv` if it has one."""
    inverse = getattr(transform, "inv", None)
    return inverse if callable(inverse) else None


def _checked(name: str, transform: Transform) -> Transform:
    """Return a transform, in evaluation mode if it is one of TorchRL's, as its buffers do it."""
    if not callable(transform):
        raise TypeError(f"{name} must be callable, got {transform!r}")
    if isinstance(transform, torch.nn.Module) and inverse_of(transform) is not None:
        transform.eval()
    return transform
