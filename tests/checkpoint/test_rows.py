"""Records that come in chunks are written as if they had come at once, and held no longer."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from forebay import CheckpointError, read_records
from forebay._arrays import Array
from forebay._checkpoint import read_checkpoint, write_checkpoint
from forebay._forms import unfold
from forebay._manifest import unseal
from forebay._records import rows_of, schema_of
from forebay._schema import Schema
from tensordict import TensorDict

from tests.checkpoint.support import Source, contents, same
from tests.storage.support import step, steps


def columns(batch: TensorDict) -> tuple[Schema, list[Array]]:
    """Return the schema and the columns of a batch, as a storage has them."""
    form = unfold(batch)
    schema = schema_of(form)
    found = rows_of(form, schema, cast=False).columns
    return schema, [column for column in found if isinstance(column, np.ndarray)]


def wide_records(n: int) -> TensorDict:
    """Return records with leaves that are hard to store."""
    return TensorDict(
        {
            "half": torch.arange(n).to(torch.bfloat16),
            "tiny": torch.ones(n, 2).to(torch.float8_e4m3fn),
            "pair": torch.randn(n, dtype=torch.complex128),
            "none": torch.zeros(n, 0),
            "flag": torch.arange(n) % 3 == 0,
            "a.b": torch.arange(n),
            "a": {"b": torch.arange(n) * 2, "c": {"d": torch.ones(n, 1, 3)}},
        },
        [n],
    )


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(steps(7), id="TensorDict"),
        pytest.param(step(torch.ones(7, 4), torch.arange(7), size=[7]), id="tensorclass"),
        pytest.param(wide_records(7), id="rare dtypes"),
        pytest.param(
            TensorDict({"g": TensorDict({"x": torch.ones(7, 5)}, [7, 5])}, [7]), id="group"
        ),
    ],
)
def test_rows_that_are_streamed_equal_those_that_are_not(
    batch: TensorDict, chunk: int, tmp_path: Path
) -> None:
    schema, arrays = columns(batch)
    write_checkpoint(tmp_path / "s", {"records": {"data": Source(schema, arrays, chunk)}})
    write_checkpoint(tmp_path / "p", {"records": {"data": batch}})
    streamed, plain = (read_checkpoint(tmp_path / name) for name in "sp")
    assert same(streamed, {"records": {"data": batch}})
    assert same(streamed, plain)
    assert same(read_records(tmp_path / "s"), batch)
    for one, other in zip(
        *(sorted(contents(tmp_path / name).items()) for name in "sp"), strict=True
    ):
        if one[0].endswith(".safetensors"):
            assert one[1] == other[1], "the bytes of the records are the same either way"


def test_no_rows_at_all(tmp_path: Path) -> None:
    schema, arrays = columns(steps(2))
    source = Source(schema, [array[:0] for array in arrays], 4)
    write_checkpoint(tmp_path / "c", {"records": {"data": source}})
    assert same(read_records(tmp_path / "c"), steps(2)[:0])


def test_rows_of_many_mebibytes_have_many_parts(tmp_path: Path) -> None:
    batch = TensorDict({"x": torch.randn(3000, 1000), "y": torch.arange(3000)}, [3000])
    schema, arrays = columns(batch)
    write_checkpoint(tmp_path / "c", {"records": {"data": Source(schema, arrays, 512)}})
    file = unseal((tmp_path / "c/manifest.json").read_bytes()).files["records"]
    assert len(file.parts) > 5
    assert same(read_records(tmp_path / "c"), batch)


@pytest.mark.parametrize("surplus", [-1, 1])
def test_more_or_fewer_rows_than_announced_are_refused(surplus: int, tmp_path: Path) -> None:
    schema, arrays = columns(steps(4))
    source = Source(schema, arrays, 2)
    source.length += surplus
    with pytest.raises(ValueError, match=r"expected \d rows, got \d"):
        write_checkpoint(tmp_path / "c", {"records": {"data": source}})
    assert contents(tmp_path / "c") == {}


def test_writing_needs_one_chunk_of_memory_and_reading_one_copy(tmp_path: Path) -> None:
    rows, width, chunk = 4096, 1024, 64
    schema, arrays = columns(TensorDict({"x": torch.zeros(rows, width)}, [rows]))
    whole, piece = arrays[0].nbytes, arrays[0].nbytes * chunk // rows

    class Fresh(Source):
        def chunks(self) -> Iterator[list[Array]]:
            for _ in range(rows // chunk):
                yield [np.ones((chunk, width), np.float32)]

    tracemalloc.start()
    try:
        write_checkpoint(tmp_path / "c", {"records": {"data": Fresh(schema, arrays, chunk)}})
        assert tracemalloc.get_traced_memory()[1] < 4 * piece
        tracemalloc.reset_peak()
        records = read_records(tmp_path / "c")
        assert tracemalloc.get_traced_memory()[1] < 1.2 * whole
    finally:
        tracemalloc.stop()
    assert isinstance(records, TensorDict)
    assert bool((records["x"] == 1).all())


def test_an_error_of_the_source_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    schema, arrays = columns(steps(4))

    class Failing(Source):
        def chunks(self) -> Iterator[list[Array]]:
            yield next(super().chunks())
            raise RuntimeError("the source fails")

    write_checkpoint(tmp_path / "c", {"records": {"data": steps(2)}})
    before = contents(tmp_path / "c")
    with pytest.raises(RuntimeError, match="the source fails"):
        write_checkpoint(tmp_path / "c", {"records": {"data": Failing(schema, arrays, 1)}})
    assert contents(tmp_path / "c") == before


def test_a_source_is_taken_where_records_belong_and_nowhere_else(tmp_path: Path) -> None:
    schema, arrays = columns(steps(4))
    with pytest.raises(CheckpointError, match=r"state\['queue'\] is of type .*Source"):
        write_checkpoint(tmp_path / "c", {"queue": Source(schema, arrays, 2)})


@pytest.mark.parametrize("state", [{}, {"records": {}}, {"records": {"data": None}}])
def test_a_checkpoint_without_records_says_so(state: dict[str, object], tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", state)
    with pytest.raises(CheckpointError, match="holds no records"):
        read_records(tmp_path / "c")
