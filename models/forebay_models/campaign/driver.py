"""Takes one step in the specification and in the buffer, and compares everything that shows.

After each step the buffer's state has to be one that the specification allows, at the end of the
step and at the end of each critical section on the way: before the step's one change everything is
as before, after it everything is as it will be. So a step that takes two critical sections is
noticed even where its end is right; a few steps look before they change something, or afterwards.
Besides the state these have to agree: what the call got, which records it wrote or got, the
counters, who was woken, and the named properties.

The driver knows neither hypothesis nor the library, so that it can also walk a given path, and
drive other targets.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from forebay_spec.actions import Label, actor_of
from forebay_spec.kernel import Verdict
from forebay_spec.state import State, initial

from forebay_models.adapters.adapter import (
    INTERRUPTED,
    MANNERS,
    USUAL,
    Adapter,
    Mismatch,
    Observation,
)
from forebay_models.campaign.accounts import Accounts
from forebay_models.campaign.facts import Facts, Labels, facts_of
from forebay_models.campaign.settings import Setting
from forebay_models.cover.edges import EdgeCoverage
from forebay_models.stepping.board import Stuck
from forebay_models.stepping.monitor import LostWakeup


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
    """How often things were exercised: actions, their manners, and witnesses.

    `heat` counts each action by the class of the state in which it was taken, and `edges` knows
    which edges of the quick graphs were taken.
    """

    actions: Counter[str] = field(default_factory=Counter)
    heat: Counter[tuple[str, str]] = field(default_factory=Counter)
    manners: Counter[str] = field(default_factory=Counter)
    witnesses: Counter[str] = field(default_factory=Counter)
    edges: EdgeCoverage = field(default_factory=EdgeCoverage)
    examples: int = 0
    steps: int = 0


class Driver:
    """One run of a buffer beside the specification.

    Args:
        setting: what it runs with.
        adapter: the buffer, freshly started.
        exercise: where to count what was exercised.
        facts: what the specification says; by default all that it says of these bounds.
        counted: after so many steps, each time, the counters are compared.
    """

    def __init__(
        self,
        setting: Setting,
        adapter: Adapter,
        exercise: Exercise,
        facts: Facts | None = None,
        counted: int = 1,
    ) -> None:
        self._setting = setting
        self._adapter = adapter
        self._exercise = exercise
        self._facts = facts or facts_of(setting.bounds)
        self._counted = counted
        self._accounts = Accounts(setting.bounds)
        self._steps: list[Taken] = []
        self.state = initial(setting.bounds)

    def labels(self, action: str) -> tuple[Label, ...]:
        """Return the steps of an action that may happen now."""
        return self.enabled.get(action, ())

    @property
    def enabled(self) -> Labels:
        """The steps that may happen now, by their actions."""
        return self._facts.labels(self.state)

    @property
    def length(self) -> int:
        """How many steps were taken."""
        return len(self._steps)

    def must_return(self, label: Label) -> bool:
        """Tell whether a step returns a failed hold, whose owner can do nothing else."""
        match label:
            case Label("Return", (int(position),)):
                hold = self.state.holds[position]
                return hold.state == "failed" and hold.kind != "prefetched"
        return False

    def step(self, label: Label, manner: str = USUAL) -> None:
        """Take a step.

        Raises:
            Divergence: something is not as the specification says.
        """
        before = self.state
        allowed = self._facts.allowed(before, label)
        self._steps.append(Taken(label, manner, actor_of(before, label), None))
        try:
            seen = self._adapter.apply(label, manner)
            after = self.state = self._judge(before, label, manner, allowed, seen)
            self._rest(after)
        except Divergence:
            raise
        except Exception as error:
            raise self.divergence([said(error)], allowed) from error
        self._steps[-1] = self._steps[-1]._replace(after=after)
        self._count(before, label, manner, after)

    def check_counts(self) -> None:
        """Compare the counters of the buffer with what the steps so far imply.

        Raises:
            Divergence: they differ.
        """
        state = self.state
        try:
            wrong = self._accounts.check(state, self._adapter.counts())
        except Exception as error:
            raise self.divergence([said(error)], (state,)) from error
        if wrong:
            raise self.divergence(wrong, (state,), state)

    def _judge(
        self,
        before: State,
        label: Label,
        manner: str,
        allowed: tuple[State, ...],
        seen: Observation,
    ) -> State:
        """Return the state that the step has led to."""
        wrong: list[str] = []
        expected = self._expected_verdict(before, label, manner)
        if seen.verdict != expected:
            wrong.append(f"the call should get {_words(expected)} but gets {_words(seen.verdict)}")
        # The specification's own object: what is kept of it is found again without comparing.
        after = next((state for state in allowed if state == seen.state), None)
        if after is None:
            wrong.append("the state is not one that the specification allows")
            raise self.divergence(wrong, allowed, seen.state)
        changed = False
        for state in seen.between:
            changed = changed or state == after
            if state != (after if changed else before):
                wrong.append("the step is not one critical section: a state between was seen")
                raise self.divergence(wrong, allowed, state)
        if len(seen.between) > seen.sections:
            most = "one" if seen.sections == 1 else f"at most {seen.sections}"
            wrong.append(f"the step took {len(seen.between)} critical sections instead of {most}")
        if not seen.between and after != before and label.name not in self._facts.outside:
            wrong.append("the step took no critical section")
        wrong += self._accounts.book(before, label, manner, after, seen)
        wrong += self._facts.broken(before, label, after)
        if wrong:
            raise self.divergence(wrong, allowed, after)
        return after

    def _rest(self, after: State) -> None:
        """Look that the right ones were woken, that waking changes nothing, and the counters."""
        seen = self._adapter.rest(self._facts.due(after))
        for state in (*seen.between, seen.state):
            if state != after:
                wrong = "those who were woken for nothing have changed something"
                raise self.divergence([wrong], (after,), state)
        if self.length % self._counted == 0:
            self.check_counts()

    def _expected_verdict(self, state: State, label: Label, manner: str) -> Verdict | None:
        """Return what the step's call has to get."""
        return None if manner == INTERRUPTED else self._facts.verdict(state, label)

    def _count(self, before: State, label: Label, manner: str, after: State) -> None:
        exercise = self._exercise
        exercise.steps += 1
        exercise.actions[label.name] += 1
        exercise.heat[label.name, self._facts.kind(before)] += 1
        exercise.edges.add(self._setting.bounds, before, label, after)
        if label.name in MANNERS:
            exercise.manners[f"{label.name}: {manner or 'as usual'}"] += 1
        for name in self._facts.witnesses(before, label, after):
            exercise.witnesses[name] += 1

    def divergence(
        self, what: list[str], expected: tuple[State, ...] = (), seen: State | None = None
    ) -> Divergence:
        """Return the failure that something is wrong after the last step."""
        return Divergence(self._setting, tuple(self._steps), tuple(what), expected, seen)


def said(error: Exception) -> str:
    """Return in a sentence what an error in the midst of a step says."""
    if isinstance(error, Mismatch | Stuck | LostWakeup):
        return str(error)
    return f"{type(error).__name__} was raised: {error}"


def _words(found: Verdict | None) -> str:
    return "no verdict" if found is None else found.name
