"""Replay tokens: a failure as one word that can be pasted into a report and run again.

A token is `forebay1.<run>.<checksum>`: the version, the run as canonical JSON, compressed and in
base64url, and the first digits of a SHA-256 over both. So a token that lost a letter on its way is
told from one of a newer version, and both from something that is no token at all.

A run belongs to a *level*: where the failure was found, and where it has to be run again. Levels
register here when their module is loaded, so that a token of the models needs no torch. A fault
that was planted by its name is part of the token: the replay plants it again.
"""

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Final, Protocol

from forebay_models.documents import Fields, Json
from forebay_models.outcome import Outcome

VERSION: Final = 1
LARGEST: Final = 1 << 24
"""Bytes of JSON in a token at most; a token that claims more is refused before it is unpacked."""

_CHECKSUM_DIGITS: Final = 12
_SHAPE: Final = re.compile(r"forebay([0-9]{1,6})\.([A-Za-z0-9_-]+)\.([0-9a-f]+)")


class TokenError(ValueError):
    """A text is no token that can be run here; the message says why."""


class Run(Protocol):
    """What a token is about: one run that can be taken again."""

    level: ClassVar[str]

    def as_json(self) -> dict[str, Json]:
        """Return the run as one JSON object."""

    def again(self, fault: str) -> Outcome:
        """Take the run once more, with this fault planted, or with none if it is empty.

        Returns:
            VIOLATED if the failure comes again, HOLDS if it does not.

        Raises:
            TokenError: nothing of that name can be planted.
        """


Level = Callable[[object], Run]
"""Reads a level's run from a JSON object, or raises `DocumentError`."""

LEVELS: Final[dict[str, Level]] = {}
"""The levels whose modules are loaded; a module adds its own."""

HOMES: Final[Mapping[str, str]] = {
    "walk": "forebay_models.runs.walk",
    "spec": "forebay_models.runs.spec",
    "tlc": "forebay_models.runs.tlc",
    "schedule": "forebay_models.runs.schedule",
}
"""Where each level lives; the module is loaded when a token of the level is read."""


@dataclass(frozen=True)
class Token:
    """What a token says: a run, and the planted fault with which it failed, if any."""

    run: Run
    fault: str = ""


def token_of(run: Run, *, fault: str = "") -> str:
    """Return the token of a run.

    Args:
        run: the run.
        fault: the name of the planted fault with which it failed, or nothing.
    """
    content: dict[str, Json] = {"level": run.level, "run": run.as_json()}
    if fault:
        content["fault"] = fault
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    body = f"forebay{VERSION}.{packed}"
    return f"{body}.{_checksum(body)}"


def read_token(text: str) -> Token:
    """Return what a token says.

    Raises:
        TokenError: it is no token, damaged, of a newer version, or of an unknown level.
    """
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise TokenError("not a replay token: one reads forebay1.<letters and digits>.<checksum>")
    if int(shape[1]) > VERSION:
        raise TokenError(
            f"this token is of version {shape[1]}, and this forebay knows versions up to"
            f" {VERSION}: use a newer forebay"
        )
    if _checksum(f"forebay{shape[1]}.{shape[2]}") != shape[3]:
        raise TokenError("this token is damaged: its checksum does not fit; copy it again, whole")
    content = _unpacked(shape[2])
    try:
        fields = Fields(json.loads(content), "token")
        name, fault = fields.text("level"), ""
        if "fault" in fields.names():
            fault = fields.text("fault")
        run = fields.take("run")
        fields.end()
        return Token(_level(name)(run), fault)
    except TokenError:
        raise
    except (ValueError, RecursionError) as error:
        raise TokenError(f"this token says what this forebay cannot read: {error}") from error


def _level(name: str) -> Level:
    home = HOMES.get(name)
    if name not in LEVELS and home is not None:
        import_module(home)
    if name not in LEVELS:
        raise TokenError(f"the level {name!r} is unknown; there are: {', '.join(HOMES)}")
    return LEVELS[name]


def _unpacked(packed: str) -> bytes:
    padding = "=" * (-len(packed) % 4)
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(base64.urlsafe_b64decode(packed + padding), LARGEST)
    except (binascii.Error, zlib.error) as error:
        raise TokenError(f"this token cannot be unpacked: {error}") from error
    if not unpacker.eof:
        raise TokenError(f"this token is cut short or holds more than {LARGEST:,} bytes")
    return text


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:_CHECKSUM_DIGITS]
