"""The actions: which steps a buffer and its callers can take, one action one critical section.

An action knows its possible arguments in a state (`instances`), when it may happen (`enabled`) and
what comes out (`apply`: one state, or several where a draw is at random; the same state where the
call changes nothing). The table `ACTIONS` is the machine. A faulty machine is the same table with
an entry replaced, or `actions_under` another judge.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from forebay_spec import arguments as possible
from forebay_spec import guards as when
from forebay_spec.arguments import Args, Instances
from forebay_spec.boundary import captured, loaded, restored
from forebay_spec.bounds import Bounds, ReaderKind
from forebay_spec.effects import (
    abandoned,
    admitted,
    copied,
    delivered,
    drawn,
    emptied,
    gathered,
    handed,
    published,
    recovered,
    returned,
    without_ticket,
)
from forebay_spec.kernel import Closing, Verdict, close_to
from forebay_spec.state import (
    NO_BOUNDARY,
    Boundary,
    HoldKind,
    HoldState,
    Stage,
    State,
    Ticket,
    initial,
    is_settled,
    is_stale,
)
from forebay_spec.verdicts import Judge, takes, verdict, waiting

__all__ = [
    "ACTIONS",
    "Action",
    "Args",
    "Instances",
    "Label",
    "Machine",
    "actions_under",
    "actor_of",
    "verdict",
]

Admit = Callable[[State, str, int], State]
Draw = Callable[[Bounds, State, str, HoldKind, int], tuple[State, ...]]
Take = Callable[[State, int, str, ReaderKind], State]


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
    come out, and is only asked where the guard holds. `within(bounds)` tells whether there may be a
    state within the bounds in which it holds, so that nobody asks again and again.
    """

    name: str
    instances: Instances
    enabled: Callable[..., bool]
    apply: Callable[..., tuple[State, ...]]
    within: Callable[[Bounds], bool] = lambda bounds: True


def with_feature(name: str) -> Callable[[Bounds], bool]:
    """Return what tells whether a feature may happen within bounds."""
    return lambda bounds: name in bounds.features


def with_prefetch(bounds: Bounds) -> bool:
    """Tell whether batches may be drawn ahead within bounds."""
    return bounds.prefetch > 0


def actor_of(state: State, label: Label) -> str | None:
    """Return who takes a step: the caller, the owner of the hold, or None for outsiders.

    The owner may be a process. Nobody dies or is recovered by a step of its own.
    """
    if label.name in {"Ready", "Fail", "Deliver", "Return"}:
        return state.holds[_position(label.args[0])].owner
    if label.name in {"SetCancel", "Close", "Recall", "Empty", "Kill", "Recover"}:
        return None
    return str(label.args[0])


def actions_under(
    judge: Judge = verdict, *, admit: Admit = admitted, draw: Draw = drawn, take: Take = handed
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
        h = takes(bounds, state, ticket)
        if h is not None:
            return (take(state, h, ticket.actor, ticket.kind),)
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
        return when.waits(state, x) and judge(bounds, state, x, False) in verdicts

    def granted(bounds: Bounds, state: State, x: str) -> bool:
        return gets(bounds, state, x, Verdict.SERVE)

    def grant(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
        return serve(bounds, without_ticket(state, x), waiting(state, x))

    def refill(bounds: Bounds, state: State, q: str) -> tuple[State, ...]:
        return draw(bounds, state, q, "prefetched", bounds.batch_size)

    def may_expire(bounds: Bounds, state: State, x: str) -> bool:
        if "Expire" not in bounds.features or not when.waits(state, x):
            return False
        return judge(bounds, state, x, True) == Verdict.TIMEOUT

    def is_cancelled(bounds: Bounds, state: State, x: str) -> bool:
        return gets(bounds, state, x, Verdict.CANCELLED)

    def is_refused(bounds: Bounds, state: State, x: str) -> bool:
        return gets(bounds, state, x, Verdict.SHUT_DOWN, Verdict.MUTUAL_WAIT)

    capture, restore = when.may_begin("Capture"), when.may_begin("Restore")
    captures, restores = with_feature("Capture"), with_feature("Restore")
    rows = (
        Action("Arrive", possible.writes, when.may_call, arrive),
        Action("Admit", possible.who_wait_to_write, granted, grant),
        Action("Publish", possible.who_fill, when.fills, _publish),
        Action("Abandon", possible.who_fill, when.may_abandon, _abandon, with_feature("Abandon")),
        Action("Ask", possible.reads, when.may_call, ask),
        Action("Draw", possible.who_wait_to_read, granted, grant),
        Action("Refill", possible.who_prefetch, when.may_refill, refill, with_prefetch),
        Action("Ready", possible.holds, when.gathers, _ends("ready")),
        Action("Fail", possible.holds, when.may_fail, _ends("failed"), with_feature("Fail")),
        Action("Deliver", possible.holds, when.may_deliver, _deliver),
        Action("Return", possible.holds, when.may_return, _return),
        Action("Expire", possible.who_wait, may_expire, _leave, with_feature("Expire")),
        Action("Cancel", possible.who_wait, is_cancelled, _leave),
        Action("Refuse", possible.who_wait, is_refused, _leave),
        Action("SetCancel", possible.tokens, when.is_unset, _set_cancel),
        Action("Close", possible.modes, when.always, _close),
        Action("Recall", possible.once, when.may_recall, _recall, with_prefetch),
        Action("Empty", possible.once, when.may_empty, _empty, with_feature("Empty")),
        Action("CaptureAsk", possible.who_act, capture, _begin("capturing"), captures),
        Action("Capture", possible.who_is_at_it, when.may_capture, _capture, captures),
        Action("CaptureDone", possible.who_is_at_it, when.is_at("copying"), _copy, captures),
        Action("RestoreAsk", possible.who_act, restore, _begin("restoring"), restores),
        Action("Load", possible.who_is_at_it, when.may_load, _load, restores),
        Action("Restore", possible.who_is_at_it, when.is_at("loading"), _restore, restores),
        Action("Reject", possible.who_is_at_it, when.is_at("restoring"), _reject, restores),
        Action("Kill", possible.who_act, when.may_die, _kill, with_feature("Kill")),
        Action("Recover", possible.who_are_dead, when.is_dead, _recover, with_feature("Kill")),
    )
    return {action.name: action for action in rows}


# Effects, as one state or all that may come out.


def _publish(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    return (published(bounds, state, p),)


def _abandon(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
    return (abandoned(state, p),)


def _ends(outcome: HoldState) -> Callable[[Bounds, State, int], tuple[State, ...]]:
    """Return the effect of a gather that comes to this outcome; a stale batch is let go."""

    def effect(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
        if is_stale(state, state.holds[h]):
            return _return(bounds, state, h)
        return (gathered(bounds, state, h, outcome),)

    return effect


def _deliver(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    return (delivered(bounds, state, h),)


def _return(bounds: Bounds, state: State, h: int) -> tuple[State, ...]:
    return (returned(bounds, state, h),)


def _leave(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (without_ticket(state, x),)


def _set_cancel(bounds: Bounds, state: State, token: str) -> tuple[State, ...]:
    return (state._replace(cancelled=state.cancelled | {token}),)


def _close(bounds: Bounds, state: State, mode: str) -> tuple[State, ...]:
    return (state._replace(closing=close_to(state.closing, Closing[mode.upper()])),)


def _recall(bounds: Bounds, state: State) -> tuple[State, ...]:
    youngest = max(h for h, hold in enumerate(state.holds) if is_settled(hold))
    return _return(bounds, state, youngest)


def _empty(bounds: Bounds, state: State) -> tuple[State, ...]:
    return (emptied(bounds, state),)


def _begin(stage: Stage) -> Callable[[Bounds, State, str], tuple[State, ...]]:
    """Return the effect of asking for a capture or a restore."""

    def effect(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
        return (state._replace(boundary=Boundary(stage, x, ())),)

    return effect


def _capture(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (captured(bounds, state, x),)


def _copy(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (copied(bounds, state),)


def _load(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (loaded(bounds, state, x),)


def _restore(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (restored(bounds, state, x),)


def _reject(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (state._replace(boundary=NO_BOUNDARY),)


def _kill(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
    return (state._replace(dead=state.dead | {x}),)


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

    @cached_property
    def _happening(self) -> tuple[Action, ...]:
        """The actions that may happen at all, in the order of the table."""
        return tuple(row for row in self.actions.values() if row.within(self.bounds))

    def initial(self) -> State:
        """Return the one initial state."""
        return initial(self.bounds)

    def labels(self, state: State) -> list[Label]:
        """Return the steps that may happen in a state, in the order of the table of actions."""
        return [
            Label(action.name, args)
            for action in self._happening
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
        for action in self._happening:
            for args in action.instances(bounds, state):
                if action.enabled(bounds, state, *args):
                    label = Label(action.name, args)
                    for after in action.apply(bounds, state, *args):
                        yield label, after
