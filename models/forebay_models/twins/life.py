"""One life of a run: a buffer is made or restored, goes through steps, and may be saved.

The original and its twins are lives of the same steps. A life keeps all that can be seen of each
step, and an account of every record, so that the judge needs nothing of the buffer itself. It can
be sent to another process and so can what it has come to.

A snapshot counts what somebody holds as returned. In a buffer that overwrites that can be done as
well: all leases are released behind each save, and both go on exactly alike even so.
"""

import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from forebay import BlockingReplayBuffer, Lease, ReplayBuffer
from forebay._calls import NUMBER

from forebay_models.campaign.quiet import quiet_library
from forebay_models.device.prompt import aside, awaited, put_in
from forebay_models.mutants.resumes import planted_in_resumes
from forebay_models.targets import StorageKind
from forebay_models.twins.account import Account, Drained
from forebay_models.twins.buffers import Buffer, made, use
from forebay_models.twins.inside import (
    ahead_of,
    epoch_of,
    has_failed,
    left_after_returns,
    ring_of,
)
from forebay_models.twins.program import Recipe, Step, Way, appended
from forebay_models.twins.schemas import TRANSFORMS, numbers_of, records
from forebay_models.twins.seen import seen

PATIENCE: Final = 30.0
"""Seconds for something of a buffer to settle."""

OF_A_STEP: Final = 10
"""Numbers of records that each step has for itself."""

OF_THE_DEVICE: Final = 3
"""Each step of so many writes what is on the device already, if the records are on one."""

MOST_DRAWN: Final = 600
"""How often an overwriting buffer is sampled at most until it has given all that it has."""


class Saved(NamedTuple):
    """A saved buffer: a state, a pickle of one or of a buffer, or a directory."""

    way: Way
    content: Any


class Seen(NamedTuple):
    """What can be seen of one step: its outcome, and the counters afterwards."""

    outcome: tuple[str, object]
    stats: dict[str, int | float]


class Mark(NamedTuple):
    """Where a life was at the end of a segment.

    Attributes:
        account: of its records.
        exact: whether a buffer that is restored from here is to go on exactly like this one.
        ahead: how many batches were drawn ahead.
        appended: the transforms that were appended.
        leases: how many were open.
        evicted: how many records had been overwritten.
        midway: whether some records of the epoch were left and some were not.
    """

    account: Account
    exact: bool = True
    ahead: int = 0
    appended: tuple[str, ...] = ()
    leases: int = 0
    evicted: int = 0
    midway: bool = False


START: Final = Mark(Account(*(frozenset(), {}, frozenset()), ahead=frozenset(), left=frozenset()))
"""Where an original is before its first step."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """What a life is to be.

    Attributes:
        recipe: how the original was made.
        storage: where the records are.
        saved: what it comes from; None for the original.
        used: whether it was used for something else before it was restored.
        mark: where the life was that was saved.
        segments: the steps, each segment with the number of its first step.
        save: how and behind which segment to save; None for not at all.
        drains: take everything out instead of the steps.
        fault: the name of a planted fault, or nothing.
        directory: where a dump goes.
    """

    recipe: Recipe
    storage: StorageKind
    saved: Saved | None = None
    used: bool = False
    mark: Mark = START
    segments: tuple[tuple[int, tuple[Step, ...]], ...] = ()
    save: tuple[Way, int] | None = None
    drains: bool = False
    fault: str = ""
    directory: str = ""


@dataclass(frozen=True)
class Lived:
    """What a life has come to.

    Attributes:
        steps: what was seen, by the number of the step.
        marks: the ends of its segments.
        state: what could be seen of its state in the end.
        saved: what it was asked to save.
        drained: what one gave that was to be drained.
        epochs: how many began during its steps.
    """

    steps: dict[int, Seen]
    marks: list[Mark]
    state: object
    saved: Saved | None
    drained: Drained | None
    epochs: int


def live(life: Life) -> Lived:
    """Live through a life."""
    with quiet_library(), planted_in_resumes(life.fault), _being(life) as being:
        if life.drains:
            return Lived({}, [], None, None, being.drain(), 0)
        steps, marks = {}, []
        saved = None
        for place, (first, segment) in enumerate(life.segments):
            for number, step in enumerate(segment, first):
                steps[number] = being.take(number, step)
            marks.append(being.mark())
            if life.save is not None and life.save[1] == place:
                saved = being.save(life.save[0], life.directory)
            if place < len(life.segments) - 1:
                being.go_on()
        return Lived(steps, marks, being.state(), saved, None, being.epochs)


@contextmanager
def _being(life: Life) -> Iterator["Being"]:
    being = Being(life)
    try:
        yield being
    finally:
        being.end()


class Being:
    """A buffer and its only user.

    Attributes:
        epochs: how many have begun during its steps.
    """

    def __init__(self, life: Life) -> None:
        self.epochs = 0
        self._life = life
        self._leases: list[tuple[Lease[Any], list[int]]] = []
        self._void: list[Lease[Any]] = []
        self._appended = list(life.mark.appended)
        account = life.mark.account
        self._written, self._gone = set(account.written), set(account.gone)
        self._there = sorted(account.there)
        self._given = Counter(account.given)
        self._buffer = self._begun(life)
        self._epoch = epoch_of(self._buffer)

    def _begun(self, life: Life) -> Buffer:
        """Return the buffer that a life begins with."""
        saved, recipe = life.saved, life.recipe
        content = pickle.loads(saved.content) if saved and saved.way == "pickle" else None
        if isinstance(content, BlockingReplayBuffer | ReplayBuffer):
            return content
        seed = recipe.seed if saved is None else recipe.seed + 1
        buffer = made(recipe, life.storage, seed, life.mark.appended)
        if life.used:
            self._void = use(buffer, recipe)
        if saved is not None and saved.way == "dumps":
            buffer.loads(saved.content, timeout=PATIENCE)
        elif saved is not None:
            state = saved.content if content is None else content
            buffer.load_state_dict(state, timeout=PATIENCE)
        return buffer

    def take(self, number: int, step: Step) -> Seen:
        """Take a step, on a device on two streams in turns; what is drawn ahead settles first."""
        self._settle()
        try:
            with aside(self._buffer.storage) if number % 2 else nullcontext():
                outcome = self._act(number, step)
        except (TimeoutError, RuntimeError, ValueError, ArithmeticError) as error:
            outcome = (type(error).__name__, None)
        self._settle()
        epoch = epoch_of(self._buffer)
        self.epochs += epoch != self._epoch
        self._epoch = epoch
        return Seen(outcome, dict(self._buffer.stats()))

    def mark(self) -> Mark:
        """Return where this life is."""
        self._settle()
        stats, recipe, ring = self._buffer.stats(), self._life.recipe, ring_of(self._buffer)
        ahead = ahead_of(self._buffer)
        return Mark(
            Account(
                frozenset(self._written),
                dict(self._given),
                frozenset(self._gone),
                frozenset(number for batch in ahead.values() for number in batch),
                frozenset() if ring is None else left_after_returns(ring, ahead),
            ),
            exact=not has_failed(self._buffer) and (recipe.overwrites or not self._leases),
            ahead=stats.prefetched,
            appended=tuple(self._appended),
            leases=len(self._leases),
            evicted=stats.evicted,
            midway=ring is not None and 0 < len(ring.left()) < len(self._buffer),
        )

    def go_on(self) -> None:
        """Go on behind a save: in a buffer that overwrites, release all leases in draw order."""
        if self._life.recipe.overwrites:
            for lease, _ in sorted(self._leases, key=lambda held: held[0]._call.places[NUMBER]):
                lease.release()
            self._leases.clear()

    def save(self, way: Way, directory: str) -> Saved:
        """Save the buffer."""
        if way == "dumps":
            path = tempfile.mkdtemp(dir=directory)
            self._buffer.dumps(path)
            return Saved(way, path)
        if way == "state_dict":
            return Saved(way, self._buffer.state_dict())
        content = self._buffer.state_dict() if self._buffer.shared else self._buffer
        return Saved(way, pickle.dumps(content))

    def state(self) -> object:
        """Return what can be seen of the state, which includes what no reader sees."""
        self._settle()
        state = self._buffer.state_dict()
        if not len(state["records"]["slots"]):
            # Whether there ever was a record is seen here and nowhere else.
            state["records"]["data"] = None
        for batch in state["prefetched"]["batches"]:
            batch.pop("elsewhere", None)  # which storages of one program differ in
        return seen(state)

    def drain(self) -> Drained:
        """Take everything out and count the records.

        From a buffer that overwrites everything can be taken ever again: so there until each record
        was given once, and behind what was drawn ahead.
        """
        recipe, found = self._life.recipe, Counter[int]()
        ring = ring_of(self._buffer)
        if ring is not None:
            left, due = frozenset(ring.left()), self._life.mark.account.there
            for drawn in range(MOST_DRAWN):
                if drawn > recipe.prefetch and found.keys() >= due:
                    break
                found.update(self._some())
            return Drained(dict(found), left)
        for _ in range(3 * recipe.capacity * recipe.uses + 2 * recipe.prefetch):
            took = self._some()
            if not took and not self._buffer.stats().prefetched:
                return Drained(dict(found), frozenset())
            found.update(took)
        raise RuntimeError(f"the buffer is not empty after it gave {sum(found.values())} records")

    def _some(self) -> list[int]:
        """Sample a batch, then one record, which no transform refuses; return what was given."""
        took: list[int] = []
        for size in (self._life.recipe.batch_size, 1):
            try:
                batch = self._buffer.sample(size, at_least=1, timeout=0)
            except (TimeoutError, ArithmeticError):
                self._settle()
                continue
            took += numbers_of(awaited(self._buffer.storage, batch))
        return took

    def end(self) -> None:
        """Give back what is held, and let the buffer's threads end."""
        for lease, _ in self._leases:
            if lease.active:
                lease.release()
        self._buffer.shutdown(immediate=True)

    def _act(self, number: int, step: Step) -> tuple[str, object]:
        buffer, size = self._buffer, step.size
        match step.kind:
            case "extend":
                batch = records(self._life.recipe.schema, number * OF_A_STEP, size)
                numbers = numbers_of(batch)
                if number % OF_THE_DEVICE == 0:
                    batch = put_in(buffer.storage, batch)
                index = buffer.extend(batch, timeout=0)
                self._write(numbers)
                return "written", index.tolist()
            case "batch":
                return self._sample(None, None)
            case "sample":
                return self._sample(size, None)
            case "at_least":
                return self._sample(size, 1)
            case "lease":
                lease = buffer.lease(size, at_least=1, timeout=0)
                batch = awaited(buffer.storage, lease.batch)
                self._leases.append((lease, numbers_of(batch)))
                return "leased", [lease.index.tolist(), seen(batch)]
            case "commit" | "release":
                return self._end_lease(step.kind)
            case "append":
                name = appended(step)
                buffer.append_transform(TRANSFORMS[name]())
                self._appended.append(name)
                return "appended", name
            case "empty":
                buffer.empty()
                self._gone |= self._written
                self._there.clear()
                return "emptied", None
            case "close":
                buffer.shutdown()
                return "closed", None
            case "can_extend":
                return "can", buffer.can_extend(size)
            case "can_sample":
                return "can", buffer.can_sample(min(size, buffer.capacity))
            case "look":
                return "looked", [len(buffer), buffer.write_count]
        raise LookupError(f"no step is called {step.kind}")

    def _write(self, numbers: list[int]) -> None:
        """Keep account of records that were written, and of those that they have overwritten."""
        self._written.update(numbers)
        if self._life.recipe.overwrites:
            there = self._there + numbers
            self._gone.update(there[: -self._life.recipe.capacity])
            self._there = there[-self._life.recipe.capacity :]

    def _sample(self, size: int | None, least: int | None) -> tuple[str, object]:
        batch, info = self._buffer.sample(size, True, at_least=least, timeout=0)
        awaited(self._buffer.storage, batch)
        self._given.update(numbers_of(batch))
        return "sampled", [info["index"].tolist(), seen(batch)]

    def _end_lease(self, kind: str) -> tuple[str, object]:
        if not self._leases:
            return "nothing leased", None
        lease, numbers = self._leases.pop(0)
        if kind == "release":
            lease.release()
            return "released", None
        lease.commit()
        self._given.update(numbers)
        return "committed", None

    def _settle(self) -> None:
        """Wait until nothing is being gathered, so that it does not matter how fast that goes."""
        prefetcher = self._buffer._prefetcher
        if prefetcher is not None and not prefetcher.wait_settled(time.monotonic() + PATIENCE):
            raise RuntimeError(f"after {PATIENCE:g} s a batch still gathers")
