"""Copies of batches that were gathered ahead, which may be anything that a transform returns.

A copy shares nothing with the batch and keeps no graph: tensors are detached and cloned, and still
say whether they require a gradient. What is no tensor and holds none in a form that is known here
is copied as `copy.deepcopy` does it.
"""

import copy
from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from tensordict import (
    LazyStackedTensorDict,
    NonTensorData,
    NonTensorStack,
    TensorDict,
    TensorDictBase,
    is_tensorclass,
)

from forebay._forms import is_collection

OfTensor: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def copy_of(value: object, of_tensor: OfTensor = torch.Tensor.clone) -> object:
    """Return a copy of a batch that stays what it is.

    Args:
        value: the batch.
        of_tensor: gives the copy of a tensor, which has no graph. It is asked for the tensors in
            the order in which they are found, and written in a checkpoint.
    """
    if isinstance(value, torch.Tensor):
        copied = of_tensor(value.detach())
        _like(copied, value)
        return copied
    if is_collection(value) or isinstance(value, NonTensorData | NonTensorStack):
        return _copy_of_collection(value, of_tensor)
    if type(value) is dict:
        return {key: copy_of(item, of_tensor) for key, item in value.items()}
    if type(value) is list:
        return [copy_of(item, of_tensor) for item in value]
    if type(value) is tuple:
        return tuple(copy_of(item, of_tensor) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named one
        return type(value)._make(copy_of(item, of_tensor) for item in value)
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


def _copy_of_collection(value: TensorDictBase, of_tensor: OfTensor) -> object:
    """Return a copy of a TensorDict or tensorclass, of the same kind and structure."""
    if isinstance(value, NonTensorData):
        copied = value.clone()
        copied.data = copy.deepcopy(value.data)
        return copied
    if isinstance(value, LazyStackedTensorDict):
        parts = [copy_of(part, of_tensor) for part in value.tensordicts]
        name = value._td_dim_name
        return type(value)(*parts, stack_dim=value.stack_dim, stack_dim_name=name)
    if is_tensorclass(value):
        fields = {key: copy_of(field) for key, field in value._non_tensordict.items()}
        return type(value).from_tensordict(copy_of(value._tensordict, of_tensor), fields)
    if type(value) is TensorDict:
        items = {key: copy_of(item, of_tensor) for key, item in value.items()}
        made = value.empty(device=_device(value, items))
        for key, item in items.items():
            made.set(key, item)
        return made
    # Other kinds copy themselves, and their tensors stay where they are.
    copied = value.detach().clone()
    for one, other in zip(tensors_in(copied), tensors_in(value), strict=True):
        _like(one, other)
    return copied


def _device(value: TensorDict, items: dict[str, object]) -> torch.device | None:
    """Return where a copy says that its tensors are, if the original says it."""
    if value.device is None:
        return None
    return next((tensor.device for tensor in tensors_in(items)), value.device)


def _like(copied: torch.Tensor, value: torch.Tensor) -> None:
    """Make a copy require the gradient that its original does."""
    copied.requires_grad_(value.requires_grad)
