"""A disk after a loss of power: what was synced is there, of all else any combination.

The same as in `tla/DirectoryCommit.tla`, with bytes: each name, and the content of each file, is
one thing now and may be one of several after the loss. Of a file that was not synced there may be
any stage of its writing, half of the last write, or zeros of the full length, as some file systems
leave them. A single name never becomes half of something.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from forebay_models.faults import operations as op
from forebay_models.faults.operations import Step

T = TypeVar("T")
Image = tuple[tuple[str, bytes], ...] | None
"""The files of a directory, or None where there is no directory."""


@dataclass
class _Cell(Generic[T]):
    """What something is, and all that it may be after a loss of power."""

    now: T
    may: set[T]

    def change(self, value: T) -> None:
        self.now = value
        self.may.add(value)

    def sync(self) -> None:
        self.may = {self.now}


class Disk:
    """A directory and its files; files go by the name under which they were created."""

    def __init__(self) -> None:
        self._place = _Cell(False, {False})
        self._entries: dict[str, _Cell[str | None]] = {}
        self._data: dict[str, _Cell[bytes]] = {}

    def copy(self) -> "Disk":
        """Return a disk that goes on by itself."""
        return deepcopy(self)

    def take(self, step: Step) -> None:
        """Do what a step does."""
        match step.kind:
            case op.MAKE_PLACE:
                self._place.change(True)
            case op.SYNC_PLACE:
                self._place.sync()
            case op.SYNC_ENTRIES:
                for entry in self._entries.values():
                    entry.sync()
            case op.CREATE:
                self._data[step.name] = _Cell(b"", {b""})
                self._entry(step.name).change(step.name)
            case op.WRITE:
                self._write(self._data[step.name], step)
            case op.SYNC:
                self._data[step.name].sync()
            case op.RENAME:
                self._entry(step.new).change(self._entry(step.name).now)
                self._entry(step.name).change(None)
            case op.REMOVE:
                self._entry(step.name).change(None)
            case _:
                raise ValueError(f"nothing is known of the step {step.kind!r}")

    def _entry(self, name: str) -> _Cell[str | None]:
        return self._entries.setdefault(name, _Cell(None, {None}))

    def _write(self, cell: _Cell[bytes], step: Step) -> None:
        for size in (len(step.data) // 2, len(step.data)):
            data = bytearray(cell.now.ljust(step.offset, b"\0"))
            data[step.offset : step.offset + size] = step.data[:size]
            cell.may.add(bytes(data))
        cell.change(bytes(data))
        cell.may.add(bytes(len(data)))

    def after_loss(self, most: int, choice: random.Random) -> tuple[Sequence[Image], bool]:
        """Return what may be on the disk after a loss of power, and whether that is all of it.

        If there are more combinations than `most`, so many are drawn, besides the one in which all
        is there.
        """
        names = list(self._entries)
        named = {file for entry in self._entries.values() for file in entry.may}
        files = [file for file in self._data if file in named]
        cells: list[_Cell[bool] | _Cell[str | None] | _Cell[bytes]]
        cells = [self._place, *self._entries.values(), *(self._data[file] for file in files)]
        values: list[list[object]] = [sorted(cell.may, key=repr) for cell in cells]
        count = 1
        for those in values:
            count *= len(those)
        combinations: Iterator[Sequence[object]]
        if count <= most:
            combinations = itertools.product(*values)
        else:
            drawn = ([choice.choice(those) for those in values] for _ in range(most))
            combinations = itertools.chain([[cell.now for cell in cells]], drawn)
        found: dict[Image, None] = {}
        for place, *rest in combinations:
            contents = dict(zip(files, rest[len(names) :], strict=True))
            entries = dict(zip(names, rest[: len(names)], strict=True))
            found[_image(entries, contents) if place else None] = None
        return list(found), count <= most


def _image(entries: dict[str, object], contents: dict[str, object]) -> Image:
    image = []
    for name, file in sorted(entries.items()):
        if file is not None:
            data = contents[str(file)]
            assert isinstance(data, bytes)
            image.append((name, data))
    return tuple(image)


def put(image: Image, path: Path) -> None:
    """Make a directory as it is in an image."""
    if image is None:
        return
    path.mkdir()
    for name, data in image:
        (path / name).write_bytes(data)
