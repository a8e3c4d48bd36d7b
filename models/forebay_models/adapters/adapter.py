"""What a campaign asks of a buffer that it drives: take one step, and show the state.

An adapter knows how to make its buffer take each action of the specification and how to read the
buffer's state as a state of the specification. It knows nothing of what ought to come out: that is
the driver's business, so that every target is judged in the same way.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from forebay_spec.actions import Label
from forebay_spec.kernel import Verdict
from forebay_spec.state import State

USUAL: Final = ""
LATE: Final = "falls asleep only after the next step"
BEFORE_COPY: Final = "an exception before the copy"
AFTER_COPY: Final = "an exception after the copy"
BEFORE_GATHER: Final = "an exception before the gather"
IN_TRANSFORM: Final = "the transform raises"
INTERRUPTED: Final = "an exception ends the wait"

MANNERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Arrive": (USUAL, LATE),
    "Ask": (USUAL, LATE),
    "Abandon": (BEFORE_COPY, AFTER_COPY),
    "Fail": (BEFORE_GATHER, IN_TRANSFORM),
    "Expire": (USUAL, INTERRUPTED),
    "Reject": (USUAL, INTERRUPTED),
}
"""The ways in which a step can happen that the specification does not tell apart; the first is the
default. An action that is not listed happens in the usual way. Besides, `drawing` steers a draw.
A Reject is usually by the deadline; where that cannot be, since it could load, an exception ends
it."""

DRAWS: Final = ("Ask", "Draw", "Refill")
"""The actions that may draw."""

_DRAWN: Final = "draws the slots "


def drawing(slots: Iterable[int]) -> str:
    """Return the manner of an Ask, Draw or Refill at random that takes these slots, in this order.

    The adapter looks for a seed with which the library takes them by itself. Where the step cannot
    draw them, they are left to chance.
    """
    return _DRAWN + " ".join(map(str, slots))


def slots_of(manner: str) -> tuple[int, ...]:
    """Return the slots that a step in this manner has to draw; none where that is left open."""
    if not manner.startswith(_DRAWN):
        return ()
    return tuple(map(int, manner.removeprefix(_DRAWN).split()))


def has_manner(action: str, manner: str) -> bool:
    """Tell whether an action can happen in a manner."""
    if manner.startswith(_DRAWN):
        numbers = manner.removeprefix(_DRAWN).split()
        return action in DRAWS and bool(numbers) and all(n.isdecimal() for n in numbers)
    return manner == USUAL or manner in MANNERS.get(action, ())


class Mismatch(AssertionError):
    """The buffer did something that no step of the specification explains."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was seen of one step.

    Attributes:
        state: the buffer's state afterwards.
        between: its states at the end of each critical section of the step, in order.
        verdict: what the call got, in a step that decides about one.
        slots: where the records of the step's batch are, as far as the buffer has told its caller.
        records: the numbers of the records that were written, or that the reader has in hands, or
            that were gathered ahead or saved.
        sections: how many critical sections the step may take; all but one only look.
    """

    state: State
    between: tuple[State, ...] = ()
    verdict: Verdict | None = None
    slots: tuple[int, ...] | None = None
    records: tuple[int, ...] | None = None
    sections: int = 1


class Adapter(Protocol):
    """One buffer of one example."""

    def apply(self, label: Label, manner: str = USUAL) -> Observation:
        """Take one step that the specification allows now.

        Raises:
            Mismatch, Stuck, LostWakeup: the buffer does not follow.
        """

    def rest(self, due: Collection[str]) -> Observation:
        """Let those go back to sleep who were woken for nothing, and queues draw nothing.

        Args:
            due: the actors who were not woken for nothing, and the labels of those Refill that may
                happen.

        Raises:
            Mismatch: one of `due` was not woken.
            Stuck, LostWakeup: the buffer does not follow.
        """

    def counts(self) -> Mapping[str, int]:
        """Return what the buffer counts, by the names of `BufferStats`."""

    def close(self) -> None:
        """End all calls and threads; nothing is left over.

        Raises:
            Mismatch: something is.
        """
