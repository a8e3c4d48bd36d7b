"""The manifest: one JSON document that says what a checkpoint is made of, and proves itself whole.

It names the files with their sizes and checksums and holds the state itself, with references where
tensors belong. It ends with the digest of everything before the last line's digest, so that it is
plain JSON and can still be checked without making JSON canonical: every byte is either hashed, or
is one of the last 79, which are fixed but for the digest.

What later versions keep: the name of the file, its last line, and the entries `format` and
`version`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

FORMAT = "forebay checkpoint"
VERSION = 1
NAME = "manifest.json"
ROLES = {"records": "safetensors", "state": "safetensors", "objects": "pickle"}

_BEGINNING = f'{{\n"format": "{FORMAT}",\n'.encode()
_TAIL = re.compile(rb'"sha256": "([0-9a-f]{64})"\n}\n')
_TAIL_SIZE = 79


class Unusable(ValueError):
    """Why a checkpoint cannot be used."""


class Damaged(Unusable):
    """A file is not what was written; says which one, and in what it differs."""


class Part(NamedTuple):
    """A range of bytes of a file, with the CRC-32 of these bytes in hexadecimal digits."""

    begin: int
    end: int
    crc32: str


class File(NamedTuple):
    """A file of a checkpoint: its name, its size in bytes, and the parts that cover it in order."""

    name: str
    size: int
    parts: tuple[Part, ...]


class Manifest(NamedTuple):
    """What a manifest says: made with which releases, the files by role, and the state as JSON."""

    made_with: Mapping[str, str]
    files: Mapping[str, File]
    state: object


def seal(manifest: Manifest) -> bytes:
    """Return the bytes of `manifest.json`."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "made_with": dict(manifest.made_with),
        "files": {role: file._asdict() for role, file in manifest.files.items()},
        "state": manifest.state,
    }
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)},\n"
        for key, value in document.items()
    ]
    text = "".join(["{\n", *lines]).encode("ascii")
    return text + f'"sha256": "{hashlib.sha256(text).hexdigest()}"\n}}\n'.encode("ascii")


def begins_like_one(raw: bytes) -> bool:
    """Tell whether bytes begin as a manifest of any version does, whole or not."""
    return raw.startswith(_BEGINNING)


def unseal(raw: bytes) -> Manifest:
    """Return what a manifest says.

    Raises:
        Damaged: a byte of it is not as it was written, or another program wrote it.
        Unusable: a newer version wrote it.
    """
    text = raw[:-_TAIL_SIZE]
    tail = _TAIL.fullmatch(raw[-_TAIL_SIZE:])
    if not raw:
        _fail("it is empty")
    if tail is None:
        _fail("it does not end with its digest: it is cut short or altered, or no manifest")
    digest = hashlib.sha256(text).hexdigest()
    if tail[1].decode() != digest:
        _fail(f"its digest is {digest}, and it says {tail[1].decode()}")
    try:
        document = json.loads(raw.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _fail(f"it is no JSON: {error}")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        _fail(f"it is not of the format {FORMAT!r}")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        _fail(f"it has the version {version!r}, which is none")
    if version > VERSION:
        raise Unusable(
            f"{NAME}: a newer version of forebay has made it, in version {version} of the format; "
            f"this one reads versions up to {VERSION}, so install a newer one"
        )
    expected = {"format", "version", "made_with", "files", "state", "sha256"}
    if document.keys() != expected:
        _fail(f"expected the entries {sorted(expected)}, got {sorted(document)}")
    return Manifest(_texts(document["made_with"]), _files(document["files"]), document["state"])


def _files(value: object) -> dict[str, File]:
    if not isinstance(value, dict) or not value.keys() <= ROLES.keys():
        _fail(f"expected files of the roles {sorted(ROLES)}")
    return {role: _file(role, entry) for role, entry in value.items()}


def _file(role: str, entry: object) -> File:
    if not isinstance(entry, dict) or entry.keys() != set(File._fields):
        _fail(f"the file of the role {role!r} needs the entries {sorted(File._fields)}")
    name, size, listed = entry["name"], entry["size"], entry["parts"]
    # A name from a file must not lead out of the directory.
    if not isinstance(name, str) or not re.fullmatch(
        rf"{role}-[0-9a-f]{{16}}\.{ROLES[role]}", name
    ):
        _fail(f"the file of the role {role!r} has the name {name!r}")
    if not _whole(size) or not isinstance(listed, list):
        _fail(f"{name} needs a size and a list of parts")
    parts, end = [], 0
    for part in listed:
        if not isinstance(part, list) or len(part) != 3 or not _is_part(part, end):
            _fail(f"the parts of {name} do not follow each other from byte 0")
        parts.append(Part(*part))
        end = parts[-1].end
    if end != size:
        _fail(f"the parts of {name} end at byte {end}, and its size is {size}")
    return File(name, size, tuple(parts))


def _is_part(part: list[object], begin: int) -> bool:
    return (
        all(map(_whole, part[:2]))
        and part[0] == begin
        and isinstance(part[1], int)
        and part[1] > begin
        and isinstance(part[2], str)
    )


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        _fail("'made_with' is no table of texts")
    return value


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _fail(sentence: str) -> NoReturn:
    raise Damaged(f"{NAME}: {sentence}")
