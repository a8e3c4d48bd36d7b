"""Streams, events, and the operations that are queued in them.

A stream is a list of operations, of which the first may run next. A copy is carried out in two
steps, the first half of its rows and then the second, so that what other streams do can come in
between. An event is how many operations of a stream had been queued when it was recorded, and it is
complete when so many have run; in an empty queue that is at once.

An operation has the raw memory that it works on, and no tensor: a queued copy does not keep the
memory of a tensor from being handed out again.
"""

from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

import torch
from forebay._arrays import Array

GARBAGE: Final = 0xA5
"""What the bytes of new memory are."""

Raw: TypeAlias = Array | torch.Tensor
"""A piece of raw memory: numbers as they are, or a tensor where dtypes are to be converted."""

Part: TypeAlias = tuple[slice, ...]
"""Some of the rows, or of their words where there is one row."""


@cache
def parts(rows: int, words: int) -> tuple[Part, ...]:
    """Return the steps in which so many rows of so many words are copied."""
    if rows > 1:
        return (slice(0, rows // 2),), (slice(rows // 2, None),)
    if words > 1:
        return (slice(None), slice(0, words // 2)), (slice(None), slice(words // 2, None))
    return ((slice(None),),)


def parts_of(shape: Sequence[int]) -> tuple[Part, ...]:
    """Return the steps in which something of that shape is copied."""
    dims = len(shape)
    if not dims:
        return ((),)
    return parts(shape[0], shape[1] if dims > 1 else 1)


class Operation(Protocol):
    """What a stream does next."""

    def ready(self) -> bool:
        """Tell whether it may run."""

    def step(self, faults: list[str]) -> bool:
        """Carry out the next step of it, and tell whether that was the last."""


class SimulatedStream:
    """A queue.

    Attributes:
        name: what it is called in faults and schedules.
        number: the streams of a device in the order in which they were made.
        owner: whatever is equal for the streams of one device.
        operations: those that have not run, the next one first.
        queued: how many were ever queued.
        ran: how many have run.
        steps: how many steps of operations have been carried out.
    """

    __slots__ = ("__weakref__", "name", "number", "operations", "owner", "queued", "ran", "steps")

    def __init__(self, name: str, number: int, owner: object) -> None:
        self.name: Final = name
        self.number: Final = number
        self.owner: Final = owner
        self.operations: Final[deque[Operation]] = deque()
        self.queued = 0
        self.ran = 0
        self.steps = 0

    def __repr__(self) -> str:
        return f"stream {self.name}"

    def push(self, operation: Operation) -> None:
        """Queue an operation."""
        self.operations.append(operation)
        self.queued += 1

    def ready(self) -> bool:
        """Tell whether the first operation may run."""
        return bool(self.operations) and self.operations[0].ready()

    def step(self, faults: list[str]) -> None:
        """Carry out the next step of the first operation, which has to be ready."""
        self.steps += 1
        if self.operations[0].step(faults):
            self.operations.popleft()
            self.ran += 1


class SimulatedEvent:
    """All that had been queued in a stream when it was recorded.

    Attributes:
        stream: the stream.
        position: how many operations had been queued.
    """

    __slots__ = ("position", "stream")

    def __init__(self, stream: SimulatedStream, position: int) -> None:
        self.stream: Final = stream
        self.position: Final = position

    def __repr__(self) -> str:
        return f"event {self.position} of {self.stream}"

    @property
    def over(self) -> bool:
        """Whether all of it has run."""
        return self.stream.ran >= self.position


class Wait:
    """The stream goes on when an event is complete."""

    __slots__ = ("event",)

    def __init__(self, event: SimulatedEvent) -> None:
        self.event: Final = event

    def __repr__(self) -> str:
        return f"wait for {self.event}"

    def ready(self) -> bool:
        return self.event.over

    def step(self, faults: list[str]) -> bool:
        return True


class Copy:
    """A copy between two pieces of one shape."""

    __slots__ = ("_done", "_parts", "_source", "_target")

    def __init__(self, source: Raw, target: Raw) -> None:
        self._source: Any = source
        self._target: Any = target
        self._parts = parts_of(target.shape)
        self._done = 0

    def __repr__(self) -> str:
        return f"copy of {tuple(self._target.shape)}"

    def ready(self) -> bool:
        return True

    def step(self, faults: list[str]) -> bool:
        part = self._parts[self._done]
        self._target[part] = self._source[part]
        self._done += 1
        return self._done == len(self._parts)


class Rows:
    """A copy of rows into the slots of a column, or out of them if `out`."""

    __slots__ = ("_column", "_done", "_out", "_parts", "_rows", "_slots")

    def __init__(self, rows: Array, slots: Array, column: Array, *, out: bool) -> None:
        self._rows = rows
        self._slots = slots
        self._column = column
        self._out = out
        self._parts = parts_of(rows.shape)
        self._done = 0

    def __repr__(self) -> str:
        return f"{'take' if self._out else 'put'} of {len(self._slots)} rows"

    def ready(self) -> bool:
        return True

    def step(self, faults: list[str]) -> bool:
        part = self._parts[self._done]
        where: Any = (self._slots[part[0]], *part[1:])
        try:
            if self._out:
                self._rows[part] = self._column[where]
            else:
                self._column[where] = self._rows[part]
        except IndexError:
            numbers = where[0].tolist()
            faults.append(f"a {self} ran with slots that there are not: {numbers}")
        self._done += 1
        return self._done == len(self._parts)


class Fill:
    """Garbage in the place of what was in memory before it was handed out."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Array) -> None:
        self._memory = memory

    def __repr__(self) -> str:
        return f"new memory of {self._memory.nbytes} bytes"

    def ready(self) -> bool:
        return True

    def step(self, faults: list[str]) -> bool:
        self._memory.fill(GARBAGE)
        return True


class Look:
    """A use of memory, which has to hold by then what was promised when the use was queued."""

    __slots__ = ("_memory", "_name", "_promised", "_stream")

    def __init__(self, memory: Array, promised: Array, name: str, stream: SimulatedStream) -> None:
        self._memory = memory
        self._promised = promised
        self._name = name
        self._stream = stream

    def __repr__(self) -> str:
        return f"look at {self._name}"

    def ready(self) -> bool:
        return True

    def step(self, faults: list[str]) -> bool:
        if self._memory.tobytes() != self._promised.tobytes():
            faults.append(self._fault())
        return True

    def _fault(self) -> str:
        there, promised = self._memory, self._promised
        which = ""
        if there.ndim:
            rows = [row for row, it in enumerate(there) if it.tobytes() != promised[row].tobytes()]
            which = f" in {_some(rows)} of {len(there)} rows"
            there, promised = there[rows[0]], promised[rows[0]]
        return (
            f"{self._name} used on {self._stream} is not what was promised{which}: "
            f"expected the words {_some(promised.ravel().tolist())}, got "
            + ("garbage" if set(there.tobytes()) == {GARBAGE} else _some(there.ravel().tolist()))
        )


def _some(numbers: list[int]) -> str:
    """Write the first few numbers."""
    more = ", ..." if len(numbers) > 6 else ""
    return f"[{', '.join(map(str, numbers[:6]))}{more}]"
