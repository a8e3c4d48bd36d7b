"""Records the history of a real run: threads, the library as it is shipped, real time.

Nothing is steered. Each thread calls the public methods of one buffer as its seed says, with a
number taken from one counter before each call and after each return. The run ends by being closed:
nobody stops before that, so whoever waits is served, refused or told of the mutual wait, and a run
that does not end hangs by the library's fault. How long to wait for that is the only time in here.
"""

import itertools
import logging
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from forebay import BlockingReplayBuffer, CancelToken
from tensordict import TensorDict

from forebay_models.adapters.records import storage_of
from forebay_models.device.prompt import aside, device_storage
from forebay_models.linear.actor import Actor
from forebay_models.linear.history import History
from forebay_models.linear.outsider import Outsider
from forebay_models.linear.recorder import Recorder
from forebay_models.linear.slow import SlowStorage
from forebay_models.linear.workload import CAST, OUTSIDER, Workload

PATIENCE: Final = 20.0
"""Seconds after which a run that has not ended is said to hang; it takes a tenth of one."""
FREEING: Final = 5.0
"""Seconds for the threads of a hanging run to end once it is stopped."""
SWITCH: Final = 1e-5
"""Seconds after which the interpreter lets another thread run."""
_POLL: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A run.

    Attributes:
        history: what was called, and what came of it.
        hang: if the run did not end, what the buffer said of itself then.
        deaths: for each actor that an error ended its name and the traceback. What it would have
            done is missing in the history.
    """

    history: History
    hang: str = ""
    deaths: tuple[str, ...] = ()


def record(plan: Workload, patience: float = PATIENCE) -> Recording:
    """Run a workload and return what happened; `patience` is in seconds."""
    return Run(plan).record(patience)


class Run:
    """One run: the buffer, the threads, and what they have in common."""

    def __init__(self, plan: Workload) -> None:
        self.plan = plan
        self.recorder = Recorder()
        self.numbers = itertools.count(1)  # of records, never the same twice
        on_device = device_storage(plan.storage, plan.capacity, plan.seed)
        self._storage = on_device or storage_of(plan.storage, plan.capacity)
        self.buffer = BlockingReplayBuffer(
            SlowStorage(self._storage, plan.choices("storage")),
            consume_after_n_samples=plan.uses,
            order=plan.order,
            transform=self._transform,
            seed=plan.seed,
            stall_warning=None,
        )
        self.actors = [Actor(self, name, role) for name, role in CAST]
        self._outsider = Outsider(self.recorder, self.buffer)
        self._here = threading.local()
        self._given_up = threading.Event()
        self._deaths: list[str] = []

    def record(self, patience: float) -> Recording:
        """Run all threads to their end, or till patience is lost."""
        work: dict[str, Callable[[], None]] = {
            actor.name: partial(self._work, actor) for actor in self.actors
        }
        work[OUTSIDER] = self._steer
        threads = [
            threading.Thread(target=self._live, args=(name, do), name=name, daemon=True)
            for name, do in work.items()
        ]
        with pressure():
            for thread in threads:
                thread.start()
            ended = join(threads, patience)
        history, deaths = self._history(), tuple(self._deaths)
        hang = "" if ended else self.buffer.describe()
        if not ended:
            self._free(threads)
        return Recording(history=history, hang=hang, deaths=deaths)

    def _live(self, name: str, do: Callable[[], None]) -> None:
        """Do a thread's work; if an error ends it, keep that and let the run end soon."""
        try:
            do()
        except BaseException:
            self._deaths.append(f"{name}: {traceback.format_exc().rstrip()}")
            self._given_up.set()

    def _free(self, threads: Sequence[threading.Thread]) -> None:
        """Let the threads of a run that hangs end, if anything can."""
        self._given_up.set()
        self.buffer.shutdown(immediate=True)
        for actor in self.actors:
            for _, token in list(actor.tokens):
                token.set()
        join(threads, FREEING)

    def _history(self) -> History:
        return History(self.plan.setting(), self.recorder.operations())

    def new_token(self, name: str) -> CancelToken:
        """Return a new token."""
        return self.buffer.cancel_token()

    def _work(self, actor: Actor) -> None:
        self._here.actor = actor
        with aside(self._storage):
            actor.work()

    def _transform(self, batch: TensorDict) -> object:
        actor: Actor = self._here.actor
        actor.see(batch)
        return batch

    def _steer(self) -> None:
        """Interfere now and then, and close the buffer in the end, come what may."""
        choice = self.plan.choices(OUTSIDER)
        try:
            self._interfere(choice)
        finally:
            self._end(choice)

    def _interfere(self, choice: random.Random) -> None:
        """Set tokens, look and empty until there are enough operations."""
        while self.recorder.count < self.plan.operations and not self._given_up.is_set():
            if self.recorder.completed.acquire(timeout=_POLL) and choice.random() < 0.2:
                what = choice.choice(("cancel", "cancel", "cancel", "len", "len", "empty"))
                if what == "cancel":
                    self._cancel(choice)
                elif what == "len":
                    self._outsider.look()
                else:
                    self._outsider.empty()

    def _end(self, choice: random.Random) -> None:
        """Close the buffer, at once or by and by."""
        drains = choice.random() < 0.8
        if drains:
            self._outsider.close("draining")
            self._outsider.look()
        if not drains or choice.random() < 0.3:
            self._outsider.close("stopped")
            self._outsider.close("draining")

    def _cancel(self, choice: random.Random) -> None:
        """Set a token, of a call that is under way if there is one that has a token."""
        calling = [actor.calls_with for actor in self.actors if actor.calls_with is not None]
        if not calling:
            calling = [actor.tokens[-1] for actor in self.actors if actor.tokens]
        if calling:
            self._outsider.cancel(*choice.choice(calling))


@contextmanager
def pressure() -> Iterator[None]:
    """Let threads take turns far more often than usual, and keep the buffer's advice quiet.

    The advice is about sizes that can come to wait for each other, which these are meant to do.
    """
    logger = logging.getLogger("forebay")
    level, interval = logger.level, sys.getswitchinterval()
    logger.setLevel(logging.ERROR)
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        logger.setLevel(level)


def join(threads: Sequence[threading.Thread], patience: float) -> bool:
    """Wait for threads to end, in all for so many seconds; tell whether all did."""
    end = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
