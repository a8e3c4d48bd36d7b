"""Paths from the initial state of a graph that together take every one of its edges.

A path goes on as long as there is something new within reach: it takes an edge that was not taken
yet, or else the shortest walk to a state that has one. A new path begins where nothing new can be
reached any more, or only on a way that is longer than the one from the initial state. Nothing is
left to chance, so equal graphs give equal plans.

Closing a buffer or setting a token cannot be undone, and most states have more ways out of them
than into them. So a plan is a few times as long as the graph has edges, however it is made: the
cheapest way to give every state as many visits as it has edges, found without regard to how paths
hang together, would still have nine tenths of these steps.
"""

from collections.abc import Iterator
from typing import Final

from forebay_models.explore.graph import Graph

Path = tuple[int, ...]
"""The numbers of edges, in `Graph.edges`, that follow each other from the initial state."""

RESTART: Final = 2
"""What it costs to begin a new path, in steps."""

LONGEST: Final = 400
"""About how many steps a path has at most; who follows a longer one to its end?"""


def paths(graph: Graph) -> Iterator[Path]:
    """Yield paths that together take every edge of a whole graph at least once."""
    return _Planner(graph).paths()


class _Planner:
    """The edges of a graph that no path takes so far."""

    def __init__(self, graph: Graph) -> None:
        count = len(graph.states)
        self._graph = graph
        self._source = [edge.source for edge in graph.edges]
        self._target = [edge.target for edge in graph.edges]
        out: list[list[int]] = [[] for _ in range(count)]
        for number, source in enumerate(self._source):
            out[source].append(number)
        self._left = self._by_worth(out)
        # One edge to each other state is enough to walk along.
        self._walkable = [
            [(target, number) for target, number in first_to.items() if target != source]
            for source, first_to in enumerate(
                {self._target[number]: number for number in reversed(edges)} for edges in out
            )
        ]
        self._depth = [0] * count
        for number, parent in enumerate(graph.parents):
            if parent is not None:
                self._depth[number] = self._depth[parent[0]] + 1
        self._nearest = 0
        self._seen_in = [0] * count
        self._reached_by = [0] * count
        self._searches = 0

    def paths(self) -> Iterator[Path]:
        """Yield paths until nothing is left."""
        edges_of = self._left
        while self._is_left():
            here = self._nearest
            path = self._from_start(here)
            while len(path) < LONGEST and self._is_left():
                if edges_of[here]:
                    path.append(edges_of[here].pop())
                elif (way := self._way_on(here)) is not None:
                    path += way
                else:
                    break
                here = self._target[path[-1]]
            yield tuple(path)

    def _by_worth(self, out: list[list[int]]) -> list[list[int]]:
        """Return the edges of each state, the one that is to be taken first at the end.

        Steps that change nothing come first, then those to states with more ways out than in.
        """
        surplus = [len(edges) for edges in out]
        for target in self._target:
            surplus[target] -= 1

        def rank(number: int) -> tuple[bool, int, int]:
            source, target = self._source[number], self._target[number]
            return source != target, -surplus[target], number

        return [sorted(edges, key=rank, reverse=True) for edges in out]

    def _is_left(self) -> bool:
        """Tell whether an edge is left, and find the state nearest to the initial one with one."""
        # States are numbered by their distance from the initial one, and no edge comes back.
        while self._nearest < len(self._left) and not self._left[self._nearest]:
            self._nearest += 1
        return self._nearest < len(self._left)

    def _from_start(self, state: int) -> list[int]:
        """Return the shortest way to a state from the initial one."""
        way: list[int] = []
        while (parent := self._graph.parents[state]) is not None:
            way.append(dict(self._walkable[parent[0]])[state])
            state = parent[0]
        return way[::-1]

    def _way_on(self, here: int) -> list[int] | None:
        """Return the shortest walk to a state from which an edge is left, unless it is too long."""
        left, seen_in, reached_by = self._left, self._seen_in, self._reached_by
        self._searches = search = self._searches + 1
        seen_in[here] = search
        level = [here]
        for _ in range(self._depth[self._nearest] + RESTART):
            following = []
            for state in level:
                for target, number in self._walkable[state]:
                    if seen_in[target] != search:
                        seen_in[target] = search
                        reached_by[target] = number
                        if left[target]:
                            return self._walk(here, target)
                        following.append(target)
            level = following
        return None

    def _walk(self, here: int, state: int) -> list[int]:
        """Return the walk between two states that the last search has found."""
        way: list[int] = []
        while state != here:
            way.append(self._reached_by[state])
            state = self._source[way[-1]]
        return way[::-1]
