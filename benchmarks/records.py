"""The records that buffers are measured with, and batches of them."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from tensordict import TensorDict

WORDS: Final = 1024
"""Tokens and log-probabilities of one record of tokens, 12 bytes each."""

RECORD: Final = 12 * WORDS
"""Bytes of one record of tokens."""

Arrays = dict[str, npt.NDArray[np.generic]]


def scalars(rows: int) -> dict[str, torch.Tensor]:
    """Return an action, a reward and a flag for each of so many records."""
    return {
        "act": torch.randint(2, (rows,)),
        "reward": torch.randn(rows),
        "done": torch.zeros(rows, dtype=torch.bool),
    }


def small(rows: int) -> TensorDict:
    """Return a batch of small records: four floats and three scalars each."""
    return TensorDict({"obs": torch.randn(rows, 4), **scalars(rows)}, batch_size=[rows])


def medium(rows: int) -> TensorDict:
    """Return a batch of medium records: four frames of 84 by 84 bytes and three scalars each."""
    frames = torch.randint(256, (rows, 84, 84, 4), dtype=torch.uint8)
    return TensorDict({"obs": frames, **scalars(rows)}, batch_size=[rows])


def tokens(rows: int) -> TensorDict:
    """Return a batch of records of 1024 tokens, all of them different, and log-probabilities."""
    found = torch.arange(rows * WORDS, dtype=torch.int64).reshape(rows, WORDS)
    return TensorDict({"tokens": found, "logprob": found.to(torch.float32)}, batch_size=[rows])


BATCHES: Final[Mapping[str, Callable[[int], TensorDict]]] = {
    "small": small,
    "tokens": tokens,
    "medium": medium,
}


def arrays_of(batch: TensorDict) -> Arrays:
    """Return a batch as numpy arrays of the same memory."""
    return {str(name): value.numpy() for name, value in batch.items()}
