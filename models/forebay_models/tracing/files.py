"""Reads a trace and says what is wrong with a file that is none.

Only the form is judged here: a line that cannot be an event of any buffer is no trace, so that
nothing can be said about it. Whether an event could happen where it stands is the judges' matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from forebay_spec.bounds import Order
from forebay_spec.events import Event, Header

FIRST_EVENT: Final = 2
"""The line of the first event; the header is line 1."""

OUTCOMES: Final = {
    "Arrive": ("SERVE", "WAIT", "TIMEOUT", "CANCELLED", "SHUT_DOWN", "MUTUAL_WAIT"),
    "Admit": ("DONE",),
    "Publish": ("DONE",),
    "Abandon": ("DONE",),
    "Ask": ("SERVE", "WAIT", "TIMEOUT", "CANCELLED", "SHUT_DOWN", "MUTUAL_WAIT"),
    "Draw": ("DONE",),
    "Ready": ("DONE",),
    "Fail": ("DONE", "INTERRUPTED"),
    "Deliver": ("DONE",),
    "Return": ("DONE",),
    "Expire": ("TIMEOUT", "INTERRUPTED"),
    "Cancel": ("CANCELLED",),
    "Refuse": ("SHUT_DOWN", "MUTUAL_WAIT"),
    "SetCancel": ("DONE",),
    "Close": ("DONE",),
    "Empty": ("DONE",),
}
"""What each action may come to."""

NOBODYS: Final = ("SetCancel", "Close", "Empty")
OF_HOLDS: Final = ("Ready", "Fail", "Deliver", "Return")
ARRIVALS: Final = ("Arrive", "Ask")
OUTSIDE_THE_SECTION: Final = ("Ready", "Fail", "SetCancel")
"""Actions that are single stores, which may happen while somebody is inside the section."""

Args = tuple[str | int, ...]


class BadTrace(Exception):
    """A file is no trace; the message says in which line and why."""


@dataclass(frozen=True, kw_only=True)
class TraceFile:
    """A trace: its constants and its events; `torn` tells of a last line without its end."""

    header: Header
    events: tuple[Event, ...]
    torn: bool = False

    @property
    def order(self) -> Order:
        """Which records are drawn."""
        return self.header.order


def read_trace(path: Path) -> TraceFile:
    """Read a trace.

    A last line without its end is left out: the process died while it was being written, and what
    stands before it is a whole trace of a shorter run.

    Raises:
        BadTrace: the file cannot be read, or is no trace.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadTrace(f"{path} cannot be read: {error.strerror}") from error
    *lines, rest = text.split("\n")
    if not lines:
        raise BadTrace(f"{path} has no header: the buffer of this trace was never constructed")
    try:
        header = Header.from_line(lines[0])
    except (ValueError, RecursionError) as error:
        raise BadTrace(f"{path}, line 1: {error}") from error
    events = []
    for number, line in enumerate(lines[1:], FIRST_EVENT):
        try:
            events.append(_checked(Event.from_line(line)))
        except (ValueError, RecursionError) as error:
            raise BadTrace(f"{path}, line {number}: {error}") from error
    return TraceFile(header=header, events=tuple(events), torn=bool(rest))


def actors_of(events: tuple[Event, ...]) -> tuple[str, ...]:
    """Return everybody who acts in a trace, in the order of their first events."""
    return tuple(dict.fromkeys(event.actor for event in events if event.actor is not None))


def shown(event: Event) -> str:
    """Return an event as people read it: `Arrive(w,2) = SERVE, slots 0 1`."""
    args: list[str | int] = list(event.args)
    if event.actor is not None and event.name not in OF_HOLDS:
        args.insert(0, event.actor)
    text = f"{event.name}({','.join(map(str, args))})" if args else event.name
    if event.outcome != "DONE":
        text += f" = {event.outcome}"
    if event.slots:
        text += f", slots {' '.join(map(str, event.slots))}"
    if event.name in OF_HOLDS:
        text += f", of {event.actor}"
    return text


def _checked(event: Event) -> Event:
    """Refuse an event that no buffer can have recorded."""
    if event.name not in OUTCOMES:
        raise ValueError(f"there is no action {event.name!r}")
    if event.outcome not in OUTCOMES[event.name]:
        allowed = ", ".join(OUTCOMES[event.name])
        raise ValueError(f"{event.name} comes to {allowed}, not {event.outcome!r}")
    if not _ARGS.get(event.name, _nothing)(event.args):
        raise ValueError(f"{event.name} does not have the arguments {list(event.args)}")
    if (event.actor is None) != (event.name in NOBODYS) and event.name != "SetCancel":
        raise ValueError(f"{event.name} {'has no' if event.actor else 'needs an'} actor")
    if event.token is not None and event.name not in ARRIVALS:
        raise ValueError(f"{event.name} has no token; {' and '.join(ARRIVALS)} say what a call has")
    return event


def _nothing(args: Args) -> bool:
    return args == ()


def _one_number(args: Args) -> bool:
    return len(args) == 1 and isinstance(args[0], int)


def _request(args: Args) -> bool:
    return len(args) == 3 and args[0] in ("plain", "lease") and _are_numbers(args[1:])


def _mode(args: Args) -> bool:
    return args in (("draining",), ("stopped",))


def _one_name(args: Args) -> bool:
    return len(args) == 1 and isinstance(args[0], str)


def _are_numbers(args: Args) -> bool:
    return all(isinstance(arg, int) for arg in args)


_ARGS: Final[dict[str, Callable[[Args], bool]]] = {
    "Arrive": _one_number,
    "Ask": _request,
    "Close": _mode,
    "SetCancel": _one_name,
    **dict.fromkeys(OF_HOLDS, _one_number),
}
