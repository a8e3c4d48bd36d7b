"""Reads the state graph that `tla/Graph.tla` prints, one step a line.

A graph of forty thousand edges prints each state many times, as a text of a thousand characters.
So a line is cut into its three parts by their brackets, each distinct text is parsed once, and only
then turned into a state of `forebay_spec`. A wrong cut cannot go unnoticed: `values.parse` refuses
a text that is not exactly one value.
"""

from collections.abc import Mapping
from typing import Final

from forebay_spec.kernel import Closing, Phase
from forebay_spec.state import (
    Boundary,
    Hold,
    HoldKind,
    HoldState,
    Saved,
    Slot,
    Stage,
    State,
    Ticket,
    TicketKind,
)

from forebay_models.graphs import Edge, LabelledGraph
from forebay_models.tlc.values import BadValue, Function, Value, parse, show, unquote

_EDGE: Final = '"<<\\"EDGE\\", '
_INITIAL: Final = '"<<\\"INIT\\", '
_END: Final = '>>"'
_FIELDS: Final = frozenset(State._fields)


class BadGraph(ValueError):
    """A printed state or step is not what the model should print."""


class EdgeReader:
    """Takes the printed lines of one run; `graph` is what they amount to."""

    def __init__(self) -> None:
        self._by_text: dict[str, int] = {}
        self._by_state: dict[State, int] = {}
        self._labels: dict[str, tuple[str, ...]] = {}
        self._initial: set[int] = set()
        self._edges: set[Edge] = set()

    @property
    def edges(self) -> int:
        """How many distinct edges there are so far."""
        return len(self._edges)

    def take(self, line: str) -> bool:
        """Take a line if it prints a step or an initial state, and return whether it does.

        Raises:
            BadGraph: It does, but cannot be read.
        """
        if line.startswith(_EDGE) and line.endswith(_END):
            source, labels, target = _cut(line[len(_EDGE) : -len(_END)])
            start, end = self._state(source), self._state(target)
            self._edges.update((start, label, end) for label in self._labels_of(labels))
            return True
        if line.startswith(_INITIAL) and line.endswith(_END):
            self._initial.add(self._state(line[len(_INITIAL) : -len(_END)]))
            return True
        return False

    def graph(self) -> LabelledGraph:
        """Return the graph of all lines so far."""
        return LabelledGraph(
            tuple(self._by_state), frozenset(self._initial), frozenset(self._edges)
        )

    def labels(self, before: State, after: State) -> tuple[str, ...]:
        """Return the labels of the steps between two states, of all lines so far."""
        ends = self._by_state.get(before), self._by_state.get(after)
        return tuple(
            sorted(label for source, label, target in self._edges if (source, target) == ends)
        )

    def _state(self, text: str) -> int:
        number = self._by_text.get(text)
        if number is None:
            state = to_state(_parsed(text))
            number = self._by_state.setdefault(state, len(self._by_state))
            self._by_text[text] = number
        return number

    def _labels_of(self, text: str) -> tuple[str, ...]:
        labels = self._labels.get(text)
        if labels is None:
            value = _parsed(text)
            if not isinstance(value, frozenset):
                raise BadGraph(f"expected a set of labels, got {text}")
            if not value:
                raise BadGraph("TLC took a step that no label explains")
            labels = tuple(sorted(to_label(label) for label in value))
            self._labels[text] = labels
        return labels


def to_label(value: Value) -> str:
    """Return a printed label in its usual form: `<<"Arrive", "p1", 2>>` is "Arrive(p1,2)"."""
    if not isinstance(value, tuple) or not value:
        raise BadGraph(f"{show(value)} is no label")
    name, *arguments = value
    return f"{name}({','.join(show(item) for item in arguments)})" if arguments else str(name)


def to_state(value: Value) -> State:
    """Return the state that a printed record shows.

    Raises:
        BadGraph: A field is missing, unknown or of the wrong kind.
    """
    if not isinstance(value, Function) or value.keys() != _FIELDS:
        raise BadGraph(f"a state has the fields {', '.join(sorted(_FIELDS))}, got {show(value)}")
    try:
        return State(
            slots=tuple(_slot(_record(slot)) for slot in _sequence(value["slots"])),
            free=_numbers(value["free"]),
            fresh=_number(value["fresh"]),
            filling=_filling(value["filling"]),
            tickets=tuple(_ticket(_record(ticket)) for ticket in _sequence(value["tickets"])),
            holds=tuple(_hold(_record(hold)) for hold in _sequence(value["holds"])),
            closing=Closing[_text(value["closing"]).upper()],
            cancelled=frozenset(_text(token) for token in _set(value["cancelled"])),
            dead=frozenset(_text(actor) for actor in _set(value["dead"])),
            boundary=_boundary(_record(value["boundary"])),
            left=_slot_set(value["left"]),
            saved=_saved(_sequence(value["saved"])),
        )
    except KeyError as error:
        raise BadGraph(f"{error} is missing or unknown in {show(value)}") from error


_TICKET_KINDS: Final[Mapping[str, TicketKind]] = {
    "write": "write",
    "plain": "plain",
    "lease": "lease",
}
_HOLD_KINDS: Final[Mapping[str, HoldKind]] = {
    "plain": "plain",
    "lease": "lease",
    "prefetched": "prefetched",
}
_HOLD_STATES: Final[Mapping[str, HoldState]] = {
    "gathering": "gathering",
    "ready": "ready",
    "failed": "failed",
}
_STAGES: Final[Mapping[str, Stage]] = {
    "none": "none",
    "capturing": "capturing",
    "copying": "copying",
    "restoring": "restoring",
    "loading": "loading",
}
NOBODY: Final = "nobody"  # whose boundary it is when there is none; here nobody has no name


def _slot(record: Function) -> Slot:
    return Slot(
        Phase[_text(record["phase"]).upper()],
        _number(record["uses"]),
        _number(record["pins"]),
        _number(record["stamp"]),
    )


def _ticket(record: Function) -> Ticket:
    return Ticket(
        _TICKET_KINDS[_text(record["kind"])],
        _text(record["actor"]),
        _number(record["n"]),
        _number(record["m"]),
    )


def _hold(record: Function) -> Hold:
    return Hold(
        _text(record["owner"]),
        _HOLD_KINDS[_text(record["kind"])],
        _numbers(record["slots"]),
        _numbers(record["stamps"]),
        _HOLD_STATES[_text(record["state"])],
    )


def _boundary(record: Function) -> Boundary:
    actor = _text(record["actor"])
    return Boundary(
        _STAGES[_text(record["stage"])],
        "" if actor == NOBODY else actor,
        _numbers(record["slots"]),
    )


def _saved(value: tuple[Value, ...]) -> Saved | None:
    """A snapshot is printed as a sequence of one, and none as the empty sequence."""
    if len(value) > 1:
        raise BadGraph(f"there is one snapshot at most, got {show(value)}")
    if not value:
        return None
    record = _record(value[0])
    return Saved(
        slots=tuple(_slot(_record(slot)) for slot in _sequence(record["slots"])),
        free=_numbers(record["free"]),
        fresh=_number(record["fresh"]),
        queue=tuple(_batch(_record(batch)) for batch in _sequence(record["queue"])),
        left=_slot_set(record["left"]),
    )


def _batch(record: Function) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return _numbers(record["slots"]), _numbers(record["stamps"])


def _filling(value: Value) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The printed function names everybody; only those who fill count."""
    pairs = _record(value).items() if value != () else ()
    batches = ((_text(actor), _numbers(batch)) for actor, batch in pairs)
    return tuple(sorted((actor, batch) for actor, batch in batches if batch))


def _record(value: Value) -> Function:
    if not isinstance(value, Function):
        raise BadGraph(f"expected a record, got {show(value)}")
    return value


def _sequence(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise BadGraph(f"expected a sequence, got {show(value)}")
    return value


def _set(value: Value) -> frozenset[Value]:
    if not isinstance(value, frozenset):
        raise BadGraph(f"expected a set, got {show(value)}")
    return value


def _slot_set(value: Value) -> frozenset[int]:
    return frozenset(_number(item) for item in _set(value))


def _numbers(value: Value) -> tuple[int, ...]:
    return tuple(_number(item) for item in _sequence(value))


def _number(value: Value) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadGraph(f"expected a number, got {show(value)}")
    return value


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise BadGraph(f"expected a string, got {show(value)}")
    return value


def _parsed(text: str) -> Value:
    """Return the value of a text in which quotes are still escaped."""
    try:
        return parse(unquote(f'"{text}"'))
    except BadValue as error:
        raise BadGraph(str(error)) from error


def _cut(text: str) -> tuple[str, str, str]:
    """Cut "state, labels, state" in three: a state ends with ], the labels stand in { }."""
    source, first, rest = text.partition("], {<<")
    labels, second, target = rest.partition(">>}, [")
    if first and second:
        return f"{source}]", f"{{<<{labels}>>}}", f"[{target}"
    source, first, target = text.partition("], {}, [")
    if first and "cancelled" in source:
        return f"{source}]", "{}", f"[{target}"
    raise BadGraph(f'expected <<"EDGE", state, labels, state>>, got {text[:80]}...')
