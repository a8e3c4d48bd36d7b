"""Histories: which operations were called, when each call began and returned, what came of it.

"When" is an order, not a time: one counter numbers all calls and returns. An operation that
returned before another was called happened before it; about others nothing is known. That is all
that is recorded of a run, so a history can come from anywhere, threads or processes, and be judged
later.

What no run can give - an actor in two calls at once, a timeout that returned records, the commit of
a lease that its caller never took - is no history and is refused. Whether the results are right is
another question, which is not asked here.

Processes may be killed. That is an operation, too, of whoever kills: it is called before the signal
is sent, and has returned when the victim is known to be dead. The victim was in a call then, which
is pending for ever, or in none; it calls nothing and gets nothing once the kill has returned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from forebay_spec.bounds import ConsumingOrder

Kind = Literal[
    "extend",
    "sample",
    "take",
    "commit",
    "release",
    "cancel",
    "shutdown",
    "empty",
    "len",
    "kill",
    "recover",
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
Mode = Literal["", "draining", "stopped"]
READS: Final = frozenset({"sample", "take"})
CALLS: Final = READS | {"extend"}
_ENDS_LEASE: Final = ("commit", "release")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The buffer that a history belongs to."""

    capacity: int
    uses: int = 1
    order: ConsumingOrder = "fifo"
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no buffer."""
        if self.capacity < 1 or self.uses < 1:
            raise ValueError("capacity and uses are at least 1")
        if self.order not in get_args(ConsumingOrder):
            raise ValueError(f"the order is one of {', '.join(get_args(ConsumingOrder))}")

    def line(self) -> str:
        """Return the setting on one line."""
        where = f", {self.source}" if self.source else ""
        return f"C={self.capacity} N={self.uses} {self.order}{where}"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call of one public method, a kill, or a look for the dead.

    Attributes:
        actor: the thread or process that called; owner of its tickets and leases.
        kind: the method: `take` is drawing a lease, `commit` and `release` end it, `cancel` sets a
            token, `recover` looks for the dead and gives back all that they have.
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
        victim: who dies by a kill.
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
    mode: Mode = ""
    length: int | None = None
    error: str = ""
    victim: str = ""

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
            inside = self.mode or self.victim
            rest = f"({inside})" if inside else ""
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


class Impossible(ValueError):
    """An operation that no run can give; `place` is where it stands among the operations."""

    def __init__(self, problem: str, op: Operation, place: int) -> None:
        super().__init__(f"{problem}: {op.line()}")
        self.place = place


@dataclass(frozen=True)
class History:
    """What happened to one buffer, operations in order of their calls.

    Raises `Impossible` for what cannot be a history, such as an actor in two calls at once.
    """

    setting: Setting
    operations: tuple[Operation, ...]

    def __post_init__(self) -> None:
        """Refuse what no run can give."""
        together = _problems_together(self.operations)
        for place, (op, among) in enumerate(zip(self.operations, together, strict=True)):
            problem = problem_alone(op, self.setting) or among
            if problem:
                raise Impossible(problem, op, place)

    @property
    def actors(self) -> tuple[str, ...]:
        """Who called, in order of their first calls."""
        return tuple(dict.fromkeys(op.actor for op in self.operations))

    @property
    def kills(self) -> dict[str, Operation]:
        """Who was killed, and by which operation."""
        return {op.victim: op for op in self.operations if op.kind == "kill"}


def problem_alone(op: Operation, setting: Setting) -> str:
    """Say why nobody can have called an operation, or got that from it; nothing if one can."""
    return _first(*_unknown(op), *_misshapen(op, setting)) or wrong_result(op)


def wrong_result(op: Operation) -> str:
    """Say why an operation of its kind and ending has no such results; nothing if it can have."""
    return _first(*_misfitting(op))


def _first(*checks: tuple[bool, str]) -> str:
    return next((text for wrong, text in checks if wrong), "")


def _unknown(op: Operation) -> Iterator[tuple[bool, str]]:
    """Yield what may be wrong with the words and numbers of any operation."""
    yield op.kind not in get_args(Kind), f"there is no operation {op.kind!r}"
    yield op.ended not in get_args(Ending), f"there is no ending {op.ended!r}"
    yield op.waits not in get_args(Waits), f"one waits {', '.join(get_args(Waits))}"
    yield op.mode not in get_args(Mode), "the modes are draining and stopped"
    early = op.returned is not None and op.returned <= op.call
    yield early, "it returned before it was called"
    open_ended = (op.returned is None) != (op.ended == "pending")
    yield open_ended, "those that are pending, and only those, have not returned"


def _misshapen(op: Operation, setting: Setting) -> Iterator[tuple[bool, str]]:
    """Yield what may be wrong with what an operation of its kind was given."""
    kind, most = op.kind, setting.capacity
    writes, waits = kind == "extend", kind in CALLS
    yield waits and not 1 <= op.m <= op.n <= most, f"sizes lie in 1..{most}"
    yield writes and op.m != op.n, "a write is of one size"
    yield not waits and (op.n, op.m) != (0, 0), f"{kind} has no size"
    yield not waits and op.waits != "for ever", f"{kind} does not wait"
    yield writes and len(op.records or ()) != op.n, "a write names its records"
    yield kind == "cancel" and not op.token, "cancel names its token"
    yield not waits and kind != "cancel" and bool(op.token), f"{kind} has no token"
    yield kind in _ENDS_LEASE and op.lease is None, "it names no lease"
    yield kind not in _ENDS_LEASE and op.lease is not None, f"{kind} is of no lease"
    yield kind == "shutdown" and not op.mode, "a shutdown has a mode"
    yield kind != "shutdown" and bool(op.mode), f"{kind} has no mode"
    yield kind == "kill" and op.victim in ("", op.actor), "a kill names another as its victim"
    yield kind != "kill" and bool(op.victim), f"{kind} has no victim"


def _misfitting(op: Operation) -> Iterator[tuple[bool, str]]:
    """Yield what may be wrong with the results of an operation."""
    writes, reads, done = op.kind == "extend", op.kind in READS, op.ended == "done"
    yield bool(op.error) and op.ended != "unexpected", "only an unexpected ending has an error"
    got = reads and (done or op.ended == "failed")
    yield op.records is not None and not (writes or got), _nothing_of("records", op)
    yield op.slots is not None and not ((writes or reads) and done), _nothing_of("slots", op)
    counts = op.kind == "len" and done
    yield op.length is not None and not counts, _nothing_of("length", op)
    yield counts and op.length is None, "len that ended done gives a length"


def _nothing_of(what: str, op: Operation) -> str:
    return f"{op.kind} that ended {op.ended} gives no {what}"


def _problems_together(operations: Sequence[Operation]) -> Iterator[str]:
    """Yield for each operation why it cannot come after those before it, or nothing."""
    numbers: set[int] = set()
    written: set[int] = {0}
    latest: dict[str, Operation] = {}
    takers: dict[int, str] = {}
    deaths: dict[str, int | None] = {}
    last = None
    for op in operations:
        own = {op.call} if op.returned is None else {op.call, op.returned}
        records = op.records or () if op.kind == "extend" else ()
        before = latest.get(op.actor)
        if own & numbers:
            yield "calls and returns are numbered by one counter, so each differs"
        elif last is not None and op.call < last:
            yield "operations stand in order of their calls"
        elif before is not None and (before.returned is None or before.returned > op.call):
            yield f"an actor makes one call at a time, but was in the one called at {before.call}"
        elif op.lease is not None and takers.get(op.lease) != op.actor:
            yield "who ends a lease has taken it before"
        elif len(set(records)) != len(records) or written & set(records):
            yield "every record that is written has a number of its own, other than 0"
        elif op.victim in deaths:
            yield "one dies once"
        elif _is_later(op, deaths.get(op.actor)):
            yield "who was killed calls nothing and gets nothing afterwards"
        elif op.victim in latest and _is_later(latest[op.victim], op.returned):
            yield "who was killed gets nothing afterwards"
        else:
            yield ""
        numbers |= own
        written |= set(records)
        latest[op.actor] = op
        last = op.call
        if op.kind == "take":
            takers[op.call] = op.actor
        if op.kind == "kill":
            deaths[op.victim] = op.returned


def _is_later(op: Operation, death: int | None) -> bool:
    """Tell whether an operation was called or returned when its actor was known to be dead."""
    return death is not None and max(op.call, op.returned or 0) > death


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))
