"""Numbered checkpoints, and what has to be found of them."""

import os
from pathlib import Path
from typing import Final

import torch
from forebay import CheckpointError
from forebay._checkpoint import read_checkpoint, write_checkpoint
from forebay._manifest import unseal

from forebay_models.faults.crew import Wrong

MANIFEST: Final = "manifest.json"
LOCK: Final = ".lock"
NONE: Final = 0
"""The number where there is no checkpoint."""


def state_of(number: int, rows: int = 4) -> dict[str, object]:
    """Return the state that the checkpoint of that number holds."""
    return {
        "number": number,
        "records": {"data": {"reward": torch.arange(rows) * 1000 + number}},
        "queue": [torch.full((2, 3), float(number)), "ready"],
    }


def dump(path: Path, number: int) -> None:
    """Write the checkpoint of that number."""
    write_checkpoint(path, state_of(number))


def found(path: Path) -> int:
    """Return the number of the checkpoint that a reader finds, which is whole, or `NONE`.

    Raises:
        Wrong: the reader gets what was never written, or is told of damage.
    """
    try:
        state = read_checkpoint(path)
    except CheckpointError as error:
        if not os.path.lexists(path / MANIFEST):
            return NONE
        raise Wrong(f"a reader is refused: {error}; there is {listed(path)}") from error
    except Exception as error:
        raise Wrong(f"a reader fails with {type(error).__name__}: {error}") from error
    number = state.get("number")
    if not isinstance(number, int) or not alike(state, state_of(number)):
        raise Wrong(f"a reader gets what nobody wrote: {state}")
    return number


def expect(path: Path, numbers: set[int]) -> None:
    """Check that a reader finds one of these.

    Raises:
        Wrong: it finds something else.
    """
    number = found(path)
    if number not in numbers:
        wanted = " or ".join(map(_called, sorted(numbers)))
        raise Wrong(f"expected {wanted}, a reader finds {_called(number)}; {listed(path)}")


def repair(path: Path, number: int) -> None:
    """Check that the next dump succeeds and leaves nothing else.

    Raises:
        Wrong: it does not.
    """
    try:
        dump(path, number)
    except Exception as error:
        raise Wrong(f"the next dump fails: {type(error).__name__}: {error}") from error
    expect(path, {number})
    nothing_left(path)


def nothing_left(path: Path) -> None:
    """Check that there is no file but those of the checkpoint.

    Raises:
        Wrong: there are others.
    """
    kept = {file.name for file in unseal((path / MANIFEST).read_bytes()).files.values()}
    if others := {file.name for file in path.iterdir()} - kept - {MANIFEST, LOCK}:
        raise Wrong(f"left behind: {', '.join(sorted(others))}")


def listed(path: Path) -> str:
    """Return the names in a directory, for a message."""
    if not path.is_dir():
        return "no directory"
    return ", ".join(sorted(file.name for file in path.iterdir())) or "nothing"


def alike(a: object, b: object) -> bool:
    """Tell whether two states are equal, bit for bit in their tensors."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    return type(a) is type(b) and bool(a == b)


def _called(number: int) -> str:
    return f"checkpoint {number}" if number else "none"
