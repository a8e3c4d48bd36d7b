"""Who decides what runs next on the simulated device, and is unlucky in several ways.

It has habits, each of which lasts for a while. Streams take turns at random, or there is an order
among them in which one runs only when none before it can, which starves some and hurries others. A
host that waits sees nothing run that it does not need, or everything else first, or whatever comes.
"""

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import Final

from forebay_models.device.queues import SimulatedEvent, SimulatedStream, Wait

CHANGE: Final = 0.125
"""How often a habit is given up."""


class Elsewhere(Enum):
    """What runs in other streams while the host waits for one."""

    LITTLE = "as little as possible"
    MUCH = "as much as possible"
    ANYTHING = "anything"


_ELSEWHERE: Final = tuple(Elsewhere)


class Adversary:
    """Draws from a generator of its own.

    Args:
        seed: the same calls with the same seed give the same choices.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._ranks: dict[int, float] | None = None
        self._change()

    def begin(self, most: int = 0) -> int:
        """Return how much is to run now, up to `most` steps; sometimes the habit is another one."""
        if self._random.random() < CHANGE:
            self._change()
        return int(self._random.random() * (most + 1))

    def elsewhere(self) -> Elsewhere:
        """Draw what runs in other streams while the host waits."""
        return _ELSEWHERE[int(self._random.random() * len(_ELSEWHERE))]

    def pick(self, streams: Sequence[SimulatedStream]) -> SimulatedStream:
        """Return who goes on, of streams that can."""
        if len(streams) == 1:
            return streams[0]
        ranks = self._ranks
        if ranks is None:
            return streams[int(self._random.random() * len(streams))]
        for stream in streams:
            if stream.number not in ranks:
                ranks[stream.number] = self._random.random()
        return min(streams, key=lambda stream: ranks[stream.number])

    def pick_for(
        self, event: SimulatedEvent, streams: Sequence[SimulatedStream], elsewhere: Elsewhere
    ) -> SimulatedStream | None:
        """Return who goes on while the host waits for an event; None if nothing leads there."""
        needed = needed_for(event)
        if needed is None or elsewhere is Elsewhere.LITTLE:
            return needed
        if elsewhere is Elsewhere.MUCH:
            return self.pick([stream for stream in streams if stream is not needed] or [needed])
        return self.pick(streams)

    def _change(self) -> None:
        """Draw a habit."""
        self._ranks = {} if self._random.random() < 0.5 else None


def needed_for(event: SimulatedEvent) -> SimulatedStream | None:
    """Return the stream that has to go on for an event; None if nothing leads there.

    A stream can only wait for what was queued before its wait, so this comes to an end.
    """
    while not event.stream.ready():
        if not event.stream.operations:
            return None
        first = event.stream.operations[0]
        assert isinstance(first, Wait)
        event = first.event
    return event.stream
