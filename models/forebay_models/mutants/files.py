"""Faults planted in how a checkpoint is put in the place of another.

Most are those of `tla/MCDirectoryCommit.tla`, by the same names; here they are planted in the
library, and `forebay campaign faults` has to find each.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Final, NamedTuple
from unittest.mock import patch

from forebay import _checkpoint, _directory, _files, _manifest
from forebay._directory import Generation
from forebay._manifest import Manifest, Unusable
from forebay._parts import Reader


class FileMutant(NamedTuple):
    """A fault: what is wrong, and a context manager that plants it."""

    sentence: str
    plant: Callable[[], AbstractContextManager[object]]


class _Files:
    """The file operations as `forebay._directory` sees them, one of them replaced."""

    def __init__(self, name: str, function: Callable[..., object]) -> None:
        self._name = name
        self._function = function

    def __getattr__(self, name: str) -> object:
        return self._function if name == self._name else getattr(_files, name)


def _with(
    name: str, function: Callable[..., object]
) -> Callable[[], AbstractContextManager[object]]:
    return lambda: patch.object(_directory, "_files", _Files(name, function))


def _publishing(
    *,
    entries: bool = True,
    renamed: bool = True,
    sweep_first: bool = False,
    sweep_early: bool = False,
    in_place: bool = False,
) -> Callable[[], AbstractContextManager[object]]:
    """Return what plants a `publish` that lacks a step, or has one too early."""

    def publish(self: Generation, manifest: Manifest) -> None:
        raw = memoryview(_manifest.seal(manifest))
        with self.create("manifest") as (name, descriptor):
            _files.write(descriptor, raw, 0)
        if entries:
            _files.sync_directory(self._path)
        if sweep_first:
            for other in _files.names(self._path):
                if _directory._is_ours(other) and other not in (*self._made, _directory._LOCK):
                    _files.remove(os.path.join(self._path, other))
        self._found = True
        published = os.path.join(self._path, _manifest.NAME)
        if in_place:
            if os.path.lexists(published):
                _files.remove(published)
            descriptor = _files.create(published)
            _files.write(descriptor, raw, 0)
            _files.sync(descriptor)
            _files.close(descriptor)
        else:
            _files.rename(os.path.join(self._path, name), published)
        if sweep_early:
            _directory._sweep(self._path)
        if renamed:
            _files.sync_directory(self._path)

    return lambda: patch.object(Generation, "publish", publish)


def _sync_inner(path: str) -> None:
    """Sync the directory of a checkpoint, which has a lock in it, and not the one that it is in."""
    if os.path.lexists(os.path.join(path, _directory._LOCK)):
        _files.sync_directory(path)


def _old_not_synced() -> AbstractContextManager[object]:
    """Plant that a directory is not synced for as long as nothing was created in it."""
    created: set[str] = set()

    class Seen(_Files):
        def create(self, path: str) -> int:
            created.add(os.path.dirname(path))
            return _files.create(path)

    def sync_directory(path: str) -> None:
        if path in created or not os.path.lexists(os.path.join(path, _directory._LOCK)):
            _files.sync_directory(path)

    return patch.object(_directory, "_files", Seen("sync_directory", sync_directory))


@contextmanager
def _one_look(path: str) -> Iterator[tuple[Manifest, Mapping[str, int]]]:
    raw = _directory._read_manifest(path)
    if raw is None:
        raise Unusable(_directory._without_manifest(path))
    manifest = _manifest.unseal(raw)
    with ExitStack() as open_files:
        yield manifest, _directory._open(path, manifest, open_files)


def _discard_all(self: Generation) -> None:
    for name in self._made:
        path = os.path.join(self._path, name)
        if os.path.lexists(path):
            _files.remove(path)


FILE_MUTANTS: Final[dict[str, FileMutant]] = {
    "data_not_synced": FileMutant(
        "the manifest is renamed before the data is on the disk",
        _with("sync", lambda descriptor: None),
    ),
    "entries_not_synced": FileMutant(
        "the rename may reach the disk before the names of the files", _publishing(entries=False)
    ),
    "rename_not_synced": FileMutant(
        "a dump returns before its rename is on the disk", _publishing(renamed=False)
    ),
    "swept_before_synced": FileMutant(
        "the old checkpoint is removed before the rename is on the disk",
        _publishing(sweep_early=True),
    ),
    "removed_before_rename": FileMutant(
        "the old checkpoint is removed before the new one is found", _publishing(sweep_first=True)
    ),
    "manifest_in_place": FileMutant(
        "the manifest is written where it is, instead of renamed", _publishing(in_place=True)
    ),
    "place_not_synced": FileMutant(
        "the directory itself may not be on the disk", _with("sync_directory", _sync_inner)
    ),
    "old_not_synced": FileMutant(
        "a dump sweeps by a manifest that may not be on the disk", _old_not_synced
    ),
    "one_look": FileMutant(
        "a reader takes a file that was replaced for one that is missing",
        lambda: patch.object(_checkpoint, "published", _one_look),
    ),
    "found_discarded": FileMutant(
        "a dump that fails removes files that its manifest names",
        lambda: patch.object(Generation, "discard", _discard_all),
    ),
    "no_lock": FileMutant(
        "two dumps write to one directory at once", _with("locked", lambda path: nullcontext())
    ),
    "leftovers_kept": FileMutant(
        "what killed dumps left stays",
        lambda: patch.object(_directory, "_sweep", lambda path: None),
    ),
    "digest_unchecked": FileMutant(
        "the bytes of files are not compared with their checksums",
        lambda: patch.object(Reader, "_check", lambda self: None),
    ),
}


@contextmanager
def planted_in_files(fault: str) -> Iterator[None]:
    """Plant the fault of that name for the length of the block; nothing without a name."""
    with FILE_MUTANTS[fault].plant() if fault else nullcontext():
        yield
