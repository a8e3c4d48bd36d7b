"""What the specification says of the states and steps of one model, each thing worked out once.

A campaign comes to the same states again and again. What may happen there, what a call has to get,
who has to be woken, whether the named properties hold: none of that depends on the path that led
there, so it is kept.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from forebay_spec import guards as when
from forebay_spec.actions import Label, Machine, verdict
from forebay_spec.bounds import Bounds, ReaderKind
from forebay_spec.kernel import Verdict
from forebay_spec.properties import INVARIANTS, STEPS, WITNESSES
from forebay_spec.state import State, Ticket

from forebay_models.coverage import state_class

KEPT: Final = 20_000
"""How many answers to each question are kept."""

Labels = Mapping[str, tuple[Label, ...]]

_OUTSIDE: Final = frozenset({"SetCancel", "Kill"})
_GATHERED: Final = frozenset({"Ready", "Fail"})
"""They take pins away where records are overwritten, and else need no section."""
_WAITING: Final = frozenset({"Admit", "Draw", "Cancel", "Refuse"})


class Facts:
    """The facts about one model.

    Args:
        bounds: its constants.
        kept: how many answers to each question are kept; None for all.

    Attributes:
        bounds: its constants.
        outside: the actions that may change something outside of critical sections.
        labels: gives the steps that may happen in a state, by their actions.
        allowed: gives the states that may come out of a step in a state.
        verdict: gives what the call of a step has to get, or None where none is decided; for
            Expire that is what the call gets whose time has passed.
        due: gives the actors whose calls have to go on in a state, and the labels of those Refill
            that may happen; where a batch can be recalled, whoever waits may be the one to do it.
        broken: gives what is wrong with a step and the state after it, in sentences.
        witnesses: gives the names of the witnesses that a step is.
        kind: gives the class that a state belongs to.
    """

    def __init__(self, bounds: Bounds, kept: int | None = KEPT) -> None:
        self.bounds = bounds
        self.outside = _OUTSIDE if bounds.overwriting else _OUTSIDE | _GATHERED
        self._machine = Machine(bounds)
        keep = lru_cache(maxsize=kept)
        self.labels: Callable[[State], Labels] = keep(self._labels)
        self.allowed: Callable[[State, Label], tuple[State, ...]] = keep(self._machine.apply)
        self.verdict: Callable[[State, Label], Verdict | None] = keep(self._verdict)
        self.due: Callable[[State], frozenset[str]] = keep(self._due)
        self.broken: Callable[[State, Label, State], tuple[str, ...]] = keep(self._broken)
        self.witnesses: Callable[[State, Label, State], tuple[str, ...]] = keep(self._witnesses)
        self.kind: Callable[[State], str] = keep(state_class)

    def _labels(self, state: State) -> Labels:
        labels: dict[str, list[Label]] = {}
        for label in self._machine.labels(state):
            labels.setdefault(label.name, []).append(label)
        return {name: tuple(of_name) for name, of_name in labels.items()}

    def _verdict(self, state: State, label: Label) -> Verdict | None:
        if label.name == "Expire":
            return Verdict.TIMEOUT
        if label.name in _WAITING:
            return verdict(self.bounds, state, str(label.args[0]))
        ticket = _new_ticket(label)
        if ticket is None:
            return None
        queued = state._replace(tickets=(*state.tickets, ticket))
        return verdict(self.bounds, queued, ticket.actor)

    def _due(self, state: State) -> frozenset[str]:
        bounds = self.bounds
        due = {
            ticket.actor
            for ticket in state.tickets
            if verdict(bounds, state, ticket.actor) != Verdict.WAIT
        }
        if bounds.prefetch:
            if when.may_recall(bounds, state):
                due.update(
                    ticket.actor for ticket in state.tickets if ticket.actor not in state.dead
                )
            due.update(
                str(Label("Refill", (process,)))
                for process in bounds.reading
                if when.may_refill(bounds, state, process)
            )
        actor = state.boundary.actor
        if when.may_capture(bounds, state, actor) or when.may_load(bounds, state, actor):
            due.add(actor)
        return frozenset(due)

    def _broken(self, before: State, label: Label, after: State) -> tuple[str, ...]:
        wrong = [
            f"{name} does not hold: {invariant.sentence}"
            for name, invariant in INVARIANTS.items()
            if not invariant.predicate(self.bounds, after)
        ]
        wrong += [
            f"{name} does not hold: {prop.sentence}"
            for name, prop in STEPS.items()
            if not prop.predicate(self.bounds, before, label, after)
        ]
        return tuple(wrong)

    def _witnesses(self, before: State, label: Label, after: State) -> tuple[str, ...]:
        return tuple(
            name
            for name, witness in WITNESSES.items()
            if witness.predicate(self.bounds, before, label, after)
        )


@lru_cache(maxsize=32)
def facts_of(bounds: Bounds) -> Facts:
    """Return the facts about a model, the same ones each time."""
    return Facts(bounds)


def _new_ticket(label: Label) -> Ticket | None:
    """Return the ticket that a call would wait with."""
    match label:
        case Label("Arrive", (str(actor), int(n))):
            return Ticket("write", actor, n, n)
        case Label("Ask", (str(actor), str(kind), int(k), int(m))):
            reader: ReaderKind = "lease" if kind == "lease" else "plain"
            return Ticket(reader, actor, k, m)
    return None
