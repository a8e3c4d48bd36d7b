"""What the tests of prefetching share: an executor that the test runs, and looks at the queue."""

import threading
import time
from collections.abc import Callable

from forebay import BlockingReplayBuffer, ReplayBuffer
from forebay._batches import HoldState
from forebay._prefetch import Prefetcher
from forebay._tickets import Kind

from tests.library.support import PATIENCE, Stage, ledger_of, make


class ByHand:
    """Keeps the jobs until the test has them done."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None]) -> None:
        self.jobs.append(job)

    def rest(self) -> None:
        pass

    def do(self, *places: int) -> None:
        """Do the jobs at these places, or all; those that are done leave."""
        chosen = [self.jobs[place] for place in places] if places else list(self.jobs)
        for job in chosen:
            self.jobs.remove(job)
            job()


class AtOnce:
    """Does each job where it is submitted."""

    def submit(self, job: Callable[[], None]) -> None:
        job()

    def rest(self) -> None:
        pass


def prefetcher_of(buffer: BlockingReplayBuffer | ReplayBuffer) -> Prefetcher:
    """Return the queue of a buffer."""
    prefetcher = buffer._prefetcher
    assert prefetcher is not None
    return prefetcher


def by_hand(
    capacity: int, stage: Stage | None = None, **options: object
) -> tuple[BlockingReplayBuffer, ByHand]:
    """Return a buffer that gathers ahead when the test says so, and what says it."""
    buffer, pool = make(capacity, stage, **options), ByHand()
    prefetcher_of(buffer).use(pool)
    return buffer, pool


def at_once(capacity: int, stage: Stage | None = None, **options: object) -> BlockingReplayBuffer:
    """Return a buffer that gathers ahead as soon as it has drawn."""
    buffer = make(capacity, stage, **options)
    prefetcher_of(buffer).use(AtOnce())
    return buffer


def queue_of(buffer: BlockingReplayBuffer) -> list[tuple[list[int], HoldState]]:
    """Return the slots and the states of all prefetched batches, oldest first."""
    holds = [hold for hold in ledger_of(buffer).holds() if hold.kind is Kind.PREFETCHED]
    return [(hold.slots, hold.state) for hold in holds]


def pool_threads() -> list[threading.Thread]:
    """Return the threads of all pools."""
    return [thread for thread in threading.enumerate() if thread.name == "forebay-prefetch"]


def await_no_pool_threads() -> None:
    """Wait until the threads of all pools have ended, which each does by itself."""
    give_up = time.monotonic() + PATIENCE
    for thread in pool_threads():
        thread.join(max(0.0, give_up - time.monotonic()))
    assert pool_threads() == []
