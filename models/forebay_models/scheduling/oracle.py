"""Judges what a thread has done between two choice points, by the specification.

A slice either changes nothing or is one step of the specification that its actor may take now. A
slice that is a critical section in which a call is decided about has to be exactly the step that
`verdict` asks for; the call has to end with what it was decided to get, and to enter no section
that the specification does not know.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from forebay_spec.actions import Label, Machine, verdict
from forebay_spec.kernel import Phase, Verdict
from forebay_spec.state import State, Ticket, TicketKind, filling_of, ticket_of

from forebay_models.adapters.abstraction import ENDS
from forebay_models.campaign.accounts import UNSERVED
from forebay_models.scheduling.scenario import Op, Scenario
from forebay_models.scheduling.stage import Failure

_KINDS: Final[Mapping[str, TicketKind]] = {"extend": "write", "sample": "plain", "lease": "lease"}
COUNTED: Final = (
    *("admitted", "delivered", "returned", "dropped", "blocked_calls"),
    *("refusals", "cancellations", "timeouts"),
)
"""What is counted, by the names of `BufferStats`."""

_AT_ONCE: Final[Mapping[str, str]] = {"set": "SetCancel", "shutdown": "Close", "empty": "Empty"}


class WrongStep(Failure):
    """A thread did what no step of the specification allows.

    Attributes:
        expected: the states to which it should have led.
        seen: the state to which it led.
    """

    def __init__(self, message: str, expected: tuple[State, ...], seen: State) -> None:
        super().__init__(message)
        self.expected = expected
        self.seen = seen


class WrongOutcome(Failure):
    """A call ended in another way than was decided."""


class LostWakeup(Failure):
    """Somebody sleeps on though what it waits for has come."""


class Planted(Exception):
    """What a transform raises that is to raise."""


class Step(NamedTuple):
    """What a slice should have done.

    Attributes:
        label: the step, if there is one.
        after: the states that it may lead to; none where nothing is allowed.
        found: what the call gets, where that is decided.
        last: whether its call has nothing more to do after it.
    """

    label: Label | None
    after: tuple[State, ...]
    found: Verdict | None = None
    last: bool = False


@dataclass
class Progress:
    """How far an actor has come with its present call.

    Attributes:
        op: the call.
        found: what it got, once that is decided.
        ended: whether it has taken its last step.
        owes: whether it has to take one, being no call that is decided about.
        slots: of its batch.
        records: that it writes, or has to get.
    """

    op: Op | None = None
    found: Verdict | None = None
    ended: bool = False
    owes: bool = False
    slots: tuple[int, ...] = ()
    records: tuple[int, ...] = ()


class Memory:
    """What was found out about a scenario, for all its runs.

    There is one object for each state, so that states are compared by what they are in no time.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.machine = Machine(scenario.bounds)
        self._states: dict[State, State] = {}
        self.steps: dict[object, Step] = {}
        self.initial = self.state(self.machine.initial())

    def state(self, state: State) -> State:
        """Return the one object for a state."""
        return self._states.setdefault(state, state)


class Oracle:
    """Follows one run.

    Args:
        scenario: what is run.
        memory: what was found out in runs before.
    """

    def __init__(self, scenario: Scenario, memory: Memory) -> None:
        self._scenario = scenario
        self._memory = memory
        self._machine = memory.machine
        self._record_in: dict[int, int] = {}
        self.counts: Counter[str] = Counter()
        self.state = memory.initial
        self.progress = {name: Progress() for name in scenario.actors}

    def begins(self, actor: str, op: Op) -> None:
        """An actor begins a call."""
        owes = op.kind in _AT_ONCE or any(
            (hold.owner, hold.kind, hold.state) == (actor, "lease", "ready")
            for hold in self.state.holds
            if op.kind in ("commit", "release")
        )
        self.progress[actor] = Progress(op, owes=owes)

    def slice(self, actor: str, section: bool, expired: bool, after: State) -> Label | None:
        """Judge a slice and return the step that it was, or None.

        Args:
            actor: who ran.
            section: whether it was a critical section.
            expired: whether the deadline of the actor's call has passed.
            after: the state at its end.

        Raises:
            Failure: the specification does not allow it.
        """
        its, before = self.progress[actor], self.state
        if not section and after is before:
            return None
        key = (actor, its.op, its.found, its.ended, section, expired, id(before))
        step = self._memory.steps.get(key)
        if step is None:
            step = self._expected(actor, its, section, expired)
            step = step._replace(after=tuple(map(self._memory.state, step.after)))
            self._memory.steps[key] = step
        if after not in step.after:
            raise WrongStep(_wrong(actor, its, step), step.after, after)
        taken = section or after is not before
        self._enter(actor, its, step, after, taken)
        return step.label if taken else None

    def ends(self, actor: str, value: object, error: BaseException | None) -> None:
        """Judge how a call ended.

        Args:
            actor: whose call it is.
            value: what it returned: (slots, records), with the records of a read only.
            error: what it raised.
        """
        its = self.progress[actor]
        op = its.op
        assert op is not None
        got = None if error is None else ENDS.get(type(error))
        if op.manner == "raises" and its.found is Verdict.SERVE:
            if not isinstance(error, Planted):
                raise WrongOutcome(
                    f"{actor}: {op} should end with what was raised inside, not {error!r}"
                )
        elif its.found in (None, Verdict.SERVE):
            if error is not None:
                raise WrongOutcome(f"{actor}: {op} should have returned, but it raised {error!r}")
            if op.kind in ("extend", "sample", "lease") and value != (its.slots, its.records):
                raise WrongOutcome(
                    f"{actor}: {op} should return slots {its.slots} and records {its.records}, "
                    f"but it returned {value}"
                )
        elif got is not its.found:
            raise WrongOutcome(f"{actor}: {op} should get {its.found.name}, but it got {error!r}")
        if op.kind in ("extend", "sample", "lease") and its.found is None:
            raise WrongOutcome(f"{actor}: {op} ended before anything was decided")
        if not its.ended and (its.owes or its.found is Verdict.SERVE):
            raise WrongOutcome(f"{actor}: {op} returned before its last step")
        self.progress[actor] = Progress()

    def check_end(self, unfinished: Mapping[str, float | None]) -> None:
        """Judge a run in which nobody can go on.

        Args:
            unfinished: the actors who sleep, each with the seconds after which it wakes by itself.

        Raises:
            Failure: somebody sleeps who should not.
        """
        for actor in unfinished:
            found = (
                verdict(self._scenario.bounds, self.state, actor) if self._waits(actor) else None
            )
            if found is not Verdict.WAIT:
                due = "go on" if found is None else f"get {found.name}"
                raise LostWakeup(
                    f"lost wake-up: {actor} sleeps for ever, but its call has to {due}"
                )
            op = self.progress[actor].op
            if op is not None and op.manner == "timed":
                raise LostWakeup(
                    f"lost wake-up: {actor} would sleep on after its deadline has passed"
                )

    def _waits(self, actor: str) -> bool:
        return ticket_of(self.state, actor) is not None

    def _expected(self, actor: str, its: Progress, section: bool, expired: bool) -> Step:
        op, state = its.op, self.state
        unchanged = Step(None, (state,))
        if op is None:
            return unchanged
        if its.ended or its.found not in (None, Verdict.SERVE):
            return Step(None, ()) if section else unchanged
        if op.kind in _AT_ONCE:
            return self._at_once(op, section)
        if op.kind in ("commit", "release"):
            if not section:
                return unchanged
            name = "Deliver" if op.kind == "commit" else "Return"
            return self._hold_step(name, actor, "lease", "ready")
        if self._waits(actor):
            return self._again(actor, expired) if section else unchanged
        if its.found is None:
            return self._first(actor, op, expired) if section else unchanged
        if op.kind == "extend":
            return self._filling(actor, op) if section else unchanged
        return self._holding(actor, op, section)

    def _at_once(self, op: Op, section: bool) -> Step:
        """A step of somebody who is in no call."""
        args = (op.word,) if op.word else ()
        label = Label(_AT_ONCE[op.kind], args)
        possible = self._apply(label) if self._enabled(label) else (self.state,)
        if op.kind == "set":
            # One store outside the section.
            done = op.word in self.state.cancelled
            return Step(label, () if section else (self.state, *possible), last=not done)
        return Step(label, possible, last=True) if section else Step(None, (self.state,))

    def _first(self, actor: str, op: Op, expired: bool) -> Step:
        """The first section of a call: it is served, gets a ticket, or its outcome."""
        ticket = Ticket(_KINDS[op.kind], actor, op.sizes[0], op.sizes[-1])
        queued = self.state._replace(tickets=(*self.state.tickets, ticket))
        found = verdict(self._scenario.bounds, queued, actor, expired)
        label = (
            Label("Arrive", (actor, *op.sizes))
            if op.kind == "extend"
            else Label("Ask", (actor, ticket.kind, *op.sizes))
        )
        served = found in (Verdict.SERVE, Verdict.WAIT)
        return Step(label, self._apply(label) if served else (self.state,), found)

    def _again(self, actor: str, expired: bool) -> Step:
        """A waiting call looks again."""
        found = verdict(self._scenario.bounds, self.state, actor, expired)
        if found is Verdict.WAIT:
            return Step(None, (self.state,), found)
        ticket = ticket_of(self.state, actor)
        writes = ticket is not None and ticket.kind == "write"
        name = {
            Verdict.SERVE: "Admit" if writes else "Draw",
            Verdict.TIMEOUT: "Expire",
            Verdict.CANCELLED: "Cancel",
        }.get(found, "Refuse")
        label = Label(name, (actor,))
        return Step(label, self._apply(label), found)

    def _filling(self, actor: str, op: Op) -> Step:
        label = Label("Abandon" if op.manner == "raises" else "Publish", (actor,))
        return Step(label, self._apply(label), last=True)

    def _holding(self, actor: str, op: Op, section: bool) -> Step:
        """Ready or Fail outside a section, then Deliver or Return in one."""
        raises = op.manner == "raises"
        kind = "lease" if op.kind == "lease" else "plain"
        if not section:
            step = self._hold_step("Fail" if raises else "Ready", actor, kind, "gathering")
            last = kind == "lease" and not raises
            return step._replace(after=(self.state, *step.after), last=last)
        if raises:
            return self._hold_step("Return", actor, kind, "failed")
        return self._hold_step("Deliver", actor, "plain", "ready")

    def _hold_step(self, name: str, actor: str, kind: str, state: str) -> Step:
        """A step of the actor's oldest batch of that kind and state."""
        for position, hold in enumerate(self.state.holds):
            if (hold.owner, hold.kind, hold.state) == (actor, kind, state):
                label = Label(name, (position,))
                return Step(label, self._apply(label), last=True)
        return Step(None, ())

    def _enabled(self, label: Label) -> bool:
        action = self._machine.actions[label.name]
        return action.enabled(self._scenario.bounds, self.state, *label.args)

    def _apply(self, label: Label) -> tuple[State, ...]:
        return tuple(self._machine.apply(self.state, label))

    def _enter(self, actor: str, its: Progress, step: Step, after: State, taken: bool) -> None:
        """Note what a step means for its call, and count it."""
        before, self.state = self.state, after
        if step.found is not None and step.found is not Verdict.WAIT:
            its.found = step.found
            self.counts[UNSERVED.get(step.found, "")] += 1
        if step.label is None or not taken:
            return
        its.ended = its.ended or step.last
        name = step.label.name
        if name == "Publish":
            its.slots = filling_of(before, actor)
            self._record_in.update(zip(its.slots, its.records, strict=True))
            its.records = ()
            self.counts["admitted"] += len(its.slots)
        elif name in ("Deliver", "Return"):
            position = step.label.args[0]
            assert isinstance(position, int)
            size = len(before.holds[position].slots)
            self.counts["delivered" if name == "Deliver" else "returned"] += size
        elif name == "Empty":
            self.counts["dropped"] += sum(slot.phase == Phase.LIVE for slot in before.slots)
        elif len(after.holds) > len(before.holds):
            its.slots = after.holds[-1].slots
            its.records = tuple(self._record_in.get(slot, 0) for slot in its.slots)
        elif len(after.tickets) > len(before.tickets):
            self.counts["blocked_calls"] += 1

    def digest(self) -> int:
        """Return a number for what is still expected, as far as the state does not tell it."""
        live = [
            self._record_in.get(number)
            for number, slot in enumerate(self.state.slots)
            if slot.phase == Phase.LIVE
        ]
        calls = [(its.found, its.ended, its.slots, its.records) for its in self.progress.values()]
        return hash((tuple(live), tuple(calls)))

    def check_counts(self, counts: Mapping[str, int]) -> None:
        """Judge what a buffer has counted, at the end of a run.

        Raises:
            Failure: it is not what its calls have done.
        """
        for name in COUNTED:
            if counts[name] != self.counts[name]:
                raise WrongOutcome(f"{name} should be {self.counts[name]} but is {counts[name]}")

    def writes(self, actor: str, numbers: tuple[int, ...]) -> None:
        """Say which records the actor's present call writes."""
        self.progress[actor].records = numbers


def _wrong(actor: str, its: Progress, step: Step) -> str:
    call = f"{actor}: {its.op}" if its.op else actor
    if not step.after:
        return f"{call} enters a critical section that the specification does not know"
    if step.label is None:
        found = "" if step.found is None else f", it gets {step.found.name}"
        return f"{call} changes something where it may not{found}"
    found = "" if step.found is None else f", which gets {step.found.name}"
    return f"{call}: the state is not one to which {step.label}{found} leads"
