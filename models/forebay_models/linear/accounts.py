"""What no order of steps can explain, whatever else happened: found by counting, without a search.

A search that reaches its limit has shown nothing, but a record that nobody had written, or that was
delivered more often than it may be, is wrong in every order.
"""

from collections import Counter

from forebay_models.linear.calls import no_such_ending
from forebay_models.linear.history import READS, History


def hopeless(history: History) -> str:
    """Say what nothing can explain; nothing if only a search can tell."""
    for op in history.operations:
        if no_such_ending(op):
            return f"{op.line()}\n  {no_such_ending(op)}"
    return _never_written(history) or _overdrawn(history)


def _never_written(history: History) -> str:
    called = {
        number: op.call
        for op in history.operations
        if op.kind == "extend"
        for number in op.records or ()
    }
    for op in history.operations:
        if op.kind in READS and op.returned is not None:
            for number in op.records or ():
                if number not in called or called[number] > op.returned:
                    return f"{op.line()}\n  nobody had written {number} by then"
    return ""


def _overdrawn(history: History) -> str:
    """Count deliveries that were answered: nothing takes one back."""
    taken = {op.call: op.records or () for op in history.operations if op.kind == "take"}
    times: Counter[int] = Counter()
    for op in history.operations:
        if op.ended == "done" and op.kind in ("sample", "commit"):
            times.update(op.records or () if op.lease is None else taken[op.lease])
            for number in times:
                if times[number] > history.setting.uses:
                    return f"{op.line()}\n  {number} was delivered {times[number]} times"
    return ""
