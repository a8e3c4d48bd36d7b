"""A failure in the one form in which it is shown to people: as a table, as a page, as a token.

Whatever finds a failure - TLC, the explorer, a campaign, the scheduler, a trace - puts it into a
`Counterexample`: who did what, in which order, what became of the state, and what is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from forebay_models.tables import Step, changes, steps_table


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
    state: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """A failure.

    Attributes:
        name: of the check that found it, such as "stateful local".
        setting: on one line, what it happened with.
        rows: the steps, the initial state first.
        what: sentences that say what is wrong, such as a property's.
        token: with which `forebay replay` runs it again; empty if it cannot.
    """

    name: str
    setting: str
    rows: tuple[Row, ...]
    what: tuple[str, ...]
    token: str = ""

    def as_text(self) -> str:
        """Return it as plain text: the setting, a table of steps, what is wrong, how to repeat."""
        steps = []
        before: Mapping[str, str] | None = None
        for row in self.rows:
            lines = row.notes
            if row.state is not None:
                lines = (*lines, *changes(before, row.state))
                before = row.state
            steps.append(Step(row.label, row.actor, lines))
        parts = [self.setting, steps_table(steps), "\n".join(self.what)]
        if self.token:
            parts.append(f"to repeat: forebay replay {self.token}")
        return "\n\n".join(part for part in parts if part)
