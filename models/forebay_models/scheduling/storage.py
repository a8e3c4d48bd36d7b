"""A storage of whole numbers that can be interrupted between any two of its rows.

The storages of the library copy a batch in one call, into which no scheduler can look. Here the
rows are copied one after the other with a labelled point between them, so that a reader who sees
a batch before it is whole, or a writer who writes where somebody still reads, shows.
"""

from collections.abc import Callable

import torch
from forebay._records import Rows
from forebay._stores import Ints


class NumberRows(Rows):
    """Rows as a list of numbers."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: list[int]) -> None:
        super().__init__(len(numbers))
        self.numbers = numbers


class NumberStorage:
    """Slots for one number each.

    Args:
        capacity: the number of slots.
        point: is called between two rows.
        copied: is called after the last row of a batch that is written; may raise.
    """

    device = torch.device("cpu")
    initialized = True

    def __init__(
        self, capacity: int, point: Callable[[str], None], copied: Callable[[], None]
    ) -> None:
        self.numbers = [0] * capacity
        self._point = point
        self._copied = copied

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return len(self.numbers)

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        """Take a list of numbers."""
        assert isinstance(batch, list)
        return NumberRows(batch)

    def write(self, slots: Ints, rows: Rows) -> None:
        """Copy the numbers into slots, one after the other."""
        assert isinstance(rows, NumberRows)
        for position, (slot, number) in enumerate(zip(slots.tolist(), rows.numbers, strict=True)):
            if position:
                self._point("copying")
            self.numbers[slot] = number
        self._copied()

    def read(self, slots: Ints) -> list[int]:
        """Return the numbers in slots, read one after the other."""
        numbers = []
        for position, slot in enumerate(slots.tolist()):
            if position:
                self._point("gathering")
            numbers.append(self.numbers[slot])
        return numbers
