"""One life of a run: a buffer is made or restored, goes through steps, and may be saved.

The original and its twins are lives of the same steps. A life keeps all that can be seen of each
step, and an account of every record, so that the judge needs nothing of the buffer itself. It can
be sent to another process and so can what it has come to.
"""

import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from forebay import BlockingReplayBuffer, Lease, ListStorage, SharedStorage, TensorStorage
from forebay._batches import HoldState

from forebay_models.campaign.quiet import quiet_library
from forebay_models.mutants.resumes import planted_in_resumes
from forebay_models.targets import StorageKind
from forebay_models.twins.program import Recipe, Step, Way, appended
from forebay_models.twins.schemas import TRANSFORMS, example, numbers_of, records
from forebay_models.twins.seen import seen

PATIENCE: Final = 30.0
"""Seconds for something of a buffer to settle."""

ELSEWHERE: Final = 10_000_000
"""The first number of the records that a buffer has which is used before it becomes a twin."""

OF_A_STEP: Final = 10
"""Numbers of records that each step has for itself."""


class Account(NamedTuple):
    """What has become of the records, by their numbers.

    Attributes:
        written: all of them.
        given: how often each was given to a reader for good.
        gone: those that were dropped.
    """

    written: frozenset[int]
    given: dict[int, int]
    gone: frozenset[int]


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
    """

    account: Account
    exact: bool
    ahead: int
    appended: tuple[str, ...]


START: Final = Mark(Account(frozenset(), {}, frozenset()), True, 0, ())
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
        drained: how often each record was taken out of one that was to be drained.
    """

    steps: dict[int, Seen]
    marks: list[Mark]
    state: object
    saved: Saved | None
    drained: dict[int, int]


def live(life: Life) -> Lived:
    """Live through a life."""
    with quiet_library(), planted_in_resumes(life.fault), _being(life) as being:
        if life.drains:
            return Lived({}, [], None, None, being.drain())
        steps, marks = {}, []
        saved = None
        for place, (first, segment) in enumerate(life.segments):
            for number, step in enumerate(segment, first):
                steps[number] = being.take(number, step)
            marks.append(being.mark())
            if life.save is not None and life.save[1] == place:
                saved = being.save(life.save[0], life.directory)
        return Lived(steps, marks, being.state(), saved, {})


@contextmanager
def _being(life: Life) -> Iterator["Being"]:
    being = Being(life)
    try:
        yield being
    finally:
        being.end()


class Being:
    """A buffer and its only user."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._leases: list[tuple[Lease[Any], list[int]]] = []
        self._void: list[Lease[Any]] = []
        self._appended = list(life.mark.appended)
        account = life.mark.account
        self._written, self._gone = set(account.written), set(account.gone)
        self._given = Counter(account.given)
        saved = life.saved
        content = pickle.loads(saved.content) if saved and saved.way == "pickle" else None
        if isinstance(content, BlockingReplayBuffer):
            self._buffer = content
            return
        self._buffer = self._make()
        if life.used:
            self._use()
        if saved is not None and saved.way == "dumps":
            self._buffer.loads(saved.content, timeout=PATIENCE)
        elif saved is not None:
            state = saved.content if content is None else content
            self._buffer.load_state_dict(state, timeout=PATIENCE)

    def take(self, number: int, step: Step) -> Seen:
        """Take a step; what is drawn ahead settles before and after."""
        self._settle()
        try:
            outcome = self._act(number, step)
        except (TimeoutError, RuntimeError, ValueError, ArithmeticError) as error:
            outcome = (type(error).__name__, None)
        self._settle()
        return Seen(outcome, dict(self._buffer.stats()))

    def mark(self) -> Mark:
        """Return where this life is."""
        self._settle()
        account = Account(frozenset(self._written), dict(self._given), frozenset(self._gone))
        exact = not self._leases and not self._failed()
        return Mark(account, exact, self._buffer.stats().prefetched, tuple(self._appended))

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
        return seen(state)

    def drain(self) -> dict[int, int]:
        """Take everything out, in batches and where these raise one by one; count the records."""
        recipe, found = self._life.recipe, Counter[int]()
        left = 3 * recipe.capacity * recipe.uses + 2 * recipe.prefetch
        while left:
            left -= 1
            took: list[int] = []
            for size in (recipe.batch_size, 1):
                try:
                    batch = self._buffer.sample(size, at_least=1, timeout=0)
                except (TimeoutError, ArithmeticError):
                    self._settle()
                    continue
                took += numbers_of(batch)
            if not took and not self._buffer.stats().prefetched:
                return dict(found)
            found.update(took)
        raise RuntimeError(f"the buffer is not empty after it gave {sum(found.values())} records")

    def end(self) -> None:
        """Give back what is held, and let the buffer's threads end."""
        for lease, _ in self._leases:
            if lease.active:
                lease.release()
        self._buffer.shutdown(immediate=True)

    def _make(self) -> BlockingReplayBuffer:
        recipe, capacity = self._life.recipe, self._life.recipe.capacity
        storage: TensorStorage | ListStorage | SharedStorage
        if self._life.storage == "shared":
            storage = SharedStorage(capacity, example=example(recipe.schema))
        else:
            storage = (TensorStorage if self._life.storage == "tensor" else ListStorage)(capacity)
        buffer = BlockingReplayBuffer(
            storage,
            batch_size=recipe.batch_size,
            consume_after_n_samples=recipe.uses,
            order=recipe.order,
            prefetch=recipe.prefetch,
            transform=TRANSFORMS[recipe.transform]() if recipe.transform else None,
            seed=recipe.seed if self._life.saved is None else recipe.seed + 1,
        )
        for name in self._life.mark.appended:
            buffer.append_transform(TRANSFORMS[name]())
        return buffer

    def _use(self) -> None:
        """Leave records, a use, a lease that a restore makes void, and batches drawn ahead."""
        recipe = self._life.recipe
        self._buffer.extend(records(recipe.schema, ELSEWHERE, recipe.capacity), timeout=0)
        with suppress(TimeoutError, RuntimeError, ArithmeticError):  # whatever that comes to
            self._buffer.sample(1, timeout=0)
            self._void.append(self._buffer.lease(1, timeout=0))
            self._buffer.sample(timeout=0)

    def _act(self, number: int, step: Step) -> tuple[str, object]:
        buffer, size = self._buffer, step.size
        match step.kind:
            case "extend":
                batch = records(self._life.recipe.schema, number * OF_A_STEP, size)
                numbers = numbers_of(batch)
                index = buffer.extend(batch, timeout=0)
                self._written.update(numbers)
                return "written", index.tolist()
            case "batch":
                return self._sample(None, None)
            case "sample":
                return self._sample(size, None)
            case "at_least":
                return self._sample(size, 1)
            case "lease":
                lease = buffer.lease(size, at_least=1, timeout=0)
                self._leases.append((lease, numbers_of(lease.batch)))
                return "leased", [lease.index.tolist(), seen(lease.batch)]
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

    def _sample(self, size: int | None, least: int | None) -> tuple[str, object]:
        batch, info = self._buffer.sample(size, True, at_least=least, timeout=0)
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

    def _failed(self) -> bool:
        """Tell whether a batch has failed that was drawn ahead."""
        prefetcher, batches = self._buffer._prefetcher, self._buffer._core.ledger.batches
        if prefetcher is None:
            return False
        rows = [row for row, _ in prefetcher.settled_queue()]
        return any(batches.state(row) is HoldState.FAILED for row in rows)
