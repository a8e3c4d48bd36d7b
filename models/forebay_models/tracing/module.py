"""Writes traces as a TLA+ module, since TLC reads nothing else.

Many traces go into one module, so that one start of Java judges them all. Most of their events are
alike, so each distinct one is written once and a trace is a sequence of numbers. Actors and tokens
get short names; those of a program may hold anything.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from forebay_spec.events import Event

from forebay_models.tracing.files import actors_of
from forebay_models.tracing.setting import Setting, Tokens, all_tokens

MODULE = "TraceData"
ROOT = "TraceReplay"

_CONFIGURATION = """\
SPECIFICATION ReplaySpec
CONSTANTS
    Capacity = {capacity}
    UsesPerRecord = {uses}
    Order = "{order}"
    Producers = {actors}
    Readers = {actors}
    WriteSizes = {{}}
    Requests = {{}}
    TokenOf <- NoTokens
    ProcessOf <- EachItsOwn
    PrefetchDepth = 0
    BatchSize = 1
    Features = {{"Abandon", "Fail", "Expire", "Empty"}}
    Closings = {{"draining", "stopped"}}
    HasFlag <- HasFlagNow
    Tokens <- AllTokens
    Batches <- BatchesNow
    MayHave <- MayHaveAny
INVARIANT Reached
CONSTRAINT Within
"""


class TraceModule:
    """Traces of buffers with the same constants and actors, as one module and its configuration.

    Raises `ValueError` when the traces do not go together.
    """

    def __init__(self, settings: Sequence[Setting]) -> None:
        first = settings[0]
        if any(
            other.trace.header != first.trace.header or other.unobserved != first.unobserved
            for other in settings
        ):
            raise ValueError("traces in one module have one header and the same unobserved actors")
        self._first = first
        self._actors = _numbered(
            "a",
            (
                *(name for setting in settings for name in actors_of(setting.trace.events)),
                *(absent.actor for absent in first.unobserved),
            ),
        )
        self._tokens = _numbered(
            "t", [token for setting in settings for token in all_tokens(setting.trace)]
        )
        self._events: dict[str, int] = {}
        self._maps: dict[str, int] = {}
        self._traces = [
            [
                self._number(event, tokens)
                for event, tokens in zip(setting.trace.events, setting.tokens, strict=True)
            ]
            for setting in settings
        ]

    def write(self, directory: Path, most: int) -> None:
        """Write the module, and the configuration of `ROOT`, into a directory.

        `most` is how many states are followed if there are actors who are not observed.
        """
        header = self._first.trace.header
        traces = ["<<" + ", ".join(map(str, trace)) + ">>" for trace in self._traces]
        unobserved = [
            f"<<{_quoted(self._actors[absent.actor])}, {_quoted(kind)}>>"
            for absent in self._first.unobserved
            for kind in absent.kinds
        ]
        lines = [
            f"---- MODULE {MODULE} ----",
            "EXTENDS ReplayBuffer, TLC",
            "NoTokens == [x \\in Actors |-> NoToken]",
            *_sequence("Events", self._events),
            *_sequence("Traces", traces),
            *_sequence("TokenMaps", self._maps or ["NoTokens"]),
            f"AllTokens == {_set(map(_quoted, self._tokens.values()))}",
            f"Unobserved == {_set(unobserved)}",
            f"MostStates == {most}",
            "====\n",
        ]
        (directory / f"{MODULE}.tla").write_text("\n".join(lines), encoding="utf-8")
        text = _CONFIGURATION.format(
            capacity=header.capacity,
            uses=header.uses,
            order=header.order,
            actors=_set(map(_quoted, self._actors.values())),
        )
        (directory / f"{ROOT}.cfg").write_text(text, encoding="utf-8")

    def _number(self, event: Event, tokens: Tokens) -> int:
        """Return the number of an event, and give it one if it is new."""
        text = self._record(event, self._map(tokens))
        return self._events.setdefault(text, len(self._events) + 1)

    def _map(self, tokens: Tokens) -> int:
        pairs = [
            f"{_quoted(self._actors[actor])} :> {_quoted(self._tokens[token])}"
            for actor, token in tokens
            if actor in self._actors
        ]
        text = " @@ ".join([*pairs, "NoTokens"])
        return self._maps.setdefault(text, len(self._maps) + 1)

    def _record(self, event: Event, tokens: int) -> str:
        args: Sequence[str | int] = event.args
        if event.name == "SetCancel":
            args = [self._tokens[str(event.args[0])]]
        values = [_quoted(arg) if isinstance(arg, str) else str(arg) for arg in args]
        actor = "nobody" if event.actor is None else self._actors[event.actor]
        return (
            f"[name |-> {_quoted(event.name)}, actor |-> {_quoted(actor)}, "
            f"args |-> <<{', '.join(values)}>>, outcome |-> {_quoted(event.outcome)}, "
            f"slots |-> <<{', '.join(map(str, event.slots))}>>, tokens |-> {tokens}]"
        )


def _numbered(letter: str, names: Sequence[str]) -> dict[str, str]:
    return {name: f"{letter}{number}" for number, name in enumerate(dict.fromkeys(names), 1)}


def _sequence(name: str, items: Sequence[str] | dict[str, int]) -> list[str]:
    """Return the lines of a definition of a sequence."""
    return [f"{name} == <<", ",\n".join(f"    {item}" for item in items), ">>"]


def _set(items: Iterable[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _quoted(text: str) -> str:
    return f'"{text}"'
