"""Shows that two labelled state graphs are one, or where they differ.

TLA+ and Python each have a model, written by hand from the same page. If TLC and the explorer
reach the same states by the same labelled steps, an error must have been made twice in the same way
to go unnoticed. A difference spreads: one wrong step makes every state behind it wrong as well. So
differences are sorted by what lies closest to the initial state, and each is told by the step where
the two part.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from forebay_models.graphs import Edge, LabelledGraph
from forebay_models.tables import changes


class Kind(Enum):
    """In what two graphs can differ; the value says it in words."""

    INITIAL_STATE = "initial state"
    LABEL = "label"
    EDGE = "edge"
    STATE = "state"


@dataclass(frozen=True)
class Difference:
    """Something that only one of the graphs has, or that they label differently."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Comparison:
    """How many differences of each kind there are, and the first few of them in words."""

    counts: Mapping[Kind, int]
    first: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """Whether there is no difference at all."""
        return not any(self.counts.values())

    def text(self) -> str:
        """Return the counts on one line and then the first differences."""
        if self.equal:
            return ""
        counts = ", ".join(
            f"{count} {kind.value}{'s' if count > 1 else ''}"
            for kind, count in self.counts.items()
            if count
        )
        return "\n".join([f"the graphs differ: {counts}", *(entry.text for entry in self.first)])


Describe = Callable[[Hashable], Mapping[str, str]]


def compare(
    one: LabelledGraph,
    other: LabelledGraph,
    *,
    names: tuple[str, str],
    describe: Describe,
    show: int = 3,
) -> Comparison:
    """Compare two graphs.

    `names` are what the graphs are called, `describe` gives a state's variables as texts, `show`
    is how many differences of each kind are told in words.
    """
    both = _Both((one, other), names, describe)
    initial, labels, edges, states = both.initial_states(), both.labels(), both.steps(), both.only()
    return Comparison(
        {
            Kind.INITIAL_STATE: len(initial),
            Kind.LABEL: len(labels),
            Kind.EDGE: len(edges),
            Kind.STATE: len(states),
        },
        (
            *(Difference(Kind.INITIAL_STATE, both.tell_initial(*it)) for it in initial[:show]),
            *(Difference(Kind.LABEL, both.tell_label(*it)) for it in labels[:show]),
            *(Difference(Kind.EDGE, both.tell_step(*it)) for it in edges[:show]),
            *(Difference(Kind.STATE, both.tell_state(*it)) for it in states[:show]),
        ),
    )


Side = Literal[0, 1]
_SIDES: tuple[tuple[Side, Side], ...] = ((0, 1), (1, 0))  # (the one that has it, the other)


class _Both:
    """Both graphs over one numbering of the states that either has.

    Each kind of difference has a method that finds all of them, those nearest to an initial state
    first, and one that tells a single one.
    """

    def __init__(
        self,
        graphs: tuple[LabelledGraph, LabelledGraph],
        names: tuple[str, str],
        describe: Describe,
    ) -> None:
        self.names = names
        self.describe = describe
        numbers: dict[Hashable, int] = {}
        renamed = [
            [numbers.setdefault(state, len(numbers)) for state in graph.states] for graph in graphs
        ]
        self.states = tuple(numbers)
        self.reached = [frozenset(numbering) for numbering in renamed]
        self.initial = [
            frozenset(numbering[state] for state in graph.initial)
            for graph, numbering in zip(graphs, renamed, strict=True)
        ]
        self.edges: list[frozenset[Edge]] = [
            frozenset((numbering[a], label, numbering[b]) for a, label, b in graph.edges)
            for graph, numbering in zip(graphs, renamed, strict=True)
        ]
        self.distance = _distances(self.initial[0] | self.initial[1], self.edges)

    def far(self, state: int) -> tuple[int, int]:
        """Return a sort key: the distance from the initial states, then the number."""
        return self.distance.get(state, len(self.states)), state

    def initial_states(self) -> list[tuple[Side, int]]:
        """Return (side, state) for each initial state that only that side has."""
        return [
            (side, state)
            for side, other in _SIDES
            for state in sorted(self.initial[side] - self.initial[other])
        ]

    def tell_initial(self, side: Side, state: int) -> str:
        return f"only {self.names[side]} starts in this state:\n{self.lines(state)}"

    def labels(self) -> list[tuple[int, int, tuple[frozenset[str], frozenset[str]]]]:
        """Return (from, to, labels of the one alone and of the other) for steps that both make."""
        labels = [defaultdict[tuple[int, int], set[str]](set) for _ in self.edges]
        for mine, edges in zip(labels, self.edges, strict=True):
            for source, label, target in edges:
                mine[source, target].add(label)
        one, other = labels
        pairs = (pair for pair in one.keys() & other.keys() if one[pair] != other[pair])
        return [
            (*pair, (frozenset(one[pair] - other[pair]), frozenset(other[pair] - one[pair])))
            for pair in sorted(pairs, key=lambda pair: (self.far(pair[0]), pair))
        ]

    def tell_label(
        self, source: int, target: int, labels: tuple[frozenset[str], frozenset[str]]
    ) -> str:
        said = " and ".join(
            f"{name} says {', '.join(sorted(mine)) or 'nothing more'}"
            for name, mine in zip(self.names, labels, strict=True)
        )
        return (
            f"one step has different labels: {said}\n"
            f"  from\n{self.lines(source)}\n  to\n{self.lines(target, source)}"
        )

    def steps(self) -> list[tuple[Side, Edge]]:
        """Return the steps from a state of both sides that only one makes, under any label."""
        joined = [{(source, target) for source, _, target in edges} for edges in self.edges]
        found = [
            (side, edge)
            for side, other in _SIDES
            for edge in self.edges[side]
            if (edge[0], edge[2]) not in joined[other] and edge[0] in self.reached[other]
        ]
        return sorted(found, key=lambda it: (self.far(it[1][0]), it))

    def tell_step(self, side: Side, edge: Edge) -> str:
        """Tell a step, and what the other side does under that label instead."""
        source, label, target = edge
        other: Side = 1 if side == 0 else 0
        lines = [
            f"only {self.names[side]} makes the step {label}\n  from\n{self.lines(source)}",
            f"  to\n{self.lines(target, source)}",
        ]
        instead = sorted(b for a, name, b in self.edges[other] if (a, name) == (source, label))
        if not instead:
            lines.append(f"  where {self.names[other]} does not allow {label}")
        lines += [
            f"  {self.names[other]} leads by {label} to\n{self.lines(goal, source)}"
            for goal in instead[:2]
        ]
        return "\n".join(lines)

    def only(self) -> list[tuple[Side, int]]:
        """Return (side, state) for each state that only that side reaches."""
        found = [
            (side, state)
            for side, other in _SIDES
            for state in self.reached[side] - self.reached[other]
        ]
        return sorted(found, key=lambda it: self.far(it[1]))

    def tell_state(self, side: Side, state: int) -> str:
        return f"only {self.names[side]} reaches this state:\n{self.lines(state)}"

    def lines(self, state: int, before: int | None = None) -> str:
        """Return a state as indented lines, or what is different from the state before."""
        earlier = None if before is None else self.describe(self.states[before])
        lines = changes(earlier, self.describe(self.states[state]))
        return "\n".join(f"    {line}" for line in lines)


def _distances(initial: frozenset[int], edges: Sequence[frozenset[Edge]]) -> dict[int, int]:
    """Return how many steps of either graph each state is away from an initial one."""
    successors: dict[int, set[int]] = defaultdict(set)
    for graph_edges in edges:
        for source, _, target in graph_edges:
            successors[source].add(target)
    distance = dict.fromkeys(initial, 0)
    queue = deque(initial)
    while queue:
        state = queue.popleft()
        for target in successors[state]:
            if target not in distance:
                distance[target] = distance[state] + 1
                queue.append(target)
    return distance
