"""Processes that share a buffer on a device: one that owns the memory, and others.

Records say what they are in two leaves, so that one that is torn or old is seen.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import NamedTuple, cast

import torch
from forebay import BlockingReplayBuffer, CudaStorage
from forebay._device_storage import DeviceStorage
from forebay._shared_device import ShareableStorage
from forebay_models.device.shared import SimulatedSharedDevice
from forebay_models.mutants.shared_device import planted_in_sharing

from tests.processes.remote import Hands, Outcome, Remote, Work, serve
from tests.processes.support import Line, context, family

Make = Callable[..., BlockingReplayBuffer]
"""Makes a buffer of a capacity, with options, in whatever process calls it."""


class Kind(NamedTuple):
    """What makes buffers, and how the processes are started that have them."""

    make: Make
    method: str = "forkserver"


WORDS = 64
EXAMPLE = {"x": torch.tensor(0), "body": torch.zeros(WORDS, dtype=torch.int64)}
GO = "go on"
HERE = "the buffer is here"
STARTING = 240.0
"""Seconds after which a test gives up on processes that start: each of them loads all of torch."""


def simulated(capacity: int, **options: object) -> BlockingReplayBuffer:
    """Return a buffer on a simulated device."""
    device = SimulatedSharedDevice(capacity)
    storage = ShareableStorage(capacity, streams=device, example=EXAMPLE, shared=True)
    return BlockingReplayBuffer(storage, **options)  # type: ignore[arg-type]  # whatever a test gives


def cuda(capacity: int, **options: object) -> BlockingReplayBuffer:
    """Return a buffer on a CUDA device."""
    storage = CudaStorage(capacity, example=EXAMPLE, shared=True)
    return BlockingReplayBuffer(storage, **options)  # type: ignore[arg-type]  # whatever a test gives


def put(buffer: BlockingReplayBuffer, *values: int, **options: object) -> list[int]:
    """Write records of these values; return their slots."""
    x = torch.tensor(values)
    batch = {"x": x, "body": x[:, None].expand(len(values), WORDS).contiguous()}
    slots: list[int] = buffer.extend(batch, **options).tolist()  # type: ignore[arg-type]  # whatever a test gives
    return slots


def get(buffer: BlockingReplayBuffer, size: int, **options: object) -> list[int]:
    """Sample so many records; return their values."""
    return values_of(buffer.sample(size, **options))  # type: ignore[call-overload]  # whatever a test gives


def values_of(batch: object) -> list[int]:
    """Return the values of records, each of which has to be whole."""
    columns = cast(dict[str, torch.Tensor], batch)
    values: list[int] = columns["x"].tolist()
    assert columns["body"].tolist() == [[value] * WORDS for value in values], "a record is torn"
    return values


def write(hands: Hands, *values: int, **options: object) -> list[int]:
    """Write records of these values."""
    return put(hands.buffer, *values, **options)


def read(hands: Hands, size: int, **options: object) -> list[int]:
    """Sample so many records and return their values."""
    return get(hands.buffer, size, **options)


def take_lease(hands: Hands, size: int) -> list[int]:
    """Take a lease, keep it, and return its values."""
    hands.kept["lease"] = held = hands.buffer.lease(size)
    return values_of(held.batch)


def write_all(hands: Hands, first: int, batches: int, size: int) -> None:
    """Write so many batches of numbers that follow each other, as a producer."""
    with hands.buffer.producer():
        hands.line.send("there")
        hands.line.recv()
        for begin in range(first, first + batches * size, size):
            write(hands, *range(begin, begin + size))


def read_all(hands: Hands) -> list[int]:
    """Read until all producers are gone, and return the values."""
    return [value for batch in hands.buffer for value in values_of(batch)]


def pickled(hands: Hands) -> bytes:
    """Return a handle of the buffer."""
    return pickle.dumps(hands.buffer)


def recover(hands: Hands) -> None:
    """Look for the dead as a call does when it is time."""
    core = hands.buffer._core
    with core.section:
        assert core.peers.recover()
    hands.line.send("nothing left")
    hands.line.recv()


def stop_queued(hands: Hands, work: Work, *args: object, **options: object) -> object:
    """Do a piece of work, but say so and stop where the host first waits for what is queued."""
    storage = hands.buffer.storage
    assert isinstance(storage, DeviceStorage)
    streams = storage.streams
    wait = streams.synchronize

    def stop(event: object) -> None:
        streams.synchronize = wait  # type: ignore[method-assign]  # only in this process
        hands.line.send("queued")
        hands.line.recv()
        wait(event)

    streams.synchronize = stop  # type: ignore[method-assign]  # only in this process
    return work(hands, *args, **options)


def reads(remote: Remote, size: int) -> list[int]:
    """Have a process sample so many records, and return their values in order."""
    return in_order(remote.does(read, size))


def in_order(values: object) -> list[int]:
    """Return the values that a process has read, the smallest first."""
    assert isinstance(values, list), values
    return sorted(values)


def goes_on(remote: Remote) -> None:
    """Let a process go on that has stopped."""
    remote.child.line.send(GO)


def own(
    line: Line, make: Callable[[], BlockingReplayBuffer], others: list[Connection], fault: str
) -> None:
    """Make a buffer, hand it to others, and do with it what the test asks."""
    with planted_in_sharing(fault):
        buffer = make()
        for other in others:
            other.send(buffer)
        serve(line, buffer)


def attach(line: Line, source: Connection, fault: str) -> None:
    """Take a buffer, and do with it what the test asks."""
    with planted_in_sharing(fault):
        buffer = receive(source)
        line.send(HERE)
        serve(line, buffer)


def receive(source: Connection) -> BlockingReplayBuffer:
    """Return the buffer that comes."""
    assert source.poll(STARTING), "no buffer comes"
    received = source.recv()
    assert isinstance(received, BlockingReplayBuffer)
    return received


class Company(NamedTuple):
    """The process that owns a buffer's memory, the others that have the buffer, and the buffer."""

    owner: Remote
    others: list[Remote]
    buffer: BlockingReplayBuffer


@contextmanager
def company(
    kind: Kind, capacity: int, others: int = 1, fault: str = "", **options: object
) -> Iterator[Company]:
    """Give a process that makes a buffer, others that have it, and the buffer here.

    Args:
        kind: of buffer.
        capacity: of it.
        others: how many processes there are besides its owner and this one.
        fault: what is planted in all of them but this one.
        options: of the buffer.
    """
    make = partial(kind.make, capacity, **options)
    pipe = context(kind.method).Pipe
    ends: list[Connection] = []
    with family(kind.method) as children:
        try:
            pairs = [pipe() for _ in range(others + 1)]
            ends += [end for pair in pairs for end in pair]
            owner = children.start(own, make, [its for _, its in pairs], fault)
            remotes = [Remote(children.start(attach, mine, fault)) for mine, _ in pairs[1:]]
            buffer = receive(pairs[0][0])
            for remote in remotes:
                assert remote.child.line.poll(STARTING), "a process does not start"
                remote.reaches(HERE)
            yield Company(Remote(owner), remotes, buffer)
        finally:
            for end in ends:
                end.close()


def assert_owner_gone(outcome: Outcome) -> None:
    """Check that a call was told that the memory is gone."""
    assert outcome.error == "PeerLost", outcome
    assert "the process that made the storage of this buffer has ended" in outcome.cause
