"""The actions: which steps a buffer and its callers can take, one action one critical section.

An action knows its possible arguments in a state (`instances`), when it may happen (`enabled`) and
what comes out (`apply`: one state, or several where a draw is at random; the same state where the
call changes nothing). The table `ACTIONS` is the machine. A faulty machine is the same table with
an entry replaced, or `actions_under` another judge.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from forebay_spec.bounds import Bounds, ReaderKind
from forebay_spec.effects import (
    abandoned,
    admitted,
    delivered,
    drawn,
    emptied,
    gathered,
    published,
    recovered,
    returned,
    without_ticket,
)
from forebay_spec.kernel import Closing, Verdict, close_to
from forebay_spec.state import (
    State,
    Ticket,
    filling_of,
    has_something,
    idle,
    initial,
    is_ready_lease,
    ticket_of,
)
from forebay_spec.verdicts import Judge, verdict, waiting

__all__ = ["ACTIONS", "Action", "Label", "Machine", "actions_under", "actor_of", "verdict"]

Args = tuple[str | int, ...]
Instances = Callable[[Bounds, State], Iterable[Args]]
Admit = Callable[[State, str, int], State]
Draw = Callable[[Bounds, State, str, ReaderKind, int], tuple[State, ...]]


class Label(NamedTuple):
    """The name of one step: the action and its arguments. `str` gives `Arrive(p1,2)`."""

    name: str
    args: Args = ()

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(str, self.args))})" if self.args else self.name


@dataclass(frozen=True)
class Action:
    """One row of the table of actions.

    `enabled(bounds, state, *args)` is the guard; `apply(bounds, state, *args)` returns what may
    come out, and is only asked where the guard holds.
    """

    name: str
    instances: Instances
    enabled: Callable[..., bool]
    apply: Callable[..., tuple[State, ...]]


def actor_of(state: State, label: Label) -> str | None:
    """Return who takes a step: the caller, the owner of the hold, or None for outsiders.

    Nobody dies or is recovered by a step of its own.
    """
    if label.name in {"Ready", "Fail", "Deliver", "Return"}:
        return state.holds[_position(label.args[0])].owner
    if label.name in {"SetCancel", "Close", "Empty", "Kill", "Recover"}:
        return None
    return str(label.args[0])


def actions_under(
    judge: Judge = verdict, *, admit: Admit = admitted, draw: Draw = drawn
) -> Mapping[str, Action]:
    """Return the table of actions under a judge, with these effects of being served.

    The defaults give the honest machine. A planted fault gives a different one here, or replaces
    an entry of the table.
    """
    # Several guards ask for the same verdict; judges are pure, so one answer serves them all.
    judge = lru_cache(maxsize=256)(judge)

    def serve(bounds: Bounds, state: State, ticket: Ticket) -> tuple[State, ...]:
        if ticket.kind == "write":
            return (admit(state, ticket.actor, ticket.n),)
        return draw(bounds, state, ticket.actor, ticket.kind, ticket.n)

    def call(bounds: Bounds, state: State, ticket: Ticket) -> tuple[State, ...]:
        queued = state._replace(tickets=(*state.tickets, ticket))
        found = judge(bounds, queued, ticket.actor, False)
        if found == Verdict.SERVE:
            return serve(bounds, state, ticket)
        return (queued,) if found == Verdict.WAIT else (state,)

    def arrive(bounds: Bounds, state: State, p: str, n: int) -> tuple[State, ...]:
        return call(bounds, state, Ticket("write", p, n, n))

    def ask(
        bounds: Bounds, state: State, c: str, kind: ReaderKind, k: int, m: int
    ) -> tuple[State, ...]:
        return call(bounds, state, Ticket(kind, c, k, m))

    def gets(bounds: Bounds, state: State, x: str, *verdicts: Verdict) -> bool:
        return _waits(state, x) and judge(bounds, state, x, False) in verdicts

    def granted(bounds: Bounds, state: State, x: str) -> bool:
        return gets(bounds, state, x, Verdict.SERVE)

    def grant(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
        return serve(bounds, without_ticket(state, x), waiting(state, x))

    def may_expire(bounds: Bounds, state: State, x: str) -> bool:
        if "Expire" not in bounds.features or not _waits(state, x):
            return False
        return judge(bounds, state, x, True) == Verdict.TIMEOUT

    def is_cancelled(bounds: Bounds, state: State, x: str) -> bool:
        return gets(bounds, state, x, Verdict.CANCELLED)

    def is_refused(bounds: Bounds, state: State, x: str) -> bool:
        return gets(bounds, state, x, Verdict.SHUT_DOWN, Verdict.MUTUAL_WAIT)

    rows = (
        Action("Arrive", _writes, _may_call, arrive),
        Action("Admit", _who_wait_to_write, granted, grant),
        Action("Publish", _who_fill, _fills, _publish),
        Action("Abandon", _who_fill, _may_abandon, _abandon),
        Action("Ask", _reads, _may_call, ask),
        Action("Draw", _who_wait_to_read, granted, grant),
        Action("Ready", _holds, _gathers, _ready),
        Action("Fail", _holds, _may_fail, _fail),
        Action("Deliver", _holds, _is_ready, _deliver),
        Action("Return", _holds, _may_return, _return),
        Action("Expire", _who_wait, may_expire, _leave),
        Action("Cancel", _who_wait, is_cancelled, _leave),
        Action("Refuse", _who_wait, is_refused, _leave),
        Action("SetCancel", _tokens, _is_unset, _set_cancel),
        Action("Close", _modes, _always, _close),
        Action("Empty", _once, _may_empty, _empty),
        Action("Kill", _who_act, _may_die, _kill),
        Action("Recover", _who_are_dead, _is_dead, _recover),
    )
    return {action.name: action for action in rows}


# What the arguments may be. Actions about a ticket, a filling batch or a hold look at those that
# there are, the others at the constants.


def _writes(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((p, n) for p in bounds.producers for n in bounds.write_sizes)


def _reads(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((c, *request) for c in bounds.readers for request in bounds.requests)


def _who_wait(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((ticket.actor,) for ticket in state.tickets)


def _who_wait_to_write(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((ticket.actor,) for ticket in state.tickets if ticket.kind == "write")


def _who_wait_to_read(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((ticket.actor,) for ticket in state.tickets if ticket.kind != "write")


def _who_fill(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((p,) for p, _ in state.filling)


def _holds(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((h,) for h in range(len(state.holds)))


def _tokens(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((token,) for token in bounds.tokens)


def _modes(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((mode.name.lower(),) for mode in bounds.closings)


def _once(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((),)


def _who_act(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((x,) for x in bounds.actors)


def _who_are_dead(bounds: Bounds, state: State) -> Iterable[Args]:
    return ((x,) for x in bounds.actors if x in state.dead)


# Guards and effects. Who is dead takes no step: every guard about an actor, or about a hold of its
# own, asks for that, but that of Recover.


def _waits(state: State, x: str) -> bool:
    return ticket_of(state, x) is not None and x not in state.dead


def _lives_with_hold(state: State, h: int) -> bool:
    return h < len(state.holds) and state.holds[h].owner not in state.dead


def _may_call(bounds: Bounds, state: State, x: str, *call: str | int) -> bool:
    return idle(state, x)


def _fills(bounds: Bounds, state: State, p: str) -> bool:
    return bool(filling_of(state, p)) and p not in state.dead


def _publish(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    return (published(bounds, state, p),)


def _may_abandon(bounds: Bounds, state: State, p: str) -> bool:
    return "Abandon" in bounds.features and _fills(bounds, state, p)


def _abandon(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    return (abandoned(state, p),)


def _gathers(bounds: Bounds, state: State, h: int) -> bool:
    return _lives_with_hold(state, h) and state.holds[h].state == "gathering"


def _ready(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    return (gathered(state, h, "ready"),)


def _may_fail(bounds: Bounds, state: State, h: int) -> bool:
    return "Fail" in bounds.features and _gathers(bounds, state, h)


def _fail(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    return (gathered(state, h, "failed"),)


def _is_ready(bounds: Bounds, state: State, h: int) -> bool:
    return _lives_with_hold(state, h) and state.holds[h].state == "ready"


def _deliver(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    return (delivered(bounds, state, h),)


def _may_return(bounds: Bounds, state: State, h: int) -> bool:
    if not _lives_with_hold(state, h):
        return False
    hold = state.holds[h]
    return hold.state == "failed" or is_ready_lease(hold)


def _return(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    return (returned(bounds, state, h),)


def _leave(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (without_ticket(state, x),)


def _is_unset(bounds: Bounds, state: State, token: str) -> bool:
    return token in bounds.tokens and token not in state.cancelled


def _set_cancel(bounds: Bounds, state: State, token: str) -> tuple[State, ...]:
    return (state._replace(cancelled=state.cancelled | {token}),)


def _always(bounds: Bounds, state: State, *args: str | int) -> bool:
    return True


def _close(bounds: Bounds, state: State, mode: str) -> tuple[State, ...]:
    return (state._replace(closing=close_to(state.closing, Closing[mode.upper()])),)


def _may_empty(bounds: Bounds, state: State) -> bool:
    return "Empty" in bounds.features


def _empty(bounds: Bounds, state: State) -> tuple[State, ...]:
    return (emptied(bounds, state),)


def _may_die(bounds: Bounds, state: State, x: str) -> bool:
    return "Kill" in bounds.features and x not in state.dead and has_something(state, x)


def _kill(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (state._replace(dead=state.dead | {x}),)


def _is_dead(bounds: Bounds, state: State, x: str) -> bool:
    return x in state.dead


def _recover(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (recovered(bounds, state, x),)


def _position(value: str | int) -> int:
    assert isinstance(value, int)
    return value


ACTIONS: Final = actions_under()


@dataclass(frozen=True)
class Machine:
    """A model: the constants, and the actions that it can take."""

    bounds: Bounds
    actions: Mapping[str, Action] = field(default_factory=lambda: ACTIONS)

    def initial(self) -> State:
        """Return the one initial state."""
        return initial(self.bounds)

    def labels(self, state: State) -> list[Label]:
        """Return the steps that may happen in a state, in the order of the table of actions."""
        return [
            Label(action.name, args)
            for action in self.actions.values()
            for args in action.instances(self.bounds, state)
            if action.enabled(self.bounds, state, *args)
        ]

    def apply(self, state: State, label: Label) -> tuple[State, ...]:
        """Return what may come out of a step; `ValueError` when it cannot happen in this state."""
        action = self.actions[label.name]
        if not action.enabled(self.bounds, state, *label.args):
            raise ValueError(f"{label} cannot happen here")
        return action.apply(self.bounds, state, *label.args)

    def successors(self, state: State) -> Iterator[tuple[Label, State]]:
        """Yield every step from a state with what comes out of it, self-loops included."""
        bounds = self.bounds
        for action in self.actions.values():
            for args in action.instances(bounds, state):
                if action.enabled(bounds, state, *args):
                    label = Label(action.name, args)
                    for after in action.apply(bounds, state, *args):
                        yield label, after
