"""A labelled state graph in the form in which two of them are compared.

States have numbers so that an edge is three small values. Two graphs number their states in
different orders; `forebay_models.agree` matches them by the states themselves.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Edge = tuple[int, str, int]


@dataclass(frozen=True)
class LabelledGraph:
    """States, the numbers of the initial ones, and edges (from, label, to); labels are as in
    docs/state-machine.md, such as "Arrive(p1,2)". No state occurs twice."""

    states: Sequence[Hashable]
    initial: frozenset[int]
    edges: frozenset[Edge]
