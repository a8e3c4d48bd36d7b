"""Takes one step in the specification and in the buffer, and compares everything that shows.

After each step the buffer's state has to be one that the specification allows, at the end of the
step and at the end of each critical section on the way: before the step's one change everything is
as before, after it everything is as it will be. So a step that takes two critical sections is
noticed even where its end is right. Besides the state these have to agree: what the call got, which
records it wrote or got, the counters, who was woken, and the named properties.

The driver knows neither hypothesis nor the library, so that it can also walk a given path, and
drive other targets.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from forebay_spec.actions import Label, Machine, actor_of, verdict
from forebay_spec.bounds import ReaderKind
from forebay_spec.kernel import Verdict
from forebay_spec.properties import INVARIANTS, STEPS, WITNESSES
from forebay_spec.state import State, Ticket, initial

from forebay_models.adapters.adapter import (
    INTERRUPTED,
    MANNERS,
    USUAL,
    Adapter,
    Mismatch,
    Observation,
)
from forebay_models.campaign.accounts import Accounts
from forebay_models.campaign.settings import Setting
from forebay_models.stepping.board import Stuck
from forebay_models.stepping.monitor import LostWakeup

_WAITING: Final = frozenset({"Admit", "Draw", "Cancel", "Refuse"})


class Taken(NamedTuple):
    """A step that was taken: its label, the way it happened, who took it, and what came out."""

    label: Label
    manner: str
    actor: str | None
    after: State | None


class Divergence(AssertionError):
    """The buffer does not do what the specification says.

    Attributes:
        setting: what the example ran with.
        start: the state before the first step.
        steps: the steps; the last one is where they parted, with no state after it.
        what: sentences that say what is wrong.
        expected: the states that the specification allows after the last step.
        seen: the state that was seen, if one was.
    """

    def __init__(
        self,
        setting: Setting,
        steps: tuple[Taken, ...],
        what: tuple[str, ...],
        expected: tuple[State, ...],
        seen: State | None,
    ) -> None:
        super().__init__(f"{steps[-1].label}: {'; '.join(what)}" if steps else "; ".join(what))
        self.setting = setting
        self.start = initial(setting.bounds)
        self.steps = steps
        self.what = what
        self.expected = expected
        self.seen = seen


@dataclass
class Exercise:
    """How often things were exercised: actions, the manners of actions, and witnesses."""

    actions: Counter[str] = field(default_factory=Counter)
    manners: Counter[str] = field(default_factory=Counter)
    witnesses: Counter[str] = field(default_factory=Counter)
    examples: int = 0
    steps: int = 0


class Driver:
    """One run of a buffer beside the specification.

    Args:
        setting: what it runs with.
        adapter: the buffer, freshly started.
        exercise: where to count what was exercised.
    """

    def __init__(self, setting: Setting, adapter: Adapter, exercise: Exercise) -> None:
        self._setting = setting
        self._bounds = setting.bounds
        self._adapter = adapter
        self._exercise = exercise
        self._machine = Machine(setting.bounds)
        self._accounts = Accounts(setting.bounds)
        self._steps: list[Taken] = []
        self._enter(self._machine.initial())

    def labels(self, action: str) -> tuple[Label, ...]:
        """Return the steps of an action that may happen now."""
        return self._enabled.get(action, ())

    @property
    def length(self) -> int:
        """How many steps were taken."""
        return len(self._steps)

    def must_return(self, label: Label) -> bool:
        """Tell whether a step returns a failed hold, whose owner can do nothing else."""
        match label:
            case Label("Return", (int(position),)):
                return self.state.holds[position].state == "failed"
        return False

    def step(self, label: Label, manner: str = USUAL) -> None:
        """Take a step.

        Raises:
            Divergence: something is not as the specification says.
        """
        before = self.state
        allowed = self._machine.apply(before, label)
        self._steps.append(Taken(label, manner, actor_of(before, label), None))
        try:
            seen = self._adapter.apply(label, manner)
            after = self._judge(before, label, manner, allowed, seen)
            self._enter(after)
            self._rest(after)
        except (Mismatch, Stuck, LostWakeup) as error:
            raise self.divergence([str(error)], allowed) from error
        except Divergence:
            raise
        except Exception as error:
            wrong = f"{type(error).__name__} was raised: {error}"
            raise self.divergence([wrong], allowed) from error
        self._steps[-1] = self._steps[-1]._replace(after=after)
        self._count(before, label, manner, after)

    def _judge(
        self,
        before: State,
        label: Label,
        manner: str,
        allowed: tuple[State, ...],
        seen: Observation,
    ) -> State:
        """Return the state that the step has led to."""
        after = seen.state
        wrong: list[str] = []
        expected = self._expected_verdict(before, label, manner)
        if seen.verdict != expected:
            wrong.append(f"the call should get {_words(expected)} but gets {_words(seen.verdict)}")
        if after not in allowed:
            wrong.append("the state is not one that the specification allows")
            raise self.divergence(wrong, allowed, after)
        changed = False
        for state in seen.between:
            changed = changed or state == after
            if state != (after if changed else before):
                wrong.append("the step is not one critical section: a state between was seen")
                raise self.divergence(wrong, allowed, state)
        if len(seen.between) > 1:
            wrong.append(f"the step took {len(seen.between)} critical sections instead of one")
        wrong += self._accounts.book(before, label, manner, after, seen)
        wrong += [
            f"{name} does not hold: {invariant.sentence}"
            for name, invariant in INVARIANTS.items()
            if not invariant.predicate(self._bounds, after)
        ]
        wrong += [
            f"{name} does not hold: {prop.sentence}"
            for name, prop in STEPS.items()
            if not prop.predicate(self._bounds, before, label, after)
        ]
        if wrong:
            raise self.divergence(wrong, allowed, after)
        return after

    def _rest(self, after: State) -> None:
        """Look that the right ones were woken, that waking changes nothing, and the counters."""
        due = {
            ticket.actor
            for ticket in after.tickets
            if verdict(self._bounds, after, ticket.actor) != Verdict.WAIT
        }
        seen = self._adapter.rest(due)
        for state in (*seen.between, seen.state):
            if state != after:
                wrong = "those who were woken for nothing have changed something"
                raise self.divergence([wrong], (after,), state)
        wrong_counts = self._accounts.check(after, self._adapter.counts())
        if wrong_counts:
            raise self.divergence(wrong_counts, (after,), after)

    def _expected_verdict(self, state: State, label: Label, manner: str) -> Verdict | None:
        """Return what the step's call has to get."""
        if label.name == "Expire":
            return None if manner == INTERRUPTED else Verdict.TIMEOUT
        if label.name in _WAITING:
            return verdict(self._bounds, state, str(label.args[0]))
        ticket = _new_ticket(label)
        if ticket is None:
            return None
        queued = state._replace(tickets=(*state.tickets, ticket))
        return verdict(self._bounds, queued, ticket.actor)

    def _enter(self, state: State) -> None:
        enabled: dict[str, list[Label]] = {}
        for label in self._machine.labels(state):
            enabled.setdefault(label.name, []).append(label)
        self.state = state
        self._enabled: Mapping[str, tuple[Label, ...]] = {
            name: tuple(labels) for name, labels in enabled.items()
        }

    def _count(self, before: State, label: Label, manner: str, after: State) -> None:
        exercise = self._exercise
        exercise.steps += 1
        exercise.actions[label.name] += 1
        if label.name in MANNERS:
            exercise.manners[f"{label.name}: {manner or 'as usual'}"] += 1
        for name, witness in WITNESSES.items():
            if witness.predicate(self._bounds, before, label, after):
                exercise.witnesses[name] += 1

    def divergence(
        self, what: list[str], expected: tuple[State, ...] = (), seen: State | None = None
    ) -> Divergence:
        """Return the failure that something is wrong after the last step."""
        return Divergence(self._setting, tuple(self._steps), tuple(what), expected, seen)


def _new_ticket(label: Label) -> Ticket | None:
    """Return the ticket that a call would wait with."""
    match label:
        case Label("Arrive", (str(actor), int(n))):
            return Ticket("write", actor, n, n)
        case Label("Ask", (str(actor), str(kind), int(k), int(m))):
            reader: ReaderKind = "lease" if kind == "lease" else "plain"
            return Ticket(reader, actor, k, m)
    return None


def _words(found: Verdict | None) -> str:
    return "no verdict" if found is None else found.name
