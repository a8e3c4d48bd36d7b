"""What a running buffer writes down about its actions, one line of JSON each.

A trace is a header and a sequence of events, in the order in which the actions happened. An event
names the action as the models do and says who took it, so that a trace can be replayed in the
models.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from forebay_spec.bounds import Order

VERSION: Final = 1
"""Of the format; a reader of one version does not guess at another."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first line of a trace: the constants of the buffer. Sizes are in records."""

    capacity: int
    uses: int
    order: Order

    def to_line(self) -> str:
        """Return the header as one line of JSON, without a newline."""
        return _line(
            {
                "forebay_trace": VERSION,
                "capacity": self.capacity,
                "consume_after_n_samples": self.uses,
                "order": self.order,
            }
        )

    @classmethod
    def from_line(cls, line: str) -> "Header":
        """Read what `to_line` wrote; `ValueError` says what is wrong with anything else."""
        value = json.loads(line)
        if not isinstance(value, dict) or "forebay_trace" not in value:
            raise ValueError(f"a trace begins with its header, which has forebay_trace: {line!r}")
        if value["forebay_trace"] != VERSION:
            raise ValueError(
                f"this reads traces of version {VERSION}, not {value['forebay_trace']!r}"
            )
        capacity, uses = value.get("capacity"), value.get("consume_after_n_samples")
        if type(capacity) is not int or type(uses) is not int or capacity < 1 or uses < 1:
            raise ValueError(
                f"capacity and consume_after_n_samples are whole numbers from 1: {line!r}"
            )
        order = value.get("order")
        if order != "fifo" and order != "random":
            raise ValueError(f"the order is fifo or random: {line!r}")
        return cls(capacity=capacity, uses=uses, order=order)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One action: its name, who took it, its other arguments, and what it came to.

    `actor` is None for what belongs to no actor (Close, Empty, SetCancel of a token). `args` are
    the label's arguments without the actor. `outcome` is a verdict's name for a call's first
    critical section and for the one that ends its wait, such as "SERVE"; "DONE" for actions that
    ask for none; "INTERRUPTED" where an exception ended a wait (Expire) or a batch that was ready
    (Fail). `slots` are those of the batch that is admitted, published, drawn, delivered and so on,
    in batch order, or those of the records that Empty throws away. `token` is the cancel token
    that a call has, said at its Arrive or Ask. A SetCancel that names an actor gives its present
    call a token of its own, which nobody else has, and sets it.
    """

    name: str
    actor: str | None = None
    args: tuple[str | int, ...] = ()
    outcome: str = "DONE"
    slots: tuple[int, ...] = ()
    token: str | None = None

    def to_line(self) -> str:
        """Return the event as one line of JSON, without a newline."""
        return _line(
            {
                "name": self.name,
                "actor": self.actor,
                "args": self.args,
                "outcome": self.outcome,
                "slots": self.slots,
                "token": self.token,
            }
        )

    @classmethod
    def from_line(cls, line: str) -> "Event":
        """Read what `to_line` wrote; `ValueError` says what is wrong with anything else."""
        keys = ("name", "actor", "args", "outcome", "slots", "token")
        value = json.loads(line)
        if not isinstance(value, dict) or set(value) != set(keys):
            raise ValueError(f"an event has name, actor, args, outcome, slots and token: {line!r}")
        name, actor, args, outcome, slots, token = (value[key] for key in keys)
        if not isinstance(name, str) or not isinstance(outcome, str):
            raise ValueError(f"name and outcome of an event are strings: {line!r}")
        if not all(given is None or isinstance(given, str) for given in (actor, token)):
            raise ValueError(f"actor and token of an event are strings or null: {line!r}")
        if not isinstance(args, list) or any(type(arg) not in (str, int) for arg in args):
            raise ValueError(f"the args of an event are strings and whole numbers: {line!r}")
        if not isinstance(slots, list) or any(type(slot) is not int for slot in slots):
            raise ValueError(f"the slots of an event are whole numbers: {line!r}")
        return cls(
            name=name,
            actor=actor,
            args=tuple(args),
            outcome=outcome,
            slots=tuple(slots),
            token=token,
        )


def _line(value: Mapping[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
