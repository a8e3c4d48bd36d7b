"""Processes that do with a shared buffer what the test asks, and buffers for them.

A `Remote` does one piece of work after the other and says how each ended. While one lasts the test
looks at the buffer through its public calls, and waits for what it wants to see there.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, cast

import pytest
import torch
from forebay import BlockingReplayBuffer, CancelToken, Lease, ReplayBuffer, SharedStorage
from forebay._samplers import Sampler
from forebay._shared_peers import SharedPeers
from forebay._stores import Store, commit

from tests.processes.journals import Death, dying
from tests.processes.support import Child, Family, Line, family, until

FORK_WARNING = "ignore:.*fork.*:DeprecationWarning"
LEAVE = "leave"
Work = Callable[..., object]
"""What a remote can do: a function of its `Hands` and of what the test gives it."""


class Hands:
    """What a remote process has to work with.

    Attributes:
        buffer: the buffer, of whichever kind; a ring has the same calls but `available`.
        token: a token, if it was given one.
        line: the line to the test.
        kept: what one piece of work keeps for the next.
    """

    def __init__(
        self,
        line: Line,
        buffer: BlockingReplayBuffer | ReplayBuffer,
        token: CancelToken | None = None,
    ) -> None:
        self.line = line
        self.buffer = cast(BlockingReplayBuffer, buffer)
        self.token = token
        self.kept: dict[str, object] = {}


class Outcome(NamedTuple):
    """How a piece of work ended: with a value, or with an error, its words and its cause's."""

    value: object = None
    error: str = ""
    words: str = ""
    cause: str = ""


def serve(
    line: Line, buffer: BlockingReplayBuffer | ReplayBuffer, token: CancelToken | None = None
) -> None:
    """Do what comes through the line until the word is to leave."""
    torch.set_num_threads(1)
    hands = Hands(line, buffer, token)
    while (task := line.recv()) != LEAVE:
        work, args, options = task
        line.send(outcome_of(lambda: work(hands, *args, **options)))  # noqa: B023  # at once


def outcome_of(work: Callable[[], object]) -> Outcome:
    """Return how a piece of work ends."""
    try:
        return Outcome(work())
    except BaseException as error:
        cause = "" if error.__cause__ is None else repr(error.__cause__)
        return Outcome(None, type(error).__name__, str(error), cause)


class Remote:
    """A process with a buffer."""

    def __init__(self, child: Child) -> None:
        self.child = child

    def begins(self, work: Work, *args: object, **options: object) -> None:
        """Have the process begin a piece of work."""
        self.child.line.send((work, args, options))

    def ends(self) -> Outcome:
        """Return how the piece of work ends."""
        said = self.child.says()
        assert isinstance(said, Outcome), said
        return said

    def does(self, work: Work, *args: object, **options: object) -> object:
        """Have the process do a piece of work, and return its value."""
        self.begins(work, *args, **options)
        outcome = self.ends()
        if outcome.error:
            pytest.fail(f"in the other process: {outcome.error}: {outcome.words}")
        return outcome.value

    def reaches(self, words: str) -> None:
        """Wait until the process says that it has come so far."""
        assert self.child.says() == words

    def dies(self) -> None:
        """Kill the process."""
        self.child.kill()

    def leave(self) -> None:
        """Let the process come to its own end."""
        self.child.line.send(LEAVE)
        assert self.child.end() == 0


def write(hands: Hands, *values: int, **options: object) -> object:
    """Write records with these values."""
    return write_to(hands.buffer, *values, **options)


def write_with_token(hands: Hands, *values: int, **options: object) -> object:
    """Write records with these values, to be cancelled by the token."""
    return write(hands, *values, cancel_event=hands.token, **options)


def read(hands: Hands, size: int, **options: object) -> object:
    """Sample so many records and return their values."""
    return read_from(hands.buffer, size, **options)


def lease(hands: Hands, size: int) -> object:
    """Take a lease, keep it, and return its values."""
    hands.kept["lease"] = held = hands.buffer.lease(size)
    return held.batch["x"].tolist()


def new_token(hands: Hands) -> None:
    """Make a token and keep it."""
    hands.kept["token"] = hands.buffer.cancel_token()


def stop_at(hands: Hands, label: str, work: Work, *args: object) -> object:
    """Do a piece of work, but say so and stop when it has reached a place of the library."""

    def point(reached: str) -> None:
        if reached == label:
            hands.line.send(f"at {label}")
            hands.line.recv()

    monitor = hands.buffer._core.monitor
    monitor.point = point  # type: ignore[method-assign, assignment]  # only in this process
    return work(hands, *args)


def stop_inside(hands: Hands, commits: int, stores: int, work: Work, *args: object) -> object:
    """Do a piece of work up to the middle of an action, say so and stop there.

    Before that come so many whole commits, and then so many elementary stores of the next one.
    """
    peers = hands.buffer._core.peers
    assert isinstance(peers, SharedPeers)
    before = iter(range(commits))

    def carry_out(step: list[Store]) -> None:
        if next(before, None) is not None:
            commit(step)
            return
        with suppress(Death):
            dying(stores)(step)
        hands.line.send("inside")
        hands.line.recv()

    peers._journal.carry_out = carry_out
    return work(hands, *args)


def release(hands: Hands) -> None:
    """Release the lease that was kept."""
    held = hands.kept.pop("lease")
    assert isinstance(held, Lease)
    held.release()


def write_to(
    buffer: BlockingReplayBuffer | ReplayBuffer, *values: int, **options: object
) -> list[int]:
    """Write records with these values; return their slots."""
    slots: list[int] = buffer.extend({"x": torch.tensor(values)}, **options).tolist()  # type: ignore[arg-type]  # whatever a test gives
    return slots


def read_from(
    buffer: BlockingReplayBuffer | ReplayBuffer, size: int, **options: object
) -> list[int]:
    """Sample so many records; return their values."""
    values: list[int] = buffer.sample(size, **options)["x"].tolist()  # type: ignore[call-overload]  # whatever a test gives
    return values


def shared_buffer(capacity: int = 4, **options: object) -> BlockingReplayBuffer:
    """Return a buffer for several processes, of one integer a record."""
    storage = SharedStorage(capacity, example={"x": torch.tensor(0)})
    return BlockingReplayBuffer(storage, **options)  # type: ignore[arg-type]  # whatever a test gives


def shared_ring(capacity: int, sampler: Sampler, **options: object) -> ReplayBuffer:
    """Return an overwriting buffer for several processes, of one integer a record."""
    storage = SharedStorage(capacity, example={"x": torch.tensor(0)})
    return ReplayBuffer(storage, sampler, **options)  # type: ignore[arg-type]  # whatever a test gives


class Remotes:
    """Starts remotes of a buffer."""

    def __init__(self, children: Family, buffer: BlockingReplayBuffer | ReplayBuffer) -> None:
        self.children = children
        self._buffer = buffer

    def start(self, token: CancelToken | None = None) -> Remote:
        """Start a process with the buffer, and maybe a token."""
        return Remote(self.children.start(serve, self._buffer, token))


@contextmanager
def remotes(
    buffer: BlockingReplayBuffer | ReplayBuffer, method: str = "forkserver"
) -> Iterator[Remotes]:
    """Give a starter of processes, all of which are dead afterwards."""
    with family(method) as children:
        yield Remotes(children, buffer)


def all_values(buffer: BlockingReplayBuffer) -> list[int]:
    """Sample all that is there and return the values."""
    return [value for batch in buffer.available(buffer.capacity) for value in batch["x"].tolist()]


def blocks_here() -> int:
    """Return how many descriptors of shared blocks this process has."""
    opened = map(_target, Path("/proc/self/fd").iterdir())
    return sum(target.startswith("/memfd:forebay") for target in opened)


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:  # that by which the folder was read
        return ""


def await_waiters(
    buffer: BlockingReplayBuffer | ReplayBuffer, *, writers: int = 0, readers: int = 0
) -> None:
    """Wait until exactly so many calls wait, as anybody can see through `stats`."""

    def reached() -> bool:
        stats = buffer.stats()
        return (stats.waiting_writers, stats.waiting_readers) == (writers, readers)

    until(reached)
