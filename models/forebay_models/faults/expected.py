"""What the specification lets come out of a scenario in which somebody dies.

A search over the machine of `forebay_spec`: every actor takes the steps of its calls, in every
order, the victim dies where the ledger was seen, and `Recover` may come at any time from then on.
How the calls of the others ended is known, and has to be what the specification says.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from forebay_spec.actions import Label, Machine
from forebay_spec.kernel import Verdict
from forebay_spec.state import (
    State,
    Ticket,
    filling_of,
    has_something,
    is_ready_lease,
    ticket_of,
)
from forebay_spec.verdicts import verdict

from forebay_models.faults.program import OK, RAISED, READS, Op
from forebay_models.faults.scenarios import VICTIM, Scenario

_ERRORS: Final = {
    Verdict.SHUT_DOWN: "ShutDown",
    Verdict.MUTUAL_WAIT: "MutualWait",
    Verdict.CANCELLED: "Cancelled",
}


class Planned(NamedTuple):
    """A call, and how it ended; None if nobody has heard."""

    op: Op
    outcome: str | None


Programs = Mapping[str, tuple[Planned, ...]]


class Node(NamedTuple):
    """A state, and how many of its calls each actor has behind it."""

    state: State
    done: tuple[int, ...]


class Search:
    """The runs of one scenario.

    Args:
        scenario: whose constants they have.
        programs: the calls of each actor.

    Attributes:
        actors: the actors, in the order in which a node tells of them.
    """

    def __init__(self, scenario: Scenario, programs: Programs) -> None:
        self._machine = Machine(scenario.bounds)
        self.actors = tuple(programs)
        self._programs = programs

    def reachable(self, start: Iterable[Node]) -> set[Node]:
        """Return everything that can come after these nodes, they included."""
        found = set(start)
        todo = list(found)
        while todo:
            for node in self._after(todo.pop()):
                if node not in found:
                    found.add(node)
                    todo.append(node)
        return found

    def start(self, state: State) -> Node:
        """Return the node at which nobody has finished a call."""
        return Node(state, (0,) * len(self.actors))

    def killed(self, nodes: Iterable[Node]) -> set[Node]:
        """Return these nodes with the victim dead."""
        return {
            node._replace(state=node.state._replace(dead=frozenset({VICTIM})))
            if has_something(node.state, VICTIM)
            else node
            for node in nodes
        }

    def is_over(self, node: Node) -> bool:
        """Tell whether everybody but the victim has finished and nothing is left of it."""
        return not has_something(node.state, VICTIM) and all(
            actor == VICTIM or done == len(self._programs[actor])
            for actor, done in zip(self.actors, node.done, strict=True)
        )

    def without_victim(self) -> "Search":
        """Return the search of what comes after the victim's death."""
        search = Search.__new__(Search)
        search._machine, search.actors = self._machine, self.actors
        search._programs = {**self._programs, VICTIM: ()}
        return search

    def _after(self, node: Node) -> Iterator[Node]:
        state = node.state
        for victim in state.dead:
            yield from self._take(node, Label("Recover", (victim,)), None)
        for index, actor in enumerate(self.actors):
            program, done = self._programs[actor], node.done[index]
            if done < len(program) and actor not in state.dead:
                yield from self._step(node, index, actor, program[done])

    def _step(self, node: Node, index: int, actor: str, call: Planned) -> Iterator[Node]:
        """Yield what the next step of an actor's call may lead to."""
        state, (op, outcome) = node.state, call
        if ticket_of(state, actor) is not None:
            found = verdict(self._machine.bounds, state, actor, False)
            if found is Verdict.SERVE:
                name = "Admit" if op.kind == "extend" else "Draw"
                yield from self._take(node, Label(name, (actor,)), None)
            elif found in _ERRORS and outcome in (None, _ERRORS[found]):
                name = "Cancel" if found is Verdict.CANCELLED else "Refuse"
                yield from self._take(node, Label(name, (actor,)), index)
        elif filling_of(state, actor):
            if outcome in (None, OK):
                yield from self._take(node, Label("Publish", (actor,)), index)
        elif (h := _busy_hold(state, actor)) is not None:
            yield from self._hold_step(node, index, h, call)
        else:
            yield from self._begin(node, index, actor, call)

    def _hold_step(self, node: Node, index: int, h: int, call: Planned) -> Iterator[Node]:
        hold = node.state.holds[h]
        if hold.state == "gathering" and call.op.raises:
            yield from self._take(node, Label("Fail", (h,)), None)
        elif hold.state == "gathering":
            yield from self._take(
                node, Label("Ready", (h,)), index if hold.kind == "lease" else None
            )
        elif hold.state == "failed":
            if call.outcome in (None, RAISED):
                yield from self._take(node, Label("Return", (h,)), index)
        elif call.outcome in (None, OK):
            yield from self._take(node, Label("Deliver", (h,)), index)

    def _begin(self, node: Node, index: int, actor: str, call: Planned) -> Iterator[Node]:
        state, (op, outcome) = node.state, call
        if op.kind == "extend" or op.kind in READS:
            if op.kind == "extend":
                ticket = Ticket("write", actor, op.sizes[0], op.sizes[0])
                label = Label("Arrive", (actor, op.sizes[0]))
            else:
                kind = "lease" if op.kind == "lease" else "plain"
                ticket = Ticket("lease" if kind == "lease" else "plain", actor, *op.sizes)
                label = Label("Ask", (actor, kind, *op.sizes))
            queued = state._replace(tickets=(*state.tickets, ticket))
            found = verdict(self._machine.bounds, queued, actor, False)
            if found in (Verdict.SERVE, Verdict.WAIT):
                yield from self._take(node, label, None)
            elif outcome in (None, _ERRORS[found]):
                yield self._finished(node, index)
        elif op.kind in ("commit", "release"):
            h = max(n for n, hold in enumerate(state.holds) if hold.owner == actor)
            name = "Deliver" if op.kind == "commit" else "Return"
            yield from self._take(node, Label(name, (h,)), index)
        elif op.kind in ("empty", "shutdown"):
            label = Label("Empty") if op.kind == "empty" else Label("Close", ("draining",))
            yield from self._take(node, label, index)
        else:
            yield self._finished(node, index)

    def _take(self, node: Node, label: Label, index: int | None) -> Iterator[Node]:
        """Yield the nodes after a step, which ends the call of the actor with that index."""
        for state in self._machine.apply(node.state, label):
            after = node._replace(state=state)
            yield after if index is None else self._finished(after, index)

    def _finished(self, node: Node, index: int) -> Node:
        done = node.done
        return node._replace(done=(*done[:index], done[index] + 1, *done[index + 1 :]))


def _busy_hold(state: State, actor: str) -> int | None:
    """Return the hold of an actor that is no ready lease."""
    for h, hold in enumerate(state.holds):
        if hold.owner == actor and not is_ready_lease(hold):
            return h
    return None
