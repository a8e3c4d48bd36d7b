"""Which edges of the quick graphs were taken, by whatever took them.

The graphs are the measure of all campaigns: a random walk and a plan that takes every edge can be
put side by side by the edges that each of them has taken.
"""

from dataclasses import dataclass, field

from forebay_spec.actions import Label
from forebay_spec.bounds import QUICK, Bounds
from forebay_spec.state import State


@dataclass
class EdgeCoverage:
    """The edges and states that were seen; steps within other bounds are passed over.

    Attributes:
        edges: as (graph, before, step, after).
        states: as (graph, state), the ends of these edges.
    """

    edges: set[tuple[str, State, Label, State]] = field(default_factory=set)
    states: set[tuple[str, State]] = field(default_factory=set)

    def add(self, bounds: Bounds, before: State, label: Label, after: State) -> None:
        """Note a step."""
        name = bounds.name
        if QUICK.get(name) is bounds:
            self.edges.add((name, before, label, after))
            self.states.add((name, before))
            self.states.add((name, after))
