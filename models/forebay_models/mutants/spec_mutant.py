"""What a fault planted in the Python specification is: a machine that is wrong in one respect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from forebay_spec.actions import ACTIONS, Action, Instances, Machine
from forebay_spec.bounds import Bounds
from forebay_spec.state import State

Actions = Mapping[str, Action]


@dataclass(frozen=True)
class SpecMutant:
    """A fault: what is wrong, the quick graph that shows it, and the property that it breaks."""

    id: str
    sentence: str
    graph: str
    breaks: str
    actions: Actions

    def machine(self, bounds: Bounds) -> Machine:
        """Return the faulty machine within these bounds."""
        return Machine(bounds, self.actions)


def changed(
    name: str,
    *,
    instances: Instances | None = None,
    enabled: Callable[..., bool] | None = None,
    apply: Callable[..., tuple[State, ...]] | None = None,
) -> Actions:
    """Return the table of actions with parts of one entry replaced."""
    right = ACTIONS[name]
    faulty = replace(
        right,
        instances=instances or right.instances,
        enabled=enabled or right.enabled,
        apply=apply or right.apply,
    )
    return {**ACTIONS, name: faulty}
