"""Who is there without a ticket or a batch: observers, and producers that have promised to write.

Both are counted twice, for each participant and for all of them, so that a dead one's share can be
taken away.
"""

from forebay import _layout as at
from forebay._calls import WATCHING, Call
from forebay._layout import Layout
from forebay._stores import Store
from forebay._threads import participant_of


class Attendance:
    """The counts of observers and of registered producers; to be changed inside the section."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._cells = layout.cells

    def watch(self, call: Call, to: int) -> None:
        """Count a call as an observer, 1, or not any more, 0."""
        cells, by = self._cells, to - call.places[WATCHING]
        own = self._layout.observer_base + participant_of(call.actor)
        self._layout.commit(
            [
                (cells, at.OBSERVERS, cells[at.OBSERVERS] + by),
                (cells, own, cells[own] + by),
                (call.places, WATCHING, to),
            ]
        )

    def register(self, participant: int, places: list[int]) -> None:
        """Count one registered producer more; `places` has 1 from then on."""
        cells, own = self._cells, self._layout.producer_base + participant
        self._layout.commit(
            [
                (cells, at.REGISTERED, 1),
                (cells, at.PRODUCERS, cells[at.PRODUCERS] + 1),
                (cells, own, cells[own] + 1),
                (places, 0, 1),
            ]
        )

    def unregister(self, participant: int, places: list[int], lost: bool) -> None:
        """Count one registered producer fewer, and say whether it was lost; `places` has 0."""
        cells, own = self._cells, self._layout.producer_base + participant
        self._layout.commit(
            [
                (cells, at.PRODUCERS, cells[at.PRODUCERS] - 1),
                (cells, at.LOST_PRODUCERS, cells[at.LOST_PRODUCERS] + lost),
                (cells, own, cells[own] - 1),
                (places, 0, 0),
            ]
        )

    def deserted(self) -> bool:
        """Tell whether producers have registered and none of them is left."""
        return bool(self._cells[at.REGISTERED] and not self._cells[at.PRODUCERS])

    def of(self, participant: int) -> tuple[int, int]:
        """Return how many observers and registered producers a participant has."""
        cells, layout = self._cells, self._layout
        return cells[layout.observer_base + participant], cells[layout.producer_base + participant]

    def remove(self, participant: int) -> list[Store]:
        """Return the stores that take away all that a dead participant counts for."""
        cells, layout = self._cells, self._layout
        observers, producers = self.of(participant)
        return [
            (cells, at.OBSERVERS, cells[at.OBSERVERS] - observers),
            (cells, layout.observer_base + participant, 0),
            (cells, at.PRODUCERS, cells[at.PRODUCERS] - producers),
            (cells, at.LOST_PRODUCERS, cells[at.LOST_PRODUCERS] + producers),
            (cells, layout.producer_base + participant, 0),
        ]
