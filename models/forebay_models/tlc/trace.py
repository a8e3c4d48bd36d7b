"""Turns a counterexample of TLC into steps for a table.

TLC names the action of a step but neither its parameters nor who takes it. Both are read off the
step itself: the actor is the one whose ticket, slots or hold change, and the table shows what
changes, so that the parameters can be seen. This works for faulty actions too, which no
specification knows. A run that prints its steps has told their labels before, and these are shown
instead. States of the buffer are shown as the explorer shows them, others entry by entry.
"""

from collections.abc import Callable, Mapping, Sequence

from forebay_spec.state import State

from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe
from forebay_models.tlc.edges import NOBODY, BadGraph, to_state
from forebay_models.tlc.messages import Report, TraceState
from forebay_models.tlc.values import BadValue, Function, Value, parse, show

LabelsOf = Callable[[State, State], Sequence[str]]
"""Returns the labels that were printed of a step between two states; none if none was."""


def trace_shown(
    report: Report,
    *,
    name: str,
    setting: str,
    what: Sequence[str],
    token: str = "",
    labels_of: LabelsOf | None = None,
) -> Counterexample | None:
    """Return the trace of a report, with what becomes of it at the end, or None without a trace.

    Args:
        report: of a run of TLC.
        name: of the check, such as "tlc writers".
        setting: the bounds.
        what: sentences that say what is wrong.
        token: with which it can be replayed.
        labels_of: tells what was printed of a step, if the run prints its steps.
    """
    if not report.trace:
        return None
    return Counterexample(
        name=name,
        setting=setting,
        rows=rows_of(report.trace, labels_of),
        what=(*what, *_end(report)),
        token=token,
    )


def _end(report: Report) -> tuple[str, ...]:
    """Return how a run goes on for ever, if it does."""
    if report.loop is None:
        return ()
    if report.loop == report.trace[-1].number:
        return ("and then nothing happens any more",)
    action, again = report.loop_action or "one more step", report.loop - 1
    return (f"then {action} leads back to the state after step {again}, and so on for ever",)


def rows_of(trace: Sequence[TraceState], labels_of: LabelsOf | None = None) -> tuple[Row, ...]:
    """Return a step for each state; the first is the initial state."""
    states = [{name: _parsed(text) for name, text in state.variables.items()} for state in trace]
    buffers = _as_buffer(states)
    shown = (
        [_lines(state) for state in states]
        if buffers is None
        else [
            {**describe(buffer), **_lines(_others(state))}
            for buffer, state in zip(buffers, states, strict=True)
        ]
    )
    rows = [Row(label="initially", state=shown[0])] if shown else []
    for number in range(1, len(states)):
        actor, parameters = _who(states[number - 1], states[number])
        action = trace[number].action
        label = f"{action}({','.join(parameters)})" if parameters else action
        if labels_of is not None and buffers is not None:
            label = " or ".join(labels_of(buffers[number - 1], buffers[number])) or label
        rows.append(Row(label=label, actor=actor, state=shown[number]))
    return tuple(rows)


def _as_buffer(states: Sequence[Mapping[str, Value]]) -> list[State] | None:
    """Return the states as those of a buffer if all of them are, else None.

    TLC numbers the slots of a variable from 0, as a function, where a printed graph has a sequence.
    """
    buffers = []
    for state in states:
        fields = {name: value for name, value in state.items() if name in State._fields}
        saved = fields.get("saved")
        if isinstance(saved, tuple):
            fields["saved"] = tuple(_slots_in_order(snapshot) for snapshot in saved)
        try:
            buffers.append(to_state(_slots_in_order(Function(fields))))
        except BadGraph:
            return None
    return buffers


def _others(variables: Mapping[str, Value]) -> dict[str, Value]:
    """Return the variables that are no part of a buffer."""
    return {name: value for name, value in variables.items() if name not in State._fields}


def _slots_in_order(record: Value) -> Value:
    """Return a state or a snapshot with its slots as a sequence, or what is neither as it is."""
    slots = record.get("slots") if isinstance(record, Function) else None
    if not isinstance(record, Function) or not isinstance(slots, Function):
        return record
    return Function(
        {**record, "slots": tuple(slots.get(number, ()) for number in range(len(slots)))}
    )


def _parsed(text: str) -> Value:
    """Return the value, or the text itself where it is no value that we can read."""
    try:
        return parse(text)
    except BadValue:
        return text


def _lines(variables: Mapping[str, Value]) -> dict[str, str]:
    """Return a text for each variable, or for each entry of one that is a function."""
    lines = {}
    for name, value in variables.items():
        if isinstance(value, Function) and value:
            lines.update({f"{name}[{show(key)}]": show(item) for key, item in value.items()})
        else:
            lines[name] = show(value)
    return lines


def _who(
    before: Mapping[str, Value], after: Mapping[str, Value]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the actor of a step and what of its parameters can be told.

    A new ticket or hold tells the sizes of the call; a hold that changes or leaves is named by its
    position; who dies or is recovered is named, whatever it had, and so is who captures or
    restores. A step that changes nothing of any actor belongs to none: closing, setting a flag.
    """
    dead_before, dead = before.get("dead"), after.get("dead")
    if isinstance(dead_before, frozenset) and isinstance(dead, frozenset):
        for actor in dead_before ^ dead:
            return str(actor), (str(actor),)
    for boundary in (before.get("boundary"), after.get("boundary")):
        if isinstance(boundary, Function) and before.get("boundary") != after.get("boundary"):
            actor = str(boundary.get("actor"))
            if actor != NOBODY:
                return actor, (actor,)
    tickets_before, tickets = _records(before, "tickets"), _records(after, "tickets")
    holds_before, holds = _records(before, "holds"), _records(after, "holds")
    if gone := _first_difference(tickets_before, tickets, "actor"):
        return gone[1], (gone[1],)
    if len(tickets) > len(tickets_before):
        new = tickets[-1]
        sizes = ("n",) if new.get("kind") == "write" else ("kind", "n", "m")
        return str(new.get("actor")), tuple(show(new[key]) for key in ("actor", *sizes))
    if len(holds) > len(holds_before):
        owner = str(holds[-1].get("owner"))
        return owner, (owner,)
    if ended := _first_difference(holds_before, holds, "owner"):
        return ended[1], (str(ended[0]),)
    for position, (old, new) in enumerate(zip(holds_before, holds, strict=False)):
        if old.get("state") != new.get("state"):
            return str(new.get("owner")), (str(position),)
        if old.get("owner") != new.get("owner"):
            return str(new.get("owner")), (str(new.get("owner")),)
    filling_before, filling = before.get("filling"), after.get("filling")
    if isinstance(filling_before, Function) and isinstance(filling, Function):
        for actor, batch in filling.items():
            old_batch = filling_before.get(actor)
            if batch != old_batch:
                size = (show(len(batch)),) if isinstance(batch, tuple) and batch else ()
                return str(actor), (str(actor), *size)
    if before.get("closing") != after.get("closing"):
        return None, (str(after.get("closing")),)
    flags_before, flags = before.get("cancelled"), after.get("cancelled")
    if isinstance(flags_before, frozenset) and isinstance(flags, frozenset):
        return None, tuple(str(token) for token in flags - flags_before)
    return None, ()


def _records(variables: Mapping[str, Value], name: str) -> list[Function]:
    value = variables.get(name)
    if not isinstance(value, tuple):
        return []
    return [item for item in value if isinstance(item, Function)]


def _first_difference(
    before: Sequence[Function], after: Sequence[Function], key: str
) -> tuple[int, str] | None:
    """Return position and actor of the entry that left, if one did."""
    if len(after) >= len(before):
        return None
    for position, entry in enumerate(before):
        if position == len(after) or entry.get(key) != after[position].get(key):
            return position, str(entry.get(key))
    return None
