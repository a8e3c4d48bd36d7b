"""A failure in the one form in which it is shown to people: as a table, as a page, as a token.

Whatever finds a failure - TLC, the explorer, a campaign, the scheduler, a trace - puts it into a
`Counterexample`: who did what, in which order, what became of the state, and what is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from forebay_models.documents import DocumentError, Fields, Json, text
from forebay_models.tables import Step, changes, steps_table

Described = Mapping[str, str]
"""A state as `describe` gives it: a text for each variable."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One step of a counterexample.

    Attributes:
        label: the step, as in docs/state-machine.md; "initially" for the state at the start.
        actor: who takes it; None for what belongs to no actor.
        notes: lines that say more about the step, shown above the state's changes.
        state: the variables of the state after it, as `describe` gives them; None if unknown.
    """

    label: str
    actor: str | None = None
    notes: tuple[str, ...] = ()
    state: Described | None = None

    def as_json(self) -> dict[str, Json]:
        """Return the row as one JSON object."""
        return {
            "label": self.label,
            "actor": self.actor,
            "notes": list(self.notes),
            "state": None if self.state is None else dict(self.state),
        }

    @classmethod
    def from_json(cls, document: object) -> "Row":
        """Return the row that `as_json` gave, or raise `DocumentError`."""
        fields = Fields(document, "step")
        row = cls(
            label=fields.text("label"),
            actor=fields.text_or_none("actor"),
            notes=fields.texts("notes"),
            state=_described_or_none(fields.take("state")),
        )
        fields.end()
        return row


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """A failure.

    Attributes:
        name: of the check that found it, such as "stateful local".
        setting: on one line, what it happened with.
        rows: the steps, the initial state first.
        what: sentences that say what is wrong, such as a property's.
        token: with which `forebay replay` runs it again; empty if it cannot.
        expected: the states that were allowed after the last step, if that is what is wrong.
        seen: the state that was seen after the last step instead, if one was.
    """

    name: str
    setting: str
    rows: tuple[Row, ...]
    what: tuple[str, ...]
    token: str = ""
    expected: tuple[Described, ...] = ()
    seen: Described | None = None

    def as_text(self) -> str:
        """Return it as plain text: the setting, a table of steps, what is wrong, how to repeat."""
        steps = []
        before: Described | None = None
        for number, row in enumerate(self.rows):
            lines = row.notes
            if row.state is not None:
                lines = (*lines, *changes(before, row.state))
                before = row.state
            if number == len(self.rows) - 1:
                lines = (*lines, *self._parting(before))
            steps.append(Step(row.label, row.actor, lines))
        parts = [self.setting, steps_table(steps) if steps else "", "\n".join(self.what)]
        if self.token:
            parts.append(f"to repeat: forebay replay {self.token}")
        return "\n\n".join(part for part in parts if part)

    def nearest(self) -> Described | None:
        """Return the state that was expected, of several the one most like what was seen."""
        if not self.expected:
            return None
        seen = self.seen
        if seen is None:
            return self.expected[0]
        return min(
            self.expected, key=lambda state: sum(state.get(name) != seen[name] for name in seen)
        )

    def as_json(self) -> dict[str, Json]:
        """Return it as one JSON object."""
        return {
            "name": self.name,
            "setting": self.setting,
            "rows": [row.as_json() for row in self.rows],
            "what": list(self.what),
            "token": self.token,
            "expected": [dict(state) for state in self.expected],
            "seen": None if self.seen is None else dict(self.seen),
        }

    @classmethod
    def from_json(cls, document: object) -> "Counterexample":
        """Return what `as_json` gave, or raise `DocumentError`."""
        fields = Fields(document, "counterexample")
        found = cls(
            name=fields.text("name"),
            setting=fields.text("setting"),
            rows=tuple(Row.from_json(row) for row in fields.items("rows")),
            what=fields.texts("what"),
            token=fields.text("token"),
            expected=tuple(_described(state) for state in fields.items("expected")),
            seen=_described_or_none(fields.take("seen")),
        )
        fields.end()
        return found

    def _parting(self, before: Described | None) -> tuple[str, ...]:
        """Return what the last step should have done, and what it did instead."""
        nearest = self.nearest()
        if nearest is None:
            return ()
        lines = [f"expected: {line}" for line in changes(before, nearest)]
        if len(self.expected) > 1:
            lines.append(f"(or {len(self.expected) - 1} other states, since the draw is random)")
        if self.seen is None:
            return (*lines, "seen: see below")
        wrong = [f"seen: {line}" for line in changes(nearest, self.seen) if nearest != self.seen]
        return (*lines, *(wrong or ["seen: the same state, see below"]))


def _described_or_none(state: object) -> Described | None:
    return None if state is None else _described(state)


def _described(state: object) -> Described:
    if not isinstance(state, dict):
        raise DocumentError("counterexample: a state should be an object")
    return {name: text(value, f"state: {name!r}") for name, value in state.items()}
