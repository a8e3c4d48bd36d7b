"""A number for each thread that is never given to another one.

The ledger says whose a ticket or a lease is. The identities of `threading` would not do for that:
they are used again, so that a new thread could come into the leases of one that has ended.
"""

import itertools
import threading
from weakref import WeakValueDictionary

_numbers = itertools.count()
_threads: "WeakValueDictionary[int, threading.Thread]" = WeakValueDictionary()


class _Me(threading.local):
    """The present thread's number; made when a thread first asks for it."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        _threads[self.number] = threading.current_thread()


_me = _Me()


def thread_number() -> int:
    """Return the number of the calling thread; it is at least 0."""
    return _me.number


def thread_name(number: int) -> str:
    """Return the name of the thread with that number, or the number itself once it has gone."""
    thread = _threads.get(number)
    return f"thread {number}" if thread is None else thread.name
