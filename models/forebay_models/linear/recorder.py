"""Takes down what actors call and what comes of it.

How a call and a return get their numbers, and where they are written, differs: `Recorder` is for
threads and has one counter; that of processes is in `wire`.
"""

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar, cast

from forebay import AdmissionTimeout, Cancelled, MutualWait, SampleTimeout, ShutDown

from forebay_models.linear.history import Ending, Operation, wrong_result

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


class Taking(ABC):
    """Calls operations, and has them taken down."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many operations have returned."""

    @abstractmethod
    def _calls(self, op: Operation) -> int:
        """Take down that an operation is about to be called, and return the number of the call."""

    @abstractmethod
    def _number(self) -> int:
        """Return the next number."""

    @abstractmethod
    def _returned(self, op: Operation) -> None:
        """Take down an operation that has returned."""

    def perform(
        self,
        op: Operation,
        do: Callable[[], T],
        result: Callable[[Operation, T], Operation],
        raised: Callable[[Operation], Operation] = lambda op: op,
    ) -> tuple[Operation, T | None]:
        """Call `do` as the operation; return it with what came of it, and its value if it has one.

        `result` adds what its value tells, and `raised` what else is known of an operation that
        ended by an error that operations have. An operation whose value cannot be read, or is none
        that it can have, has ended unexpectedly. What is no `Exception` is taken down and goes on.
        """
        value: T | None = None
        error: BaseException | None = None
        # Nothing that takes time stands between the numbers and the call.
        called = self._calls(op)
        try:
            value = do()
            returned = self._number()
        except BaseException as ended_by:
            returned = self._number()
            error = ended_by
        op = replace(op, call=called, returned=returned)
        if error is None:
            op = _read(op, partial(result, op, cast(T, value)))
        else:
            op = _ended_by(op, error, raised)
        self._returned(op)
        if error is not None and not isinstance(error, Exception):
            raise error
        return op, value


class Recorder(Taking):
    """Takes down operations of threads, in the order of one counter."""

    def __init__(self) -> None:
        self._clock = itertools.count(1)
        self._open: dict[str, tuple[Operation, list[int]]] = {}
        self._closed: list[Operation] = []
        self.completed = threading.Semaphore(0)

    @property
    def count(self) -> int:
        """How many operations have returned."""
        return len(self._closed)

    def _calls(self, op: Operation) -> int:
        called = [0]
        self._open[op.actor] = (op, called)
        called[0] = next(self._clock)
        return called[0]

    def _number(self) -> int:
        return next(self._clock)

    def _returned(self, op: Operation) -> None:
        self._closed.append(op)
        self.completed.release()

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


def _ended_by(
    op: Operation, error: BaseException, raised: Callable[[Operation], Operation]
) -> Operation:
    """Return an operation that ended by an error."""
    ended = next((name for kind, name in ENDINGS if isinstance(error, kind)), None)
    if ended is None:
        return replace(op, ended="unexpected", error=repr(error))
    op = replace(op, ended=ended)
    return _read(op, partial(raised, op))


def _read(op: Operation, told: Callable[[], Operation]) -> Operation:
    """Return an operation with its results, or as an unexpected ending if it has no such results.

    What the library returned may be anything, so reading it may raise anything.
    """
    try:
        whole = told()
        wrong = wrong_result(whole)
    except Exception as error:
        wrong = f"what it returned cannot be read: {error!r}"
    return replace(op, ended="unexpected", error=wrong) if wrong else whole
