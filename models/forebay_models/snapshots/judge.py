"""Is a snapshot one that there can be? Judged by the specification and by what everybody has done.

- CaptureAtomic: as the specification's `Saved` it is a state in which nothing is going on.
- Its counters add up: admitted = there + spent + dropped; each delivery is the use of a record.
- Every record is whole, no two are the same, and somebody has written it.
- Batches are there wholly or not at all: whatever is missing of one was delivered before.
- Each record was delivered as often as the snapshot says: at least as often as readers had it
  before, and at most as often as they had it after.
- What was drawn ahead are the records of the slots that it holds.

What is said of uses is for a buffer that uses its records up; what is judged of one that overwrites
instead is in `forebay_models.snapshots.ring_judge`.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from forebay._stores import Ints
from forebay_spec.boundary import queue_of
from forebay_spec.bounds import Bounds, Request
from forebay_spec.invariants import bounded, capture_atomic, distinct_rows, type_ok, use_bound
from forebay_spec.kernel import Phase
from forebay_spec.state import FREE_SLOT, NOTHING, Saved, Slot, initial

from forebay_models.describe import describe
from forebay_models.snapshots.records import SPREAD, identities
from forebay_models.snapshots.round import Evidence, Snapshot
from forebay_models.snapshots.setting import Setting
from forebay_models.snapshots.work import STOP

_PARTS: Final = {
    "TypeOK": type_ok,
    "Bounded": bounded,
    "UseBound": use_bound,
    "DistinctRows": distinct_rows,
}


def bounds_of(setting: Setting) -> Bounds:
    """Return the constants of the specification for a setting."""
    return Bounds(
        name=f"snapshots {setting.line()}",
        capacity=setting.capacity,
        uses=setting.uses,
        order=setting.order,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1,),
        requests=(Request("plain", 1, 1),),
        drop_last=setting.drop_last,
        prefetch=setting.prefetch,
        batch_size=setting.batch_size,
        features=frozenset({"Capture", "Empty", "Abandon"}),
    )


def saved_of(state: dict[str, Any], capacity: int) -> Saved:
    """Return a state as the specification has it."""
    parts, free, order = state["records"], state["free"], state["buffer"]["order"]
    queue = tuple(
        (tuple(batch["slots"].tolist()), tuple(batch["stamps"].tolist()))
        for batch in state["prefetched"]["batches"]
    )
    pins = [0] * capacity
    for slots, _ in queue:
        for slot in slots:
            pins[slot] += state["buffer"]["kind"] == "blocking"
    every = [FREE_SLOT] * capacity
    rows = zip(*(parts[name].tolist() for name in ("slots", "uses", "stamps")), strict=True)
    for slot, uses, stamp in rows:
        every[slot] = Slot(Phase.LIVE, uses, pins[slot], stamp)
    left = frozenset(state["sampler"]["dense"].tolist()) if order == "epochs" else NOTHING
    return Saved(tuple(every), tuple(free["order"].tolist()), free["fresh"], queue, left)


def left_in(state: dict[str, Any], uses: int) -> tuple[Ints, Ints]:
    """Return the records of a state, and how often each is still to be given."""
    parts = state["records"]
    found, _ = identities(parts["data"] if parts["data"] is not None else [])
    return found, uses - _given(state)


class Judge:
    """Looks at the snapshots of one round, in the order in which they were taken."""

    def __init__(self, setting: Setting, evidence: Evidence) -> None:
        self._setting = setting
        self._evidence = evidence
        self._bounds = bounds_of(setting)
        self._sizes = dict(enumerate(setting.writers, STOP + 1))
        last = evidence.snapshots[-1].after if evidence.snapshots else (0,) * 99
        self._lengths = {place: (last[place] + 2) * size for place, size in self._sizes.items()}
        self._before = _Deliveries(evidence, self._lengths)
        self._after = _Deliveries(evidence, self._lengths)

    def wrong(self, snapshot: Snapshot) -> list[str]:
        """Return what is wrong with the next snapshot."""
        for place in self._evidence.logs:
            self._before.read(place, snapshot.before[place])
            self._after.read(place, snapshot.after[place] + 1)
        return [*self._spec(snapshot.state), *self._counters(snapshot), *self._records(snapshot)]

    def _spec(self, state: dict[str, Any]) -> Iterator[str]:
        saved = saved_of(state, self._setting.capacity)
        start = initial(self._bounds)
        if capture_atomic(self._bounds, start._replace(saved=saved)):
            return
        as_state = start._replace(
            slots=saved.slots,
            free=saved.free,
            fresh=saved.fresh,
            holds=queue_of(saved, self._bounds.processes[0]),
            left=saved.left,
        )
        parts = [name for name, says in _PARTS.items() if not says(self._bounds, as_state)]
        shown = ", ".join(f"{name} = {text}" for name, text in describe(as_state).items())
        yield f"CaptureAtomic does not hold, by {', '.join(parts)}: {shown}"

    def _counters(self, snapshot: Snapshot) -> Iterator[str]:
        counts, live = snapshot.state["counters"], len(snapshot.state["records"]["slots"])
        gone = {name: counts[name] for name in ("spent", "evicted", "dropped")}
        shown = ", ".join(f"{count} {name}" for name, count in gone.items())
        if counts["admitted"] != live + sum(gone.values()):
            yield f"{counts['admitted']} records were admitted; {live} are there; {shown}"
        if counts["spent" if self._setting.overwrites else "evicted"]:
            yield f"records have gone as they cannot: {shown}"
        least, most = self._before.total, self._after.total
        if not least <= counts["delivered"] <= most:
            yield f"{counts['delivered']} records were delivered; readers had {least} to {most}"

    def _records(self, snapshot: Snapshot) -> Iterator[str]:
        """Judge the records: each by itself, how many there are of each writer, and the rest."""
        data = snapshot.state["records"]["data"]
        found, torn = identities(data if data is not None else [])
        yield from torn
        if len(np.unique(found)) != len(found):
            yield "a record is there twice"
        if not set((found // SPREAD).tolist()) <= self._sizes.keys():
            yield "a record is there that nobody has written"
            return
        early = list(self._early(snapshot, found))
        yield from early
        least = sum(self._written(snapshot, place, found) for place in self._sizes)
        most = sum((snapshot.after[place] + 1) * size for place, size in self._sizes.items())
        admitted = snapshot.state["counters"]["admitted"]
        if not least <= admitted <= most:
            yield f"{admitted} records were admitted; writers wrote {least} to {most}"
        if not early:
            yield from self._kept(snapshot, found)

    def _early(self, snapshot: Snapshot, found: Ints) -> Iterator[str]:
        """Tell of records that were not written yet."""
        for place, size in self._sizes.items():
            numbers = found[found // SPREAD == place] % SPREAD
            if (numbers >= (snapshot.after[place] + 1) * size).any():
                yield f"record {numbers.max()} of writer {place} is there before it was written"

    def _written(self, snapshot: Snapshot, place: int, found: Ints) -> int:
        """Return how many records of a writer there must have been: whole batches."""
        size, numbers = self._sizes[place], found[found // SPREAD == place] % SPREAD
        return max(snapshot.before[place] * size, size * (int(numbers.max(initial=-1)) // size + 1))

    def _kept(self, snapshot: Snapshot, found: Ints) -> Iterator[str]:
        """Judge which records are there, and what was drawn ahead."""
        state, setting = snapshot.state, self._setting
        counts, given = state["counters"], _given(state)
        used = int(given.sum()) + setting.uses * counts["spent"]
        most = used + setting.uses * counts["dropped"]
        if not used <= counts["delivered"] <= most:
            yield f"{counts['delivered']} records were delivered; uses are {used} to {most}"
        by_slot = dict(zip(state["records"]["slots"].tolist(), found.tolist(), strict=True))
        queue = [batch["slots"].tolist() for batch in state["prefetched"]["batches"]]
        for number, batch in enumerate(state["prefetched"]["batches"]):
            payload, torn = identities(batch["batch"])
            yield from torn
            if payload.tolist() != [by_slot[slot] for slot in queue[number]]:
                yield f"batch {number} that was drawn ahead is not what its slots have"
        for place in self._sizes:
            mine = found // SPREAD == place
            whole = self._written(snapshot, place, found)
            yield from self._accounts(place, found[mine] % SPREAD, given[mine], whole)
        if setting.in_order:
            yield from self._prefixes(found)
            ahead = [by_slot[slot] for slots in queue for slot in slots]
            yield from self._oldest_first(np.array(ahead, np.int64))

    def _accounts(self, place: int, numbers: Ints, given: Ints, whole: int) -> Iterator[str]:
        """Compare how often each record was delivered; those up to `whole` were written."""
        uses = self._setting.uses
        told = np.full(whole, uses, np.int64)
        told[numbers] = given
        least, most = self._before.of(place, whole), self._after.of(place, whole)
        missing = np.ones(whole, np.bool_)
        missing[numbers] = False
        dropped = missing if self._setting.empties else np.zeros(whole, np.bool_)
        for number in np.flatnonzero((told < least) | ((told > most) & ~dropped))[:1].tolist():
            there = "is missing" if missing[number] else f"was given {told[number]} times"
            yield (
                f"record {number} of writer {place} {there}; readers had it {least[number]} times "
                f"before and {most[number]} times after"
            )

    def _prefixes(self, found: Ints) -> Iterator[str]:
        """Under arrival order with one reader, what is missing was drawn before what is there."""
        for place in self._sizes:
            numbers = np.sort(found[found // SPREAD == place] % SPREAD)
            if len(numbers) and (np.diff(numbers) != 1).any():
                yield f"records of writer {place} are missing between others: {numbers.tolist()}"

    def _oldest_first(self, ahead: Ints) -> Iterator[str]:
        """Under arrival order batches are drawn ahead as they were written."""
        for place in self._sizes:
            numbers = ahead[ahead // SPREAD == place] % SPREAD
            if (np.diff(numbers) < 0).any():
                yield f"records of writer {place} were drawn ahead as {numbers.tolist()}"


class _Deliveries:
    """How often each record was delivered in the first calls of each reader."""

    def __init__(self, evidence: Evidence, lengths: dict[int, int]) -> None:
        self._logs = evidence.logs
        self._read = dict.fromkeys(evidence.logs, 0)
        self._counts = {place: np.zeros(length, np.int64) for place, length in lengths.items()}
        self.total = 0

    def read(self, place: int, calls: int) -> None:
        """Go on to so many calls of a reader."""
        log = self._logs[place]
        for found in log[self._read[place] : calls]:
            self.total += len(found)
            for identity in found.tolist():
                counts = self._counts.get(identity // SPREAD)
                if counts is not None and identity % SPREAD < len(counts):
                    counts[identity % SPREAD] += 1
        self._read[place] = max(self._read[place], min(calls, len(log)))

    def of(self, place: int, length: int) -> Ints:
        """Return the counts of the first records of a writer."""
        counts: Ints = self._counts[place][:length]
        return counts


def _given(state: dict[str, Any]) -> Ints:
    """Return how often each record of a state was given to somebody for good."""
    parts = state["records"]
    slots, uses = parts["slots"].numpy(), parts["uses"].numpy()
    held = [batch["slots"].numpy() for batch in state["prefetched"]["batches"]]
    pins = np.bincount(np.concatenate([slots[:0], *held]), minlength=state["buffer"]["capacity"])
    given: Ints = uses - pins[slots]
    return given
