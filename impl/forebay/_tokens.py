"""Cancel tokens: a flag in the ledger that ends the calls that carry it.

Setting a token is one plain store and a wake that takes no lock, so it may be done in a signal
handler, even one that interrupts the very thread that holds the buffer's lock or sleeps in it.
`threading.Event` cannot promise that, and nobody can wait for both an event and a buffer.
"""

from forebay._core import Core
from forebay._errors import LimitReached
from forebay._one_process import OneProcess


class CancelToken(OneProcess):
    """Ends every call that was given this token, before or after it began to wait.

    A call that has been admitted or has drawn its records goes on to its end. A set token stays
    set. Tokens come from `BlockingReplayBuffer.cancel_token`; those of a shared buffer can be given
    to other processes. A token that may be known elsewhere, because it was pickled or its process
    has forked, counts against `Limits.tokens` for as long as the buffer lives.
    """

    def __init__(self, core: Core, row: int) -> None:
        self._core = core
        self._row = row

    def set(self) -> None:
        """Set the flag and wake the calls that wait with this token; safe in a signal handler."""
        self._core.set_cancel(self._row)

    def is_set(self) -> bool:
        """Tell whether the flag is set."""
        return self._core.ledger.flagged(self._row)

    def row_for(self, core: Core) -> int | None:
        """Return the flag's place in the ledger of `core`, or None if it is in another one."""
        return self._row if core is self._core else None

    def _travels(self) -> bool:
        if self._core.peers.shared:
            self._core.ledger.tokens.keep(self._row)
        return self._core.peers.shared

    def __repr__(self) -> str:
        if self._core.forked:
            return f"<CancelToken {self._row} of another process>"
        return f"<CancelToken {self._row}, {'set' if self.is_set() else 'not set'}>"

    def __del__(self) -> None:
        try:
            core, row = self._core, self._row
        except AttributeError:  # it was never finished
            return
        if not core.forked:
            core.ledger.tokens.free(row)


def new_token(core: Core) -> CancelToken:
    """Return a token that is not set.

    Raises:
        LimitReached: there are as many tokens as the limits allow.
    """
    core.reclaim()
    core.thread_actor()
    row = core.new_token()
    if row is None:
        limit = core.ledger.limits.tokens
        raise LimitReached(
            f"{limit} cancel {'token exists' if limit == 1 else 'tokens exist'}, which is the "
            f"limit; tokens that were pickled, or that existed when a process forked, count for as "
            f"long as the buffer lives; construct the buffer with limits=Limits(tokens=...) to "
            f"raise it"
        )
    return CancelToken(core, row)
