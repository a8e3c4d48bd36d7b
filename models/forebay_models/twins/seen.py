"""All that can be seen of a value, as plain values that can be compared, sent and shown.

Of a tensor that is its dtype, shape, bits, and whether it requires a gradient; not whether it is
a leaf: what was drawn ahead before it was saved has lost its graph, as is promised.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import torch
from forebay._forms import is_collection

_SHOWN: Final = 8
_LONGEST: Final = 200


class Leaf(NamedTuple):
    """What can be seen of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool
    bits: bytes
    values: str

    def __repr__(self) -> str:
        gradient = ", requires a gradient" if self.requires_grad else ""
        return f"{self.dtype}{list(self.shape)} {self.values}{gradient}"


class Collection(NamedTuple):
    """What can be seen of a TensorDict or a tensorclass."""

    kind: str
    batch_size: tuple[int, ...]
    entries: dict[str, object]

    def __repr__(self) -> str:
        return f"{self.kind}{list(self.batch_size)} {self.entries}"


def seen(value: Any) -> object:
    """Return what can be seen of a value."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1)
        return Leaf(
            str(value.dtype).removeprefix("torch."),
            tuple(value.shape),
            value.requires_grad,
            flat.view(torch.uint8).numpy().tobytes() if len(flat) else b"",
            str(flat[:_SHOWN].tolist()),
        )
    if is_collection(value):
        entries = {key: seen(item) for key, item in value.items()}
        return Collection(type(value).__name__, tuple(value.batch_size), entries)
    if isinstance(value, Mapping):
        return {key: seen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(seen, value)]
    return value


def difference(one: object, other: object, place: str = "") -> str:
    """Return in words where two values first differ; nothing where they are equal."""
    if isinstance(one, Collection) and isinstance(other, Collection):
        about = difference(one[:2], other[:2], place)
        return about or difference(one.entries, other.entries, place)
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        found = (difference(one[key], other[key], f"{place} {key}") for key in one)
        return next(filter(None, found), "")
    if type(one) is list and type(other) is list and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        found = (difference(a, b, f"{place} [{number}]") for number, (a, b) in pairs)
        return next(filter(None, found), "")
    if type(one) is type(other) and one == other:
        return ""
    return f"{place.strip() or 'it'}: {_shown(one)} and {_shown(other)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
