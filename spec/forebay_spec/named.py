"""What a named property or witness is: a name, a sentence and a predicate.

The registry of them is `forebay_spec.properties`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from forebay_spec.bounds import Bounds
from forebay_spec.invariants import StatePredicate
from forebay_spec.state import State
from forebay_spec.steps import StepPredicate

Fairness = Literal["BufferGoesOn", "CallersGoOn"]
Choice = tuple[str, str]  # an action and its actor: the steps that are one choice for fairness


Within = Callable[[Bounds], bool]


def anywhere(bounds: Bounds) -> bool:
    """Tell that something is about every buffer."""
    return True


def overwriting(bounds: Bounds) -> bool:
    """Tell whether what is about overwriting buffers alone says something within bounds."""
    return bounds.overwriting


@dataclass(frozen=True)
class Invariant:
    """Holds in every state; `within` tells whether it can fail there at all, as for the others."""

    name: str
    sentence: str
    predicate: StatePredicate
    within: Within = anywhere


@dataclass(frozen=True)
class StepProperty:
    """Holds of every step."""

    name: str
    sentence: str
    predicate: StepPredicate
    within: Within = anywhere


@dataclass(frozen=True)
class Witness:
    """Comes up in some step, or the model shows nothing.

    `actions` are those whose steps can show it first, so that no others need be asked about; none
    means that any can.
    """

    name: str
    sentence: str
    predicate: StepPredicate
    actions: tuple[str, ...]
    within: Within = anywhere


@dataclass(frozen=True)
class Liveness:
    """Nobody is owed for ever: whoever is in `owed(bounds, state)` is out of it some time later.

    This holds of runs that are fair as `fairness` says and on which the actions in `end` happen no
    more from some time on. It is checked on the graphs of one `theme`.
    """

    name: str
    sentence: str
    fairness: Fairness
    owed: Callable[[Bounds, State], frozenset[str]]
    theme: str = "liveness"
    end: frozenset[str] = frozenset()
