"""Every form in which batches come in, taken apart into one: paths and their values.

Callers hand over TensorDicts, tensorclasses, dicts of tensors or arrays, lists of records, lazy
stacks. `unfold` takes any of these apart. It judges nothing but whether a value can be a tensor of
fixed shape at all, and even that it only notes, so that one error can name all that is wrong.

Records that come singly, in a list or a lazy stack, are stacked leaf by leaf: each leaf of all
records at once, never record by record, which is what makes lazy stacks slow elsewhere.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter, contains, itemgetter
from typing import NamedTuple, TypeGuard, cast

import numpy as np
import torch
from tensordict import (
    LazyStackedTensorDict,
    TensorDict,
    TensorDictBase,
    is_non_tensor,
    is_tensorclass,
)

from forebay._arrays import Array, torch_dtype
from forebay._schema import Branch, Path, key_of, like, mismatch
from forebay._validate import whole_number


class Numbers(NamedTuple):
    """A column of Python numbers, one a record.

    Environments give rewards and flags like this. Python numbers have no dtype, so they take that
    of the leaf if it is of their kind (an int will do for a float), and torch's default otherwise.
    """

    values: list[int | float]

    def tensor(self, wanted: torch.dtype | None) -> torch.Tensor:
        """Return the column, in the wanted dtype if the numbers are of its kind."""
        kinds = {type(value) for value in self.values}
        fits = wanted is not None and self._fit(kinds, wanted)
        return torch.tensor(self.values, dtype=wanted if fits else None, device="cpu")

    def _fit(self, kinds: set[type], wanted: torch.dtype) -> bool:
        if wanted.is_floating_point:
            return bool not in kinds
        if wanted.is_complex or wanted is torch.bool or kinds != {int}:
            return False
        limits = torch.iinfo(wanted)
        return limits.min <= min(self.values) and max(self.values) <= limits.max


Value = torch.Tensor | Array | Numbers


class Form:
    """A batch taken apart.

    Attributes:
        values: the leaves by path, batch dimensions first.
        branches: the nodes by path.
        faults: what cannot be a tensor of fixed shape, as sentences by path.
        lead: the sizes of the batch dimensions, which are to be flattened into one.
        first: which batch dimension is the outermost one in the flattened order.
    """

    __slots__ = ("branches", "faults", "first", "lead", "values")

    def __init__(self) -> None:
        self.values: dict[Path, Value] = {}
        self.branches: dict[Path, Branch] = {}
        self.faults: dict[Path, str] = {}
        self.lead: tuple[int, ...] = ()
        self.first = 0


def unfold(batch: object, *, dim_extend: int = 0, own_dims: int = 0) -> Form:
    """Take a batch apart.

    A TensorDict or tensorclass says by its batch size which dimensions are batch dimensions; the
    last `own_dims` of several belong to the record. A list of records has exactly one. In a dict
    the first dimension is one, and with it all up to `dim_extend`.

    Raises:
        RecordMismatch: this is no batch of records, or it lacks a batch dimension.
    """
    dim_extend = whole_number("dim_extend", dim_extend, 0)
    form = Form()
    if isinstance(batch, list):
        form.lead = (len(batch),)
        if batch:
            _stack(batch, 0, (), form, TensorDict)
    elif is_node(batch):
        _walk(batch, (), form)
        form.first = dim_extend
        form.lead = _lead(batch, form, dim_extend, own_dims)
    else:
        raise mismatch([_no_batch(batch)])
    depth = len(form.lead)
    for path, (kind, sizes) in form.branches.items():
        form.branches[path] = Branch(kind, sizes[depth:])
    return form


def _lead(batch: object, form: Form, dim_extend: int, own_dims: int) -> tuple[int, ...]:
    """Return the sizes of the batch dimensions."""
    if is_collection(batch):
        sizes = form.branches[()].dims
        lead = sizes[: max(len(sizes) - own_dims, 1)]
        if len(lead) <= dim_extend:
            raise mismatch([no_dimension(lead, dim_extend)])
        return lead
    for path, value in form.values.items():
        if not isinstance(value, Numbers):
            if value.ndim <= dim_extend:
                sentence = no_dimension(tuple(value.shape), dim_extend)
                raise mismatch([f"{key_of(path)}: {sentence}"])
            return tuple(value.shape[: dim_extend + 1])
    # Without a leaf there is nothing to be empty either; whoever looks closer will say so.
    return (1,) * (dim_extend + 1)


def _walk(node: object, path: Path, form: Form) -> None:
    """Enter a node of a batch, and all below it, into a form."""
    kind: type = TensorDict
    if type(node) is not TensorDict and is_tensorclass(node):
        kind, node = type(node), _inner(node)
    if isinstance(node, LazyStackedTensorDict):
        _stack(node.tensordicts, node.stack_dim, path, form, kind)
        return
    _, sizes, entries = _open(node)
    form.branches[path] = Branch(kind, sizes)
    for key, value in entries.items():
        below = (*path, key)
        if type(value) is torch.Tensor and type(key) is str:
            form.values[below] = value
        elif not isinstance(key, str):
            form.faults[below] = _no_key(below)
        elif is_node(value):
            _walk(value, below, form)
        else:
            _enter(value, below, form)


def _enter(value: object, path: Path, form: Form) -> None:
    """Enter a leaf of a batch that is not simply a tensor."""
    if isinstance(value, torch.Tensor) and not value.is_nested:
        form.values[path] = value.as_subclass(torch.Tensor)
    elif isinstance(value, np.ndarray | np.generic) and torch_dtype(value.dtype):
        form.values[path] = np.asarray(value)
    else:
        form.faults[path] = f"{key_of(path)}: {no_tensor(_named(value))}"


def _stack(rows: Sequence[object], dim: int, path: Path, form: Form, kind: type) -> None:
    """Enter nodes of single records as one node with a new batch dimension."""
    alike = _open_alike(rows)
    if alike is None:
        for number, row in enumerate(rows):
            if not is_node(row):
                if not path:
                    raise mismatch([f"record {number}: {no_record(row)}"])
                form.faults[path] = f"{key_of(path)}: record {number}: {no_tensor(_named(row))}"
                return
        opened = [_open(row) for row in rows]
        first_kind, sizes, _ = opened[0]
        entries: Sequence[Mapping[str, object]] = [entries for _, _, entries in opened]
    else:
        first_kind, sizes, entries = alike
    kind = first_kind if kind is TensorDict else kind
    form.branches[path] = Branch(kind, (*sizes[:dim], len(rows), *sizes[dim:]))
    if set(map(len, entries)) != {len(entries[0])} or not _has_all(entries, entries[0]):
        _note_uneven(entries, path, form)
    for key in entries[0]:
        below = (*path, key)
        if not isinstance(key, str):
            form.faults[below] = _no_key(below)
        elif below not in form.faults:
            _stack_column(list(map(itemgetter(key), entries)), dim, below, form)


def _open_alike(
    rows: Sequence[object],
) -> tuple[type, tuple[int, ...], Sequence[Mapping[str, object]]] | None:
    """Return what `_open` returns, for all rows at once, if they are simple and of one kind."""
    kinds = set(map(type, rows))
    if kinds == {dict}:
        return TensorDict, (), cast("Sequence[dict[str, object]]", rows)
    if kinds == {TensorDict}:
        plain = cast("Sequence[TensorDict]", rows)
        return TensorDict, tuple(plain[0].batch_size), list(map(_entries, plain))
    if len(kinds) == 1 and is_tensorclass(rows[0]) and is_collection(rows[0]):
        inner = list(map(_inner, rows))
        if set(map(type, inner)) == {TensorDict}:
            plain = cast("Sequence[TensorDict]", inner)
            return kinds.pop(), tuple(plain[0].batch_size), list(map(_entries, plain))
    return None


def _copied_entries(node: TensorDict) -> Mapping[str, object]:
    return dict(node.items())


# The entries as they are, without a Python step a record. It is private to tensordict, so its
# absence must not matter.
_entries: Callable[[TensorDict], Mapping[str, object]] = (
    attrgetter("_tensordict") if hasattr(TensorDict(), "_tensordict") else _copied_entries
)


def _has_all(entries: Sequence[Mapping[str, object]], keys: Iterable[str]) -> bool:
    """Tell whether all have these keys."""
    return all(all(map(contains, entries, repeat(key))) for key in keys)


def _note_uneven(entries: Sequence[Mapping[str, object]], path: Path, form: Form) -> None:
    """Note which keys the records do not have in common with the first one."""
    first = entries[0]
    for number, found in enumerate(entries):
        for key in found.keys() ^ first.keys():
            below = (*path, key)
            has, lacks = (number, 0) if key in found else (0, number)
            form.faults.setdefault(
                below, f"{key_of(below)}: record {has} has it, record {lacks} has not"
            )


def _stack_column(column: list[object], dim: int, path: Path, form: Form) -> None:
    """Enter what all records have under one key."""
    if is_node(column[0]):
        _stack(column, dim, path, form, TensorDict)
        return
    stacked = _stack_alike(column, dim)
    if stacked is not None:
        form.values[path] = stacked
        return
    fault: str | None = None
    tensors = [value for value in column if isinstance(value, torch.Tensor)]
    arrays = [value for value in column if isinstance(value, np.ndarray | np.generic)]
    if len(tensors) == len(column) and not any(tensor.is_nested for tensor in tensors):
        fault = _uneven([(tensor.dtype, tensor.shape) for tensor in tensors])
        if fault is None:
            form.values[path] = _stack_tensors(tensors, dim)
    elif len(arrays) == len(column) and all(torch_dtype(array.dtype) for array in arrays):
        fault = _uneven([(torch_dtype(array.dtype), array.shape) for array in arrays])
        if fault is None:
            form.values[path] = np.stack(arrays, axis=dim)
    else:
        numbers = [value for value in column if type(value) in (bool, int, float)]
        kinds = {type(value) for value in column}
        if len(numbers) == len(column) and _within_64_bits(column):
            form.values[path] = Numbers([v for v in column if isinstance(v, bool | int | float)])
        elif len(kinds) > 1:
            fault = f"expected one type in all records, got {' and '.join(_names(kinds))}"
        else:
            fault = no_tensor(_named(column[0]))
    if fault is not None:
        form.faults[path] = f"{key_of(path)}: {fault}"


def _stack_alike(column: list[object], dim: int) -> torch.Tensor | None:
    """Return plain tensors stacked if they are alike, else None; nearly every column is so."""
    if set(map(type, column)) != {torch.Tensor}:
        return None
    tensors = cast("list[torch.Tensor]", column)
    if len({tensor.dtype for tensor in tensors}) != 1:
        return None
    try:
        stacked = _stack_tensors(tensors, dim)
    except RuntimeError:  # of different shapes, or on several devices
        return None
    return None if stacked.is_nested else stacked


def _stack_tensors(tensors: list[torch.Tensor], dim: int) -> torch.Tensor:
    """Return tensors of one shape stacked, without their autograd history."""
    with torch.no_grad():
        stacked = tensors[0].unsqueeze(dim) if len(tensors) == 1 else torch.stack(tensors, dim)
    return stacked if type(stacked) is torch.Tensor else stacked.as_subclass(torch.Tensor)


def _uneven(looks: Sequence[tuple[torch.dtype | None, Sequence[int]]]) -> str | None:
    """Return the sentence that says that the records differ from each other, if they do."""
    if len(set(looks)) == 1:
        return None
    different = dict.fromkeys(like(dtype, tuple(shape)) for dtype, shape in looks)
    return (
        f"expected the same in all records, got {' and '.join(list(different)[:3])}; pad to one "
        "length and store the length too, or use ListStorage"
    )


def _within_64_bits(column: list[object]) -> bool:
    return all(-(2**63) <= value < 2**63 for value in column if isinstance(value, int))


def is_node(value: object) -> bool:
    """Tell whether a value has entries of its own."""
    if isinstance(value, Mapping) and not isinstance(value, TensorDictBase):
        return True
    return is_collection(value)


def is_collection(value: object) -> TypeGuard[TensorDictBase]:
    """Tell whether a value is a TensorDict or a tensorclass that holds more than one object."""
    if type(value) is TensorDict:
        return True
    if not isinstance(value, TensorDictBase) and not is_tensorclass(value):
        return False
    return not is_non_tensor(value)


def _is_plain(value: object) -> TypeGuard[TensorDict]:
    return type(value) is TensorDict


def _open(node: object) -> tuple[type, tuple[int, ...], Mapping[str, object]]:
    """Return the class, the batch size and the entries of a node."""
    if _is_plain(node):
        return TensorDict, tuple(node.batch_size), dict(node.items())
    kind: type = TensorDict
    if is_tensorclass(node):
        kind, node = type(node), _inner(node)
    if isinstance(node, TensorDictBase):
        return kind, tuple(node.batch_size), dict(_dense(node).items())
    assert isinstance(node, Mapping), "only nodes are opened"
    return kind, (), node


def _dense(node: TensorDictBase) -> TensorDictBase:
    """Return a TensorDict of a rarer kind - lazily stacked in a stack, on disk - as a plain one."""
    if isinstance(node, LazyStackedTensorDict):
        try:
            return node.contiguous()
        except RuntimeError as error:
            raise mismatch([f"a lazy stack is uneven; ListStorage takes it: {error}"]) from error
    return node if type(node) is TensorDict else node.to_tensordict()


def _inner(node: object) -> object:
    """Return what a tensorclass wraps; plain fields that are set count as entries too."""
    inner = getattr(node, "_tensordict", None)
    plain = getattr(node, "_non_tensordict", None)
    if not isinstance(inner, TensorDictBase) or not isinstance(plain, dict):
        # In a release that keeps them elsewhere; this is public but costs a copy.
        return node.to_tensordict(retain_none=False)  # type: ignore[attr-defined]  # all have it
    given = {name: value for name, value in plain.items() if value is not None}
    return {**dict(inner.items()), **given} if given else inner


def no_dimension(sizes: tuple[int, ...], dim_extend: int) -> str:
    """Return the sentence that says that a batch lacks a batch dimension."""
    if sizes:
        return f"expected a batch dimension {dim_extend} (dim_extend), got a batch of {list(sizes)}"
    return "expected a batch dimension, got none; set batch_size, or use add for a single record"


def _no_batch(batch: object) -> str:
    sentence = (
        "expected a TensorDict, a tensorclass, a dict of tensors or arrays, or a list of records, "
        f"got {_named(batch)}"
    )
    if isinstance(batch, tuple):
        return f"{sentence}; pass list(batch) if these are records"
    return sentence


def _no_key(path: Path) -> str:
    return f"expected keys that are strings, got {path[-1]!r}"


def no_record(value: object) -> str:
    """Return the sentence that says that something is not a record of tensors."""
    return (
        "expected a TensorDict, a tensorclass or a dict of tensors or arrays, got "
        f"{_named(value)}; ListStorage takes any object"
    )


def no_tensor(what: str) -> str:
    """Return the sentence that says that something is not a tensor of fixed shape."""
    return f"expected a tensor of fixed shape, got {what}; ListStorage takes any object"


def _named(value: object) -> str:
    """Return what a value is, for messages."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        return "a ragged (nested) tensor"
    if isinstance(value, np.ndarray | np.generic):
        return f"an array of {value.dtype}"
    if isinstance(value, bool | int | float):
        return f"the number {value!r:.40}"
    return type(value).__name__


def _names(kinds: set[type]) -> list[str]:
    return sorted(kind.__name__ for kind in kinds)
