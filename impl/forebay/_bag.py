"""The sampleable records without an order, for `order="random"`."""

from forebay._dense import Dense, Draws
from forebay._layout import SAMPLEABLE, Layout
from forebay._stores import Flags, Ints, Store, picked


class Bag:
    """Sampleable records, drawn uniformly and without repetition inside a batch."""

    def __init__(self, layout: Layout) -> None:
        self._dense = Dense(layout, layout.order, layout.entry, SAMPLEABLE)
        self._draws = Draws(layout)

    def prepare(self, rows: int) -> None:
        """Nothing has to be made ready here."""

    def select(self, rows: int) -> Ints:
        """Return the slots of `rows` distinct records, every ordered choice as likely."""
        return self._dense.at(self._draws.distinct(len(self._dense), rows))

    def draw(self, slots: Ints, lasting: Flags | bool) -> list[Store]:
        """Return the stores that remove those of the selected slots that do not last."""
        stores = [self._draws.store()]
        leaving = picked(slots, lasting ^ True)
        return [*stores, *self._dense.remove(leaving)] if len(leaving) else stores

    def append(self, slots: Ints) -> list[Store]:
        """Return the stores that add slots."""
        return self._dense.append(slots)

    def put_back(self, slots: Ints, stamps: Ints, sampleable: Flags) -> list[Store]:
        """Return the stores that add those returned slots that cannot be sampled already."""
        return self._dense.append(slots[~sampleable])

    def clear(self, live: Ints) -> list[Store]:
        """Return the stores that leave no record sampleable; the count alone says so here."""
        return []

    def restore(self, sampleable: Ints, slots: Ints, stamps: Ints, youngest: int) -> list[Store]:
        """Return the stores that give an empty bag these records, in these places."""
        return self._dense.fill(sampleable)

    def dense(self) -> Ints:
        """Return all records that can be sampled, in the places that they have."""
        return self._dense.slots()

    def drawn(self) -> Ints:
        """Return nothing: there are no epochs."""
        return self._dense.slots()[:0]

    def place_drawn(self, left: int, drawn: Ints) -> list[Store]:
        """Return nothing: there are no epochs."""
        return []
