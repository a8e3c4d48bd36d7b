"""A checkpoint that is not byte for byte what was written is refused, whatever the damage."""

import shutil
from pathlib import Path

import pytest
import torch
from forebay import CheckpointError
from forebay._checkpoint import examine, read_checkpoint, write_checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkpoint.support import resealed, same, small_state, written

TINY = {"a": torch.arange(5), "records": {"data": torch.ones(2)}, "b": (1, {2, 3})}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small checkpoint that has one of each."""
    path = tmp_path_factory.mktemp("whole") / "c"
    write_checkpoint(path, TINY, allow_pickle=True)
    files = {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".lock"}
    assert len(files) == 4
    return files


def put(path: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)


def refused(path: Path, named: str) -> str:
    """Return why a checkpoint is refused; the file must be named."""
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(path, allow_pickle=True)
    message = str(caught.value)
    assert named in message
    with pytest.raises(CheckpointError):
        examine(path)
    return message


def test_the_checkpoint_is_whole_to_begin_with(whole: dict[str, bytes], tmp_path: Path) -> None:
    put(tmp_path / "c", whole)
    assert same(read_checkpoint(tmp_path / "c", allow_pickle=True), TINY)


@pytest.mark.parametrize("role", ["manifest", "records", "state", "objects"])
def test_every_changed_byte_is_found(role: str, whole: dict[str, bytes], tmp_path: Path) -> None:
    put(tmp_path / "c", whole)
    (name,) = (name for name in whole if name.startswith(role))
    file, good = tmp_path / "c" / name, whole[name]
    for position in range(len(good)):
        for flip in (0x01, 0x20, 0xFF):
            bad = bytearray(good)
            bad[position] ^= flip
            file.write_bytes(bad)
            refused(tmp_path / "c", name)
    file.write_bytes(good)
    read_checkpoint(tmp_path / "c", allow_pickle=True)


@pytest.mark.parametrize("role", ["manifest", "records", "state", "objects"])
def test_every_missing_or_added_byte_is_found(
    role: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    put(tmp_path / "c", whole)
    (name,) = (name for name in whole if name.startswith(role))
    file, good = tmp_path / "c" / name, whole[name]
    for position in range(len(good) + 1):
        file.write_bytes(good[:position] + b"\n" + good[position:])
        refused(tmp_path / "c", name)
        if position < len(good):
            file.write_bytes(good[:position])
            refused(tmp_path / "c", name)
            file.write_bytes(good[:position] + good[position + 1 :])
            refused(tmp_path / "c", name)


def test_every_missing_file_is_named(whole: dict[str, bytes], tmp_path: Path) -> None:
    for name in whole:
        put(tmp_path / "c", {other: data for other, data in whole.items() if other != name})
        assert "missing" in refused(tmp_path / "c", name)


def test_files_beside_it_do_not_matter(whole: dict[str, bytes], tmp_path: Path) -> None:
    others = {"notes.txt": b"x", "state-0123456789abcdef.safetensors": b"torn", ".hidden": b""}
    put(tmp_path / "c", {**whole, **others})
    assert same(read_checkpoint(tmp_path / "c", allow_pickle=True), TINY)


def test_files_of_two_checkpoints_do_not_mix(tmp_path: Path) -> None:
    one, other = (written(tmp_path / name, small_state(n)) for n, name in enumerate("ab"))
    pairs = zip(sorted(one), sorted(other), strict=True)
    mixed = {name: other[theirs] if "records" in name else one[name] for name, theirs in pairs}
    put(tmp_path / "c", mixed)
    assert "not what was written" in refused(tmp_path / "c", "records-")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_damage_of_a_larger_checkpoint_is_found(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "larger"
    if not path.exists():
        write_checkpoint(
            path, {"a": torch.arange(400_000), "records": {"data": torch.ones(300, 1000)}}
        )
    name = data.draw(st.sampled_from(sorted(file.name for file in path.glob("[!.]*"))))
    file = path / name
    good = file.read_bytes()
    begin = data.draw(st.integers(0, len(good) - 1))
    length = data.draw(st.integers(1, 5000) | st.integers(1, len(good)))
    old = good[begin : begin + length]
    new = data.draw(
        st.sampled_from([b"", b"\0" * len(old), bytes(byte ^ 0x10 for byte in old), good[:length]])
        | st.binary(max_size=100)
    )
    bad = good[:begin] + new + good[begin + length :]
    try:
        file.write_bytes(bad)
        if bad == good:
            read_checkpoint(path)
        else:
            refused(path, name)
    finally:
        file.write_bytes(good)


def test_a_newer_version_says_that_it_is_newer(tmp_path: Path) -> None:
    written(tmp_path / "c", small_state())
    resealed(tmp_path / "c", lambda text: text.replace('"version": 1', '"version": 2'))
    message = refused(tmp_path / "c", "manifest.json")
    assert "a newer version of forebay has made it, in version 2" in message
    # Whatever else is different in it.
    resealed(
        tmp_path / "c",
        lambda text: text[: text.index('"files"')].replace('"version": 2', '"version": 3'),
    )
    assert "in version 3" in refused(tmp_path / "c", "manifest.json")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"version": 1', '"version": 0', "version 0"),
        ('"version": 1', '"version": true', "version True"),
        ('"version": 1', '"version": "1"', "version '1'"),
        ("forebay checkpoint", "another format", "not of the format"),
        ('"state": {', '"states": {', "expected the entries"),
        ('"name": "state-', '"name": "../state-', "has the name"),
        ('"name": "state-', '"name": "records-', "has the name"),
        ('"parts": [[0', '"parts": [[1', "do not follow each other"),
        ('"size": ', '"size": 1', "and its size is"),
        ('"made_with": {', '"made_with": {"x": 1, ', "no table of texts"),
        ('"nothing": null', '"nothing": NaN', "NaN is no JSON"),
        ('"nothing": null', '"nothing": ' + "[" * 5000 + "]" * 5000, "no JSON"),
    ],
)
def test_a_manifest_that_no_writer_makes_is_refused(
    old: str, new: str, why: str, tmp_path: Path
) -> None:
    written(tmp_path / "c", small_state())
    resealed(tmp_path / "c", lambda text: text.replace(old, new))
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(tmp_path / "c")
    assert why in str(caught.value)
    assert "manifest.json" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"data_offsets":[0,', b'"data_offsets":[1,'),
        (b'"dtype":"F32"', b'"dtype":"F99"'),
        (b'"dtype":"F32"', b'"dtype":"F64"'),
        (b'"shape":[2]', b'"shape":[3]'),
        (b'"shape":[2]', b'"shape":{} '),
        (b'"shape"', b'"shap3"'),
        (b'{"data"', b'["data"'),
        (b"\x00\x00\x00\x00\x00\x00{", b"\x00\x00\x00\x00\x00\x01{"),
    ],
)
def test_a_header_that_no_writer_makes_is_refused(old: bytes, new: bytes, tmp_path: Path) -> None:
    import zlib

    files = written(tmp_path / "c", {"records": {"data": torch.ones(2)}})
    (name,) = (name for name in files if name.startswith("records"))
    bad = files[name].replace(old, new)
    assert bad != files[name]
    assert len(bad) == len(files[name])
    (tmp_path / "c" / name).write_bytes(bad)
    sums = [f"{zlib.crc32(data):08x}" for data in (files[name], bad)]
    resealed(tmp_path / "c", lambda text: text.replace(sums[0], sums[1]))
    with pytest.raises(CheckpointError, match=rf"{name}: its header") as caught:
        read_checkpoint(tmp_path / "c")
    assert "CRC" not in str(caught.value), "the checksum is right"
