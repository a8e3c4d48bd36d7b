"""Damaged checkpoints: every byte of a small one, and random damages of a larger; all refused.

A checkpoint with a damage has to be refused with a `CheckpointError`, whatever the damage: not
loaded with other values, not loaded because the values happen to be right, and not left to some
error that says nothing. What is damaged is put right again before the next damage, and has to load.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from forebay import CheckpointError
from forebay._checkpoint import read_checkpoint, write_checkpoint

from forebay_models.faults.checkpoints import LOCK, alike, state_of
from forebay_models.faults.crew import Wrong
from forebay_models.faults.operations import nothing_synced
from forebay_models.mutants.files import planted_in_files

SMALL: Final = 4
LARGE: Final = 40_000
"""Records of the two checkpoints."""

_LONGEST: Final = 5000
"""Bytes that one damage touches at most."""


class Damages:
    """Damages of checkpoints.

    Args:
        damages: random ones of the larger checkpoint.
        seed: of these, and of what each byte of the small one becomes.
        every_bit: whether each bit of each byte of the small one is turned by itself, instead of
            one other value for each byte.
        fault: the planted fault, or nothing.
        tell: is told how far it has come.
    """

    def __init__(
        self,
        *,
        damages: int,
        seed: int,
        every_bit: bool,
        fault: str,
        tell: Callable[[str], None],
    ) -> None:
        self._damages = damages
        self._choice = random.Random(seed)
        self._every_bit = every_bit
        self._fault = fault
        self._tell = tell
        self.did: Counter[str] = Counter()
        self.bytes = 0

    def run(self) -> None:
        """Try all damages.

        Raises:
            Wrong: a damaged checkpoint is loaded; the message names the damage.
        """
        with (
            tempfile.TemporaryDirectory(prefix="forebay-") as folder,
            planted_in_files(self._fault),
            nothing_synced(),
        ):
            self._every_byte(Path(folder) / "small")
            self._at_random(Path(folder) / "large", Path(folder) / "other")

    def _every_byte(self, path: Path) -> None:
        files = _write(path, 1, SMALL)
        for name, good in files.items():
            self._tell(f"every byte of {name}")
            self.bytes += len(good)
            for position in range(len(good)):
                for turned in self._turns():
                    bad = bytearray(good)
                    bad[position] ^= turned
                    self._refuse(path, name, bytes(bad), "bytes", f"byte {position} ^ {turned}")
            (path / name).write_bytes(good)
        _expect_whole(path, 1, SMALL)

    def _turns(self) -> list[int]:
        if self._every_bit:
            return [1 << bit for bit in range(8)]
        return [self._choice.randrange(1, 256)]

    def _at_random(self, path: Path, other: Path) -> None:
        files = _write(path, 1, LARGE)
        others = _write(other, 2, LARGE)
        of_role = {_role(name): data for name, data in others.items()}
        for count in range(self._damages):
            name = self._choice.choice(sorted(files))
            good = files[name]
            kind = self._choice.choice(sorted(_KINDS))
            if kind == "swap":
                bad, what = of_role[_role(name)], "taken from another checkpoint"
            else:
                bad, what = _KINDS[kind](good, self._choice)
            if bad == good:  # zeros where there were zeros
                bad, what = _flip(good, self._choice)
                kind = "flip"
            if count % 50 == 0:
                self._tell(f"{count:,} damages of {self._damages:,}")
            # A manifest of another checkpoint is a good manifest, of files that are not there.
            self._refuse(path, name, bad, kind, what)
            (path / name).write_bytes(good)
        _expect_whole(path, 1, LARGE)

    def _refuse(self, path: Path, name: str, bad: bytes, kind: str, what: str) -> None:
        """Check that a checkpoint with this file is refused."""
        (path / name).write_bytes(bad)
        where = f"{name} with a damage ({kind}: {what})"
        try:
            read_checkpoint(path)
        except CheckpointError:
            self.did[kind] += 1
        except Exception as error:
            raise Wrong(f"{where} gives {type(error).__name__}: {error}") from error
        else:
            raise Wrong(f"{where} is loaded as if nothing were wrong")


def _flip(good: bytes, choice: random.Random) -> tuple[bytes, str]:
    bad, places = bytearray(good), set()
    for _ in range(choice.choice((1, 1, 2, 8, 64))):
        places.add(choice.randrange(len(good)))
    for place in places:
        bad[place] ^= choice.randrange(1, 256)
    return bytes(bad), f"bytes {sorted(places)}"


def _insert(good: bytes, choice: random.Random) -> tuple[bytes, str]:
    place, size = choice.randrange(len(good) + 1), choice.randrange(1, _LONGEST)
    return good[:place] + choice.randbytes(size) + good[place:], f"{size} bytes at {place}"


def _remove(good: bytes, choice: random.Random) -> tuple[bytes, str]:
    begin, end = _range(good, choice)
    return good[:begin] + good[end:], f"bytes {begin} to {end}"


def _zero(good: bytes, choice: random.Random) -> tuple[bytes, str]:
    begin, end = _range(good, choice)
    return good[:begin] + bytes(end - begin) + good[end:], f"bytes {begin} to {end}"


def _cut(good: bytes, choice: random.Random) -> tuple[bytes, str]:
    end = choice.randrange(len(good))
    return good[:end], f"ends at {end}"


def _move(good: bytes, choice: random.Random) -> tuple[bytes, str]:
    begin, end = _range(good, choice)
    rest = good[:begin] + good[end:]
    place = choice.randrange(len(rest) + 1)
    return rest[:place] + good[begin:end] + rest[place:], f"bytes {begin} to {end} to {place}"


def _range(good: bytes, choice: random.Random) -> tuple[int, int]:
    begin = choice.randrange(len(good))
    return begin, min(len(good), begin + choice.randrange(1, _LONGEST))


_Damage = Callable[[bytes, random.Random], tuple[bytes, str]]
_KINDS: Final[dict[str, _Damage]] = {
    "cut": _cut,
    "flip": _flip,
    "insert": _insert,
    "move": _move,
    "remove": _remove,
    "swap": _flip,
    "zero": _zero,
}


def _write(path: Path, number: int, rows: int) -> dict[str, bytes]:
    """Write a checkpoint and return the bytes of its files by their names."""
    write_checkpoint(path, state_of(number, rows))
    _expect_whole(path, number, rows)
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.name != LOCK}


def _expect_whole(path: Path, number: int, rows: int) -> None:
    if not alike(read_checkpoint(path), state_of(number, rows)):
        raise Wrong(f"{path.name}: it is not read as it was written")


def _role(name: str) -> str:
    """Return what a file is for; its name is that and random digits, but for the manifest's."""
    return name.partition("-")[0]
