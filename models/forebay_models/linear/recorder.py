"""Takes down what threads call and what comes of it, in the order of one counter."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from forebay import AdmissionTimeout, Cancelled, MutualWait, SampleTimeout, ShutDown

from forebay_models.linear.history import Ending, Operation

T = TypeVar("T")


class TransformFailed(Exception):
    """What the transform of a recorded run raises when it is to fail."""


ENDINGS: Final[tuple[tuple[type[Exception], Ending], ...]] = (
    (AdmissionTimeout, "timeout"),
    (SampleTimeout, "timeout"),
    (Cancelled, "cancelled"),
    (ShutDown, "shut down"),
    (MutualWait, "mutual wait"),
    (TransformFailed, "failed"),
)


class Recorder:
    """Takes down operations; several threads may use it at once."""

    def __init__(self) -> None:
        self._clock = itertools.count(1)
        self._open: dict[str, tuple[Operation, list[int]]] = {}
        self._closed: list[Operation] = []
        self.completed = threading.Semaphore(0)

    @property
    def count(self) -> int:
        """How many operations have returned."""
        return len(self._closed)

    def perform(
        self, op: Operation, do: Callable[[], T], result: Callable[[Operation, T | None], Operation]
    ) -> tuple[Operation, T | None]:
        """Call `do` as the operation; return it with what came of it, and its value if it has one.

        `result` adds to an operation that has returned what its value tells.
        """
        clock, called = self._clock, [0]
        self._open[op.actor] = (op, called)
        value, error = None, ""
        ended: Ending = "done"
        # Nothing that takes time stands between the numbers and the call.
        called[0] = next(clock)
        try:
            value = do()
            returned = next(clock)
        except Exception as raised:
            returned = next(clock)
            known = (name for kind, name in ENDINGS if isinstance(raised, kind))
            ended = next(known, "unexpected")
            error = repr(raised) if ended == "unexpected" else ""
        op = replace(op, call=called[0], returned=returned, ended=ended, error=error)
        op = result(op, value)
        self._closed.append(op)
        self.completed.release()
        return op, value

    def operations(self) -> tuple[Operation, ...]:
        """Return all operations in order of their calls, with those that have not returned."""
        # The open ones are taken first, so that one which returns meanwhile is not missed.
        there = {
            called: replace(op, call=called, ended="pending")
            for op, (called,) in list(self._open.values())
            if called
        }
        there |= {op.call: op for op in list(self._closed)}
        return tuple(there[call] for call in sorted(there))
