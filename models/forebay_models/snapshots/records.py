"""Records that tell whose they are and whether they are whole.

A record has its writer and its number, and a body and a sum that follow from these two. So a row
that was copied while it was written does not look like any record, and one that nobody wrote is
noticed by its number.
"""

from typing import Any, Final

import numpy as np
import torch
from forebay._stores import Ints
from tensordict import TensorDict

WIDTH: Final = 128
"""Numbers in the body of a record; copying them takes a while."""

SPREAD: Final = 2**32
"""How far apart the identities of the records of two writers are."""

_STEPS: Final = torch.arange(WIDTH) * 7919


def records(writer: int, first: int, count: int) -> TensorDict:
    """Return records of a writer, numbered from `first` on."""
    number = torch.arange(first, first + count)
    owner = torch.full_like(number, writer)
    body = _body(owner, number)
    return TensorDict(
        {"writer": owner, "number": number, "body": body, "sum": body.sum(1)}, number.shape
    )


def columns(data: Any) -> dict[str, torch.Tensor]:
    """Return the leaves of a batch, on the host; the batch may be a list of records."""
    names = ("writer", "number", "body", "sum")
    if isinstance(data, list):
        if not data:
            return {name: value[:0] for name, value in records(0, 0, 1).items()}
        return {name: torch.stack([record[name] for record in data]) for name in names}
    return {name: data[name].cpu() for name in names}


def identities(data: Any) -> tuple[Ints, list[str]]:
    """Return which records these are, and what is wrong with them."""
    leaves = columns(data)
    owner, number = leaves["writer"], leaves["number"]
    body = _body(owner, number)
    whole = (leaves["body"] == body).all(1) & (leaves["sum"] == body.sum(1))
    pairs = zip(owner[~whole].tolist(), number[~whole].tolist(), strict=True)
    torn = [f"record {mine} of writer {writer} is torn" for writer, mine in pairs]
    found: Ints = (owner * SPREAD + number).numpy().astype(np.int64)
    return found, torn


def _body(owner: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    return ((owner + 1) * 1_000_003 + number * 101).unsqueeze(1) + _STEPS
