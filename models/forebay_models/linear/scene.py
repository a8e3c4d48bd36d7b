"""What the processes of a recorded run do: the actors, and the outsider who steers and looks.

Each is forked off with the buffer, so a fault that was planted before is in all of them.
"""

import itertools
import os
import random
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from forebay import BlockingReplayBuffer, CancelToken, _shared_core, _shared_peers
from tensordict import TensorDict

from forebay_models.adapters.records import storage_of
from forebay_models.linear.actor import Actor
from forebay_models.linear.outsider import Outsider
from forebay_models.linear.slow import LONG_PAUSES, SlowStorage
from forebay_models.linear.wire import LineRecorder
from forebay_models.linear.workload import OUTSIDER, PROCESSES, Ask, Workload

PATIENCE: Final = 20.0
"""Seconds after which a run that has not ended is said to hang; it takes a hundredth of that."""
LOOK: Final = 0.01
"""Seconds between two looks for the dead, and of a sleep at most: a run is over in less time than
usually passes between two."""
BUFFER: Final = "the buffer"
FINISH: Final = "finish"
_TOKENS: Final = 4


@contextmanager
def looking_often() -> Iterator[None]:
    """Let the dead be looked for so often that it comes in the midst of what the others do."""
    with patch.object(_shared_peers, "LOOK", LOOK), patch.object(_shared_core, "NAP", LOOK):
        yield


class Here:
    """The actor of this process, once there is one; the buffer's transform is of that actor.

    The parent has none, so its buffer is in no cycle and goes with the run.
    """

    actor: Actor | None = None

    def reader(self) -> Actor:
        """Return the actor; only actors read."""
        assert self.actor is not None, "this process has no actor"
        return self.actor

    def see(self, batch: TensorDict) -> object:
        """Let the actor see what it is about to get."""
        self.reader().see(batch)
        return batch


class SharedScene:
    """A shared buffer and its cancel tokens; after a fork, a process that takes part.

    Args:
        plan: the buffer and the seed.
        pipe: the end of the pipe that the processes write their lines to.
    """

    def __init__(self, plan: Workload, pipe: int) -> None:
        self.plan = plan
        self.recorder = LineRecorder(pipe)
        self.numbers: Iterator[int] = itertools.count(1)
        self._pauses = random.Random()
        self._here = Here()
        self.buffer = BlockingReplayBuffer(
            SlowStorage(storage_of(plan.storage, plan.capacity), self._pauses, LONG_PAUSES),
            consume_after_n_samples=plan.uses,
            order=plan.order,
            transform=self._here.see,
            seed=plan.seed,
            stall_warning=None,
        )
        self._tokens = {
            f"{name}.{number}": self.buffer.cancel_token()
            for name, _ in PROCESSES
            for number in range(1, _TOKENS + 1)
        }

    def new_token(self, name: str) -> CancelToken | None:
        """Return the token of that name, which was made before the processes were started."""
        return self._tokens.get(name)

    def act(self, place: int) -> None:
        """Be the actor in this place, until the buffer is closed."""
        name, role = PROCESSES[place]
        self.numbers = itertools.count(1 + place, len(PROCESSES))
        self._here.actor = actor = Actor(self, name, role)
        self._live(name, actor.work)

    def serve(self, orders: int) -> None:
        """Be the outsider, who does as it is told through a pipe."""
        self._here.actor = Actor(self, OUTSIDER, "reader")
        self._live(OUTSIDER, lambda: self._obey(orders))

    def describe(self) -> None:
        """Tell what the buffer says of itself."""
        self._live(BUFFER, lambda: self.recorder.say(BUFFER, self.buffer.describe()))

    def _live(self, name: str, do: Callable[[], None]) -> None:
        """Do a process's work; if an error ends it, tell that."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever has started it ends it
        self._pauses.seed(f"{self.plan.seed} storage {name}")
        try:
            do()
        except BaseException:
            self.recorder.say(name, traceback.format_exc().rstrip())

    def _obey(self, orders: int) -> None:
        outsider = Outsider(self.recorder, self.buffer)
        with os.fdopen(orders, encoding="ascii") as lines:
            for line in lines:
                match line.split():
                    case ["cancel", name]:
                        outsider.cancel(name, self._tokens[name])
                    case ["len"]:
                        outsider.look()
                    case ["empty"]:
                        outsider.empty()
                    case [("draining" | "stopped") as mode]:
                        outsider.close(mode)
                    case ["finish"]:
                        self._finish(outsider)
                        return

    def _finish(self, outsider: Outsider) -> None:
        """When all others are gone, find out what is left: what the dead had is there again."""
        outsider.recover()
        outsider.look()
        capacity, uses = self.plan.capacity, self.plan.uses
        rest = Ask("sample", capacity, capacity, timeout=PATIENCE)
        for _ in range(capacity * uses + 1):
            if self._here.reader().read(rest) != "done":
                break
        outsider.look()
