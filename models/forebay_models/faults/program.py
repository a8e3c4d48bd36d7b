"""What the processes of a scenario do: short programs, written as text.

extend 2; sample 2 1      a write of two records; a read of two, or of one if there are no more
sample 1 raises           a read whose transform raises
lease 1; commit           a lease that is committed (or `release`)
observe 1                 waiting until a record could be sampled, without taking it
register; leave           the beginning and the end of a producer's block
token                     making a cancel token and setting it
empty; shutdown           dropping all records; closing for draining
"""

from typing import Final, NamedTuple

from forebay import (
    AdmissionTimeout,
    Cancelled,
    MutualWait,
    PeerLost,
    SampleTimeout,
    ShutDown,
)

READS: Final = ("sample", "lease")
_SIZES: Final = {"extend": 1, "sample": 2, "lease": 2, "observe": 1}
_KINDS: Final = (*_SIZES, "commit", "release", "register", "leave", "token", "empty", "shutdown")

OK: Final = "ok"
RAISED: Final = "raised"
ERRORS: Final[dict[type[BaseException], str]] = {
    error: error.__name__
    for error in (AdmissionTimeout, Cancelled, MutualWait, PeerLost, SampleTimeout, ShutDown)
}
"""The errors that calls may end with, as they are told between processes."""


class Op(NamedTuple):
    """One call: its kind, its sizes (a read's are k and m), and whether its transform raises."""

    kind: str
    sizes: tuple[int, ...] = ()
    raises: bool = False


class Did(NamedTuple):
    """How a call ended: `ok`, `raised` or an error's name; the records written or received."""

    op: Op
    outcome: str
    numbers: tuple[int, ...]


def ops_of(program: str) -> tuple[Op, ...]:
    """Read a program; `ValueError` says what is wrong with any other text."""
    return tuple(_op_of(text.split()) for text in program.split(";") if text.strip())


def _op_of(words: list[str]) -> Op:
    kind, *rest = words
    raises = rest[-1:] == ["raises"]
    sizes = tuple(map(int, rest[: len(rest) - raises]))
    if kind in READS and len(sizes) == 1:
        sizes *= 2
    if kind not in _KINDS or len(sizes) != _SIZES.get(kind, 0) or (raises and kind not in READS):
        raise ValueError(f"no call is written {' '.join(words)!r}")
    return Op(kind, sizes, raises)
