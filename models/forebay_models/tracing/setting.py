"""The constants that a trace is judged with: who acts, with which token, and who is not observed.

In the models an actor has one token for good; a thread may bring another one with each call. Since
an actor is in one call at a time, its token is the one of its latest call. So the constants differ
from event to event, in nothing but `token_of`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from forebay_spec.bounds import Bounds, ReaderKind, Request
from forebay_spec.kernel import Closing

from forebay_models.targets import LOCAL
from forebay_models.tracing.files import ARRIVALS, TraceFile, actors_of
from forebay_models.tracing.own_tokens import check_own_tokens

WRITES: Final = "write"
READS: Final[tuple[ReaderKind, ...]] = ("plain", "lease")
KINDS: Final = (WRITES, *READS)

Tokens = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Unobserved:
    """An actor of whom events are missing, and what kinds of calls it may have made."""

    actor: str
    kinds: tuple[str, ...] = KINDS

    @classmethod
    def parse(cls, text: str) -> "Unobserved":
        """Read `NAME`, or `NAME:write`, `NAME:plain,lease` and so on."""
        actor, colon, listed = text.rpartition(":")
        kinds = tuple(listed.split(","))
        if colon and set(kinds) <= set(KINDS):
            return cls(actor=actor, kinds=kinds)
        return cls(actor=text)

    def __str__(self) -> str:
        return self.actor if self.kinds == KINDS else f"{self.actor}:{','.join(self.kinds)}"


@dataclass(frozen=True)
class Setting:
    """What a trace is judged with.

    Attributes:
        trace: the trace.
        unobserved: the actors of whom events may be missing.
        bounds: the constants at the start.
        tokens: for each event the tokens of all actors when it happens, by actor.
    """

    trace: TraceFile
    unobserved: tuple[Unobserved, ...]
    bounds: Bounds
    tokens: tuple[Tokens, ...]

    def line(self) -> str:
        """Return in one line what a verdict about this trace is limited to."""
        header = self.trace.header
        parts = [
            f"C={header.capacity} N={header.uses} {header.order}",
            f"{len(self.trace.events)} events of {len(self.bounds.actors)} actors",
        ]
        if self.unobserved:
            parts.append(f"events of {' '.join(map(str, self.unobserved))} may be missing")
        return "; ".join(parts)


_UNTOLD: Final = frozenset({"Flush", "Capture", "Restore"})
"""What no trace tells of: a buffer that has one can do none of this."""


def setting_of(trace: TraceFile, unobserved: Sequence[Unobserved] = ()) -> Setting:
    """Return the constants of a trace.

    Raises:
        BadTrace: a token of one call alone is none.
    """
    check_own_tokens(trace, {absent.actor for absent in unobserved})
    header, events = trace.header, trace.events
    actors = dict.fromkeys((*actors_of(events), *(absent.actor for absent in unobserved)))
    sizes = range(1, header.capacity + 1)
    write_sizes = {event.args[0] for event in events if event.name == "Arrive"} & set(sizes)
    bounds = Bounds(
        name="trace",
        capacity=header.capacity,
        uses=header.uses,
        order=header.order,
        producers=tuple(actors),
        readers=tuple(actors),
        write_sizes=tuple(sorted(size for size in write_sizes if isinstance(size, int))),
        requests=(),
        features=LOCAL.features - _UNTOLD,
        closings=(Closing.DRAINING, Closing.STOPPED),
    )
    return Setting(trace, tuple(unobserved), bounds, _tokens(trace))


def all_requests(capacity: int, kinds: Sequence[str]) -> tuple[Request, ...]:
    """Return every request of these kinds that a reader can make."""
    return tuple(
        Request(kind, k, m)
        for kind in READS
        if kind in kinds
        for k in range(1, capacity + 1)
        for m in range(1, k + 1)
    )


def all_tokens(trace: TraceFile) -> tuple[str, ...]:
    """Return the tokens of a trace: those of calls and those that are set."""
    named = {event.token for event in trace.events if event.token is not None}
    named |= {str(event.args[0]) for event in trace.events if event.name == "SetCancel"}
    return tuple(sorted(named))


def holder(token: str) -> str:
    """Return the name of one who has a token and does nothing: it may be set before it is used."""
    return f"holder of {token}"


def _tokens(trace: TraceFile) -> tuple[Tokens, ...]:
    holders = {holder(token): token for token in all_tokens(trace)}
    present: dict[str, str] = {}
    found: list[Tokens] = []
    for event in trace.events:
        actor, token = event.actor, event.token
        if actor is not None and event.name == "SetCancel":
            actor, token = event.actor, str(event.args[0])
        elif event.name not in ARRIVALS:
            actor = None
        if actor is not None and present.get(actor) != token:
            present = {other: name for other, name in present.items() if other != actor}
            if token is not None:
                present[actor] = token
        mapping = {**holders, **present}
        latest = tuple(sorted(mapping.items()))
        found.append(found[-1] if found and found[-1] == latest else latest)
    return tuple(found)
