"""One actor of a recorded run: it calls the public methods of the buffer, as its seed says.

Whether it is a thread or a process is its scene's matter.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import torch
from forebay import BlockingReplayBuffer, CancelToken, Lease
from tensordict import TensorDict

from forebay_models.adapters.records import batch_of, numbers_in
from forebay_models.linear.history import Operation, Waits
from forebay_models.linear.recorder import Taking, TransformFailed
from forebay_models.linear.workload import MOST, Ask, Role, Workload, next_ask

NamedToken = tuple[str, CancelToken]


class Scene(Protocol):
    """What the actors of a run have in common."""

    @property
    def plan(self) -> Workload:
        """The buffer and the seed."""

    @property
    def recorder(self) -> Taking:
        """Takes down what they do."""

    @property
    def numbers(self) -> Iterator[int]:
        """Numbers for records, never the same twice."""

    @property
    def buffer(self) -> BlockingReplayBuffer:
        """The buffer."""

    def new_token(self, name: str) -> CancelToken | None:
        """Return a token of that name, or None if there is none left."""


class Actor:
    """Somebody who writes, reads or takes leases until it is told that the buffer is closed.

    Attributes:
        seen: the records that the transform saw in the call that is under way.
        raises: whether the transform is to raise in it.
        tokens: the cancel tokens that it was given, the newest last.
        calls_with: the token of the call that is under way, if it has one.
    """

    def __init__(self, run: Scene, name: str, role: Role) -> None:
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

    def see(self, batch: object) -> None:
        """Note which records the call under way gets, and raise if its transform is to."""
        self.seen = numbers_in(self._run.plan.storage, batch)
        if self.raises:
            raise TransformFailed

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
            elif self.read(ask) == "shut down":
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

    def read(self, ask: Ask) -> str:
        """Sample or take a lease, and return how it ended."""
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
        self._run.recorder.perform(op, lease.commit if commits else lease.release, as_it_is)

    def _token(self, ask: Ask) -> tuple[str, CancelToken | None]:
        """Return the token for a call, and its name: a new one when the last is set, mostly."""
        self.calls_with = None
        if not ask.token:
            return "", None
        if not self.tokens or (self.tokens[-1][1].is_set() and self._choice.random() < 0.7):
            name = f"{self.name}.{len(self.tokens) + 1}"
            token = self._run.new_token(name)
            if token is not None:
                self.tokens.append((name, token))
        self.calls_with = self.tokens[-1]
        return self.calls_with


def as_it_is(op: Operation, nothing: None) -> Operation:
    """Add nothing to an operation that returns nothing."""
    return op


def _waits(ask: Ask) -> Waits:
    if ask.timeout is None:
        return "for ever"
    return "some time" if ask.timeout else "not at all"


def _tuple(slots: torch.Tensor) -> tuple[int, ...]:
    return tuple(slots.tolist())
