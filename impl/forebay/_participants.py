"""Who takes part: one row of shared memory for each process, by which its death is noticed.

A number of a process is used again after its death, so a row also has the time at which the process
started; a process is alive if there is one with this number and this start. Nothing else is asked
of it, and no process has to do anything in order to be found dead.

The table changes inside the critical section only. A row counts as taken from the store of its
process number on, which comes last, and is free from the store of 0 on: a death in between leaves
no row half made.
"""

import os
from pathlib import Path
from typing import Final

from forebay._errors import LimitReached
from forebay._layout import PARTICIPANT_FIELDS

_PROCESS, _START = range(PARTICIPANT_FIELDS)
_GONE: Final = "ZX"
"""States of a process that has ended and waits for its parent to ask how."""
_EXITING: Final = 0x4
"""The flag of a thread that is on its way out (`PF_EXITING`): it runs none of its program again.

A process that is killed gives up its mutexes in this state, before it counts as ended."""


def start_of(process: int) -> int | None:
    """Return when a living process started, in clock ticks since the machine did, or None.

    A process whose first thread has ended is alive while it has others.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is a name in parentheses, which may hold anything. Counted from the third:
    # the state is field 0, the flags 6, the number of threads 17, the start 19.
    values = text.rpartition(")")[2].split()
    gone = values[0] in _GONE or int(values[6]) & _EXITING
    if gone and int(values[17]) <= 1:
        return None
    return int(values[19])


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
        return next((row for row in rows if self.living(row)), None)

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
                start = start_of(process)
                assert start is not None, "a running process has a start"
                self._cells[PARTICIPANT_FIELDS * row + _START] = start
                self._cells[self.place(row)] = process
                return row
        raise LimitReached(
            f"{self.limit} processes use this buffer, which is the limit; construct the buffer "
            f"with limits=Limits(participants=...) to raise it"
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
        """Tell whether a row is taken and the process that took it is alive."""
        process = self.process(row)
        return process != 0 and start_of(process) == self._cells[PARTICIPANT_FIELDS * row + _START]

    def dead(self) -> list[int]:
        """Return the rows that are taken by processes which have died."""
        taken = [row for row in range(self.limit) if self.process(row) != 0]
        return [row for row in taken if not self.living(row)]
