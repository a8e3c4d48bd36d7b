"""Actors: a number for each thread and each task of each process that takes part in a buffer.

The ledger says whose a ticket or a lease is. The identities of `threading` would not do for that:
they are used again, so that a new thread could come into the leases of one that has ended. So each
thread has a number of its own, which is never given to another one of its process; an actor is that
number below and the process's row in the table of participants above. Tasks of asyncio, which
belong to no thread, are numbered downwards from -1 in the same way.
"""

import itertools
import threading
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from forebay._stores import Flags, Ints

_BITS: Final = 32
_BELOW: Final = (1 << _BITS) - 1

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


def actor_of(participant: int, number: int) -> int:
    """Return the actor for a thread, numbered from 0, or a task, numbered from -1 downwards."""
    place = participant << _BITS
    return place | number if number >= 0 else -(place | -number)


def participant_of(actor: int) -> int:
    """Return which participant an actor belongs to."""
    return abs(actor) >> _BITS


def number_in_process(actor: int) -> int:
    """Return the number that an actor has in its own process."""
    number = abs(actor) & _BELOW
    return number if actor >= 0 else -number


def owned_by(actors: Ints, participant: int) -> Flags:
    """Tell which of these actors belong to a participant."""
    flags: Flags = np.abs(actors) >> _BITS == participant
    return flags
