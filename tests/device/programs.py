"""A column of rows that several streams write and read, with all the order that it needs.

It is as small as something can be that has every hazard of a storage on a device: rows come
through one staging buffer, which is used again; they are put into slots that others read and wrote
before; they are taken into new memory, used on another stream, and forgotten. Each step that keeps
order can be left out, which is a mistake that a simulated device has to find.
"""

from collections.abc import Sequence
from enum import Enum
from random import Random

import torch
from forebay_models.device.queues import SimulatedEvent, SimulatedStream
from forebay_models.device.simulated import SimulatedDevice

CAPACITY = 4
STREAMS = ("a", "b", "c")


class Mistake(Enum):
    """What is left out."""

    COPY = "a reader does not wait for the last copy"
    REWRITE = "a writer does not wait for the last copy"
    READS = "a writer does not wait for the reads"
    BATCH = "who uses a batch does not wait for it"
    KEEP = "memory is used on another stream, and nobody says so"
    NEW = "who writes first does not wait for the stream for which the column was made"
    STAGING = "staging memory is written again before its copy has run"


Write = tuple[str, tuple[int, ...]]
"""A stream and slots."""

Read = tuple[str, tuple[int, ...], str]
"""A stream, slots, and the stream of whoever uses the batch."""

Step = Write | Read | int
"""A write, a read, or how many steps the device may go on."""


class Slots:
    """Slots for rows of two words."""

    def __init__(self, device: SimulatedDevice, mistake: Mistake | None = None) -> None:
        self.device = device
        self.column = device.empty((CAPACITY, 2), torch.int64)
        self._made = device.record(device.current())
        self._mistake = mistake
        self._copied: dict[int, SimulatedEvent] = dict.fromkeys(range(CAPACITY), self._made)
        if mistake is Mistake.NEW:
            self._copied = {}
        self._read: dict[int, dict[SimulatedStream, SimulatedEvent]] = {}
        self._staging = device.staging(8 * 2 * CAPACITY).view(torch.int64).view(CAPACITY, 2)
        self._staged: SimulatedEvent | None = None
        self._number = 0

    def write(self, stream: SimulatedStream, slots: Sequence[int]) -> None:
        """Copy new rows from the host into slots."""
        device, n = self.device, len(slots)
        if self._staged is not None and self._mistake is not Mistake.STAGING:
            device.synchronize(self._staged)
        for row in range(n):
            self._number += 1
            self._staging[row] = self._number
        with device.on(stream):
            rows = device.empty((n, 2), torch.int64)
            device.copy(stream, self._staging[:n], rows)
            self._staged = device.record(stream)
            for slot in slots:
                if slot in self._copied and self._mistake is not Mistake.REWRITE:
                    device.wait(stream, self._copied[slot])
                if self._mistake is not Mistake.READS:
                    for event in self._read.get(slot, {}).values():
                        device.wait(stream, event)
            device.put(stream, rows, device.tensor(torch.tensor(slots)), self.column)
        event = device.record(stream)
        for slot in slots:
            self._copied[slot] = event
            self._read[slot] = {}

    def read(self, stream: SimulatedStream, slots: Sequence[int], user: SimulatedStream) -> None:
        """Copy rows out of slots, and use them on another stream."""
        device = self.device
        with device.on(stream):
            batch = device.empty((len(slots), 2), torch.int64)
            for slot in slots:
                if slot in self._copied and self._mistake is not Mistake.COPY:
                    device.wait(stream, self._copied[slot])
            device.take(stream, self.column, device.tensor(torch.tensor(slots)), batch)
        event = device.record(stream)
        for slot in slots:
            self._read.setdefault(slot, {})[stream] = event
        with device.on(user):
            if self._mistake is not Mistake.BATCH:
                device.wait(user, event)
            if self._mistake is not Mistake.KEEP:
                device.keep(batch, user)
            device.look(batch, f"a batch of {stream}")


def play(
    program: Sequence[Step], device: SimulatedDevice, mistake: Mistake | None = None
) -> list[str]:
    """Carry out a program, and then all that it has queued; return the faults.

    At the end the column is looked at, by a stream that waits for everything.
    """
    slots = Slots(device, mistake)
    for step in program:
        if isinstance(step, int):
            device.advance(step)
        elif len(step) == 2:
            slots.write(device.stream(step[0]), step[1])
        else:
            slots.read(device.stream(step[0]), step[1], device.stream(step[2]))
    for name in STREAMS:
        device.wait(device.current(), device.record(device.stream(name)))
    device.look(slots.column, "the column")
    device.finish()
    assert device.faults or device.promised(slots.column).equal(slots.column)
    return device.faults


def any_program(random: Random, length: int) -> list[Step]:
    """Return a program of so many steps; every other one of them lets the device go on a little."""
    program: list[Step] = []
    for _ in range(length):
        slots = tuple(random.sample(range(CAPACITY), random.randint(1, CAPACITY)))
        stream = random.choice(STREAMS)
        if random.random() < 0.5:
            program.append((stream, slots))
        else:
            program.append((stream, slots, random.choice(STREAMS)))
        program.append(random.randint(0, 6))
    return program
