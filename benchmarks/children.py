"""Processes that measurements need, and that are gone when the measurement is, however it ends.

They are started with Ctrl-C kept from them: in a terminal it goes to all processes, and what ends
the children is that the parent leaves the block in which it has them.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Literal, NamedTuple

PATIENCE = 60.0
"""Seconds after which somebody who says nothing is taken for stuck."""

Method = Literal["fork", "spawn"]


class Child(NamedTuple):
    """The number of a process, and the line to it."""

    number: int
    line: Connection

    def hear(self, patience: float = PATIENCE) -> object:
        """Return what it says next, within so many seconds.

        Raises:
            TimeoutError: it says nothing for too long.
            EOFError: it has ended.
        """
        if not self.line.poll(patience):
            raise TimeoutError("a process of the benchmark says nothing")
        return self.line.recv()


@contextmanager
def child(work: Callable[..., None], *args: object, method: Method = "fork") -> Iterator[Child]:
    """Start a process that does this work with a line to us and these arguments."""
    context = get_context(method)
    mine, its = context.Pipe()
    process = context.Process(  # type: ignore[attr-defined]  # each context has its own
        target=work, args=(its, *args), daemon=True
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        its.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert process.pid is not None
    try:
        yield Child(process.pid, mine)
    finally:
        process.kill()
        process.join()
        mine.close()
