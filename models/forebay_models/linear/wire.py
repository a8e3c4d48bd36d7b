"""How processes tell what they call and what comes of it: as lines in one pipe.

A call is told before it is made and a return after it has come, each with its time by the monotonic
clock, which is one clock for all processes of a machine. A line is shorter than what a pipe takes
as a whole, so a process that is killed has told a line or has not. What a process had in hand when
it was killed is thus known to have been called, at the latest when its line was written.

The lines of one process come in their order, those of several in none. At the end all are put in
the order of their times; a call and a return of the same time count as overlapping.
"""

import json
import os
import select
import time
from dataclasses import replace
from typing import Final

from forebay_models.linear.history import Operation
from forebay_models.linear.lines import operation_from, operation_line
from forebay_models.linear.recorder import Taking

_LONGEST: Final = 250
"""Characters of a text in a line; each may take 12 bytes there."""


def now() -> int:
    """Return the time, in nanoseconds, by a clock that all processes of a machine have."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class LineRecorder(Taking):
    """Takes down the operations of one process as lines.

    Args:
        pipe: the end of the pipe to write to.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._count = 0

    @property
    def count(self) -> int:
        """How many operations of this process have returned."""
        return self._count

    def _calls(self, op: Operation) -> int:
        called = now()
        self._tell(operation_line(replace(op, call=called, ended="pending")))
        return called

    def _number(self) -> int:
        return now()

    def _returned(self, op: Operation) -> None:
        self._count += 1
        self._tell(operation_line(replace(op, error=op.error[:_LONGEST])))

    def say(self, who: str, text: str) -> None:
        """Tell a text of somebody's, in pieces."""
        for start in range(0, len(text), _LONGEST):
            self._tell(json.dumps({"who": who, "text": text[start : start + _LONGEST]}))

    def _tell(self, line: str) -> None:
        told = line.encode("ascii") + b"\n"
        assert len(told) <= select.PIPE_BUF
        os.write(self._pipe, told)


class Transcript:
    """What was told so far.

    Attributes:
        under_way: the operation that each actor was in by its last line, if it was in one.
        lines: how many lines each actor has written.
        said: the texts that were told, by whom.
    """

    def __init__(self) -> None:
        self.under_way: dict[str, Operation] = {}
        self.lines: dict[str, int] = {}
        self.said: dict[str, str] = {}
        self._closed: list[Operation] = []
        self._rest = b""

    @property
    def count(self) -> int:
        """How many operations have returned."""
        return len(self._closed)

    def hear(self, told: bytes) -> list[Operation]:
        """Take in what came through the pipe, and return the operations that it tells of."""
        *lines, self._rest = (self._rest + told).split(b"\n")
        heard = [self._line(line.decode("ascii")) for line in lines]
        return [op for op in heard if op is not None]

    def add(self, op: Operation) -> None:
        """Take in an operation that has returned."""
        self._closed.append(op)

    def operations(self) -> tuple[Operation, ...]:
        """Return all operations, numbered in the order of their times."""
        there = [*self._closed, *self.under_way.values()]
        moments = [(op.call, 0, place) for place, op in enumerate(there)]
        moments += [
            (op.returned, 1, place) for place, op in enumerate(there) if op.returned is not None
        ]
        calls: dict[int, int] = {}
        returns: dict[int, int] = {}
        for number, (_, returning, place) in enumerate(sorted(moments), 1):
            (returns if returning else calls)[place] = number
        taken = {(op.actor, op.call): calls[place] for place, op in enumerate(there)}
        numbered = [
            replace(
                op,
                call=calls[place],
                returned=returns.get(place),
                lease=None if op.lease is None else taken[op.actor, op.lease],
            )
            for place, op in enumerate(there)
        ]
        return tuple(sorted(numbered, key=lambda op: op.call))

    def _line(self, line: str) -> Operation | None:
        if line.startswith('{"who"'):
            who, text = json.loads(line).values()
            self.said[who] = self.said.get(who, "") + text
            return None
        op = operation_from(line, sum(self.lines.values()) + 1)
        self.lines[op.actor] = self.lines.get(op.actor, 0) + 1
        if op.returned is None:
            self.under_way[op.actor] = op
        else:
            self.under_way.pop(op.actor, None)
            self._closed.append(op)
        return op
