"""Copies of batches that were gathered ahead, which may be anything that a transform returns.

A copy shares nothing with the batch and keeps no graph: tensors are detached and cloned, and still
say whether they require a gradient. What is no tensor and holds none in a form that is known here
is copied as `copy.deepcopy` does it.
"""

import copy
from collections.abc import Iterator

import torch
from tensordict import LazyStackedTensorDict, NonTensorData, TensorDictBase

from forebay._forms import is_collection


def copy_of(value: object) -> object:
    """Return a copy of a batch that stays what it is."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if is_collection(value):
        return _copy_of_collection(value)
    if type(value) is dict:
        return {key: copy_of(item) for key, item in value.items()}
    if type(value) is list:
        return [copy_of(item) for item in value]
    if type(value) is tuple:
        return tuple(copy_of(item) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named one
        return type(value)._make(map(copy_of, value))
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise TypeError(
            f"a {type(value).__name__} cannot be copied, so a buffer can be neither saved nor "
            f"restored while it is in the state of a transform or in a batch that was drawn ahead: "
            f"{error}"
        ) from error


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors of a batch in an order of its own, as far as its form is known here."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, LazyStackedTensorDict):
        for part in value.tensordicts:
            yield from tensors_in(part)
    elif is_collection(value) or isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def _copy_of_collection(value: TensorDictBase) -> TensorDictBase:
    """Return a copy of a TensorDict or tensorclass, of the same kind and structure."""
    copied = value.detach().clone()
    _like(copied, value)
    return copied


def _like(copied: TensorDictBase, value: TensorDictBase) -> None:
    """Make a clone require the gradients that its original does, and own what is no tensor."""
    if isinstance(value, NonTensorData):
        copied.data = copy.deepcopy(value.data)
        return
    if isinstance(value, LazyStackedTensorDict) and isinstance(copied, LazyStackedTensorDict):
        for one, other in zip(copied.tensordicts, value.tensordicts, strict=True):
            _like(one, other)
        return
    for (_, one), (_, other) in zip(copied.items(), value.items(), strict=True):
        if isinstance(other, torch.Tensor):
            one.requires_grad_(other.requires_grad)
        else:
            _like(one, other)
