"""What an event of a trace means in the specification: the steps that it may be.

Every event is a step of its own name, taken by `forebay_spec` itself, with the outcome and the
slots that were recorded. Three events say more than the models do. An Arrive or Ask that came to
TIMEOUT is Arrive (or Ask) and Expire at once, as docs/state-machine.md says of calls with timeout
0. An Expire that came to INTERRUPTED, after an exception, may end a wait whenever there is one. A
Fail that came to INTERRUPTED ends a batch that was ready, such as that of a cancelled task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import perm

from forebay_spec.actions import Label, Machine, actions_under, actor_of
from forebay_spec.bounds import Bounds, ReaderKind
from forebay_spec.effects import drawn, gathered, taken, without_ticket
from forebay_spec.events import Event
from forebay_spec.kernel import Phase, Verdict, batch_rows
from forebay_spec.state import HoldKind, State, Ticket, filling_of, idle, sampleable, ticket_of
from forebay_spec.verdicts import verdict

from forebay_models.tracing.files import ARRIVALS, OF_HOLDS
from forebay_models.tracing.setting import Tokens, Unobserved, all_requests

MOST_DRAWS = 5_000
"""So many draws at random are tried for one hidden step."""


class TooMany(Exception):
    """There are more possibilities than can be followed."""


class Matcher:
    """Takes events of a trace as steps, under constants in which the tokens change."""

    def __init__(self, bounds: Bounds, unobserved: Sequence[Unobserved]) -> None:
        self._bounds = bounds
        self._unobserved = unobserved
        self._absent = frozenset(absent.actor for absent in unobserved)
        self._wanted: tuple[int, ...] | None = None
        self._machine = Machine(bounds, actions_under(draw=self._draw))

    def at(self, tokens: Tokens) -> None:
        """Go on with these tokens."""
        if tokens != self._bounds.token_of:
            self._bounds = replace(self._bounds, token_of=tokens)
            self._machine = replace(self._machine, bounds=self._bounds)

    def label(self, event: Event) -> Label:
        """Return an event's label in the models."""
        if event.actor is None or event.name in OF_HOLDS or event.name == "SetCancel":
            return Label(event.name, event.args)
        return Label(event.name, (event.actor, *event.args))

    def after(self, state: State, event: Event) -> tuple[State, ...]:
        """Return the states in which a step may end that is this event; none if it is none."""
        self._wanted = event.slots
        try:
            return tuple(self._steps(state, event))
        finally:
            self._wanted = None

    def hidden(self, state: State) -> Iterator[tuple[Label, State]]:
        """Yield the steps of actors who are not observed, with what comes out of each."""
        for absent in self._unobserved:
            x = absent.actor
            if ticket_of(state, x) is not None:
                yield Label("Expire", (x,)), without_ticket(state, x)
            for label in self._hidden_labels(state, absent):
                for after in self._apply(state, label):
                    if after != state:
                        yield label, after

    def allowed(self, state: State, event: Event) -> str:
        """Say what could have happened instead of an event."""
        possible = [
            str(label)
            for label in self._machine.labels(state)
            if label.name not in (*ARRIVALS, "SetCancel", "Close", "Empty")
        ]
        free = [x for x in self._bounds.actors if idle(state, x)]
        parts = [f"steps of calls that are under way: {', '.join(possible) or 'none'}"]
        parts.append(f"a call of {', '.join(free) or 'nobody'}")
        told = self._told(state, event)
        return "; ".join([*([told] if told else []), *parts])

    def _steps(self, state: State, event: Event) -> Iterator[State]:
        label = self.label(event)
        if event.name in ARRIVALS:
            yield from self._arrivals(state, event, label)
        elif event.name == "Expire" and event.outcome == "INTERRUPTED":
            yield from self._leaves(state, event)
        elif event.name == "Cancel" and event.actor in self._absent:
            yield from self._leaves(state, event)  # nobody knows which token its call had
        elif event.name == "Fail" and event.outcome == "INTERRUPTED":
            yield from self._fails_late(state, event)
        elif self._is_anothers(state, event):
            return
        else:
            for after in self._apply(state, label):
                if slots_of(state, event, after) == event.slots:
                    yield after

    def _is_anothers(self, state: State, event: Event) -> bool:
        """Tell whether an event names another refusal, or another owner of a hold, than it has."""
        if event.name == "Refuse":
            return self._verdict(state, event) != event.outcome
        return event.name in OF_HOLDS and actor_of_hold(state, event) != event.actor

    def _apply(self, state: State, label: Label) -> tuple[State, ...]:
        """Return what may come out of a step; nothing if it cannot happen in this state.

        A guard is asked only about what its action is for: Draw about readers' tickets, not
        writers'. How large calls may be, the trace says.
        """
        action = self._machine.actions[label.name]
        possible = action.instances(self._bounds, state)
        if label.name not in ARRIVALS and label.args not in tuple(possible):
            return ()
        if not action.enabled(self._bounds, state, *label.args):
            return ()
        return action.apply(self._bounds, state, *label.args)

    def _arrivals(self, state: State, event: Event, label: Label) -> Iterator[State]:
        if not _has_sizes(event, self._bounds.capacity) or event.actor is None:
            return
        afters = self._apply(state, label)
        if not afters or self._verdict(_queued(state, event), event) != event.outcome:
            return
        if event.outcome == "TIMEOUT":
            expiry = Label("Expire", (event.actor,))
            afters = tuple(after for queued in afters for after in self._apply(queued, expiry))
        for after in afters:
            if slots_of(state, event, after) == event.slots:
                yield after

    def _leaves(self, state: State, event: Event) -> Iterator[State]:
        if ticket_of(state, event.actor or "") is not None and not event.slots:
            yield without_ticket(state, event.actor or "")

    def _fails_late(self, state: State, event: Event) -> Iterator[State]:
        h = event.args[0]
        if actor_of_hold(state, event) != event.actor or not isinstance(h, int):
            return
        if state.holds[h].state == "ready" and state.holds[h].slots == event.slots:
            yield gathered(self._bounds, state, h, "failed")

    def _verdict(self, state: State, event: Event) -> str | None:
        """Return what the kernel says to the waiting call of an event's actor, if it waits."""
        if event.actor is None or ticket_of(state, event.actor) is None:
            return None
        expired = event.outcome == "TIMEOUT"
        return verdict(self._bounds, state, event.actor, expired).name

    def _told(self, state: State, event: Event) -> str:
        """Say what the call of an event comes to in this state."""
        if event.name in ARRIVALS and event.actor is not None and idle(state, event.actor):
            if not _has_sizes(event, self._bounds.capacity):
                return ""
            found = verdict(self._bounds, _queued(state, event), event.actor)
        elif event.actor is not None and ticket_of(state, event.actor) is not None:
            found = verdict(self._bounds, state, event.actor)
        else:
            return ""
        if found != Verdict.SERVE:
            return f"{event.actor}'s call comes to {found.name}"
        return f"{event.actor}'s call comes to SERVE{self._slots_due(state, event)}"

    def _slots_due(self, state: State, event: Event) -> str:
        """Say which slots a served call gets."""
        if event.name in ARRIVALS:
            ticket = _queued(state, event).tickets[-1]
        else:
            ticket = ticket_of(state, event.actor or "") or Ticket("write", "", 0, 0)
        if ticket.kind == "write":
            return f" with the slots {_numbers(state.free[: ticket.n])}"
        there = sampleable(self._bounds, state)
        rows = batch_rows(ticket.n, len(there))
        if not self._bounds.fifo:
            return f" with {rows} of the slots {_numbers(there)}"
        oldest = sorted(there, key=lambda number: state.slots[number].stamp)
        return f" with the slots {_numbers(oldest[:rows])}"

    def _draw(
        self, bounds: Bounds, state: State, actor: str, kind: HoldKind, k: int
    ) -> tuple[State, ...]:
        """Draw as the models do; at random only what was recorded, since that is what was drawn."""
        if bounds.fifo:
            return drawn(bounds, state, actor, kind, k)
        there = sampleable(bounds, state)
        rows = batch_rows(k, len(there))
        wanted = self._wanted
        if wanted is None:
            if perm(len(there), rows) > MOST_DRAWS:
                raise TooMany(f"a hidden draw of {rows} out of {len(there)} records at random")
            return drawn(bounds, state, actor, kind, k)
        if len(wanted) != rows or len(set(wanted)) != rows or not set(wanted) <= set(there):
            return ()
        return (taken(bounds, state, actor, kind, wanted),)

    def _hidden_labels(self, state: State, absent: Unobserved) -> Iterator[Label]:
        x = absent.actor
        if idle(state, x):
            if "write" in absent.kinds:
                yield from (Label("Arrive", (x, n)) for n in self._sizes)
            for request in self._requests[absent]:
                yield Label("Ask", (x, *request))
        for label in self._machine.labels(state):
            if label.name in (*ARRIVALS, "SetCancel", "Close", "Empty", "Expire"):
                continue
            if actor_of(state, label) == x:
                yield label

    @cached_property
    def _sizes(self) -> range:
        return range(1, self._bounds.capacity + 1)

    @cached_property
    def _requests(self) -> dict[Unobserved, tuple[tuple[str, int, int], ...]]:
        capacity = self._bounds.capacity
        return {absent: all_requests(capacity, absent.kinds) for absent in self._unobserved}


def slots_of(before: State, event: Event, after: State) -> tuple[int, ...]:
    """Return the slots that a step's event has to name."""
    name, actor = event.name, event.actor or ""
    if name == "Admit" or (name == "Arrive" and event.outcome == "SERVE"):
        return filling_of(after, actor)
    if name == "Draw" or (name == "Ask" and event.outcome == "SERVE"):
        return after.holds[-1].slots
    if name in ("Publish", "Abandon"):
        return filling_of(before, actor)
    if name in OF_HOLDS:
        h = event.args[0]
        assert isinstance(h, int)
        return before.holds[h].slots
    if name == "Empty":
        live = (n for n, slot in enumerate(before.slots) if slot.phase == Phase.LIVE)
        return tuple(live)
    return ()


def actor_of_hold(state: State, event: Event) -> str | None:
    """Return the owner of the hold that an event is about, or None if there is no such hold."""
    h = event.args[0]
    assert isinstance(h, int)
    return state.holds[h].owner if 0 <= h < len(state.holds) else None


def _queued(state: State, event: Event) -> State:
    """Return the state with the ticket of an arriving call at the end of the list."""
    actor, args = event.actor or "", event.args
    if event.name == "Arrive":
        ticket = Ticket("write", actor, int(args[0]), int(args[0]))
    else:
        kind: ReaderKind = "lease" if args[0] == "lease" else "plain"
        ticket = Ticket(kind, actor, int(args[1]), int(args[2]))
    return state._replace(tickets=(*state.tickets, ticket))


def _has_sizes(event: Event, capacity: int) -> bool:
    """Tell whether an arriving call asks for what a buffer can have."""
    numbers = [arg for arg in event.args if isinstance(arg, int)]
    return 1 <= numbers[-1] <= numbers[0] <= capacity


def _numbers(slots: Sequence[int]) -> str:
    return " ".join(map(str, slots)) or "none"
