"""Traces that are wrong by construction, made of true ones.

Not every change of a trace makes it wrong: a call that was refused leaves nothing behind, and two
actions that have nothing to do with each other may change places. So each kind of change below
looks for a place where it must matter, and says why.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from forebay_models.tracing.files import ARRIVALS, TraceFile
from forebay_spec.events import Event

Events = tuple[Event, ...]
Change = Callable[[Events, int], Events | None]
"""Changes the event at a place, or returns None where that might leave a true trace."""


class Mutation(NamedTuple):
    """A wrong trace: which kind of change, at which event, and what came out."""

    kind: str
    place: int
    trace: TraceFile


def mutations(trace: TraceFile, count: int, seed: int) -> list[Mutation]:
    """Return so many different wrong traces, the kinds in turn, each at places by chance."""
    dice = Random(seed)
    queues: dict[str, list[Mutation]] = {}
    for kind, change in CHANGES.items():
        found = []
        for place in range(len(trace.events)):
            events = change(trace.events, place)
            if events is not None:
                found.append(Mutation(kind, place, replace(trace, events=events)))
        dice.shuffle(found)
        queues[kind] = found
    chosen: list[Mutation] = []
    while len(chosen) < count and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < count:
                chosen.append(queue.pop())
    return chosen


def later(events: Events, place: int, actor: str | None) -> Iterator[Event]:
    """Yield the events of an actor behind a place."""
    return (event for event in events[place + 1 :] if event.actor == actor)


def changed(events: Events, place: int, **fields: object) -> Events:
    """Return the events with other fields at a place."""
    event = replace(events[place], **fields)  # type: ignore[arg-type]  # fields of an Event
    return (*events[:place], event, *events[place + 1 :])


def without(events: Events, place: int) -> Events:
    """Return the events without the one at a place."""
    return events[:place] + events[place + 1 :]


def drop_start(events: Events, place: int) -> Events | None:
    """Without its first action a call cannot take the next: it has no ticket and no batch."""
    event = events[place]
    starts = event.outcome in ("SERVE", "WAIT") or event.name in ("Admit", "Draw", "Ready")
    return without(events, place) if starts and any(later(events, place, event.actor)) else None


def drop_end(events: Events, place: int) -> Events | None:
    """Without its last action a call goes on, so that its actor cannot make the next one."""
    event = events[place]
    if event.name not in ("Publish", "Deliver", "Cancel", "Expire", "Refuse"):
        return None
    if event.name == "Deliver" and _kind_of_last_ask(events, place) == "lease":
        return None  # its actor may go on beside a lease
    following = next(later(events, place, event.actor), None)
    arrives = following is not None and following.name in ("Arrive", "Ask")
    return without(events, place) if arrives else None


def drop_flag(events: Events, place: int) -> Events | None:
    """Without its flag no call that has the token is cancelled."""
    event = events[place]
    if event.name != "SetCancel":
        return None
    calls = {e.actor: e for e in events[:place] if e.name in ("Arrive", "Ask")}
    for after in events[place + 1 :]:
        if after.name in ("Arrive", "Ask"):
            calls[after.actor] = after
        call = calls.get(after.actor) if after.outcome == "CANCELLED" else None
        if call is not None and call.token == event.args[0]:
            return without(events, place)
    return None


def swap_own(events: Events, place: int) -> Events | None:
    """A call's next action cannot come before the one that makes it possible."""
    event = events[place]
    if not (event.outcome in ("SERVE", "WAIT") or event.name in ("Admit", "Draw", "Ready")):
        return None
    for other in range(place + 1, len(events)):
        if events[other].actor == event.actor:
            swapped = list(events)
            swapped[place], swapped[other] = events[other], event
            return tuple(swapped)
    return None


def other_slots(events: Events, place: int) -> Events | None:
    """Which slots a batch has is determined: under fifo by the order, later by the batch."""
    event = events[place]
    if event.name in ("Arrive", "Admit", "Publish", "Ready", "Deliver", "Return") and event.slots:
        return changed(events, place, slots=(*event.slots[:-1], event.slots[-1] + 1))
    return None


def fewer_slots(events: Events, place: int) -> Events | None:
    """How many slots a batch has is determined."""
    slots = events[place].slots
    return changed(events, place, slots=slots[:-1]) if slots else None


def turned_slots(events: Events, place: int) -> Events | None:
    """The slots of a batch have an order: that of the free list, or of their ages."""
    event = events[place]
    if len(event.slots) < 2 or event.name not in ("Arrive", "Admit", "Publish"):
        return None
    return changed(events, place, slots=event.slots[::-1])


def served_waits(events: Events, place: int) -> Events | None:
    """Whoever can be served does not wait."""
    if events[place].outcome != "SERVE":
        return None
    return changed(events, place, outcome="WAIT", slots=())


def waiting_expires(events: Events, place: int) -> Events | None:
    """One that has expired cannot be served, cancelled or refused afterwards."""
    if events[place].outcome != "WAIT" or not any(later(events, place, events[place].actor)):
        return None
    return changed(events, place, outcome="TIMEOUT")


def refused_while_open(events: Events, place: int) -> Events | None:
    """Nobody is told that a buffer is closed which is not."""
    event = events[place]
    if event.outcome not in ("TIMEOUT", "SERVE") or event.name not in ("Arrive", "Ask"):
        return None
    if any(e.name == "Close" for e in events[:place]):
        return None
    return changed(events, place, outcome="SHUT_DOWN", slots=())


def larger_write(events: Events, place: int) -> Events | None:
    """A batch that is admitted has as many slots as records."""
    event = events[place]
    size = event.args[0] if event.name == "Arrive" and event.outcome == "SERVE" else None
    return changed(events, place, args=(size + 1,)) if isinstance(size, int) else None


def another_position(events: Events, place: int) -> Events | None:
    """The next hold is another one, or there is none."""
    event = events[place]
    if event.name not in ("Ready", "Fail", "Deliver", "Return"):
        return None
    position = event.args[0]
    assert isinstance(position, int)
    return changed(events, place, args=(position + 1,))


def another_actor(events: Events, place: int) -> Events | None:
    """What an actor fills or holds is no other's to publish or deliver."""
    event = events[place]
    if event.name not in ("Publish", "Ready", "Deliver", "Admit", "Draw"):
        return None
    others = [e.actor for e in events if e.actor not in (None, event.actor)]
    return changed(events, place, actor=others[0]) if others else None


def failed_delivered(events: Events, place: int) -> Events | None:
    """A batch that failed is not delivered, and one that is ready and no lease not returned."""
    event = events[place]
    if _kind_of_last_ask(events, place) != "plain" or event.outcome != "DONE":
        return None
    wrong = {"Fail": "Ready", "Deliver": "Return"}.get(event.name)
    ends = event.name == "Deliver" or any(later(events, place, event.actor))
    return changed(events, place, name=wrong) if wrong is not None and ends else None


def twice(events: Events, place: int) -> Events | None:
    """What ends a batch, or sets a flag, happens once."""
    if events[place].name not in ("Publish", "Deliver", "Return", "Admit", "SetCancel", "Ready"):
        return None
    return (*events[: place + 1], events[place], *events[place + 1 :])


def cancelled_without_flag(events: Events, place: int) -> Events | None:
    """A call without a flag expires and is not cancelled."""
    event = events[place]
    if event.outcome != "TIMEOUT":
        return None
    name = "Cancel" if event.name == "Expire" else event.name
    calls = [e for e in events[: place + 1] if e.actor == event.actor and e.name in ARRIVALS]
    flags = [e.args[0] for e in events[:place] if e.name == "SetCancel"]
    if calls[-1].token in flags:
        return None
    return changed(events, place, name=name, outcome="CANCELLED")


def _kind_of_last_ask(events: Events, place: int) -> str | None:
    """Return what kind of batch the actor of an event has asked for last."""
    actor = events[place].actor
    asked = [e.args[0] for e in events[:place] if e.name == "Ask" and e.actor == actor]
    return str(asked[-1]) if asked else None


CHANGES: Final[dict[str, Change]] = {
    change.__name__: change
    for change in (
        drop_start,
        drop_end,
        drop_flag,
        swap_own,
        other_slots,
        fewer_slots,
        turned_slots,
        served_waits,
        waiting_expires,
        refused_while_open,
        larger_write,
        another_position,
        another_actor,
        failed_delivered,
        twice,
        cancelled_without_flag,
    )
}
