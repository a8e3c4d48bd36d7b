"""Checkpoints on disk: a nested state of tensors and plain values, written and read back.

`write_checkpoint` refuses what it cannot keep before it touches the disk, and publishes all or
nothing. `read_checkpoint` checks every byte before it returns anything. The format is on the page
`docs/reference/checkpoints.md`, how it is published in `_directory`.

Memory: what is written needs one piece of it more than what is there already; what is read is read
once, each tensor into memory of its own that becomes the tensor.
"""

import os
import pickle
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from forebay._decoding import Decoder
from forebay._directory import Generation, generation, published
from forebay._encoding import Encoder, RowSource, spoken
from forebay._errors import CheckpointError
from forebay._manifest import NAME as MANIFEST
from forebay._manifest import Damaged, File, Manifest, Unusable
from forebay._parts import Reader, Stream, summing_threads
from forebay._tensor_file import Stored, TensorFile, read_tensors

__all__ = ["RowSource", "read_checkpoint", "read_records", "write_checkpoint"]

_PACKAGES = ("forebay", "numpy", "tensordict", "torch")
_PIECE = 2**26


def write_checkpoint(
    path: str | os.PathLike[str], state: Mapping[str, object], *, allow_pickle: bool = False
) -> None:
    """Write a state to a directory, in place of the checkpoint that is there.

    A crash at any point leaves the old checkpoint or the new one. Another call that writes to the
    same directory is waited for. Readers are not held up.

    Args:
        path: the directory; it is made if it is not there, its parent is not.
        state: nested dicts, lists and tuples of plain values, tensors, arrays, TensorDicts and
            tensorclasses. `state["records"]["data"]` may be a `RowSource`.
        allow_pickle: whether anything else is pickled.

    Raises:
        CheckpointError: the state or the path will not do; nothing was changed.
        OSError: the operating system refuses something, as on a full disk; the old checkpoint is
            whole.
    """
    path = os.fspath(path)
    encoder = Encoder(allow_pickle=allow_pickle)
    tree = encoder.encode(dict(state))
    pickled = _pickled(encoder) if encoder.objects else None
    files: dict[str, File] = {}
    with generation(path) as made, summing_threads() as threads:
        for role in ("records", "state"):
            if encoder.looks[role]:
                files[role] = _write_tensors(made, role, encoder, threads)
        if pickled is not None:
            with made.create("objects") as (name, descriptor):
                stream = Stream(descriptor, 0, threads)
                stream.write(memoryview(pickled))
                files["objects"] = File(name, len(pickled), tuple(stream.finish()))
        made.publish(Manifest(_releases(), files, tree))


def _write_tensors(
    made: Generation, role: str, encoder: Encoder, threads: ThreadPoolExecutor
) -> File:
    with made.create(role) as (name, descriptor):
        file = TensorFile(descriptor, encoder.looks[role], threads)
        if role == "records" and encoder.rows is not None:
            source, names = encoder.rows
            parts = file.write_rows(names, source.length, source.chunks())
        else:
            parts = file.write_whole(encoder.pieces[role])
        return File(name, file.size, tuple(sorted(parts)))


def _pickled(encoder: Encoder) -> bytes:
    """Return all objects in one pickle, so that what they share stays shared."""
    try:
        return pickle.dumps([value for _, value in encoder.objects], protocol=4)
    except Exception:
        for place, value in encoder.objects:
            try:
                pickle.dumps(value, protocol=4)
            except Exception as error:
                raise CheckpointError(
                    f"{spoken(place)} cannot be pickled: {type(error).__name__}: {error}"
                ) from error
        raise


def _releases() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a checkout that is not installed
            found[name] = "unknown"
    return found


def read_checkpoint(
    path: str | os.PathLike[str], *, allow_pickle: bool = False
) -> dict[str, object]:
    """Return the state that was written to a directory; tensors are on the host.

    A checkpoint that is replaced meanwhile is read as it was before or after.

    Args:
        path: the directory.
        allow_pickle: whether objects may be unpickled. That runs code of whoever wrote them.

    Raises:
        CheckpointError: there is none, or it is not what was written, or it needs something that is
            not there; the message says which file, in what, and what to do.
        OSError: the operating system refuses something.
    """
    with _explained(path), published(os.fspath(path)) as (manifest, descriptors):
        if "objects" in manifest.files and not allow_pickle:
            raise Unusable(
                f"{manifest.files['objects'].name} holds pickled objects, and to load them runs "
                "code of whoever wrote them; pass allow_pickle=True if you trust them"
            )
        tensors: dict[str, dict[str, Stored]] = {}
        raw = bytearray()
        with summing_threads() as threads:
            for role, file in manifest.files.items():
                reader = Reader(descriptors[role], file, threads)
                if role == "objects":
                    raw = _whole(reader)
                else:
                    tensors[role] = read_tensors(reader, file.name)
        objects = _unpickled(raw, manifest.files["objects"].name) if raw else []
        try:
            state = Decoder(tensors, objects).decode(manifest.state)
        except RecursionError as error:
            raise Damaged(f"{MANIFEST}: the state is nested too deeply") from error
        if not isinstance(state, dict):
            raise Damaged(f"{MANIFEST}: the state is no table")
        return state


def read_records(path: str | os.PathLike[str], *, allow_pickle: bool = False) -> object:
    """Return the records of a checkpoint as one batch, whatever buffer they come from.

    This is the way to go on with another capacity, another number of processes, or another kind of
    buffer: make it, then `buffer.extend(forebay.read_records(path))`. The records come in the order
    in which the buffer keeps them, under arrival order the oldest first. How often they were
    sampled and what was prefetched is not among them.

    Args:
        path: the directory that `dumps` has written.
        allow_pickle: whether objects may be unpickled, which a `ListStorage` may hold. That runs
            code of whoever wrote them.

    Returns:
        A TensorDict or a tensorclass; a list, if the records come from a `ListStorage`.

    Raises:
        CheckpointError: there is no checkpoint, it is damaged, or it holds no records.
        OSError: the operating system refuses something.
    """
    records = read_checkpoint(path, allow_pickle=allow_pickle).get("records")
    if not isinstance(records, dict) or records.get("data") is None:
        raise CheckpointError(f"the checkpoint in {os.fspath(path)} holds no records")
    data: object = records["data"]
    return data


def examine(path: str | os.PathLike[str]) -> Manifest:
    """Check every byte of a checkpoint without loading it, and return what its manifest says.

    Raises:
        CheckpointError: there is none, or it is not what was written.
        OSError: the operating system refuses something.
    """
    with (
        _explained(path),
        published(os.fspath(path)) as (manifest, descriptors),
        summing_threads() as threads,
    ):
        for role, file in manifest.files.items():
            reader = Reader(descriptors[role], file, threads)
            while reader.left:
                reader.read(memoryview(bytearray(min(reader.left, _PIECE))))
                reader.finish()
        return manifest


@contextmanager
def _explained(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except Unusable as error:
        raise CheckpointError(
            f"the checkpoint in {os.fspath(path)} cannot be used: {error}"
        ) from error


def _whole(reader: Reader) -> bytearray:
    raw = bytearray(reader.left)
    reader.read(memoryview(raw))
    reader.finish()
    return raw


def _unpickled(raw: bytearray, name: str) -> list[object]:
    try:
        objects = pickle.loads(raw)
    except Exception as error:
        raise Unusable(
            f"{name}: it cannot be unpickled: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(objects, list):
        raise Damaged(f"{name}: it holds no list")
    return objects
