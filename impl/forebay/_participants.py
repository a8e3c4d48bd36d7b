"""Who takes part: one row of shared memory for each process, by which its death is noticed.

A number of a process is used again after its death, so a row also has the time at which the process
started, and where its stack begins, which differs once it has replaced its program; a process is
alive if there is one with this number and these two. Nothing else is asked of it, and no process
has to do anything in order to be found dead. Where it cannot be told, it is taken to be alive.

The table changes inside the critical section only. A row counts as taken from the store of its
process number on, which comes last, and is free from the store of 0 on: a death in between leaves
no row half made.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from forebay._errors import LimitReached
from forebay._layout import PARTICIPANT_FIELDS

_PROCESS, _START, _STACK = range(PARTICIPANT_FIELDS)
_GONE: Final = "ZX"
"""States of a process that has ended and waits for its parent to ask how."""
_EXITING: Final = 0x4
"""The flag of a thread that is on its way out (`PF_EXITING`): it runs none of its program again.

A process that is killed gives up its mutexes in this state, before it counts as ended."""


class Identity(NamedTuple):
    """What tells a process from others that had its number, and from its earlier programs.

    Attributes:
        start: when it started, in clock ticks since the machine did.
        stack: where its stack begins, or 0 where that is not to be seen: it may be another user's,
            or its first thread may have ended.
    """

    start: int
    stack: int


def identity_of(process: int) -> Identity | None:
    """Return what tells a living process from others, or None if it has ended.

    A process whose first thread has ended is alive while it has others.

    Raises:
        OSError: it cannot be told, as at the limit of open files.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is a name in parentheses, which may hold anything. Counted from the third:
    # the state is field 0, the flags 6, the number of threads 17, the start 19, the stack 25.
    values = text.rpartition(")")[2].split()
    gone = values[0] in _GONE or int(values[6]) & _EXITING
    if gone and int(values[17]) <= 1:
        return None
    return Identity(int(values[19]), int(values[25]))


class Participants:
    """The table of participants.

    Args:
        cells: 64-bit integers in shared memory, zeros at first, `PARTICIPANT_FIELDS` for each row.
    """

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self.limit = len(cells) // PARTICIPANT_FIELDS

    def own(self) -> int | None:
        """Return the row of this process, if it has one; a forked child does not at first."""
        process = os.getpid()
        rows = (row for row in range(self.limit) if self.process(row) == process)
        return next((row for row in rows if self._same(row, identity_of(process))), None)

    def register(self) -> int:
        """Take a row for this process and return its number; inside the critical section.

        A row of a dead process is not taken: who reclaims what that process had frees it, with
        `leave`.

        Raises:
            LimitReached: no row is free.
        """
        for row in range(self.limit):
            if self.process(row) == 0:
                process = os.getpid()
                identity = identity_of(process)
                assert identity is not None, "a running process has not ended"
                self._cells[PARTICIPANT_FIELDS * row + _START] = identity.start
                self._cells[PARTICIPANT_FIELDS * row + _STACK] = identity.stack
                self._cells[self.place(row)] = process
                return row
        raise LimitReached(
            f"{self.limit} {'process uses' if self.limit == 1 else 'processes use'} this buffer, "
            f"which is the limit; construct the buffer with limits=Limits(participants=...) to "
            f"raise it"
        )

    def leave(self, row: int) -> None:
        """Free a row, once nothing belongs to it any more; inside the critical section."""
        self._cells[self.place(row)] = 0

    def place(self, row: int) -> int:
        """Return which cell of the table says who has a row."""
        return PARTICIPANT_FIELDS * row + _PROCESS

    def process(self, row: int) -> int:
        """Return the number of the process that has a row, or 0."""
        return self._cells[self.place(row)]

    def living(self, row: int) -> bool:
        """Tell whether a row is taken and the process that took it is alive, as far as is known.

        Giving back what a living process has would be worse than finding a dead one later.
        """
        process = self.process(row)
        try:
            return process != 0 and self._same(row, identity_of(process))
        except OSError:
            return True

    def dead(self) -> list[int]:
        """Return the rows that are taken by processes which have died."""
        taken = [row for row in range(self.limit) if self.process(row) != 0]
        return [row for row in taken if not self.living(row)]

    def _same(self, row: int, found: Identity | None) -> bool:
        """Tell whether the process that is found under a row's number is the one that took it."""
        first = PARTICIPANT_FIELDS * row
        start, stack = self._cells[first + _START], self._cells[first + _STACK]
        if found is None or found.start != start:
            return False
        return found.stack == stack or 0 in (found.stack, stack)
