"""What is written comes back: types, bits, and everything that belongs to a value."""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from forebay._arrays import array_dtype, stand_in, tensor_of
from forebay._checkpoint import read_checkpoint, write_checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from tensordict import NonTensorData, NonTensorStack, TensorDict, lazy_stack

from tests.checkpoint.support import same, small_state
from tests.storage.support import step

DTYPES = sorted(
    {it for it in vars(torch).values() if isinstance(it, torch.dtype) and stand_in(it) is not None},
    key=str,
)

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
KEYS = st.text(max_size=4) | st.sampled_from(["$tensor", "$", "__metadata__", "a.b"])


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """Tensors of any dtype and shape, contiguous or not, with or without a gradient."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    wide = [*shape[:-1], 2 * shape[-1]] if shape else []
    raw = draw(st.binary(min_size=16, max_size=16)) * (4 * int(np.prod(wide)))
    array = np.frombuffer(raw, array_dtype(dtype))
    if dtype is torch.bool:
        array = np.frombuffer(raw, np.uint8) % 2 == 1
    tensor = tensor_of(array[: int(np.prod(wide))].reshape(wide).copy(), dtype)
    if shape:
        tensor = tensor[..., ::2]
    if tensor.ndim > 1 and draw(st.booleans()):
        tensor = tensor.transpose(0, -1)
    if dtype in (torch.float32, torch.float64, torch.bfloat16) and draw(st.booleans()):
        tensor.requires_grad_()
    return tensor


ARRAYS = st.sampled_from("?bBhHiIlLefdFD").flatmap(
    lambda code: st.lists(st.integers(0, 3), max_size=3).map(
        lambda shape: np.arange(int(np.prod(shape))).reshape(shape).astype(code)
    )
)
VALUES = st.recursive(
    PLAIN
    | tensors()
    | ARRAYS
    | ARRAYS.filter(lambda array: array.size > 0).map(lambda array: array.reshape(-1)[0]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(KEYS | st.integers() | st.tuples(st.integers()), inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict)
        | st.dictionaries(st.text("abc", min_size=1, max_size=3), tensors(), max_size=3).map(
            TensorDict
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(state=st.dictionaries(KEYS | st.just("records"), VALUES, max_size=4), data=VALUES)
def test_any_state_comes_back(
    state: dict[str, object], data: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "checkpoint"
    state["records"] = {"data": data, "rest": state.get("records")}
    write_checkpoint(path, state)
    assert same(state, read_checkpoint(path))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
def test_every_dtype_comes_back(dtype: torch.dtype, shape: tuple[int, ...], tmp_path: Path) -> None:
    size = int(np.prod(shape))
    bits = torch.arange(size * dtype.itemsize, dtype=torch.uint8) % 2
    tensor = bits.view(dtype).reshape(shape)
    write_checkpoint(tmp_path / "c", {"a": tensor, "td": TensorDict({"x": tensor})})
    read = read_checkpoint(tmp_path / "c")
    assert same({"a": tensor, "td": TensorDict({"x": tensor})}, read)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(
            TensorDict({"a": TensorDict({"b": torch.ones(2, 3)}, [2, 3])}, [2]), id="nested"
        ),
        pytest.param(TensorDict({"a": torch.ones(2)}, [2], names=["time"]), id="names"),
        pytest.param(TensorDict({"a": torch.ones(2)}, [2], device="cpu"), id="device"),
        pytest.param(TensorDict({"a": torch.ones(2)}, [2]).lock_(), id="locked"),
        pytest.param(TensorDict({}, [2, 0]), id="empty"),
        pytest.param(TensorDict({"a": "text"}, [2]), id="one text for all"),
        pytest.param(TensorDict({"a": NonTensorStack("x", "y")}, [2]), id="a text each"),
        pytest.param(NonTensorData(("a", 1), batch_size=[3]), id="non-tensor data"),
        pytest.param(step(torch.ones(2, 4), torch.ones(2), size=[2]), id="tensorclass"),
        pytest.param(step(torch.ones(2, 4), torch.ones(2), "n", size=[2]), id="with a text"),
        pytest.param(
            lazy_stack([TensorDict({"a": torch.ones(n)}) for n in (2, 3)]), id="uneven stack"
        ),
        pytest.param(
            lazy_stack([TensorDict({"a": torch.ones(4)}, [4]) for _ in range(2)], 1),
            id="stack on the second dimension",
        ),
        pytest.param(
            lazy_stack([step(torch.ones(n, 4), torch.ones(n), size=[n]) for n in (2, 2)]),
            id="stack of tensorclasses",
        ),
        pytest.param(
            TensorDict(
                {"a": TensorDict({"s": step(torch.ones(2, 4), torch.ones(2), size=[2])}, [2])}
            ),
            id="tensorclass in a TensorDict",
        ),
    ],
)
def test_collections_come_back_as_what_they_were(value: object, tmp_path: Path) -> None:
    for state in ({"a": [value]}, {"records": {"data": value}}):
        write_checkpoint(tmp_path / "c", state)
        assert same(state, read_checkpoint(tmp_path / "c"))


def test_autograd_history_is_left_behind_and_the_flag_kept(tmp_path: Path) -> None:
    leaf = torch.ones(2, requires_grad=True)
    parameter = torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    state = {"leaf": leaf, "result": leaf * 2, "parameter": parameter, "frozen": frozen}
    write_checkpoint(tmp_path / "c", state)
    read = read_checkpoint(tmp_path / "c")
    assert same(state, read)
    assert isinstance(read["result"], torch.Tensor)
    assert read["result"].is_leaf
    assert read["result"].tolist() == [2.0, 2.0]
    inside = TensorDict({"x": leaf * 3})
    write_checkpoint(tmp_path / "c", {"td": inside})
    assert same({"td": inside}, read_checkpoint(tmp_path / "c"))


def test_what_is_pending_on_a_tensor_is_carried_out(tmp_path: Path) -> None:
    value = torch.tensor([1 + 2j, 3 - 1j])
    state: dict[str, object] = {"conj": value.conj(), "imag": value.conj().imag}
    write_checkpoint(tmp_path / "c", state)
    assert same(state, read_checkpoint(tmp_path / "c"))


def test_what_is_read_is_writable_and_belongs_to_nobody_else(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"a": torch.zeros(2), "b": torch.zeros(2)})
    first = read_checkpoint(tmp_path / "c")
    assert isinstance(first["a"], torch.Tensor)
    first["a"] += 1
    for file in (tmp_path / "c").glob("*.safetensors"):
        file.write_bytes(b"\1" * file.stat().st_size)
    assert same(first, {"a": torch.ones(2), "b": torch.zeros(2)})


def test_the_library_of_safetensors_reads_the_files(tmp_path: Path) -> None:
    state = small_state(5)
    write_checkpoint(tmp_path / "c", state)
    (file,) = (tmp_path / "c").glob("records-*")
    found = load_file(file)
    assert sorted(found) == ["done", "obs"]
    assert found["obs"].tolist() == [[5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]


def test_names_that_collide_stay_apart(tmp_path: Path) -> None:
    one = torch.ones(1)
    state = {"a": {"b": one}, "a.b": one * 2, "__metadata__": one * 3, "": one * 4}
    write_checkpoint(tmp_path / "c", state)
    assert same(state, read_checkpoint(tmp_path / "c"))
    (file,) = (tmp_path / "c").glob("state-*")
    assert sorted(map(float, load_file(file).values())) == [1.0, 2.0, 3.0, 4.0]
