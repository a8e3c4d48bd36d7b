"""What lives in one process: never copied, never pickled, refused in a forked child.

A buffer, a token and a lease are places in one ledger. A copy of a lease would end the original's
batch, and a pickle of a private ledger would be another one that nobody else sees. A fork makes
such a private copy in silence, perhaps with the lock held by a thread that the child does not have.
So the cores of all buffers of one process are known, and the first thing that happens in a forked
child is that everything a call would use is taken away from them. That costs a call nothing.

Buffers over a shared storage are handles: those travel, and so do their tokens and writers.
"""

import os
from typing import Final, NoReturn, Protocol, SupportsIndex
from weakref import WeakSet


class OneProcess:
    """Can be neither copied nor pickled, unless it belongs to a shared buffer and may travel."""

    def _travels(self) -> bool:
        """Tell whether this may be pickled now; whatever has to be done before that is done."""
        return False

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if self._travels():
            return super().__reduce_ex__(protocol)
        raise TypeError(
            f"a {type(self).__name__} can be neither copied nor pickled: it lives in one process; "
            f"give its threads the object itself. Buffers over a SharedStorage, their writers and "
            f"their cancel tokens can be given to other processes"
        )


class Elsewhere:
    """Stands where a call looks first in a forked child, and refuses it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise elsewhere()

    def __enter__(self) -> NoReturn:
        raise elsewhere()

    def __exit__(self, *error: object) -> None:
        pass


class Bound(Protocol):
    """What a fork makes useless in the child: its `ledger`, `monitor` and `section`."""

    forked: bool


ELSEWHERE: Final = Elsewhere()
_bound: "WeakSet[Bound]" = WeakSet()


def elsewhere() -> RuntimeError:
    """Return the error of every call in a forked child."""
    return RuntimeError(
        "this buffer belongs to the process that made it, and this is a forked child, which has "
        "only a copy; make a buffer in each process, or one over a SharedStorage for all of them"
    )


def bind_to_process(core: Bound) -> None:
    """Make the core of a buffer useless in processes that are forked from now on."""
    _bound.add(core)


def _forget_all() -> None:
    for core in list(_bound):
        vars(core).update(forked=True, ledger=ELSEWHERE, monitor=ELSEWHERE, section=ELSEWHERE)
    _bound.clear()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_forget_all)
