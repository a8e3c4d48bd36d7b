"""The ledger of an overwriting buffer against a model that is too simple to be wrong.

The model keeps lists, sets, and ages as plain numbers, and does each step the obvious way. Random
walks go through both, captures and dropped records included. Which records a draw takes is the
ledger's choice; the model says which it may choose from.
"""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from forebay import Limits, RandomSampler, SamplerWithoutReplacement
from forebay._batches import HoldState
from forebay._boundary import Boundary
from forebay._calls import Call
from forebay._eviction import EvictionRing
from forebay._overwriting import OverwritingLedger
from forebay._samplers import Sampler
from forebay._snapshot import copying_order
from forebay._tickets import Kind

SAMPLERS: list[Sampler] = [
    RandomSampler(),
    SamplerWithoutReplacement(),
    SamplerWithoutReplacement(True),
]


@dataclass
class Held:
    """One batch of the model: its slots, the ages that it remembers, and whether it gathers."""

    call: Call
    slots: list[int]
    known: dict[int, int]
    gathers: bool = True


@dataclass
class Model:
    """What the ledger should do; ages and dropped slots by slot."""

    capacity: int
    sampler: Sampler
    free: list[int] = field(default_factory=list)
    fresh: int = 0
    age: dict[int, int] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    left: set[int] = field(default_factory=set)
    marked: list[int] = field(default_factory=list)
    holds: list[Held] = field(default_factory=list)
    clock: int = 0

    def __post_init__(self) -> None:
        self.free = list(range(self.capacity))
        self.fresh = self.capacity

    @property
    def epochs(self) -> bool:
        return isinstance(self.sampler, SamplerWithoutReplacement)

    def pins(self, slot: int) -> int:
        return sum(hold.gathers and slot in hold.slots for hold in self.holds)

    def evictable(self) -> list[int]:
        """Oldest first."""
        there = [slot for slot in self.age if not self.pins(slot) and slot not in self.marked]
        return sorted(there, key=self.age.__getitem__)

    def forget(self, slots: list[int]) -> None:
        """These records are gone."""
        for slot in slots:
            del self.age[slot]
            self.left.discard(slot)
            for hold in self.holds:
                hold.known.pop(slot, None)

    def admit(self, n: int) -> list[int]:
        taken, self.free = self.free[:n], self.free[n:]
        self.fresh = min(self.fresh, len(self.free))
        evicted = self.evictable()[: n - len(taken)]
        self.forget(evicted)
        return taken + evicted

    def publish(self, slots: list[int]) -> None:
        for slot in slots:
            self.clock += 1
            self.age[slot] = self.clock
        if self.epochs:
            self.left.update(slots)

    def abandon(self, slots: list[int]) -> None:
        self.free = slots + self.free

    def begin(self, k: int) -> None:
        """Begin an epoch, if a draw of k does."""
        drop_last = isinstance(self.sampler, SamplerWithoutReplacement) and self.sampler.drop_last
        if self.epochs and (not self.left or (drop_last and len(self.left) < k)):
            self.left = set(self.age)
            for hold in self.holds:
                hold.known.clear()

    def unpin(self, held: Held) -> None:
        if held.gathers:
            held.gathers = False
            self.release(list(dict.fromkeys(held.slots)))

    def give_back(self, held: Held) -> None:
        self.left.update(held.known)
        self.unpin(held)
        self.holds.remove(held)

    def empty(self) -> None:
        gone = sorted(self.age)
        self.forget(gone)
        self.dropped.update(gone)
        self.release(gone)

    def release(self, slots: list[int]) -> None:
        """Free those of the slots that are dropped and that nobody needs."""
        freed = [
            slot
            for slot in slots
            if slot in self.dropped and not self.pins(slot) and slot not in self.marked
        ]
        self.dropped.difference_update(freed)
        used = len(self.free) - self.fresh
        self.free = self.free[:used] + freed + self.free[used:]


class Walk:
    """A random walk through a ledger and a model side by side."""

    def __init__(self, seed: int, capacity: int, sampler: Sampler) -> None:
        self.random = random.Random(seed)
        self.ledger = OverwritingLedger(capacity, sampler, (seed, 1), Limits(calls=64, held=64))
        self.boundary = Boundary(self.ledger)
        self.model = Model(capacity, sampler)
        self.fillings: list[Call] = []
        self.done: set[str] = set()

    def step(self) -> None:
        steps = [self.admit] * 6 + [self.end_filling] * 5 + [self.draw] * 5 + [self.gathered] * 4
        steps += [self.end_hold] * 5 + [self.copy] * 3
        (self.empty if self.random.random() < 0.01 else self.random.choice(steps))()
        self.compare()

    def admit(self) -> None:
        room = self.ledger.room
        if room and len(self.fillings) < 3:
            filling = Call(Kind.WRITE, 1, n := self.random.randint(1, min(room, 4)), n)
            held = {slot for hold in self.model.holds for slot in hold.slots}
            before = len(self.model.age)
            self.ledger.admit(filling)
            assert filling.slots.tolist() == self.model.admit(n)
            self.fillings.append(filling)
            if len(self.model.age) < before:
                self.done.add("evicted")
                self.done |= {"evicted while held"} if held & set(filling.slots.tolist()) else set()
                self.done |= {"evicted while copying"} if self.model.marked else set()

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
        model, k = self.model, self.random.randint(1, 4)
        if not model.age or len(model.holds) > 6:
            return
        model.begin(k)
        among = model.left if model.epochs else set(model.age)
        kind = self.random.choice((Kind.PLAIN, Kind.LEASE, Kind.PREFETCHED))
        drawing = Call(kind, -1, k, k)
        self.ledger.draw(drawing)
        drawn = drawing.slots.tolist()
        assert set(drawn) <= among
        if model.epochs:
            assert len(set(drawn)) == len(drawn) == min(k, len(among))
        else:
            assert len(drawn) == k
        known = {slot: model.age[slot] for slot in drawn} if model.epochs else {}
        model.left.difference_update(drawn)
        model.holds.append(Held(drawing, drawn, known))

    def gathered(self) -> None:
        held = [hold for hold in self.model.holds if hold.gathers]
        if not held:
            return
        hold = self.random.choice(held)
        if hold.call.kind is Kind.PREFETCHED and set(hold.slots) & self.model.dropped:
            self.ledger.give_back(hold.call)  # a stale one
            self.model.give_back(hold)
            self.done.add("stale")
            return
        self.random.choice((self.ledger.ready, self.ledger.fail))(hold.call)
        self.model.unpin(hold)

    def end_hold(self) -> None:
        if not self.model.holds:
            return
        hold = self.random.choice(self.model.holds)
        if not hold.gathers and self.random.random() < 0.5:
            self.ledger.deliver(hold.call, 0.0)
            self.model.holds.remove(hold)
            return
        if hold.known:
            self.done.add("back in epoch")
        elif self.model.epochs:
            self.done.add("too late")
        self.ledger.give_back(hold.call)  # one that gathers, as Recover does
        self.model.give_back(hold)

    def copy(self) -> None:
        """Begin a capture, or go on with one."""
        model = self.model
        if not model.marked:
            slots = copying_order(self.ledger).tolist()
            self.boundary.capture()
            assert slots == sorted(model.age, key=model.age.__getitem__)
            model.marked = slots
            return
        part = model.marked[: self.random.randint(1, 3)]
        del model.marked[: len(part)]
        self.boundary.copied(np.array(part))
        model.release(part)

    def empty(self) -> None:
        self.ledger.empty()
        self.model.holds = [
            hold
            for hold in self.model.holds
            if hold.gathers or hold.call.kind is not Kind.PREFETCHED
        ]
        self.model.empty()

    def compare(self) -> None:
        ledger, model = self.ledger, self.model
        assert ledger.free_order() == model.free
        assert ledger.fresh == model.fresh
        assert ledger.sampleable == len(model.age)
        assert ledger.evictable == len(model.evictable())
        by_age = sorted(model.age, key=model.age.__getitem__)
        assert ledger.ring._ages.live().tolist() == by_age
        assert sorted(by_age, key=lambda slot: int(ledger.stamp[slot])) == by_age
        left = ledger.left()
        assert len(set(left)) == len(left)
        assert set(left) == (model.left if model.epochs else set(model.age))
        everywhere = left + ledger.ring.drawn().tolist()
        assert sorted(everywhere) == sorted(model.age)
        assert ledger.layout.places[everywhere].tolist() == list(range(len(everywhere)))
        pins = [model.pins(slot) for slot in range(model.capacity)]
        assert ledger.pins.tolist() == pins
        assert not ledger.uses.any()
        for hold, view in zip(model.holds, ledger.holds(), strict=True):
            assert view.slots == hold.slots
            assert (view.state is HoldState.GATHERING) == hold.gathers
            ages = [int(ledger.stamp[slot]) if slot in hold.known else 0 for slot in hold.slots]
            assert view.stamps == ages


@pytest.mark.parametrize("sampler", SAMPLERS, ids=["replacement", "epochs", "drop last"])
@pytest.mark.parametrize("capacity", [1, 3, 8, 20])
def test_long_walks_agree_with_the_obvious_model(capacity: int, sampler: Sampler) -> None:
    done: set[str] = set()
    for seed in range(6):
        walk = Walk(seed, capacity, sampler)
        for _ in range(300):
            walk.step()
        done |= walk.done
    assert {"evicted", "evicted while held"} <= done
    if capacity > 1:
        assert {"evicted while copying", "stale"} <= done
    if isinstance(sampler, SamplerWithoutReplacement):
        assert {"back in epoch", "too late"} <= done


def filled(capacity: int, sampler: Sampler = SAMPLERS[0]) -> OverwritingLedger:
    ledger = OverwritingLedger(capacity, sampler)
    write(ledger, capacity)
    return ledger


def write(ledger: OverwritingLedger, n: int) -> list[int]:
    filling = Call(Kind.WRITE, 1, n, n)
    ledger.admit(filling)
    ledger.publish(filling)
    slots: list[int] = filling.slots.tolist()
    return slots


def test_a_walk_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a record that is gathered for long nor a capture makes evictions dearer in time."""
    looked = 0
    original = EvictionRing._cells_from

    def counting(self: EvictionRing, start: int, width: int) -> object:
        nonlocal looked
        looked += width
        return original(self, start, width)

    ledger = filled(512)
    boundary = Boundary(ledger)
    held = Call(Kind.PLAIN, 1, 4, 4)
    ledger.draw(held)
    monkeypatch.setattr(EvictionRing, "_cells_from", counting)
    for _ in range(300):
        write(ledger, 4)
    assert looked <= 3 * 300 * (4 + 4)
    to_copy = copying_order(ledger)
    boundary.capture()
    boundary.copied(to_copy[:256])
    looked = 0
    for _ in range(64):
        write(ledger, 4)  # over what was copied already
    for _ in range(300):
        write(ledger, 4)  # over what was written meanwhile
    assert set(to_copy[256:].tolist()) <= set((ledger.phase == 2).nonzero()[0].tolist())
    assert looked <= 4 * 364 * (4 + 4)
    boundary.copied(to_copy[256:])
    write(ledger, 512 - 4)


def test_the_ring_is_squeezed_during_a_capture() -> None:
    """What a capture has still to copy stays one stretch, however often the ring is full."""
    ledger = filled(8)
    boundary = Boundary(ledger)
    to_copy = copying_order(ledger)
    boundary.capture()
    boundary.copied(to_copy[:3])
    seen: list[int] = []
    for _ in range(40):
        seen += write(ledger, 3)
    assert set(seen) == set(to_copy[:3].tolist())
    boundary.copied(to_copy[3:])
    assert write(ledger, 5) == to_copy[3:].tolist()
