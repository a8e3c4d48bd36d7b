"""Histories written by hand, call by call and return by return."""

from dataclasses import replace

from forebay_models.linear.history import Ending, History, Kind, Operation, Setting
from forebay_spec.bounds import ConsumingOrder


class Script:
    """Builds a history; each `begin` and `end` is the next in order."""

    def __init__(self, capacity: int, uses: int = 1, order: ConsumingOrder = "fifo") -> None:
        self._setting = Setting(capacity=capacity, uses=uses, order=order)
        self._clock = 0
        self._operations: dict[int, Operation] = {}

    def begin(self, actor: str, kind: Kind, **fields: object) -> int:
        """Call an operation, which is pending from now on; returns its number."""
        self._clock += 1
        op = Operation(actor=actor, kind=kind, call=self._clock, ended="pending")
        self._operations[op.call] = _with(op, fields)
        return op.call

    def end(self, call: int, ended: Ending = "done", **fields: object) -> None:
        """Let an operation return."""
        self._clock += 1
        op = replace(self._operations[call], ended=ended, returned=self._clock)
        self._operations[call] = _with(op, fields)

    def write(self, actor: str, *records: int, **fields: object) -> int:
        """Write records, from call to return."""
        call = self.begin_write(actor, *records)
        self.end(call, **fields)  # type: ignore[arg-type]  # the ending may be among the fields
        return call

    def begin_write(self, actor: str, *records: int, **fields: object) -> int:
        """Call a write."""
        size = len(records)
        return self.begin(actor, "extend", n=size, m=size, records=records, **fields)

    def read(self, actor: str, *records: int, kind: Kind = "sample") -> int:
        """Read, and get just these records."""
        call = self.begin_read(actor, len(records), kind=kind)
        self.end(call, records=records)
        return call

    def begin_read(self, actor: str, n: int, kind: Kind = "sample", **fields: object) -> int:
        """Call a read of n."""
        return self.begin(actor, kind, **{"n": n, "m": n, **fields})

    def at_once(self, actor: str, kind: Kind, **fields: object) -> int:
        """Call an operation that does not wait, and let it return."""
        call = self.begin(actor, kind, **fields)
        self.end(call)
        return call

    def history(self) -> History:
        """Return what was built so far."""
        return History(self._setting, tuple(self._operations.values()))


def edited(history: History, call: int, **fields: object) -> History:
    """Return a history with one operation changed."""
    operations = [_with(op, fields) if op.call == call else op for op in history.operations]
    return History(history.setting, tuple(operations))


def without(history: History, *calls: int) -> History:
    """Return a history in which some operations were never called."""
    kept = tuple(op for op in history.operations if op.call not in calls)
    return History(history.setting, kept)


def _with(op: Operation, fields: dict[str, object]) -> Operation:
    return replace(op, **fields)  # type: ignore[arg-type]  # History checks the values
