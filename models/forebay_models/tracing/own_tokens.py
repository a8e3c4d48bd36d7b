"""Looks whether a token of one call alone is one: a SetCancel that names an actor.

Such a SetCancel stands where a call was cancelled that has no token of the buffer, and gives the
call a token that nobody else has. To the models it is any token, so a trace in which others have it
too, or in which there is no such call, would be followed although no buffer writes it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from forebay_spec.events import Event

from forebay_models.tracing.files import (
    ARRIVALS,
    FIRST_EVENT,
    OUTSIDE_THE_SECTION,
    BadTrace,
    TraceFile,
)

_SERVED = ("Admit", "Draw")
_ENDS = ("Expire", "Cancel", "Refuse")


def check_own_tokens(trace: TraceFile, absent: Collection[str]) -> None:
    """Refuse a trace in which a token of one call alone is none.

    Args:
        trace: the trace.
        absent: the actors of whom events may be missing; their calls are not all known.

    Raises:
        BadTrace: the message says in which line and why.
    """
    events = trace.events
    named = Counter(token for event in events for token in _tokens(event))
    waiting: set[str] = set()
    for place, event in enumerate(events):
        actor = event.actor
        if actor is None:
            continue
        if event.name in (*ARRIVALS, *_SERVED, *_ENDS):
            waiting.discard(actor)
        if event.outcome == "WAIT":
            waiting.add(actor)
        if event.name != "SetCancel":
            continue
        (token,) = _tokens(event)
        begins = token in _tokens_of_next(events, place)
        where = f"line {place + FIRST_EVENT}: SetCancel gives a token of its own, {token!r}, to a"
        if named[token] > 1 + begins:
            raise BadTrace(f"{where} call of {actor!r}, but it is named elsewhere, too")
        known = begins or actor in waiting or actor in absent
        if not known and not _is_cut_short(events, place):
            raise BadTrace(f"{where} call that is not there: {actor!r} neither waits nor begins it")


def _tokens(event: Event) -> tuple[str, ...]:
    """Return the tokens that an event names, one at most."""
    if event.name == "SetCancel":
        return (str(event.args[0]),)
    return () if event.token is None else (event.token,)


def _tokens_of_next(events: Sequence[Event], place: int) -> tuple[str, ...]:
    """Return what the next event of the same actor names, if it begins a call."""
    actor = events[place].actor
    following = next((event for event in _after(events, place) if event.actor == actor), None)
    return () if following is None or following.name not in ARRIVALS else _tokens(following)


def _is_cut_short(events: Sequence[Event], place: int) -> bool:
    """Tell whether the call may have begun in the same critical section, after the trace's end."""
    return all(event.name in OUTSIDE_THE_SECTION for event in _after(events, place))


def _after(events: Sequence[Event], place: int) -> Iterator[Event]:
    return (events[later] for later in range(place + 1, len(events)))
