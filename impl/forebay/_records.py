"""Rows: a batch that a storage has looked at and is ready to copy.

`rows_of` holds a batch, whatever its form, against the schema of a storage. It looks at every leaf
before it complains, so an error names all that is wrong, and nothing was stored when it is raised.

Rows share the caller's memory where they can. That is safe because the caller is inside the call
until the rows have been copied into the storage; another copy here would only cost time.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import torch
from tensordict import TensorDict

from forebay._arrays import Array, array_of, stand_in, torch_dtype
from forebay._forms import Form, Numbers, Value, no_tensor
from forebay._schema import (
    Branch,
    Leaf,
    Outline,
    Schema,
    compare,
    key_of,
    mismatch,
    missing,
    unexpected,
)

Column = Array | torch.Tensor
"""A leaf of all rows, `[rows, *leaf.shape]`: an array on the host, or a tensor on a device."""

_NO_COLUMN: Final = torch.empty(0)

Holds = Callable[[torch.Tensor], bool]
"""Tells whether a tensor is where a storage has its records, and may stay there."""


class Rows:
    """Records that a storage has checked and is ready to copy into slots; `len` counts them."""

    __slots__ = ("_length",)

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


def on_no_device(tensor: torch.Tensor) -> bool:
    """Tell of all tensors that they are on no device, for storages on the host."""
    return False


class TensorRows(Rows):
    """Rows as one column for each leaf of a schema.

    Attributes:
        form: the batch that they come from, unless it matched a fixed schema at once.
        schema: the schema that they were held against.
        columns: the columns, in the order of the schema's leaves. A tensor that is on a device
            still has its own dtype and strides.
        cast: whether leaves of other dtypes are converted.
    """

    __slots__ = ("cast", "columns", "form", "schema")

    def __init__(
        self,
        length: int,
        schema: Schema,
        columns: Sequence[Column],
        *,
        form: Form | None = None,
        cast: bool = False,
    ) -> None:
        self._length = length
        self.form = form
        self.schema = schema
        self.columns = columns
        self.cast = cast


def schema_of(form: Form) -> Schema:
    """Return the schema that a batch has by itself; what cannot be stored is left out."""
    leaves = [_leaf(value, path, form) for path, value in form.values.items()]
    return Schema(leaves, form.branches)


def rows_of(
    form: Form, schema: Schema | None, *, cast: bool, holds: Holds = on_no_device
) -> TensorRows:
    """Hold a batch against a schema, or against its own where there is none yet.

    An empty batch writes nothing, so nothing about it can be wrong.

    Raises:
        RecordMismatch: names every leaf that differs or cannot be stored.
    """
    length = math.prod(form.lead)
    if length == 0:
        return TensorRows(0, Schema((), {(): Branch(TensorDict, ())}), [])
    if schema is None:
        if not form.values and not form.faults:
            raise mismatch(["expected at least one leaf, got none"])
        schema = schema_of(form)
    columns: list[Column] = []
    wrong = list(form.faults.values())
    for wanted in schema.leaves:
        value = form.values.get(wanted.path)
        column = missing(wanted) if value is None else _column(value, wanted, form, cast, holds)
        if not isinstance(column, str):
            columns.append(column)
        elif not any(wanted.path[: len(path)] == path for path in form.faults):
            wrong.append(column)
    if len(columns) != len(form.values):
        known = {leaf.path for leaf in schema.leaves}
        extra = form.values.keys() - known
        wrong += [
            unexpected(_leaf(value, path, form))
            for path, value in form.values.items()
            if path in extra
        ]
    if wrong:
        raise mismatch(wrong)
    return TensorRows(length, schema, columns, form=form, cast=cast)


def plain_rows(batch: TensorDict, schema: Schema, holds: Holds = on_no_device) -> TensorRows | None:
    """Return the rows of a TensorDict that is in every way as the schema has it, else None.

    Nearly every batch is, and taking one apart with an eye to all that could be wrong costs several
    times what copying it costs when it is small.
    """
    lead = batch.batch_size
    if len(lead) != 1 or not lead[0]:
        return None
    length = lead[0]
    columns: list[Column] = [_NO_COLUMN] * len(schema.leaves)
    try:
        matches = _fill(batch, schema.outline, schema, length, columns, holds)
    except (RuntimeError, TypeError):
        # A tensor whose memory numpy cannot look at directly.
        return None
    return TensorRows(length, schema, columns) if matches else None


def _fill(
    node: TensorDict,
    outline: Outline,
    schema: Schema,
    length: int,
    columns: list[Column],
    holds: Holds,
) -> bool:
    """Put the leaves below a node in their places; tell whether all are what they should be."""
    entries = dict(node.items())
    if len(entries) != len(outline.entries):
        return False
    dtypes, sizes, on_host = schema.dtypes, schema.sizes(length), holds is on_no_device
    for key, entry in outline.entries:
        value = entries.get(key)
        if isinstance(entry, Outline):
            if type(value) is not TensorDict:
                return False
            if not _fill(value, entry, schema, length, columns, holds):
                return False
            continue
        if type(value) is not torch.Tensor or value.dtype is not dtypes[entry]:
            return False
        if value.shape != sizes[entry]:
            return False
        if on_host or not holds(value):
            if not value.is_cpu:
                return False
            columns[entry] = value.numpy()
        elif value.layout is torch.strided:
            columns[entry] = value.detach()
        else:
            return False
    return True


def _column(value: Value, wanted: Leaf, form: Form, cast: bool, holds: Holds) -> Column | str:
    """Return a leaf as rows, or the sentence that says what is wrong with it."""
    lead, path = form.lead, wanted.path
    if isinstance(value, Numbers):
        value = value.tensor(wanted.dtype)
    shape = (*lead, *wanted.shape)
    if value.shape != shape and tuple(value.shape[: len(lead)]) != lead:
        return (
            f"{key_of(path)}: expected the batch dimensions {list(lead)} of the others, "
            f"got the shape {list(value.shape)}"
        )
    there = isinstance(value, torch.Tensor) and holds(value)
    if isinstance(value, torch.Tensor) and not there and not value.is_cpu:
        also = "" if holds is on_no_device else " or on the device of the storage"
        return f"{key_of(path)}: expected a tensor on cpu{also}, got one on {value.device}"
    dtype = _dtype(value)
    if dtype is not wanted.dtype or value.shape != shape:
        sentence = compare(wanted, _leaf(value, path, form), cast=cast)
        if sentence is not None:
            return sentence
    if isinstance(value, torch.Tensor) and there:
        return _flat(value.detach(), wanted, form)
    if dtype is not wanted.dtype:
        # Arrays may be read-only, which torch warns of; to convert is to copy anyway.
        tensor = value if isinstance(value, torch.Tensor) else torch.from_numpy(value.copy())
        value = tensor.detach().to(wanted.dtype)
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or stand_in(wanted.dtype) is None:
            return f"{key_of(path)}: {no_tensor(f'{wanted.dtype} in layout {value.layout}')}"
        value = array_of(value)
    if len(lead) > 1:
        value = value.swapaxes(0, form.first).reshape(math.prod(lead), *wanted.shape)
    return value


def _flat(value: torch.Tensor, wanted: Leaf, form: Form) -> torch.Tensor | str:
    """Return a leaf on a device as rows, without looking at what is in it."""
    if value.layout is not torch.strided or stand_in(wanted.dtype) is None:
        return f"{key_of(wanted.path)}: {no_tensor(f'{wanted.dtype} in layout {value.layout}')}"
    if len(form.lead) == 1:
        return value
    return value.transpose(0, form.first).reshape(math.prod(form.lead), *wanted.shape)


def _leaf(value: Value, path: tuple[str, ...], form: Form) -> Leaf:
    """Return how a leaf looks by itself, without its batch dimensions."""
    if isinstance(value, Numbers):
        value = value.tensor(None)
    return Leaf(path, _dtype(value), tuple(value.shape[len(form.lead) :]))


def _dtype(value: torch.Tensor | Array) -> torch.dtype:
    if isinstance(value, torch.Tensor):
        return value.dtype
    dtype = torch_dtype(value.dtype)
    assert dtype is not None, "arrays of other dtypes are faults of the form"
    return dtype
