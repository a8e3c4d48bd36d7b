"""Whatever is written and read on whatever streams, each use finds what was written before it."""

import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from forebay._arrays import Array
from forebay._device_storage import DeviceStorage
from forebay._order import Track
from forebay._stores import Ints
from forebay._streams import Event, Stream
from forebay_models.device.simulated import SimulatedDevice
from forebay_models.mutants.device import DEVICE_MUTANTS
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict

from tests.library.interrupts import Interrupts, interrupted
from tests.storage.support import slots

SLOTS = 4
STREAMS = ("a", "b", "c")
EXAMPLE = {"x": torch.zeros(2, dtype=torch.int64), "y": torch.zeros(3)}


class Playground:
    """A storage, three streams, and what each slot should hold.

    Args:
        seed: of the adversary.
    """

    def __init__(self, seed: int) -> None:
        self.device = SimulatedDevice(seed)
        self.storage = DeviceStorage(SLOTS, streams=self.device, example=EXAMPLE)
        self.held = [0] * SLOTS
        self.written = 0

    def write(self, name: str, where: Ints, *, there: bool = False) -> None:
        """Write new numbers on a stream, from the host or from the device."""
        numbers = [self.written + 1 + place for place in range(len(where))]
        self.written += len(where)
        x = torch.tensor(numbers).unsqueeze(1).repeat(1, 2)
        y = torch.tensor(numbers, dtype=torch.float32).unsqueeze(1).repeat(1, 3)
        with self.device.on(self.device.stream(name)):
            if there:
                x, y = self.device.tensor(x), self.device.tensor(y)
            rows = self.storage.check({"x": x, "y": y})
            for slot in where.tolist():
                self.held[slot] = 0  # nobody knows, should it be cut short
            self.storage.write(where, rows)
        for slot, number in zip(where.tolist(), numbers, strict=True):
            self.held[slot] = number

    def read(self, name: str, where: Ints) -> None:
        """Read slots on a stream, and use what was read there."""
        with self.device.on(self.device.stream(name)):
            batch = self.storage.read(where)
            assert isinstance(batch, TensorDict)
            self.device.look(batch["x"], "x")
            self.device.look(batch["y"], "y")
            assert self.device.promised(batch["x"])[:, 1].tolist() == self.numbers(where)

    def numbers(self, where: Ints) -> list[int]:
        """Return what slots should hold."""
        return [self.held[slot] for slot in where.tolist()]

    def save(self, name: str, where: Ints) -> None:
        """Copy slots to the host on a stream."""
        columns: list[Array] = [
            np.zeros((len(where), 2), np.int64),
            np.zeros((len(where), 3), np.float32),
        ]
        with self.device.on(self.device.stream(name)):
            self.storage.copy_out(where, columns)
        for column in columns:
            assert column[:, 0].tolist() == self.numbers(where)
            assert column[:, -1].tolist() == self.numbers(where)

    def end(self) -> list[str]:
        """Run what is left, and return what was wrong."""
        self.device.finish()
        return self.device.faults


Work = tuple[str, str, list[int], int]
WHERE = st.permutations(range(SLOTS)).flatmap(
    lambda order: st.integers(1, SLOTS).map(lambda n: list(order[:n]))
)
WORK = st.lists(
    st.tuples(
        st.sampled_from(["write", "write there", "read", "save"]),
        st.sampled_from(STREAMS),
        WHERE,
        st.integers(0, 6),
    ),
    min_size=2,
    max_size=12,
)


def played(seed: int, work: list[Work]) -> list[str]:
    """Do some work, the device coming along now and then, and return what was wrong."""
    playground = Playground(seed)
    playground.write("a", slots(*range(SLOTS)))
    for kind, name, numbers, steps in work:
        where = slots(*numbers)
        if kind == "read":
            playground.read(name, where)
        elif kind == "save":
            playground.save(name, where)
        else:
            playground.write(name, where, there=kind == "write there")
        playground.device.advance(steps)
    return playground.end()


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 1000), work=WORK)
def test_every_use_finds_what_was_written_before(seed: int, work: list[Work]) -> None:
    assert played(seed, work) == []


def meet_at_once(storage: DeviceStorage, stream: Stream) -> None:
    """Work in the records' memory without waiting for its reservation."""
    for column in storage._columns:
        storage.streams.keep(column, stream)


def keep_every_mark(track: Track, number: int) -> Event:
    """Keep an event for others though some of what it stands for is still being queued."""
    event = track._streams.record(track.stream)
    track._events.append((number, event))
    return event


PROGRAM: list[Work] = [
    ("read", "b", [0, 2], 0),
    ("write", "c", [2, 0], 0),
    ("read", "a", [0, 1, 2], 0),
    ("write", "b", [1, 2], 0),
]


@pytest.mark.parametrize("name", ["read_at_once", "reused_without_readers_event"])
def test_a_lack_of_order_is_found(name: str) -> None:
    with DEVICE_MUTANTS[name].plant():
        assert any(played(seed, PROGRAM) for seed in range(50))


def test_l89_a_reservation_that_is_not_awaited_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceStorage, "_meet", meet_at_once)
    assert any(played(seed, PROGRAM) for seed in range(50))


ACTIONS: dict[str, Callable[[Playground], None]] = {
    "write": lambda it: it.write("b", slots(2, 0)),
    "write a range": lambda it: it.write("b", slots(0, 1)),
    "write from the device": lambda it: it.write("b", slots(2, 0), there=True),
    "read": lambda it: it.read("b", slots(2, 0)),
    "save": lambda it: it.save("b", slots(2, 0)),
}
HANDLERS: dict[str, Callable[[Playground], None]] = {
    "write": lambda it: it.write("b", slots(3)),
    "read": lambda it: it.read("b", slots(3)),
}
"""In slots that the action that is interrupted has nothing to do with."""


def test_l93_an_event_that_was_recorded_too_early_is_kept_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One thread asks for an event of the stream in whose queue another one is putting its work."""
    device = SimulatedDevice()
    stream = device.stream("common to both")
    track = Track(device, stream, SLOTS)
    source, target = device.tensor(torch.ones(2)), device.tensor(torch.zeros(2))
    recorded, queued = threading.Event(), threading.Event()
    record = device.record

    def record_slowly(stream: Stream) -> Event:
        event = record(stream)
        if threading.current_thread() is other:
            recorded.set()
            assert queued.wait(30.0)
        return event

    def queue(stream: Stream) -> None:
        other.start()
        assert recorded.wait(30.0)
        device.copy(stream, source, target)

    device.copy(stream, target, source)
    other = threading.Thread(target=track.latest)
    monkeypatch.setattr(device, "record", record_slowly)
    track.work(track.copied, slice(0, 2), queue)
    queued.set()
    other.join(30.0)
    assert not other.is_alive()
    number = int(track.copied[0])
    while not device.over(record(stream)):
        assert track.event(number) is not None
        device.step(stream)
    assert track.event(number) is None


def test_threads_on_one_stream_queue_their_work_one_after_the_other() -> None:
    """Else a number could stand for work that is behind its event."""
    device = SimulatedDevice()
    track = Track(device, device.stream("common to both"), SLOTS)
    inside: list[str] = []
    begun = threading.Event()

    def first(stream: Stream) -> None:
        inside.append("first begins")
        other.start()
        assert begun.wait(30.0)
        other.join(0.05)  # it has every chance to come in between, and must not
        inside.append("first ends")

    def work_too() -> None:
        begun.set()
        track.work(track.read, slice(2, 3), lambda stream: inside.append("second"))

    other = threading.Thread(target=work_too)
    track.work(track.copied, slice(0, 2), first)
    other.join(30.0)
    assert not other.is_alive()
    assert inside == ["first begins", "first ends", "second"]


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_an_interrupt_at_any_place_loses_no_note(action: str) -> None:
    """What an interrupted call has queued is in order with what comes after it."""
    place = 0
    while True:
        playground = Playground(place)
        playground.write("a", slots(*range(SLOTS)))
        if not interrupted(partial(ACTIONS[action], playground), place):
            break
        playground.write("c", slots(0, 1, 2, 3))
        playground.read("a", slots(3, 2, 1, 0))
        assert playground.end() == [], f"interrupted at place {place}"
        place += 1
    assert place > 20


def test_l90_a_mark_in_the_middle_of_a_write_that_is_kept_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not any(with_handler(place, "read", "write") for place in range(0, 200, 12))
    monkeypatch.setattr(Track, "_mark", keep_every_mark)
    assert any(with_handler(place, "read", "write") for place in range(0, 200, 3))


def with_handler(place: int, outer: str, inner: str) -> list[str]:
    """Let a signal handler come in the middle of an action, and return what was wrong."""
    playground = Playground(place)
    playground.write("a", slots(*range(SLOTS)))
    with Interrupts([place], partial(HANDLERS[inner], playground)):
        ACTIONS[outer](playground)
    playground.write("c", slots(0, 1, 2, 3))
    playground.read("a", slots(0, 1, 2, 3))
    return playground.end()


@pytest.mark.slow
@pytest.mark.parametrize("outer", ACTIONS)
@pytest.mark.parametrize("inner", HANDLERS)
def test_a_signal_handler_may_write_and_read_in_the_middle_of_it(outer: str, inner: str) -> None:
    """At every fifth of two hundred places; the actions have fewer."""
    for place in range(0, 200, 5):
        assert with_handler(place, outer, inner) == [], f"interrupted at place {place}"
