"""Breadth-first exploration: every state that a machine can reach, and every step between them.

Breadth first, so that the first path found to a state is a shortest one, and the first violation
met is one with a shortest counterexample. Parents are kept for each state; a path is read off them
backwards. Limits end an exploration that is larger than expected; the graph then says so, and
nobody may take it for the whole.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from forebay_spec.actions import Label, Machine
from forebay_spec.bounds import Bounds
from forebay_spec.state import State

EVERY = 2_000  # states between two looks at the clock and two reports of progress


class Edge(NamedTuple):
    """One step by the numbers of its states."""

    source: int
    label: Label
    target: int


class Move(NamedTuple):
    """One step of a path, and the state that it leads to; the first has no label."""

    label: Label | None
    state: State


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where to stop: at so many states, or after so many seconds (None: no limit of time)."""

    states: int = 3_000_000
    seconds: float | None = None


class Tally(NamedTuple):
    """How far an exploration has come; `str` gives it in words."""

    states: int
    edges: int
    depth: int
    waiting: int

    def __str__(self) -> str:
        return (
            f"{self.states:,} states, {self.edges:,} edges, depth {self.depth}, "
            f"{self.waiting:,} to look at"
        )


class Watch(Protocol):
    """Looks at everything that is found, in breadth-first order; True ends the exploration."""

    def sees_state(self, number: int, state: State) -> bool:
        """Look at a state that was just reached for the first time."""
        ...

    def sees_step(self, edge: Edge, before: State, after: State) -> bool:
        """Look at a step; its target was looked at before."""
        ...


@dataclass(kw_only=True)
class Graph:
    """What was reached. States go by their position in `states`, in order of discovery.

    `edges` has every distinct (state, label, state), self-loops included; it stays empty when edges
    are only counted. `depth` is the number of levels, 1 for an initial state alone. `stopped` says
    why the exploration ended early, or nothing.
    """

    bounds: Bounds
    states: list[State] = field(default_factory=list)
    initial: tuple[int, ...] = ()
    edges: list[Edge] = field(default_factory=list)
    edge_count: int = 0
    parents: list[tuple[int, Label] | None] = field(default_factory=list)
    depth: int = 0
    stopped: str = ""

    def path_to(self, number: int) -> list[Move]:
        """Return a shortest path from an initial state to this one."""
        path = []
        here: int = number
        while True:
            parent = self.parents[here]
            path.append(Move(parent[1] if parent else None, self.states[here]))
            if parent is None:
                return path[::-1]
            here = parent[0]


def explore(
    machine: Machine,
    *,
    limits: Limits | None = None,
    progress: Callable[[Tally], None] | None = None,
    watch: Watch | None = None,
    keep_edges: bool = True,
) -> Graph:
    """Return the graph of a machine, whole unless a limit or the watch ended it before.

    `keep_edges=False` counts edges without keeping them, for graphs that are only checked.
    """
    limits = limits or Limits()
    graph = Graph(bounds=machine.bounds)
    numbers: dict[State, int] = {}
    started = time.monotonic()

    def found(state: State, parent: tuple[int, Label] | None) -> tuple[int, bool]:
        """Give a state its number; tell whether the watch has seen enough."""
        number = numbers.get(state)
        if number is not None:
            return number, False
        number = numbers[state] = len(graph.states)
        graph.states.append(state)
        graph.parents.append(parent)
        return number, watch is not None and watch.sees_state(number, state)

    def enough(source: int) -> bool:
        """Report progress; tell whether a limit is reached, and note it."""
        if progress is not None:
            states = len(graph.states)
            progress(Tally(states, graph.edge_count, graph.depth, states - source))
        if limits.seconds is not None and time.monotonic() - started > limits.seconds:
            graph.stopped = f"after {limits.seconds:g} seconds"
        return bool(graph.stopped)

    first, stop = found(machine.initial(), None)
    graph.initial = (first,)
    if stop:
        graph.stopped = "by the watch"
    for source in _levels(graph):
        before = graph.states[source]
        if source % EVERY == 0 and enough(source):
            break
        for label, after in machine.successors(before):
            target, stop = found(after, (source, label))
            edge = Edge(source, label, target)
            graph.edge_count += 1
            if keep_edges:
                graph.edges.append(edge)
            # The state as it came out, not as it was first found: what it shares with the state
            # before is the same object, by which properties see quickly that nothing changed.
            if watch is not None:
                stop = watch.sees_step(edge, before, after) or stop
            if stop:
                graph.stopped = "by the watch"
                break
        if len(graph.states) > limits.states:
            graph.stopped = f"beyond {limits.states:,} states"
        if graph.stopped:
            break
    return graph


def _levels(graph: Graph) -> Iterator[int]:
    """Yield the numbers of states in order of discovery, counting the levels in `depth`."""
    number, end = 0, 0
    while number < len(graph.states) and not graph.stopped:
        if number == end:
            graph.depth += 1
            end = len(graph.states)
        yield number
        number += 1
