"""Finds a fair run that stays for ever in a set of states, in any graph whose states are numbers.

A liveness property fails exactly when there is an infinite run on which somebody is owed for ever
although no fair choice is put off for ever. In a finite graph such a run ends up going round in one
strongly connected component of the states where the debt stands, or standing still in one state. A
component serves when each fair choice is taken in it, or (weak fairness) is impossible somewhere in
it, or (strong fairness) is impossible everywhere in it. Under strong fairness a component that does
not serve may have a smaller one inside that does: take away the states where the choice that is
missing is possible, and look again.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Choice = TypeVar("Choice", bound=Hashable)


@dataclass(frozen=True)
class Arrow(Generic[Choice]):
    """A step to another state. `choice` is the fair choice that it takes, None for any other."""

    choice: Choice | None
    target: int
    index: int = 0


Arrows = Mapping[int, Sequence[Arrow[Choice]]]


def possible(arrows: Arrows[Choice]) -> dict[int, frozenset[Choice]]:
    """Return the fair choices that each state offers; a step to itself counts as none."""
    return {
        state: frozenset(
            arrow.choice for arrow in out if arrow.choice is not None and arrow.target != state
        )
        for state, out in arrows.items()
    }


def fair_components(
    states: set[int],
    arrows: Arrows[Choice],
    offered: Mapping[int, frozenset[Choice]],
    *,
    strong: bool = False,
) -> Iterator[frozenset[int]]:
    """Yield the components among `states` in which a fair run can stay for ever.

    `offered` says what is possible in each state, steps out of `states` included. A component of
    one state means that the run stands still there.
    """
    for component in components(states, arrows):
        taken = {
            arrow.choice
            for state in component
            for arrow in arrows.get(state, ())
            if arrow.target in component and arrow.target != state
        }
        everywhere = frozenset.intersection(
            *(offered.get(state, frozenset()) for state in component)
        )
        somewhere = frozenset[Choice]().union(
            *(offered.get(state, frozenset()) for state in component)
        )
        put_off = (somewhere if strong else everywhere) - taken
        if not put_off:
            yield frozenset(component)
        elif strong:
            rest = {state for state in component if not offered.get(state, frozenset()) & put_off}
            yield from fair_components(rest, arrows, offered, strong=True)


def components(states: set[int], arrows: Arrows[Choice]) -> list[list[int]]:
    """Return the strongly connected components of the graph on `states` (Tarjan 1972)."""
    found: list[list[int]] = []
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in sorted(states):
        if root in order:
            continue
        work: list[tuple[int, Iterator[Arrow[Choice]]]] = []

        def enter(state: int, work: list[tuple[int, Iterator[Arrow[Choice]]]] = work) -> None:
            order[state] = low[state] = len(order)
            stack.append(state)
            on_stack.add(state)
            work.append((state, iter(arrows.get(state, ()))))

        enter(root)
        while work:
            state, out = work[-1]
            arrow = next(out, None)
            if arrow is not None:
                if arrow.target in states and arrow.target not in order:
                    enter(arrow.target)
                elif arrow.target in on_stack:
                    low[state] = min(low[state], order[arrow.target])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[state])
            if low[state] == order[state]:
                component: list[int] = []
                while not component or component[-1] != state:
                    component.append(stack.pop())
                    on_stack.discard(component[-1])
                found.append(component)
    return found


def fair_round(
    component: frozenset[int],
    arrows: Arrows[Choice],
    offered: Mapping[int, frozenset[Choice]],
    start: int,
    *,
    strong: bool = False,
) -> list[Arrow[Choice]]:
    """Return a walk inside a fair component from `start` back to it that is fair when repeated.

    It takes each choice that is offered, unless it passes a state without it and fairness is weak.
    Empty when the run stands still.
    """
    if len(component) == 1:
        return []
    inside = {
        state: [a for a in arrows.get(state, ()) if a.target in component and a.target != state]
        for state in component
    }
    walk: list[Arrow[Choice]] = []
    here = start
    wanted = sorted({choice for state in component for choice in offered[state]}, key=repr)
    for choice in wanted:
        without = {state for state in component if choice not in offered[state]}
        passed = {start, *(arrow.target for arrow in walk)}
        if (passed & without and not strong) or any(arrow.choice == choice for arrow in walk):
            continue
        takes = {s for s, out in inside.items() if any(a.choice == choice for a in out)}
        walk += _shortest(inside, here, takes or without)
        here = walk[-1].target if walk else start
        if takes:
            walk.append(next(arrow for arrow in inside[here] if arrow.choice == choice))
            here = walk[-1].target
    if not walk:
        walk.append(inside[start][0])
        here = walk[-1].target
    return walk + _shortest(inside, here, {start})


def _shortest(inside: Arrows[Choice], start: int, goals: set[int]) -> list[Arrow[Choice]]:
    """Return a shortest walk from a state to one of the goals."""
    came: dict[int, tuple[int, Arrow[Choice]]] = {}
    queue = [start]
    for state in queue:
        if state in goals:
            walk = []
            while state != start:
                state, arrow = came[state]
                walk.append(arrow)
            return walk[::-1]
        for arrow in inside[state]:
            if arrow.target not in came and arrow.target != start:
                came[arrow.target] = (state, arrow)
                queue.append(arrow.target)
    raise AssertionError("a component is strongly connected")
