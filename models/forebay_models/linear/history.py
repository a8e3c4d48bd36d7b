"""Histories: which operations were called, when each call began and returned, what came of it.

"When" is an order, not a time: one counter numbers all calls and returns. An operation that
returned before another was called happened before it; about others nothing is known. That is all
that is recorded of a run, so a history can come from anywhere, threads or processes, and be judged
later.

As text a history is JSON lines: the setting first, then one operation a line, in order of calls.
What is unknown or does not apply is left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final, Literal, get_args

from forebay_spec.bounds import Order

Kind = Literal[
    "extend", "sample", "take", "commit", "release", "cancel", "shutdown", "empty", "len"
]
Ending = Literal[
    "done",
    "timeout",
    "cancelled",
    "shut down",
    "mutual wait",
    "failed",  # the transform of a read raised; `records` is what it saw
    "interrupted",  # ended by an exception from outside: may have had its effect or not
    "unexpected",  # ended by an error that no operation has
    "pending",  # never returned: may still have its effect, wholly, partly or not
]
Waits = Literal["for ever", "some time", "not at all"]
READS: Final = frozenset({"sample", "take"})
CALLS: Final = READS | {"extend"}
VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The buffer that a history belongs to."""

    capacity: int
    uses: int = 1
    order: Order = "fifo"
    source: str = ""

    def line(self) -> str:
        """Return the setting on one line."""
        where = f", {self.source}" if self.source else ""
        return f"C={self.capacity} N={self.uses} {self.order}{where}"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call of one public method.

    Attributes:
        actor: the thread that called; owner of its tickets and leases.
        kind: the method: `take` is drawing a lease, `commit` and `release` end it, `cancel` sets a
            token.
        call: the number of the call, which also names the operation.
        returned: the number of the return; None if it never returned.
        ended: what came of it.
        n: how many records were written, or asked for at most.
        m: how many would have done.
        waits: how long it may wait: for ever, some time, or not at all.
        records: their numbers in batch order: written, or got; None if unknown.
        slots: their slots in batch order; None if unknown.
        token: the cancel token that was passed or set.
        lease: which `take` a commit or release ends.
        mode: how far a shutdown closes.
        length: what `len` returned.
        error: the text of an unexpected error.
    """

    actor: str
    kind: Kind
    call: int
    returned: int | None = None
    ended: Ending = "done"
    n: int = 0
    m: int = 0
    waits: Waits = "for ever"
    records: tuple[int, ...] | None = None
    slots: tuple[int, ...] | None = None
    token: str = ""
    lease: int | None = None
    mode: Literal["", "draining", "stopped"] = ""
    length: int | None = None
    error: str = ""

    @property
    def loose(self) -> bool:
        """Whether it is unknown how far the operation came."""
        return self.ended in ("pending", "interrupted")

    def line(self) -> str:
        """Return the operation on one line, for people."""
        until = "never returned" if self.returned is None else f"returned at {self.returned}"
        return f"{self.actor} {self._asked()}, called at {self.call}, {until}: {self._result()}"

    def _asked(self) -> str:
        if self.kind == "extend":
            rest = f"({_numbers(self.records or ())})"
        elif self.kind in READS:
            rest = f"({self.n})" if self.m == self.n else f"({self.n}, at_least={self.m})"
        else:
            rest = f"({self.mode})" if self.mode else ""
        if self.lease is not None:
            rest = f" of the lease taken at {self.lease}"
        if self.token:
            rest += f" with {self.token}" if self.kind in CALLS else f" {self.token}"
        return f"{self.kind}{rest}"

    def _result(self) -> str:
        if self.ended != "done":
            return f"{self.ended} {self.error}".rstrip()
        parts = ["done"]
        if self.kind in READS and self.records is not None:
            parts.append(f"got {_numbers(self.records)}")
        if self.slots is not None:
            parts.append(f"slots {_numbers(self.slots)}")
        if self.length is not None:
            parts.append(f"returned {self.length}")
        return ", ".join(parts)


@dataclass(frozen=True)
class History:
    """What happened to one buffer, operations in order of their calls.

    Raises `ValueError` for what cannot be a history, such as an actor in two calls at once.
    """

    setting: Setting
    operations: tuple[Operation, ...]

    def __post_init__(self) -> None:
        """Refuse what no run can give."""
        numbers = [op.call for op in self.operations]
        numbers += [op.returned for op in self.operations if op.returned is not None]
        if len(set(numbers)) != len(numbers):
            raise ValueError("calls and returns are numbered by one counter, so each differs")
        if numbers[: len(self.operations)] != sorted(numbers[: len(self.operations)]):
            raise ValueError("operations stand in order of their calls")
        busy: dict[str, Operation] = {}
        for op in self.operations:
            before = busy.get(op.actor)
            if before is not None and (before.returned is None or before.returned > op.call):
                raise ValueError(f"an actor makes one call at a time: {before.line()}; {op.line()}")
            busy[op.actor] = op
            _check(op, self.setting)
        written = [n for op in self.operations if op.kind == "extend" for n in op.records or ()]
        if len(set(written)) != len(written) or 0 in written:
            raise ValueError("every record that is written has a number of its own, other than 0")

    @property
    def actors(self) -> tuple[str, ...]:
        """Who called, in order of their first calls."""
        return tuple(dict.fromkeys(op.actor for op in self.operations))


def as_lines(history: History) -> str:
    """Return a history as JSON lines."""
    head = {"history": VERSION, **asdict(history.setting)}
    lines = [head, *map(_sparse, history.operations)]
    return "".join(json.dumps(line, separators=(", ", ": ")) + "\n" for line in lines)


def from_lines(text: str) -> History:
    """Read a history from JSON lines; `ValueError` says what is wrong with them."""
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise ValueError("a history is lines of JSON objects, the setting first")
    head = dict(lines[0])
    if head.pop("history", None) != VERSION:
        raise ValueError(f'the first line of a history has "history": {VERSION} and the setting')
    try:
        return History(Setting(**head), tuple(map(_operation, lines[1:])))
    except TypeError as error:
        raise ValueError(f"a field of the history is missing or unknown: {error}") from error


def write(history: History, path: Path) -> None:
    """Save a history as JSON lines."""
    path.write_text(as_lines(history), encoding="utf-8")


def read(path: Path) -> History:
    """Read a history that was saved; `ValueError` says what is wrong with it."""
    return from_lines(path.read_text(encoding="utf-8"))


def _check(op: Operation, setting: Setting) -> None:
    """Refuse an operation that nobody can have called."""
    problem = ""
    if op.kind not in get_args(Kind) or op.ended not in get_args(Ending):
        problem = "unknown kind or ending"
    elif op.returned is not None and op.returned <= op.call:
        problem = "it returned before it was called"
    elif (op.returned is None) != (op.ended == "pending"):
        problem = "those that are pending, and only those, have not returned"
    elif op.kind in CALLS and not 1 <= op.m <= op.n <= setting.capacity:
        problem = f"sizes lie in 1..{setting.capacity}"
    elif op.kind == "extend" and len(op.records or ()) != op.n:
        problem = "a write names its records"
    elif op.kind == "shutdown" and not op.mode:
        problem = "a shutdown has a mode"
    elif op.kind in ("commit", "release") and op.lease is None:
        problem = "it names no lease"
    if problem:
        raise ValueError(f"{problem}: {op.line()}")


_DEFAULTS: Final = {field.name: field.default for field in fields(Operation)}


def _sparse(op: Operation) -> dict[str, object]:
    return {name: value for name, value in asdict(op).items() if value != _DEFAULTS[name]}


def _operation(line: Mapping[str, object]) -> Operation:
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in line.items()
    }
    return Operation(**values)  # type: ignore[arg-type]  # JSON; History checks the values


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))
