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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import torch
from forebay import BlockingReplayBuffer, CancelToken, Lease
from tensordict import TensorDict

from forebay_models.adapters.records import batch_of, numbers_in, storage_of
from forebay_models.linear.history import History, Operation, Setting, Waits
from forebay_models.linear.recorder import Recorder, TransformFailed
from forebay_models.linear.slow import SlowStorage
from forebay_models.linear.workload import CAST, OUTSIDER, Ask, Role, Workload, next_ask

PATIENCE: Final = 20.0
"""Seconds after which a run that has not ended is said to hang; it takes a tenth of one."""
FREEING: Final = 5.0
"""Seconds for the threads of a hanging run to end once it is stopped."""
MOST: Final = 4
"""How many times the wanted number of operations a run makes at most, should closing not end it."""
SWITCH: Final = 1e-5
"""Seconds after which the interpreter lets another thread run."""
_POLL: Final = 0.05

NamedToken = tuple[str, CancelToken]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A run.

    Attributes:
        history: what was called, and what came of it.
        hang: if the run did not end, what the buffer said of itself then.
        deaths: for each thread that an error ended its name and the traceback. What it would have
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
        self.buffer = BlockingReplayBuffer(
            SlowStorage(storage_of(plan.storage, plan.capacity), plan.choices("storage")),
            consume_after_n_samples=plan.uses,
            order=plan.order,
            transform=self._transform,
            seed=plan.seed,
            stall_warning=None,
        )
        self.actors = [Actor(self, name, role) for name, role in CAST]
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
        plan = self.plan
        setting = Setting(
            capacity=plan.capacity, uses=plan.uses, order=plan.order, source=plan.line()
        )
        return History(setting, self.recorder.operations())

    def _work(self, actor: "Actor") -> None:
        self._here.actor = actor
        actor.work()

    def _transform(self, batch: TensorDict) -> object:
        """Note which records the present thread gets, and raise if it is to."""
        actor: Actor = self._here.actor
        actor.seen = numbers_in(self.plan.storage, batch)
        if actor.raises:
            raise TransformFailed
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
                    self._look()
                else:
                    self._empty()

    def _end(self, choice: random.Random) -> None:
        """Close the buffer, at once or by and by."""
        drains = choice.random() < 0.8
        if drains:
            self._close("draining")
            self._look()
        if not drains or choice.random() < 0.3:
            self._close("stopped")
            self._close("draining")

    def _cancel(self, choice: random.Random) -> None:
        """Set a token, of a call that is under way if there is one that has a token."""
        calling = [actor.calls_with for actor in self.actors if actor.calls_with is not None]
        if not calling:
            calling = [actor.tokens[-1] for actor in self.actors if actor.tokens]
        if calling:
            name, token = choice.choice(calling)
            op = Operation(actor=OUTSIDER, kind="cancel", call=0, token=name)
            self.recorder.perform(op, token.set, _as_it_is)

    def _look(self) -> None:
        op = Operation(actor=OUTSIDER, kind="len", call=0)
        self.recorder.perform(
            op, lambda: len(self.buffer), lambda op, length: replace(op, length=length)
        )

    def _empty(self) -> None:
        op = Operation(actor=OUTSIDER, kind="empty", call=0)
        self.recorder.perform(op, self.buffer.empty, _as_it_is)

    def _close(self, mode: Literal["draining", "stopped"]) -> None:
        op = Operation(actor=OUTSIDER, kind="shutdown", call=0, mode=mode)
        close = partial(self.buffer.shutdown, immediate=mode == "stopped")
        self.recorder.perform(op, close, _as_it_is)


class Actor:
    """One thread that writes, reads or takes leases until it is told that the buffer is closed.

    Attributes:
        seen: the records that the transform saw in the call that is under way.
        raises: whether the transform is to raise in it.
        tokens: the cancel tokens that it was given, the newest last.
        calls_with: the token of the call that is under way, if it has one.
    """

    def __init__(self, run: Run, name: str, role: Role) -> None:
        self.name = name
        self.seen: tuple[int, ...] | None = None
        self.raises = False
        self.tokens: list[NamedToken] = []
        self.calls_with: NamedToken | None = None
        self._run = run
        self._role = role
        self._choice = run.plan.choices(name)
        self._leases: list[tuple[int, Lease[TensorDict]]] = []
        self._taken_leases: list[Lease[TensorDict]] = []

    def work(self) -> None:
        """Make calls until one that ends this actor's work is refused; then end all leases."""
        try:
            self._work()
        finally:
            for lease in self._taken_leases:
                if lease.active:  # ending it has failed, or was not come to
                    with suppress(Exception):
                        lease.release()

    def _work(self) -> None:
        run = self._run
        most = MOST * run.plan.operations
        while run.recorder.count < most:
            ask = next_ask(self._choice, self._role, run.plan.capacity, len(self._leases))
            if ask.kind == "settle":
                self._settle()
            elif ask.kind == "extend":
                ended = self._write(ask)
                if ended == "shut down" and self._role == "producer":
                    return
            elif self._read(ask) == "shut down":
                break
        while self._leases:
            self._settle()

    def _write(self, ask: Ask) -> str:
        run = self._run
        numbers = tuple(next(run.numbers) for _ in range(ask.n))
        batch = batch_of(run.plan.storage, numbers)
        name, token = self._token(ask)
        op = Operation(
            actor=self.name,
            kind="extend",
            call=0,
            n=ask.n,
            m=ask.n,
            waits=_waits(ask),
            records=numbers,
            token=name,
        )
        op, _ = run.recorder.perform(
            op,
            lambda: run.buffer.extend(batch, timeout=ask.timeout, cancel_event=token),
            lambda op, slots: replace(op, slots=_tuple(slots)),
        )
        return op.ended

    def _read(self, ask: Ask) -> str:
        run, buffer = self._run, self._run.buffer
        name, token = self._token(ask)
        op = Operation(
            actor=self.name,
            kind="take" if ask.kind == "take" else "sample",
            call=0,
            n=ask.n,
            m=ask.m,
            waits=_waits(ask),
            token=name,
        )
        self.seen, self.raises = None, ask.raises
        if op.kind == "sample":
            op, _ = run.recorder.perform(
                op,
                lambda: buffer.sample(
                    ask.n, True, at_least=ask.m, timeout=ask.timeout, cancel_event=token
                ),
                self._sampled,
                self._saw,
            )
            return op.ended
        taken = run.recorder.perform(
            op,
            lambda: buffer.lease(ask.n, at_least=ask.m, timeout=ask.timeout, cancel_event=token),
            self._taken,
            self._saw,
        )
        op, lease = taken
        if lease is not None:
            self._taken_leases.append(lease)
            if op.ended == "done":
                self._leases.append((op.call, lease))
        return op.ended

    def _saw(self, op: Operation) -> Operation:
        """Add what the transform saw in a read that raised."""
        return replace(op, records=self.seen)

    def _sampled(self, op: Operation, got: tuple[TensorDict, dict[str, torch.Tensor]]) -> Operation:
        batch, info = got
        numbers = numbers_in(self._run.plan.storage, batch)
        return replace(op, records=numbers, slots=_tuple(info["index"]))

    def _taken(self, op: Operation, lease: Lease[TensorDict]) -> Operation:
        numbers = numbers_in(self._run.plan.storage, lease.batch)
        return replace(op, records=numbers, slots=_tuple(lease.index))

    def _settle(self) -> None:
        """Commit or release one of its leases."""
        taken, lease = self._leases.pop(self._choice.randrange(len(self._leases)))
        commits = self._choice.random() < 0.6
        op = Operation(
            actor=self.name, kind="commit" if commits else "release", call=0, lease=taken
        )
        self._run.recorder.perform(op, lease.commit if commits else lease.release, _as_it_is)

    def _token(self, ask: Ask) -> tuple[str, CancelToken | None]:
        """Return the token for a call, and its name: a new one when the last is set, mostly."""
        self.calls_with = None
        if not ask.token:
            return "", None
        if not self.tokens or (self.tokens[-1][1].is_set() and self._choice.random() < 0.7):
            name = f"{self.name}.{len(self.tokens) + 1}"
            self.tokens.append((name, self._run.buffer.cancel_token()))
        self.calls_with = self.tokens[-1]
        return self.calls_with


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


def _as_it_is(op: Operation, nothing: None) -> Operation:
    """Add nothing to an operation that returns nothing."""
    return op


def _waits(ask: Ask) -> Waits:
    if ask.timeout is None:
        return "for ever"
    return "some time" if ask.timeout else "not at all"


def _tuple(slots: torch.Tensor) -> tuple[int, ...]:
    return tuple(slots.tolist())
