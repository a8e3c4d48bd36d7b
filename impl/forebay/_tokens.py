"""Cancel tokens: a flag in the ledger that ends the calls that carry it.

Setting a token is one plain store and a wake that takes no lock, so it may be done in a signal
handler, even one that interrupts the very thread that holds the buffer's lock or sleeps in it.
`threading.Event` cannot promise that, and nobody can wait for both an event and a buffer.
"""

from collections import deque

from forebay._core import Core
from forebay._errors import LimitReached
from forebay._one_process import OneProcess


class CancelToken(OneProcess):
    """Ends every call that was given this token, before or after it began to wait.

    A call that has been admitted or has drawn its records goes on to its end. A set token stays
    set. Tokens come from `BlockingReplayBuffer.cancel_token`.
    """

    def __init__(self, core: Core, row: int, unused: deque[int]) -> None:
        self._core = core
        self._row = row
        self._unused = unused

    def set(self) -> None:
        """Set the flag and wake the calls that wait with this token; safe in a signal handler."""
        self._core.set_cancel(self._row)

    def is_set(self) -> bool:
        """Tell whether the flag is set."""
        return self._core.ledger.flagged(self._row)

    def row_for(self, core: Core) -> int | None:
        """Return the flag's place in the ledger of `core`, or None if it is in another one."""
        return self._row if core is self._core else None

    def __repr__(self) -> str:
        if self._core.forked:
            return f"<CancelToken {self._row} of another process>"
        return f"<CancelToken {self._row}, {'set' if self.is_set() else 'not set'}>"

    def __del__(self) -> None:
        try:
            core, unused = self._core, self._unused
        except AttributeError:  # it was never finished
            return
        if not core.forked:
            core.ledger.clear_flag(self._row)
            unused.append(self._row)


class Tokens:
    """Hands out the token rows of a ledger; those of tokens that are gone are used again."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._unused: deque[int] = deque(range(core.ledger.limits.tokens))

    def new(self) -> CancelToken:
        """Return a token that is not set.

        Raises:
            LimitReached: there are as many tokens as the limits allow.
        """
        limit = self._core.ledger.limits.tokens
        try:
            row = self._unused.popleft()
        except IndexError:
            raise LimitReached(
                f"{limit} cancel tokens exist, which is the limit; "
                f"construct the buffer with limits=Limits(tokens=...) to raise it"
            ) from None
        return CancelToken(self._core, row, self._unused)
