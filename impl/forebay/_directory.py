"""A directory that holds one checkpoint, which a crash leaves as it was or as it was to be.

A checkpoint is several files, and no operating system replaces several at once. What it does
replace at once is one file, by a rename. So one file, `manifest.json`, says which others make up
the checkpoint. These have a new name in every generation and never change: `records-G.safetensors`
with G sixteen random hexadecimal digits. To publish is to rename a new manifest over the old one.

To write a checkpoint into the directory PATH:

 1. Make PATH if it is not there. (Its parent must be.)
 2. Lock `PATH/.lock`. The lock ends with its owner, so from here on nobody else writes in PATH, and
    whatever is there of other generations is nobody's.
 3. Sync the directory that PATH is in, since whoever made PATH may not have lived to do it, and
    sync PATH. Then remove every file of a generation that `manifest.json` does not name: what
    crashes have left, which may be what fills the disk. (The sync of PATH, because that manifest
    may not be on the disk yet, and must be before what it replaced is gone. If the manifest is
    damaged nothing is removed.)
 4. Create each file of the new generation under its new name, write it, sync it.
 5. Create `manifest-G.json`, write it, sync it.
 6. Sync the directory PATH: now everything that the new manifest names is there after a crash.
 7. Rename `manifest-G.json` to `manifest.json`. This is the commit: before it PATH holds the old
    checkpoint, after it the new one.
 8. Sync the directory PATH: now the commit is on the disk.
 9. Remove every file of a generation that `manifest.json` does not name: the old ones. Let go of
    the lock.

An error in 4 to 6 removes the files of the new generation and changes nothing else. One in 7 or 8
removes nothing, since nobody can tell which manifest is on the disk: 3 does it the next time.

To read: read `manifest.json`, then open all files that it names, and only then read them. A file
that is open stays whole when its name is removed. If one cannot be found, read `manifest.json`
again: if it is another one by now, begin anew with that, and if it is the same the checkpoint is
damaged. Each new beginning means that somebody has published meanwhile, so readers take no lock,
need no right to write, and wait for nobody.

`tla/DirectoryCommit.tla` is this protocol, with a crash between any two of its operations.
"""

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from forebay import _files, _manifest
from forebay._errors import CheckpointError
from forebay._manifest import Damaged, Manifest, Unusable

_LOCK = ".lock"
_OF_A_GENERATION = re.compile(r"([a-z]+)-[0-9a-f]{16}\.([a-z]+)")
_ROLES = {**_manifest.ROLES, "manifest": "json"}


class Generation:
    """A checkpoint that is being written: its files are there, and nobody finds them yet."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._mark = secrets.token_hex(8)
        self._made: list[str] = []
        self._found = False

    @contextmanager
    def create(self, role: str) -> Iterator[tuple[str, int]]:
        """Make a file; yield its name and a descriptor to write to it, and sync it in the end."""
        name = f"{role}-{self._mark}.{_ROLES[role]}"
        path = os.path.join(self._path, name)
        self._made.append(name)
        descriptor = _files.create(path)
        try:
            yield name, descriptor
            _files.sync(descriptor)
        except OSError as error:
            # One that comes from a descriptor does not say which file it was.
            if error.filename is None:
                error.filename = path
            raise
        finally:
            _files.close(descriptor)

    def publish(self, manifest: Manifest) -> None:
        """Make the files that were created the checkpoint: steps 5 to 8."""
        with self.create("manifest") as (name, descriptor):
            _files.write(descriptor, memoryview(_manifest.seal(manifest)), 0)
        _files.sync_directory(self._path)
        self._found = True
        _files.rename(os.path.join(self._path, name), os.path.join(self._path, _manifest.NAME))
        _files.sync_directory(self._path)

    def discard(self) -> None:
        """Remove what was created, unless somebody may find it."""
        for name in () if self._found else self._made:
            with suppress(OSError):
                _files.remove(os.path.join(self._path, name))


@contextmanager
def generation(path: str) -> Iterator[Generation]:
    """Lock a directory for a new generation; remove what crashes left before, and the old after.

    Raises:
        CheckpointError: the path is a file, or a directory that holds something else.
        OSError: the operating system refuses something.
    """
    path = os.path.realpath(path)
    _make(path)
    with _files.locked(os.path.join(path, _LOCK)):
        _files.sync_directory(os.path.dirname(path))
        _files.sync_directory(path)
        _sweep(path)
        made = Generation(path)
        try:
            yield made
        except BaseException:
            made.discard()
            raise
        _sweep(path)


def _make(path: str) -> None:
    """Make the directory of a checkpoint unless it is there."""
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # somebody else was faster
            _files.make_directory(path)
    if not os.path.isdir(path):
        raise CheckpointError(f"{path} is a file, and a checkpoint is a directory")
    names = _files.names(path)
    if names and not any(map(_is_ours, names)) and not _begins_like_one(path):
        raise CheckpointError(
            f"{path} is a directory with other files in it, as {names[0]!r}; give the checkpoint a "
            "directory of its own"
        )


def _is_ours(name: str) -> bool:
    """Tell whether a name is one that nobody else gives a file."""
    found = _OF_A_GENERATION.fullmatch(name)
    return name == _LOCK or (found is not None and _ROLES.get(found[1]) == found[2])


def _begins_like_one(path: str) -> bool:
    raw = _read_manifest(path)
    return raw is not None and _manifest.begins_like_one(raw)


def _sweep(path: str) -> None:
    """Remove the files of all generations but the published one."""
    raw = _read_manifest(path)
    try:
        manifest = None if raw is None else _manifest.unseal(raw)
    except Unusable:
        return
    kept = set() if manifest is None else {file.name for file in manifest.files.values()}
    for name in _files.names(path):
        if _is_ours(name) and name != _LOCK and name not in kept:
            _files.remove(os.path.join(path, name))


def _read_manifest(path: str) -> bytes | None:
    """Return the bytes of the manifest, or None if there is none."""
    try:
        descriptor = _files.open_to_read(os.path.join(path, _manifest.NAME))
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        raw = bytearray(_files.size(descriptor))
        return bytes(raw[: _files.read(descriptor, memoryview(raw), 0)])
    finally:
        _files.close(descriptor)


@contextmanager
def published(path: str) -> Iterator[tuple[Manifest, Mapping[str, int]]]:
    """Yield the manifest of a checkpoint, and a descriptor to read each file by its role.

    Raises:
        Damaged: a file is missing, or the manifest is not what was written.
        Unusable: there is no checkpoint, or one that is too new.
        OSError: the operating system refuses something.
    """
    seen: bytes | None = None
    while True:
        raw = _read_manifest(path)
        if raw is None:
            raise Unusable(_without_manifest(path))
        manifest = _manifest.unseal(raw)
        with ExitStack() as open_files:
            try:
                descriptors = _open(path, manifest, open_files)
            except Damaged:
                if raw == seen:
                    raise
                seen = raw
                continue
            yield manifest, descriptors
            return


def _open(path: str, manifest: Manifest, open_files: ExitStack) -> dict[str, int]:
    """Open all files of a generation."""
    descriptors = {}
    for role, file in manifest.files.items():
        try:
            descriptors[role] = _files.open_to_read(os.path.join(path, file.name))
        except FileNotFoundError:
            raise Damaged(f"{file.name}: it is missing") from None
        open_files.callback(_files.close, descriptors[role])
    return descriptors


def _without_manifest(path: str) -> str:
    if not os.path.lexists(path):
        return "there is no such directory"
    if not os.path.isdir(path):
        return "this is a file, and a checkpoint is a directory"
    if any(map(_is_ours, _files.names(path))):
        return f"{_manifest.NAME}: it is missing; or the first checkpoint here was never finished"
    return f"there is no {_manifest.NAME} here, so this is no checkpoint"
