"""What the records of a storage look like, and how to say in which leaves a batch differs.

A record is a tree: TensorDicts and tensorclasses are its branches, tensors its leaves. What must
agree between a storage and a batch are the leaves - their keys, dtypes and shapes. The branches are
remembered only so that a batch comes back as what was written first: the class of each tensorclass,
and batch dimensions that belong to the record (of a group, or of the agents in a nested entry).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from tensordict import TensorDict

from forebay._arrays import stand_in
from forebay._errors import RecordMismatch

Path = tuple[str, ...]


class Leaf(NamedTuple):
    """One tensor of a record: where it is, its dtype, and its shape without the batch dimension."""

    path: Path
    dtype: torch.dtype
    shape: tuple[int, ...]


class Branch(NamedTuple):
    """A node of a record: TensorDict or a tensorclass, and its own batch dimensions."""

    kind: type
    dims: tuple[int, ...]


class Outline(NamedTuple):
    """A branch with what it holds; an entry that is a number names a leaf by its position."""

    branch: Branch
    entries: "tuple[tuple[str, int | Outline], ...]"


class Schema:
    """The leaves of a record, in the order in which they came, and the tree that they make.

    Attributes:
        leaves: all leaves.
        dtypes: their dtypes.
        borrowed: positions and dtypes of those leaves that travel through numpy as another dtype.
        outline: the tree.
        dims: batch dimensions that belong to the record itself, () as a rule.
    """

    def __init__(self, leaves: Iterable[Leaf], branches: Mapping[Path, Branch]) -> None:
        self.leaves = tuple(leaves)
        self.dtypes = tuple(leaf.dtype for leaf in self.leaves)
        self.borrowed = [
            (position, dtype)
            for position, dtype in enumerate(self.dtypes)
            if stand_in(dtype) is not dtype
        ]
        self._sizes: tuple[int, tuple[tuple[int, ...], ...]] = 0, ()
        self.outline = _outline((), self.leaves, branches)
        self.dims = self.outline.branch.dims
        self._keys = [leaf.path[0] for leaf in self.leaves if len(leaf.path) == 1]
        self._is_flat = len(self._keys) == len(self.outline.entries)

    def sizes(self, length: int) -> "tuple[tuple[int, ...], ...]":
        """Return the shapes that the leaves of `length` records have."""
        known, sizes = self._sizes
        if known != length:
            sizes = tuple((length, *leaf.shape) for leaf in self.leaves)
            self._sizes = length, sizes
        return sizes

    def assemble(self, tensors: list[torch.Tensor], length: int) -> object:
        """Return a batch of `length` records over tensors that come in the order of the leaves."""
        if not self._is_flat:
            return _assemble(self.outline, tensors, length)
        return _made(self.outline.branch, dict(zip(self._keys, tensors, strict=True)), length)


def _outline(path: Path, leaves: tuple[Leaf, ...], branches: Mapping[Path, Branch]) -> Outline:
    """Return the tree below a path."""
    depth = len(path)
    entries: dict[str, int | Outline] = {}
    for position, leaf in enumerate(leaves):
        if leaf.path[:-1] == path:
            entries[leaf.path[-1]] = position
    for below in branches:
        if len(below) == depth + 1 and below[:depth] == path:
            entries[below[-1]] = _outline(below, leaves, branches)
    return Outline(branches[path], tuple(entries.items()))


def _assemble(outline: Outline, tensors: list[torch.Tensor], length: int) -> object:
    source = {
        key: _assemble(entry, tensors, length) if isinstance(entry, Outline) else tensors[entry]
        for key, entry in outline.entries
    }
    return _made(outline.branch, source, length)


def _made(branch: Branch, source: Mapping[str, object], length: int) -> object:
    """Return a branch of `length` records that holds these entries."""
    kind, dims = branch
    made = _tensordict(source, torch.Size((length, *dims)))
    if kind is TensorDict:
        return made
    return kind.from_tensordict(made)  # type: ignore[attr-defined]  # every tensorclass has it


def _new_tensordict(source: Mapping[str, object], size: torch.Size) -> TensorDict:
    return TensorDict(source, batch_size=size)


# The constructor looks at every entry again, which costs more than gathering a small batch. This
# one does not; it is private to tensordict, so its absence must not matter.
_tensordict = getattr(TensorDict, "_new_unsafe", _new_tensordict)


def key_of(path: Path) -> str:
    """Return a path as the key that a TensorDict would take."""
    return repr(path[0]) if len(path) == 1 else repr(path)


def like(dtype: torch.dtype | None, shape: tuple[int, ...]) -> str:
    """Return how a leaf of a record looks, as in `float32[4]`."""
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}"


def castable(came: torch.dtype, wanted: torch.dtype) -> bool:
    """Tell whether `cast=True` converts: never from a float to an integer, or the like."""
    return torch.can_cast(came, wanted)


def compare(wanted: Leaf, came: Leaf, *, cast: bool) -> str | None:
    """Return the sentence that says how a leaf differs from what is wanted, or None."""
    same_dtype = came.dtype == wanted.dtype
    may_cast = castable(came.dtype, wanted.dtype)
    if came.shape == wanted.shape and (same_dtype or (cast and may_cast)):
        return None
    sentence = f"{_expected(wanted)}, got {like(came.dtype, came.shape)}"
    if came.shape == wanted.shape and may_cast:
        return f"{sentence}; cast=True converts it"
    return sentence


def missing(wanted: Leaf) -> str:
    """Return the sentence that says that a leaf is missing."""
    return f"{_expected(wanted)}, got nothing"


def unexpected(came: Leaf) -> str:
    """Return the sentence that says that a leaf is one too many."""
    return f"{key_of(came.path)}: expected no such leaf, got {like(came.dtype, came.shape)}"


def mismatch(sentences: Iterable[str]) -> RecordMismatch:
    """Return the error that names all differing leaves, one a line."""
    return RecordMismatch("\n  ".join(["the batch cannot be stored, nothing changed:", *sentences]))


def _expected(wanted: Leaf) -> str:
    return f"{key_of(wanted.path)}: expected {like(wanted.dtype, wanted.shape)}"
