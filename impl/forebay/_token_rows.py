"""The table of cancel tokens: a flag for each, and whose it is.

A row is taken inside the critical section. Everything else here is single stores that need none,
since a token may be set in a signal handler and end in a finaliser.
"""

from typing import Final

import numpy as np

from forebay._layout import Layout
from forebay._stores import Ints
from forebay._trace import Tracer

KEPT: Final = -1
"""In the place of a token's owner: other processes may know the token, so its row is kept."""


class TokenRows:
    """The rows of all tokens of a ledger."""

    def __init__(self, layout: Layout, trace: Tracer) -> None:
        self._flags = layout.tokens
        self._owners = layout.token_owners
        self._trace = trace

    def new(self, participant: int) -> int | None:
        """Take a row for a token that is not set, or return None when all are taken."""
        unused = np.flatnonzero(self._owners == 0)
        if not len(unused):
            return None
        row = int(unused[0])
        self._owners[row] = participant + 1
        return row

    def keep(self, row: int) -> None:
        """Never use a row again for another token."""
        self._owners[row] = KEPT

    def free(self, row: int) -> None:
        """Make a row ready for a new token, unless it is kept."""
        if self._owners[row] != KEPT:
            self._trace.forget(row)
            self._flags[row] = 0
            self._owners[row] = 0

    def rows_of(self, participant: int) -> Ints:
        """Return the rows that end with a participant."""
        return np.flatnonzero(self._owners == participant + 1)
