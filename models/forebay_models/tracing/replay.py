"""Judges a trace with the specification in Python: each event has to be one step of it.

What is known after some events is a frontier: all states in which the machine may be, with how it
got there. Three things make it more than one state: draws at random, as far as the trace does not
tell them; actors who are not observed, who may take any of their steps between two events; and
`SetCancel`.

A flag is stored without the lock. So whoever was inside the critical section at that moment may
have read the old one, though the section's own event stands behind. Therefore a SetCancel takes
effect where it stands, or right behind the next event of a critical section; Ready and Fail, which
are single stores too, do not count as one. Only one thread is inside at a time, so it cannot be
overlooked by two.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from forebay_spec.actions import actor_of
from forebay_spec.events import Event
from forebay_spec.state import State, initial

from forebay_models.tracing.files import OUTSIDE_THE_SECTION, shown
from forebay_models.tracing.matching import Matcher, TooMany
from forebay_models.tracing.setting import Setting

MOST_STATES: Final = 5_000
"""So many states are followed at once."""

REMEMBERED: Final = 15
"""So many steps before a rejected event are shown."""


class Node(NamedTuple):
    """Where the machine may be: the state, and the tokens whose flag takes effect later."""

    state: State
    late: tuple[str, ...] = ()


class Taken(NamedTuple):
    """One step on the way to a node."""

    label: str
    actor: str | None
    note: str
    state: State


Trail = tuple[Taken, ...]
Frontier = dict[Node, Trail]


@dataclass
class Replayed:
    """How far a trace could be followed.

    Attributes:
        judged: how many events were steps, each of its own name.
        widest: how many states were followed at once at most.
        rejected: whether the next event is no step in any state.
        gave_up: why the trace could not be followed any further, or "".
        trail: the last steps before the end, in one of the ways that lead there.
        allowed: what could have happened instead of a rejected event, a line for each state.
    """

    judged: int = 0
    widest: int = 1
    rejected: bool = False
    gave_up: str = ""
    trail: Trail = ()
    allowed: list[str] = field(default_factory=list)


def replay(
    setting: Setting,
    *,
    most: int = MOST_STATES,
    progress: Callable[[int], None] = lambda judged: None,
) -> Replayed:
    """Follow a trace as far as the specification goes; `progress` gets the number of events."""
    matcher = Matcher(setting.bounds, setting.unobserved)
    found = Replayed()
    start = Node(initial(setting.bounds))
    frontier: Frontier = {start: (Taken("initially", None, "", start.state),)}
    for event, tokens in zip(setting.trace.events, setting.tokens, strict=True):
        matcher.at(tokens)
        try:
            _close(matcher, frontier, most)
            after = _follow(matcher, frontier, event, f"line {found.judged + 2}")
        except TooMany as many:
            found.gave_up = f"{many}, before line {found.judged + 2}"
            break
        if not after:
            found.rejected = True
            found.allowed = _allowed(matcher, frontier, event)
            break
        frontier = after
        found.judged += 1
        found.widest = max(found.widest, len(frontier))
        progress(found.judged)
    found.trail = next(iter(frontier.values()))
    return found


def _close(matcher: Matcher, frontier: Frontier, most: int) -> None:
    """Add all states to which the actors who are not observed may bring the machine."""
    waiting = list(frontier)
    while waiting:
        node = waiting.pop()
        for label, after in matcher.hidden(node.state):
            there = Node(after, node.late)
            if there in frontier:
                continue
            trail = frontier[node]
            frontier[there] = _longer(
                trail, Taken(str(label), actor_of(node.state, label), "not observed", after)
            )
            if len(frontier) > most:
                raise TooMany(f"more than {most:,} states are possible")
            waiting.append(there)


def _follow(matcher: Matcher, frontier: Frontier, event: Event, note: str) -> Frontier:
    """Return where an event may lead from the states of a frontier."""
    found: Frontier = {}
    for node, trail in frontier.items():
        if event.name == "SetCancel" and event.args[0] in node.late:
            continue
        for after in matcher.after(node.state, event):
            taken = Taken(shown(event), event.actor, note, after)
            there, more = _with_late(matcher, node, event, after)
            found.setdefault(there, _longer(trail, taken, *more))
            if event.name == "SetCancel" and event.actor is None:
                later = Node(node.state, (*node.late, str(event.args[0])))
                found.setdefault(later, trail)
    return found


def _with_late(matcher: Matcher, node: Node, event: Event, after: State) -> tuple[Node, Trail]:
    """Return the node behind an event; whoever was inside has left, so late flags are seen now."""
    if not node.late or event.name in OUTSIDE_THE_SECTION:
        return Node(after, node.late), ()
    steps = []
    for token in node.late:
        late = Event(name="SetCancel", args=(token,))
        (after,) = matcher.after(after, late)
        steps.append(Taken(shown(late), None, "seen late", after))
    return Node(after), tuple(steps)


def _longer(trail: Trail, *steps: Taken) -> Trail:
    return (*trail, *steps)[-REMEMBERED - 1 :]


def _allowed(matcher: Matcher, frontier: Frontier, event: Event) -> list[str]:
    """Say what could have happened instead, in a few of the states."""
    lines = dict.fromkeys(matcher.allowed(node.state, event) for node in frontier)
    return list(lines)[:4]
