"""What lives in one process: never copied, never pickled, refused in a forked child.

A buffer, a token and a lease are places in one ledger. A copy of a lease would end the original's
batch, and a pickle of a private ledger would be another one that nobody else sees. A fork makes
such a private copy in silence, perhaps with the lock held by a thread that the child does not have.
So the cores of all buffers of one process are known, and the first thing that happens in a forked
child is that everything a call would use is taken away from them. That costs a call nothing.

Buffers over a shared storage are handles: those travel, and so do their tokens and writers. Where
the records are on a device, a forked child is refused all the same, since it cannot use the device.
"""

import os
from typing import Final, NoReturn, Protocol, SupportsIndex
from weakref import WeakKeyDictionary


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
    """Stands where a call looks first in a forked child, and refuses it.

    Args:
        words: what the child is told.
    """

    def __init__(self, words: str) -> None:
        self._words = words

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(self._words)

    def __enter__(self) -> NoReturn:
        raise RuntimeError(self._words)

    def __exit__(self, *error: object) -> None:
        pass


class Bound(Protocol):
    """What a fork makes useless in the child: its `ledger`, `monitor` and `section`."""

    forked: bool


ELSEWHERE: Final = (
    "this buffer belongs to the process that made it, and this is a forked child, which has only a "
    "copy; make a buffer in each process, or one over a SharedStorage for all of them"
)
ON_DEVICE: Final = (
    "the records of this buffer are in the memory of a device, and a forked child cannot use the "
    "device of its parent; start processes by spawn or forkserver, and give them the buffer as an "
    "argument"
)
_bound: "WeakKeyDictionary[Bound, str]" = WeakKeyDictionary()


def elsewhere() -> RuntimeError:
    """Return the error of every call in a forked child."""
    return RuntimeError(ELSEWHERE)


def bind_to_process(core: Bound, words: str = ELSEWHERE) -> None:
    """Make the core of a buffer useless in processes that are forked from now on.

    `words` are what these are told.
    """
    _bound[core] = words


def _forget_all() -> None:
    for core, words in list(_bound.items()):
        refusal = Elsewhere(words)
        vars(core).update(forked=True, ledger=refusal, monitor=refusal, section=refusal)
    _bound.clear()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_forget_all)
