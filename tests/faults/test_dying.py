"""A process that is on its way out is dead: it gives up its mutexes before it has ended."""

from pathlib import Path

import pytest
from forebay._participants import identity_of

EXITING = 0x4


def line(state: str, flags: int, threads: int) -> str:
    """Return what the kernel tells of a process that started at 77."""
    fields = ["1"] * 26
    fields[0], fields[6], fields[17], fields[19] = state, str(flags), str(threads), "77"
    return "123 (a name) of it) " + " ".join(fields)


@pytest.mark.parametrize(
    ("state", "flags", "threads", "start"),
    [
        ("R", 0, 1, 77),
        ("R", EXITING, 1, None),
        ("D", EXITING | 0x400, 1, None),
        ("Z", EXITING, 1, None),
        ("R", EXITING, 2, 77),
        ("Z", 0, 2, 77),
        ("S", 0x400000, 1, 77),
    ],
)
def test_who_is_exiting_with_its_last_thread_is_dead(
    monkeypatch: pytest.MonkeyPatch, state: str, flags: int, threads: int, start: int | None
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self, **how: line(state, flags, threads))
    found = identity_of(123)
    assert (found and found.start) == start
