"""What a checkpoint cannot keep is refused before anything is written, with its place."""

import json
import pickle
import re
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forebay import CheckpointError
from forebay._checkpoint import read_checkpoint, write_checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict, tensorclass

from tests.checkpoint.support import resealed, small_state, with_state


class Point:
    """An object that only pickle knows."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self.x)


HEARD: list[str] = []


class Loud:
    """Says when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (hear, ("unpickled",))


def hear(word: str) -> None:
    """Note a word."""
    HEARD.append(word)


NO_NODE = re.escape("manifest.json: state['a'][0] is no $")
OBJECTS = [
    pytest.param(Point(1), "Point", id="object"),
    pytest.param({1, 2}, "builtins.set", id="set"),
    pytest.param(deque([1]), "collections.deque", id="deque"),
    pytest.param(bytearray(b"x"), "bytearray", id="bytearray"),
    pytest.param(torch.Size([1]), "torch.Size", id="a subclass of tuple"),
    pytest.param(np.array(["a"]), "an array of <U1", id="array of texts"),
    pytest.param(np.arange(2, dtype=">i4"), "an array of >i4", id="the other byte order"),
    pytest.param(
        np.ma.masked_array([1, 2], [False, True]), "MaskedArray", id="a subclass of array"
    ),
    pytest.param(torch.eye(2).to_sparse(), "layout torch.sparse_coo", id="sparse tensor"),
    pytest.param({Point(1): 2}, "has the key", id="key"),
]


@pytest.mark.parametrize(("value", "named"), OBJECTS)
def test_what_needs_pickle_is_refused_without_it(value: object, named: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        write_checkpoint(tmp_path / "c", {"a": [0, {"b": value}]})
    assert str(caught.value).startswith("state['a'][1]['b'] ")
    assert named in str(caught.value)
    assert "allow_pickle=True" in str(caught.value)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(("value", "named"), OBJECTS)
def test_with_pickle_it_comes_back(value: object, named: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"a": value, "again": [value]}, allow_pickle=True)
    with pytest.raises(CheckpointError, match=r"objects-\w+.pickle holds pickled.*allow_pickle"):
        read_checkpoint(tmp_path / "c")
    read = read_checkpoint(tmp_path / "c", allow_pickle=True)
    if isinstance(value, torch.Tensor):
        assert isinstance(read["a"], torch.Tensor)
        assert bool((read["a"].to_dense() == value.to_dense()).all())
    else:
        assert type(read["a"]) is type(value)
        assert bool(np.all(read["a"] == value))
    assert isinstance(read["again"], list)
    assert read["again"][0] is read["a"], "what objects share stays shared"


def test_nothing_is_unpickled_before_all_is_checked(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"a": Loud(), "t": torch.ones(3)}, allow_pickle=True)
    (file,) = (tmp_path / "c").glob("state-*")
    good = file.read_bytes()
    file.write_bytes(good[:-1] + b"\0")
    HEARD.clear()
    for allowed in (False, True):
        with pytest.raises(CheckpointError):
            read_checkpoint(tmp_path / "c", allow_pickle=allowed)
    file.write_bytes(good)
    with pytest.raises(CheckpointError):
        read_checkpoint(tmp_path / "c")
    assert HEARD == []
    read_checkpoint(tmp_path / "c", allow_pickle=True)
    assert HEARD == ["unpickled"]


def test_what_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"state\['b'\]\[0\] cannot be pickled"):
        write_checkpoint(tmp_path / "c", {"a": Point(1), "b": [lambda: 1]}, allow_pickle=True)
    assert not (tmp_path / "c").exists()


def test_what_cannot_be_unpickled_says_why(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"a": Point(1)}, allow_pickle=True)
    before = Point
    try:
        del globals()["Point"]
        with pytest.raises(CheckpointError, match=r"cannot be unpickled: AttributeError.*Point"):
            read_checkpoint(tmp_path / "c", allow_pickle=True)
    finally:
        globals()["Point"] = before
    assert pickle.loads(pickle.dumps(before(1))) == before(1)


def test_a_value_that_contains_itself_is_refused(tmp_path: Path) -> None:
    loop: list[object] = []
    loop.append({"back": loop})
    with pytest.raises(CheckpointError, match=r"state\['a'\]\[0\]\['back'\] contains itself"):
        write_checkpoint(tmp_path / "c", {"a": loop})
    shared = [1]
    write_checkpoint(tmp_path / "c", {"a": [shared, shared]})
    assert read_checkpoint(tmp_path / "c") == {"a": [[1], [1]]}


def test_depth_has_a_limit_that_is_named(tmp_path: Path) -> None:
    def nested(levels: int) -> object:
        value: object = 1
        for _ in range(levels):
            value = [value]
        return value

    write_checkpoint(tmp_path / "c", {"a": nested(95)})
    assert read_checkpoint(tmp_path / "c") == {"a": nested(95)}
    for levels in (101, 10_000):
        with pytest.raises(CheckpointError, match="more than 100 levels deep"):
            write_checkpoint(tmp_path / "c", {"a": nested(levels)})


def test_a_tensorclass_of_a_function_is_refused(tmp_path: Path) -> None:
    @tensorclass
    class Inner:
        x: torch.Tensor

    value = Inner(x=torch.ones(2), batch_size=[2])  # type: ignore[call-arg]  # the decorator's
    with pytest.raises(CheckpointError, match="cannot be found by that name; define it at the top"):
        write_checkpoint(tmp_path / "c", {"a": value})


def test_a_tensorclass_whose_module_is_not_imported_names_it(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", small_state())
    resealed(tmp_path / "c", lambda text: text.replace("tests.storage.support:", "this_module:"))
    with pytest.raises(CheckpointError, match="import the module this_module before loading"):
        read_checkpoint(tmp_path / "c")


@pytest.mark.parametrize(
    "node",
    [
        {"$tuple": 5},
        {"$int": 5},
        {"$int": "5 + 5"},
        {"$float": "1e5"},
        {"$bytes": "?"},
        {"$dict": [[1]]},
        {"$dict": [[[], 1]]},
        {"$object": 0},
        {"$object": -1},
        {"$tensor": {}},
        {"$tensor": {"file": "state", "name": "t", "dtype": "float32", "shape": [4]}},
        {"$tensor": {"file": "state", "name": "t", "dtype": "int32", "shape": [3]}},
        {"$tensor": {"file": "state", "name": "t", "dtype": "load", "shape": [3]}},
        {"$tensor": {"file": "state", "name": "t", "dtype": "float32", "shape": [-3]}},
        {"$tensor": {"file": "objects", "name": "t", "dtype": "float32", "shape": [3]}},
        {"$tensordict": {"batch_size": [2], "names": [None], "device": None, "entries": {}}},
        {"$stack": {"dim": 0, "items": [1, 2]}},
        {"$stack": {"dim": 7, "items": [1, 2]}},
        {"$tensorclass": {"class": "os:system", "content": "true", "fields": {}}},
        {"$tensorclass": {"class": "pathlib:Path", "content": "x", "fields": {}}},
    ],
    ids=str,
)
def test_a_state_that_no_writer_makes_is_refused(node: object, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"t": torch.ones(3)})
    with_state(tmp_path / "c", {"a": [node]})
    with pytest.raises(CheckpointError, match=NO_NODE) as caught:
        read_checkpoint(tmp_path / "c")
    assert str(tmp_path / "c") in str(caught.value)


@pytest.mark.parametrize("node", [{"$unknown": 1}, {"$tuple": [], "more": 1}], ids=str)
def test_an_entry_that_the_format_does_not_have_is_named(
    node: dict[str, object], tmp_path: Path
) -> None:
    write_checkpoint(tmp_path / "c", {})
    with_state(tmp_path / "c", {"a": node})
    names = re.escape(f"state['a'] has the entries {sorted(node)}")
    with pytest.raises(CheckpointError, match=names):
        read_checkpoint(tmp_path / "c")


def _replaced(node: object, path: list[int], new: object) -> object:
    """Return JSON with one node replaced; each number chooses an entry, modulo how many are."""
    if not path or not isinstance(node, dict | list) or not node:
        return new
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    key = keys[path[0] % len(keys)]
    copy: Any = node.copy()
    copy[key] = _replaced(copy[key], path[1:], new)
    return copy


@settings(max_examples=200, deadline=None)
@given(
    path=st.lists(st.integers(0, 9), min_size=1, max_size=9),
    new=st.sampled_from(["", "x", "state", "-0x1", "int64", -1, 0, 1, 2**70, 0.5, True, None])
    | st.sampled_from([[], [0], [[]], {}, {"x": 1}, {"$tuple": []}, {"$object": 0}])
    | st.just([[[[[[[[[[]]]]]]]]]]),
)
def test_a_state_with_any_node_replaced_is_refused_or_read(
    path: list[int], new: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = tmp_path_factory.getbasetemp() / "replaced"
    if not where.exists():
        write_checkpoint(where, {**small_state(), "d": {1: (b"x", [float("nan")])}})
    manifest = where / "manifest.json"
    good = manifest.read_bytes()
    try:
        with_state(where, _replaced(json.loads(good)["state"], path, new))
        with suppress(CheckpointError):
            assert type(read_checkpoint(where)) is dict
    finally:
        manifest.write_bytes(good)


def test_a_state_that_is_too_deep_to_read_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {})
    node: object = 1
    for _ in range(700):
        node = [node]
    with_state(tmp_path / "c", {"a": node})
    with pytest.raises(CheckpointError, match=r"manifest.json: .*(nested too deeply|no JSON)"):
        read_checkpoint(tmp_path / "c")


def test_an_integer_tensor_cannot_be_given_a_gradient(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"t": TensorDict({"x": torch.arange(3)})})
    resealed(tmp_path / "c", lambda text: text.replace('"int64"', '"int64", "requires_grad": true'))
    with pytest.raises(CheckpointError, match=r"state\['t'\]\['x'\] is no \$tensor"):
        read_checkpoint(tmp_path / "c")
