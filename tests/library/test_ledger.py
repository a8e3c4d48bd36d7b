"""The ledger against a model that is too simple to be wrong: lists, and ages as plain numbers.

The ledger keeps rings, gaps, stale cells and sorted rests so that each step costs what its batch
costs. The model below does the same steps the obvious way. Long random walks go through both.
"""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from forebay._calls import Call
from forebay._ledger import Ledger
from forebay._tickets import Kind
from forebay_spec.kernel import Phase


@dataclass
class Record:
    """One live or dropped record of the model; age None once it was dropped."""

    slot: int
    age: int | None
    uses: int = 0
    pins: int = 0


@dataclass
class Model:
    """What the ledger should do."""

    capacity: int
    limit: int
    fifo: bool
    free: list[int] = field(default_factory=list)
    fresh: int = 0
    records: dict[int, Record] = field(default_factory=dict)
    clock: int = 0

    def __post_init__(self) -> None:
        self.free = list(range(self.capacity))
        self.fresh = self.capacity

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def admit(self, n: int) -> list[int]:
        taken, self.free = self.free[:n], self.free[n:]
        self.fresh = min(self.fresh, len(self.free))
        return taken

    def publish(self, slots: list[int]) -> None:
        for slot in slots:
            self.records[slot] = Record(slot, self.tick())

    def abandon(self, slots: list[int]) -> None:
        self.free = slots + self.free

    def sampleable(self) -> list[Record]:
        live = [r for r in self.records.values() if r.age is not None and r.uses < self.limit]
        return sorted(live, key=lambda record: record.age or 0)

    def draw(self, records: list[Record]) -> list[tuple[Record, int | None]]:
        remembered = [(record, record.age) for record in records]
        for record in records:
            record.uses += 1
            record.pins += 1
            if record.uses < self.limit:
                record.age = self.tick()
        return remembered

    def unpin(self, records: list[Record]) -> None:
        freed = []
        for record in records:
            record.pins -= 1
            done = record.age is None or record.uses == self.limit
            if done and not record.pins:
                freed.append(record.slot)
                del self.records[record.slot]
        self.release(freed)

    def give_back(self, held: list[tuple[Record, int | None]]) -> None:
        for record, age in held:
            if record.age is not None and age is not None:
                record.uses -= 1
                record.age = min(record.age, age)
        self.unpin([record for record, _ in held])

    def empty(self) -> None:
        gone = sorted(s for s, r in self.records.items() if not r.pins and r.age is not None)
        for slot in gone:
            del self.records[slot]
        for record in self.records.values():
            record.age, record.uses = None, 0
        self.release(gone)

    def release(self, slots: list[int]) -> None:
        used = len(self.free) - self.fresh
        self.free = self.free[:used] + slots + self.free[used:]


def call(kind: Kind, n: int) -> Call:
    return Call(kind, actor=1, n=n, m=n)


class Walk:
    """A random walk through a ledger and a model side by side."""

    def __init__(self, seed: int, capacity: int, limit: int, fifo: bool) -> None:
        self.random = random.Random(seed)
        self.ledger = Ledger(capacity, limit, fifo, key=(seed, 1))
        self.model = Model(capacity, limit, fifo)
        self.fillings: list[Call] = []
        self.holds: list[tuple[Call, list[tuple[Record, int | None]]]] = []

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.3:
            self.admit()
        elif choice < 0.5:
            self.end_filling()
        elif choice < 0.75:
            self.draw()
        elif choice < 0.99:
            self.end_hold()
        else:
            self.ledger.empty()
            self.model.empty()
        self.compare()

    def admit(self) -> None:
        room = self.ledger.free.count()
        if room and len(self.fillings) < 3:
            filling = call(Kind.WRITE, self.random.randint(1, min(room, 4)))
            self.ledger.admit(filling)
            assert filling.slots.tolist() == self.model.admit(filling.n)
            self.fillings.append(filling)

    def end_filling(self) -> None:
        if not self.fillings:
            return
        filling = self.fillings.pop(self.random.randrange(len(self.fillings)))
        slots = filling.slots.tolist()
        if self.random.random() < 0.8:
            self.ledger.publish(filling)
            self.model.publish(slots)
        else:
            self.ledger.abandon(filling)
            self.model.abandon(slots)

    def draw(self) -> None:
        there = self.ledger.sampleable
        room = self.ledger.layout.held - self.ledger.batches.used()
        if not there or room < 4:
            return
        drawing = call(self.random.choice((Kind.PLAIN, Kind.LEASE)), self.random.randint(1, 4))
        self.ledger.draw(drawing)
        drawn = drawing.slots.tolist()
        candidates = self.model.sampleable()
        if self.model.fifo:
            assert drawn == [record.slot for record in candidates[: drawing.n]]
        assert len(set(drawn)) == len(drawn) == min(drawing.n, len(candidates))
        assert set(drawn) <= {record.slot for record in candidates}
        self.holds.append((drawing, self.model.draw([self.model.records[slot] for slot in drawn])))

    def end_hold(self) -> None:
        if not self.holds:
            return
        holding, records = self.holds.pop(self.random.randrange(len(self.holds)))
        if self.random.random() < 0.5:
            self.ledger.deliver(holding, 0.0)
            self.model.unpin([record for record, _ in records])
        else:
            self.ledger.give_back(holding)
            self.model.give_back(records)

    def compare(self) -> None:
        ledger, model = self.ledger, self.model
        assert ledger.free_order() == model.free
        assert ledger.fresh == model.fresh
        sampleable = model.sampleable()
        assert ledger.sampleable == len(sampleable)
        # Looking at the order tidies it up, so that is not done after every step.
        if sampleable and self.random.random() < 0.3:
            order = ledger.order.select(len(sampleable)).tolist()
            slots = [record.slot for record in sampleable]
            assert order == slots if model.fifo else sorted(order) == sorted(slots)
        for slot, record in model.records.items():
            phase = Phase.LIVE if record.age is not None else Phase.DROPPED
            assert ledger.phase[slot] == phase
            assert (ledger.uses[slot], ledger.pins[slot]) == (record.uses, record.pins)
        self.compare_ages()
        held = [holding.slots.tolist() for holding, _ in self.holds]
        assert sorted(hold.slots for hold in ledger.holds()) == sorted(held)

    def compare_ages(self) -> None:
        """The stamps have the order of the model's ages; zero where there is no age."""
        live = [record for record in self.model.records.values() if record.age is not None]
        ages = np.array([record.age for record in live], dtype=np.int64)
        stamps = self.ledger.stamp[[record.slot for record in live]]
        others = np.ones(self.ledger.capacity, dtype=np.bool_)
        others[[record.slot for record in live]] = False
        assert not self.ledger.stamp[others].any()
        if self.model.fifo:
            assert np.argsort(ages).tolist() == np.argsort(stamps).tolist()
        else:
            assert not stamps.any()


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 4])
@pytest.mark.parametrize("capacity", [1, 3, 8])
def test_long_walks_agree_with_the_obvious_model(capacity: int, limit: int, fifo: bool) -> None:
    for seed in range(8):
        walk = Walk(seed, capacity, limit, fifo)
        for _ in range(250):
            walk.step()
        assert walk.model.clock > 0


def test_numbers_of_holds_rise_in_draw_order() -> None:
    walk = Walk(1, 8, 3, True)
    for _ in range(300):
        walk.step()
        numbers = [hold.number for hold in walk.ledger.holds()]
        assert numbers == sorted(numbers)


def test_gaps_in_the_pool_of_batches_are_closed() -> None:
    """A batch that is held for long does not use the pool up."""
    ledger = Ledger(4, 2)
    filling = call(Kind.WRITE, 4)
    ledger.admit(filling)
    ledger.publish(filling)
    kept = call(Kind.LEASE, 1)
    ledger.draw(kept)
    slots = kept.slots.tolist()
    previous = call(Kind.PLAIN, 2)
    ledger.draw(previous)
    for _ in range(100):
        following = call(Kind.PLAIN, 2)
        ledger.draw(following)
        ledger.give_back(previous)
        previous = following
    assert next(hold.slots for hold in ledger.holds()) == slots
    assert ledger.batches.used() == 3
