"""What a running buffer writes down about one critical section, one line of JSON each.

A trace is a sequence of events in the order in which the critical sections happened. An event names
the action as the models do and says who took it, so that a trace can be replayed in the models.
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Event:
    """One critical section: the action, who took it, its other arguments, and what it came to.

    `actor` is None for what belongs to no actor (SetCancel, Close, Empty). `args` are the label's
    arguments without the actor. `outcome` is a verdict's name for a call's first critical section,
    such as "SERVE", and "DONE" for actions that ask for none.
    """

    name: str
    actor: str | None = None
    args: tuple[str | int, ...] = ()
    outcome: str = "DONE"

    def to_line(self) -> str:
        """Return the event as one line of JSON, without a newline."""
        value = {"name": self.name, "actor": self.actor, "args": self.args, "outcome": self.outcome}
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> "Event":
        """Read what `to_line` wrote; `ValueError` says what is wrong with anything else."""
        value = json.loads(line)
        if not isinstance(value, dict) or set(value) != {"name", "actor", "args", "outcome"}:
            raise ValueError(f"an event has name, actor, args and outcome: {line!r}")
        name, actor, args, outcome = (value[key] for key in ("name", "actor", "args", "outcome"))
        if not isinstance(name, str) or not isinstance(outcome, str):
            raise ValueError(f"name and outcome of an event are strings: {line!r}")
        if actor is not None and not isinstance(actor, str):
            raise ValueError(f"the actor of an event is a string or null: {line!r}")
        if not isinstance(args, list) or any(type(arg) not in (str, int) for arg in args):
            raise ValueError(f"the args of an event are strings and whole numbers: {line!r}")
        return cls(name=name, actor=actor, args=tuple(args), outcome=outcome)
