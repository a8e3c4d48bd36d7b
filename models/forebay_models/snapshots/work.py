"""What writers and readers do, as threads or as processes, until they are told to stop.

Each counts on a board how many of its calls are done, right after each. So whoever looks at the
board before and after something knows of each call whether it was done before, may have been going
on, or began later.
"""

from collections.abc import MutableSequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

import numpy as np
from forebay._stores import Ints

from forebay_models.campaign.quiet import quiet_library
from forebay_models.snapshots.records import identities, records
from forebay_models.snapshots.setting import Buffer, Reader

STOP: Final = 0
"""The place on the board that says whether to stop; those behind are of one worker each."""

WAIT: Final = 0.05
"""Seconds after which a call that waits looks at the board."""

_RELEASED: Final = 5
"""One lease of so many is released."""

Board = MutableSequence[int]
Log = list[Ints]


def write(buffer: Buffer, board: Board, place: int, size: int) -> None:
    """Write batches of so many records, numbered without a gap."""
    while not board[STOP]:
        batch = records(place, board[place] * size, size)
        with suppress(TimeoutError):  # then it is certainly absent, and is tried again
            buffer.extend(batch, timeout=WAIT)
            board[place] += 1


def read(buffer: Buffer, board: Board, place: int, reader: Reader) -> tuple[Log, list[str]]:
    """Read batches; return what each of them had, and what was wrong with them."""
    log: Log = []
    wrong: list[str] = []
    while not board[STOP]:
        with suppress(TimeoutError):
            if reader.manner == "sample":
                batch = buffer.sample(reader.size, timeout=WAIT)
            else:
                lease = buffer.lease(reader.size, timeout=WAIT)
                batch = lease.batch
                if board[place] % _RELEASED == _RELEASED - 1:
                    lease.release()
                    batch = batch[:0]
                else:
                    lease.commit()
            found, torn = identities(batch)
            log.append(found)
            wrong += torn
            board[place] += 1
    return log, wrong


def work(
    there: Connection,
    buffer: Buffer,
    board: Board,
    place: int,
    job: int | Reader,
) -> None:
    """Write or read in a process of one's own, and tell in the end."""
    with quiet_library():
        if isinstance(job, int):
            write(buffer, board, place, job)
            there.send_bytes(b"")
            return
        log, wrong = read(buffer, board, place, job)
        there.send_bytes("\n".join(wrong).encode())
        there.send_bytes(np.array([len(found) for found in log], np.int64).tobytes())
        there.send_bytes(np.concatenate([np.empty(0, np.int64), *log]).tobytes())


def told(here: Connection, patience: float, job: int | Reader) -> tuple[Log, list[str]]:
    """Return what a process tells in the end; `patience` is in seconds.

    Raises:
        EOFError: it is gone.
        TimeoutError: it does not tell anything.
    """
    if not here.poll(patience):
        raise TimeoutError
    wrong = here.recv_bytes().decode().splitlines()
    if isinstance(job, int):
        return [], wrong
    sizes = np.frombuffer(here.recv_bytes(), np.int64)
    every = np.frombuffer(here.recv_bytes(), np.int64)
    return np.split(every, np.cumsum(sizes)[:-1]) if len(sizes) else [], wrong
