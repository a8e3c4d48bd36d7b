"""Names for kinds of states, so that people see in which situations each action was taken.

A count of actions alone hides much: a thousand draws from a buffer in which nobody ever waited say
nothing about waiting. So every state belongs to one of a dozen classes, and a heat map counts the
steps of each action by the class of the state in which they were taken.
"""

from collections.abc import Mapping
from typing import Final

from forebay_spec.kernel import Closing, Phase
from forebay_spec.state import State

STATE_CLASSES: Final[Mapping[str, str]] = {
    "empty": "open, nobody waits, no record anywhere",
    "partly full": "open, nobody waits, some slots are free, none is being filled or held",
    "full": "open, nobody waits, no slot is free, none is being filled or held",
    "filling": "open, nobody waits, a batch is being written",
    "held": "open, nobody waits, a drawn batch is not yet delivered or a lease is out",
    "filling, held": "open, nobody waits, both of these",
    "writers wait": "open, writers wait and no reader does",
    "readers wait": "open, readers wait and no writer does",
    "both wait": "open, writers and readers wait",
    "draining": "being drained, nobody waits",
    "draining, waits": "being drained, and somebody waits",
    "stopped": "stopped",
}
"""Every class with what it means, in the order in which they are shown."""


def state_class(state: State) -> str:
    """Return the name of the class that a state belongs to, one of `STATE_CLASSES`."""
    if state.closing == Closing.STOPPED:
        return "stopped"
    if state.closing == Closing.DRAINING:
        return "draining, waits" if state.tickets else "draining"
    if state.tickets:
        waiting = {"writers" if ticket.kind == "write" else "readers" for ticket in state.tickets}
        return f"{waiting.pop()} wait" if len(waiting) == 1 else "both wait"
    if state.filling or state.holds:
        return ", ".join(["filling"] * bool(state.filling) + ["held"] * bool(state.holds))
    if all(slot.phase == Phase.FREE for slot in state.slots):
        return "empty"
    return "partly full" if state.free else "full"


def heat_of(counted: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Return counts of (action, class) as heat[action][class], the form that an outcome has."""
    heat: dict[str, dict[str, int]] = {}
    for (action, kind), times in counted.items():
        heat.setdefault(action, {})[kind] = times
    return heat
