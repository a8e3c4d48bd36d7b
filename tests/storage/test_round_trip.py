"""What is written into slots is what is read from them, whatever the records look like."""

import math
from collections.abc import Callable

import numpy as np
import torch
from forebay._arrays import array_of, stand_in, tensor_of, torch_dtype
from forebay._stores import Ints
from forebay._tensor_storage import TensorStorage
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict

from tests.storage.support import put

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex64,
    torch.complex128,
]
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
Leaves = dict[str, tuple[torch.dtype, tuple[int, ...]]]
LEAVES: st.SearchStrategy[Leaves] = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(st.sampled_from(DTYPES), SHAPES),
    min_size=1,
)


def noise(dtype: torch.dtype, shape: tuple[int, ...], random: np.random.Generator) -> torch.Tensor:
    """Return a tensor of random bits, NaNs and all."""
    count = math.prod(shape)
    if not count:
        return torch.empty(shape, dtype=dtype)
    raw = random.integers(0, 256, size=count * dtype.itemsize, dtype=np.uint8)
    if dtype is torch.bool:
        raw %= 2
    return torch.from_numpy(raw).view(dtype).reshape(shape)


def bits(tensor: torch.Tensor) -> bytes:
    """Return what a tensor holds, to the bit: values alone would miss NaNs and signs of zero."""
    if not tensor.numel():
        return b""
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def records(leaves: Leaves, n: int, random: np.random.Generator) -> TensorDict:
    """Return n records, those after the first leaf nested."""
    made = {key: noise(dtype, (n, *shape), random) for key, (dtype, shape) in leaves.items()}
    first, *others = made
    batch: dict[str, object] = {first: made[first]}
    if others:
        batch["nested"] = {key: made[key] for key in others}
    return TensorDict(batch, batch_size=[n])


@st.composite
def slot_choices(draw: st.DrawFn, capacity: int) -> Ints:
    """Return slots as the ledger gives them: in a row, in a row around the end, or anyhow."""
    n = draw(st.integers(1, capacity))
    start = draw(st.integers(0, capacity - 1))
    if draw(st.booleans()):
        return (np.arange(start, start + n) % capacity).astype(np.int64)
    return np.array(draw(st.permutations(range(capacity)))[:n], dtype=np.int64)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), leaves=LEAVES, capacity=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_every_slot_holds_what_was_written_last(
    data: st.DataObject, leaves: Leaves, capacity: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    storage = TensorStorage(capacity)
    written: dict[int, TensorDict] = {}
    for _ in range(3):
        where = data.draw(slot_choices(capacity))
        batch = records(leaves, len(where), random)
        put(storage, where, batch)
        written.update(zip(where.tolist(), batch.unbind(0), strict=True))
    order = data.draw(st.permutations(sorted(written)))
    read = storage.read(np.array(order, dtype=np.int64))
    assert isinstance(read, TensorDict)
    assert read.batch_size == (len(order),)
    expected: TensorDict = torch.stack([written[slot] for slot in order])
    keys = set(expected.keys(include_nested=True, leaves_only=True))
    assert set(read.keys(include_nested=True, leaves_only=True)) == keys
    for key in keys:
        assert read[key].dtype == expected[key].dtype
        assert read[key].shape == expected[key].shape
        assert bits(read[key]) == bits(expected[key])


@given(dtype=st.sampled_from(DTYPES), shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_an_array_stands_for_a_tensor_of_every_dtype(
    dtype: torch.dtype, shape: tuple[int, ...], seed: int
) -> None:
    tensor = noise(dtype, shape, np.random.default_rng(seed))
    array = array_of(tensor)
    assert array.shape == shape
    assert torch_dtype(array.dtype) == stand_in(dtype)
    back = tensor_of(array, dtype)
    assert back.dtype == dtype
    assert bits(back) == bits(tensor)
    assert back.data_ptr() == tensor.data_ptr()


def test_a_dtype_that_torch_itself_warns_of() -> None:
    """Complex halves can be stored; making new ones gives a warning, so there are none to add."""
    halves = noise(torch.complex32, (2, 3), np.random.default_rng(0))
    storage = TensorStorage(2)
    put(storage, np.arange(2), {"x": halves})
    read = storage.read(np.arange(2))
    assert isinstance(read, TensorDict)
    assert read["x"].dtype == torch.complex32
    assert bits(read["x"]) == bits(halves)


def test_pending_operations_are_carried_out() -> None:
    z = torch.tensor([1 + 2j, 3 - 4j])
    pending: list[tuple[torch.Tensor, list[complex]]] = [
        (z.conj(), [1 - 2j, 3 + 4j]),
        (z.conj().imag, [-2.0, 4.0]),
    ]
    for tensor, values in pending:
        assert array_of(tensor).tolist() == values


def test_bits_that_need_more_than_themselves_cannot_be_stored() -> None:
    assert stand_in(torch.quint8) is None
    assert stand_in(torch.bits8) is None


def test_views_of_all_sorts_are_written_as_what_they_show() -> None:
    base = torch.arange(24).reshape(4, 6)
    views: list[Callable[[], torch.Tensor]] = [
        lambda: base.t()[:4, :3],
        lambda: base[::2, ::3].repeat(2, 2)[:, :3],
        lambda: base[:, 1:4],
        lambda: base[:1, :3].expand(4, 3),
        lambda: base.flip(0)[:, :3],
    ]
    for view in views:
        storage = TensorStorage(4)
        put(storage, np.array([3, 1, 0, 2]), {"x": view()})
        read = storage.read(np.array([3, 1, 0, 2]))
        assert isinstance(read, TensorDict)
        assert torch.equal(read["x"], view())


def test_an_array_that_runs_backwards() -> None:
    storage = TensorStorage(3)
    put(storage, np.arange(3), {"x": np.arange(3)[::-1]})
    read = storage.read(np.arange(3))
    assert isinstance(read, TensorDict)
    assert read["x"].tolist() == [2, 1, 0]
