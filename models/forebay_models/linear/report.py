"""A history that no order of steps explains, as people can read it.

What can be shown of something that does not exist? The longest explanation: the steps that account
for most operations, then the operations that could not be placed, each with what the specification
would have given it there. One of these, as a rule, is the wrong one; with real bugs it is nearly
always the first.
"""

from collections.abc import Iterable
from typing import Final

from forebay_spec.effects import without_ticket
from forebay_spec.kernel import Verdict as Given
from forebay_spec.kernel import batch_rows
from forebay_spec.state import State, filling_of, sampleable, ticket_of

from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe
from forebay_models.linear.accounts import hopeless
from forebay_models.linear.calls import ENDINGS, no_such_ending
from forebay_models.linear.check import Search
from forebay_models.linear.history import CALLS, Operation
from forebay_models.linear.model import Config, Model, Move

SHOWN: Final = 24
"""How many of the last steps are shown."""


def counterexample(name: str, model: Model, found: Search) -> Counterexample:
    """Return a failed search as a table of its longest explanation and what is left over."""
    path = found.path
    before = path[: max(0, len(path) - SHOWN)]
    start = before[-1].after if before else model.initial()
    label = f"after {len(before)} steps" if before else "initially"
    rows = [Row(label=label, state=described(start))]
    rows += [_row(move) for move in path[len(before) :]]
    total = len(model.history.operations)
    covered = sum(found.last.done)
    left = model.current(found.last)
    counted = hopeless(model.history)
    what = [
        *([counted] if counted else []),
        f"no order of their steps explains these {total} operations; the longest explanation, "
        f"which ends above, has {covered} of them. What could have come next there:",
        *(f"- {op.line()}\n  {why_not(model, found.last, op)}" for op in left),
    ]
    return Counterexample(
        name=name, setting=model.history.setting.line(), rows=tuple(rows), what=tuple(what)
    )


def described(config: Config) -> dict[str, str]:
    """Return the variables of a point: the machine's, the records by slot and the tokens set."""
    variables = describe(config.state)
    variables["records"] = _numbers(number or "-" for number in config.records)
    variables["cancelled"] = " ".join(sorted(config.flags)) or "-"
    return variables


def why_not(model: Model, config: Config, op: Operation) -> str:
    """Say what the specification gives an operation at a point."""
    state = config.state
    if no_such_ending(op):
        return no_such_ending(op)
    if op.kind == "len":
        return f"there are {len(sampleable(model.bounds, state))} here"
    if op.kind in ("commit", "release") and op.lease not in config.drawers:
        return "there is no such lease here"
    if op.kind == "recover" and state.dead:
        return f"not yet recovered here: {' '.join(sorted(state.dead))}"
    if op.kind not in CALLS:
        return "it could happen here, but then nothing explains the rest"
    if filling_of(state, op.actor):
        return "it is admitted, and could publish, but then nothing explains the rest"
    if op.call in config.drawers:
        return "it has drawn, and could end, but then nothing explains the rest"
    queued, given = model.verdict(config, op)
    if given == Given.SERVE:
        would = f"it would be served: {_service(model, without_ticket(queued, op.actor), op)}"
    elif given == Given.WAIT:
        would = "it would have to wait" if ticket_of(state, op.actor) is None else "it would wait"
        would += f", with {len(state.free)} free and {len(sampleable(model.bounds, state))} there"
    else:
        would = f"it would end with: {ENDINGS[given]}"
    possible = any(True for _ in model.steps(config, op))
    return would + (", but then nothing explains the rest" if possible else "")


def _service(model: Model, state: State, op: Operation) -> str:
    if op.kind == "extend":
        return f"slots {_numbers(state.free[: op.n])}"
    there = sampleable(model.bounds, state)
    rows = batch_rows(op.n, len(there))
    if model.bounds.fifo:
        there.sort(key=lambda number: state.slots[number].stamp)
        return f"slots {_numbers(there[:rows])}, the oldest"
    return f"any {rows} of the slots {_numbers(there)}"


def _row(move: Move) -> Row:
    op = move.op
    label = ", ".join(map(str, move.labels)) or op.kind
    notes = (op.line(),) if move.labels and move.labels[0].name in ("Arrive", "Ask") else ()
    actor = None if label.startswith("Recover") else op.actor
    return Row(label=label, actor=actor, notes=notes, state=described(move.after))


def _numbers(values: Iterable[object]) -> str:
    return "(" + " ".join(map(str, values)) + ")"
