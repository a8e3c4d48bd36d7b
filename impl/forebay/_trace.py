"""Traces: what a buffer does, written down so that the models can judge it afterwards.

An action carries out its effect with one `commit`, and the event that tells of it is one store more
in the same list. So an event and its effect are one step, also where a signal handler comes in
between and for the three actions that need no critical section. Recording takes no lock, does no
input or output, and turns nothing into text: an event in memory refers to its call.

`Recorder` has a twin, `NoTrace`, which records nothing. The ledger has one or the other.

In the file a hold is named by its position in draw order, as the models name it. That is worked out
from the events when they are written, in their order, since Ready and Fail cannot ask for it
without the lock. For the same reason it is only then that a token which was set before is left out.
"""

import itertools
import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from forebay_spec.kernel import Closing, Verdict

from forebay._calls import TICKET, Call
from forebay._layout import NONE
from forebay._stores import Ints, Store
from forebay._threads import thread_name
from forebay._tickets import Kind

VERSION: Final = 1
PENDING: Final = 4096
"""So many events are kept in memory before a call writes them; some two MB."""

DONE: Final = "DONE"
INTERRUPTED: Final = "INTERRUPTED"
"""The outcome where an exception, and no decision of the buffer, ended a wait or a batch."""

_END: Final = slice(2**62, 2**62)
_ENDINGS: Final = {
    Verdict.SHUT_DOWN: "Refuse",
    Verdict.MUTUAL_WAIT: "Refuse",
    Verdict.CANCELLED: "Cancel",
    Verdict.TIMEOUT: "Expire",
}

_logger = logging.getLogger("forebay")


class Tracer(Protocol):
    """Gives the stores that record an action, to be committed together with its effect."""

    def acts(self, name: str, call: Call, outcome: str = DONE) -> Sequence[Store]:
        """An action of a call that has a ticket or a batch."""

    def served(self, call: Call) -> Sequence[Store]:
        """Arrive or Ask with the outcome SERVE, Admit, Draw; `call.slots` are the slots."""

    def waits(self, call: Call) -> Sequence[Store]:
        """Arrive or Ask with the outcome WAIT."""

    def ended(self, call: Call, flagged: bool) -> Sequence[Store]:
        """Arrive, Ask, Expire, Cancel, Refuse: `call.verdict` ends it; is a flag of it recorded?"""

    def stopped(self, call: Call) -> Sequence[Store]:
        """SetCancel of one call alone: its foreign event or its task has cancelled it."""

    def flag(self, row: int) -> Sequence[Store]:
        """SetCancel of the token in that row."""

    def forget(self, row: int) -> None:
        """The row's next token is another one."""

    def closes(self, mode: Closing) -> Sequence[Store]:
        """Close."""

    def empties(self, slots: Ints) -> Sequence[Store]:
        """Empty; the slots are those of the records that go."""

    def relieve(self) -> None:
        """Write down what has been recorded, if that is much; never inside the section."""


class NoTrace:
    """Records nothing."""

    def acts(self, name: str, call: Call, outcome: str = DONE) -> Sequence[Store]:
        return ()

    def served(self, call: Call) -> Sequence[Store]:
        return ()

    def waits(self, call: Call) -> Sequence[Store]:
        return ()

    def ended(self, call: Call, flagged: bool) -> Sequence[Store]:
        return ()

    def stopped(self, call: Call) -> Sequence[Store]:
        return ()

    def flag(self, row: int) -> Sequence[Store]:
        return ()

    def forget(self, row: int) -> None: ...

    def closes(self, mode: Closing) -> Sequence[Store]:
        return ()

    def empties(self, slots: Ints) -> Sequence[Store]:
        return ()

    def relieve(self) -> None: ...


NO_TRACE: Final = NoTrace()


class _Happened(NamedTuple):
    """One event in memory; `args` are those that the call does not tell."""

    name: str
    call: Call | None
    outcome: str = DONE
    slots: Ints | None = None
    token: str | None = None
    args: tuple[str | int, ...] = ()


class Recorder:
    """Keeps the events of one buffer in memory until they are written.

    Args:
        write: writes down what is there; called when that is much, outside the critical section.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self.events: Final[list[_Happened]] = []
        self._write = write
        self._names: dict[int, str] = {}
        self._generations: dict[int, int] = {}
        self._own_flags = itertools.count(1)
        self._held: list[Call] = []
        self._set: set[str] = set()

    def acts(self, name: str, call: Call, outcome: str = DONE) -> Sequence[Store]:
        return self._record(_Happened(name, call, outcome, call.slots))

    def served(self, call: Call) -> Sequence[Store]:
        if call.places[TICKET] == NONE:
            return self._arrival(call, Verdict.SERVE.name, call.slots)
        name = "Admit" if call.kind is Kind.WRITE else "Draw"
        return self._record(_Happened(name, call, slots=call.slots))

    def waits(self, call: Call) -> Sequence[Store]:
        return self._arrival(call, Verdict.WAIT.name)

    def ended(self, call: Call, flagged: bool) -> Sequence[Store]:
        before: Sequence[Store] = ()
        if call.verdict is Verdict.CANCELLED and not flagged:
            before = self.stopped(call)
        if call.places[TICKET] == NONE:
            return [*before, *self._arrival(call, call.verdict.name)]
        return [*before, *self.acts(_ENDINGS[call.verdict], call, call.verdict.name)]

    def stopped(self, call: Call) -> Sequence[Store]:
        # The models give a call one flag. From here on it is this one, which nobody else has.
        call.own_flag = f"{self._name(call.actor)}, call {next(self._own_flags)}"
        return self._record(_Happened("SetCancel", call, token=call.own_flag))

    def flag(self, row: int) -> Sequence[Store]:
        return self._record(_Happened("SetCancel", None, token=self._token(row)))

    def forget(self, row: int) -> None:
        self._generations[row] = self._generations.get(row, 1) + 1

    def closes(self, mode: Closing) -> Sequence[Store]:
        return self._record(_Happened("Close", None, args=(mode.name.lower(),)))

    def empties(self, slots: Ints) -> Sequence[Store]:
        return self._record(_Happened("Empty", None, slots=slots))

    def relieve(self) -> None:
        if len(self.events) >= PENDING:
            self._write()

    def take(self) -> list[str]:
        """Remove the events that are there and return their lines, which have to be written."""
        count = len(self.events)
        try:
            return [line for event in self.events[:count] for line in self._lines(event)]
        finally:
            del self.events[:count]

    def _record(self, event: _Happened) -> list[Store]:
        return [(self.events, _END, [event])]

    def _arrival(self, call: Call, outcome: str, slots: Ints | None = None) -> list[Store]:
        self._name(call.actor)
        name = "Arrive" if call.kind is Kind.WRITE else "Ask"
        token = call.own_flag or self._token(call.token)
        return self._record(_Happened(name, call, outcome, slots, token))

    def _name(self, actor: int) -> str:
        """Return what an actor is called, after its thread; no two actors are called the same."""
        name = self._names.get(actor)
        if name is None:
            thread = f"task {-actor}" if actor < 0 else thread_name(actor)
            others = (f"{thread} ({number})" for number in itertools.count(2))
            taken = set(self._names.values())
            name = next(name for name in itertools.chain([thread], others) if name not in taken)
            self._names[actor] = name
        return name

    def _token(self, row: int) -> str | None:
        """Return what the token in a row is called; a row is used by one token after the other."""
        if row < 0:
            return None
        generation = self._generations.get(row, 1)
        return f"token {row}" if generation == 1 else f"token {row} ({generation})"

    def _lines(self, event: _Happened) -> Sequence[str]:
        """Return the line of an event, or none for a token that is set already."""
        call, token, args = event.call, event.token, event.args
        if event.name == "SetCancel":
            assert token is not None
            if token in self._set:
                return ()
            self._set.add(token)
            args, token = (token,), None
        elif call is not None:
            args = self._args(event, call)
        value = {
            "name": event.name,
            "actor": None if call is None else self._names[call.actor],
            "args": args,
            "outcome": event.outcome,
            "slots": [] if event.slots is None else event.slots.tolist(),
            "token": token,
        }
        return (_json(value),)

    def _args(self, event: _Happened, call: Call) -> tuple[str | int, ...]:
        """Return the arguments of a call's action, as in the models' labels."""
        held, name = self._held, event.name
        if name == "Draw" or (name == "Ask" and event.outcome == Verdict.SERVE.name):
            held.append(call)
        if name == "Arrive":
            return (call.n,)
        if name == "Ask":
            return (call.kind.name.lower(), call.n, call.m)
        if name not in ("Ready", "Fail", "Deliver", "Return"):
            return ()
        position = next(place for place, other in enumerate(held) if other is call)
        if name == "Deliver" or name == "Return":
            del held[position]
        return (position,)


class Trace:
    """A file in which a buffer writes down its actions, one line of JSON each.

    `forebay check trace PATH` replays it in the models. Hand it to one buffer, as `trace=`. Events
    are kept in memory; they are written by `flush()`, at the end of a `with trace:` block, and by
    the next call that begins once 4096 of them have come together. A process that is killed leaves
    a trace that ends earlier, which can be judged as far as it goes.

    Calls that only look leave no event: `can_extend`, `wait_until_sampleable`, a write of nothing.
    Calls within calls, of a transform or a signal handler that calls the buffer, are outside the
    models, so that a trace with such a call is rejected.

    Args:
        path: the file; what is in it is thrown away at once.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = os.fspath(path)
        with open(self.path, "w", encoding="utf-8"):
            pass
        self._recorder: Recorder | None = None
        self._writing = threading.Lock()
        self._whole = True

    def begin(self, capacity: int, uses: int, order: str) -> Recorder:
        """Write the header and return what records the events; a buffer does that.

        Raises:
            ValueError: the trace belongs to a buffer already.
            OSError: the file cannot be written.
        """
        if self._recorder is not None:
            raise ValueError(
                f"the trace in {self.path} belongs to another buffer; give each buffer its own"
            )
        header = {
            "forebay_trace": VERSION,
            "capacity": capacity,
            "consume_after_n_samples": uses,
            "order": order,
        }
        self._append([_json(header)])
        self._recorder = Recorder(self._relieve)
        return self._recorder

    def flush(self) -> None:
        """Write all events that have been recorded; not for signal handlers.

        Raises:
            OSError: they cannot be written, now or at an earlier time. The file then ends early.
        """
        if self._recorder is None:
            return
        with self._writing:
            # An exception from a handler may come anywhere here; nothing may be written behind it.
            whole, self._whole = self._whole, False
            lines = self._recorder.take()
            if not whole:
                raise OSError(f"an earlier write to {self.path} was cut short, so it ends there")
            self._append(lines)
            self._whole = True

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()

    def _relieve(self) -> None:
        """Write as `flush` does; a call that records must not fail because of that."""
        # A signal handler that came in between in the middle of a write finds the lock taken.
        if self._writing.locked():
            return
        try:
            self.flush()
        except OSError as error:
            _logger.error("a trace is incomplete: %s", error)

    def _append(self, lines: Iterable[str]) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.writelines(lines)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
