"""Whether each record is drawn once in an epoch, told by the numbers of the records alone.

The specification says it with slots and ages. Here nothing is known of either: an epoch has a
number, a record is left of it, or a batch has it, or was given out with it. Under other orders
nothing is entered.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from forebay_spec.bounds import Bounds


class Drawn(NamedTuple):
    """The numbers of the records of a batch, and of the epoch in which it was drawn."""

    records: tuple[int, ...]
    epoch: int = 0


class Epochs:
    """The epochs of one run.

    Args:
        bounds: the constants of the run.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._is_told = bounds.order == "epochs"
        self._drop_last = bounds.drop_last
        self._number = 1
        self._left: frozenset[int] = frozenset()
        self._given: Counter[int] = Counter()

    def copy(self) -> "Epochs":
        """Return the same epochs, that go on by themselves."""
        copied = Epochs.__new__(Epochs)
        vars(copied).update(vars(self), _given=Counter(self._given))
        return copied

    def write(self, records: Iterable[int]) -> None:
        """Enter new records, which are left of the epoch."""
        if self._is_told:
            self._left |= frozenset(records)

    def draw(
        self, records: tuple[int, ...], k: int, there: Iterable[int]
    ) -> tuple[Drawn, list[str]]:
        """Enter a draw of k records while those in `there` can be sampled.

        Returns:
            The batch, and what is wrong with it.
        """
        if not self._is_told:
            return Drawn(records), []
        if not self._left or (self._drop_last and len(self._left) < k):
            self._number += 1
            self._left, self._given = frozenset(there), Counter()
        due = min(k, len(self._left))
        self._left -= frozenset(records)
        self._given.update(records)
        epoch = self._number
        wrong = [
            f"record {record} is drawn {times} times in epoch {epoch}"
            for record, times in self._given.items()
            if times > 1
        ]
        if len(records) != due:
            wrong.append(f"{due} records of epoch {epoch} are due, not {len(records)}")
        return Drawn(records, epoch), wrong

    def give_back(self, drawn: Drawn, there: Iterable[int]) -> None:
        """Enter that a batch is returned, of which those in `there` are still records."""
        if not self._is_told or drawn.epoch != self._number:
            return
        back = frozenset(drawn.records).intersection(there)
        self._given -= Counter(back)
        self._left |= back

    def lose(self, records: Iterable[int]) -> None:
        """Enter that records are gone, by which batches that have them do not change."""
        self._left -= frozenset(records)

    def differs(self, left: frozenset[int]) -> list[str]:
        """Return what is wrong if these records are said to be left."""
        if left == self._left:
            return []
        return [f"left of the epoch are records {sorted(self._left)}, not {sorted(left)}"]
