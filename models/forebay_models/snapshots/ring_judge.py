"""Is a snapshot of an overwriting buffer one that there can be?

Beside what is judged of every buffer, its state and its counters and that each record is whole:

- The records of a writer have ages in the order in which it wrote them, and those of one batch
  follow each other: what is missing of a batch was overwritten.
- No more was overwritten than there was need for: but for what is being filled all slots are full.
- The oldest were overwritten: after as many writes as there are slots nothing is there of before
  but what may have been gathered meanwhile.
- A batch that was drawn ahead has records that were written. Where it remembers the age of one,
  that record is there, is not left of the epoch, and was drawn by no other batch; where it does
  not, the record is gone or its epoch has ended, as have those of all batches before.
- A record that nobody was given, and that is not drawn ahead in this epoch, is left of it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from forebay._stores import Ints

from forebay_models.snapshots.judge import Judge
from forebay_models.snapshots.records import SPREAD, identities
from forebay_models.snapshots.round import Evidence, Snapshot
from forebay_models.snapshots.setting import Setting


class Ahead(NamedTuple):
    """A batch that was drawn ahead: of each record its slot, the age remembered and which it is."""

    slots: list[int]
    ages: list[int]
    records: list[int]


class RingJudge(Judge):
    """Looks at the snapshots of one round of a buffer that overwrites.

    Attributes:
        renewed: how many snapshots there were that had to have none but new records.
    """

    def __init__(self, setting: Setting, evidence: Evidence) -> None:
        super().__init__(setting, evidence)
        self.renewed = 0
        self._last: Snapshot | None = None
        if setting.order == "epochs":
            evidence.wrong += _drawn_twice(evidence)

    def wrong(self, snapshot: Snapshot) -> list[str]:
        found = super().wrong(snapshot)
        self._last = snapshot
        return found

    def _kept(self, snapshot: Snapshot, found: Ints) -> Iterator[str]:
        state = snapshot.state
        yield from self._in_order(found[np.argsort(state["records"]["stamps"].numpy())])
        yield from self._full(state)
        yield from self._new(snapshot, found)
        there = dict(zip(state["records"]["slots"].tolist(), found.tolist(), strict=True))
        ages = dict(zip(there, state["records"]["stamps"].tolist(), strict=True))
        queue = []
        for number, batch in enumerate(state["prefetched"]["batches"]):
            payload, torn = identities(batch["batch"])
            yield from torn
            ahead = Ahead(batch["slots"].tolist(), batch["stamps"].tolist(), payload.tolist())
            queue.append(ahead)
            wrong = [*self._early(snapshot, payload), *self._batch(ahead, there, ages)]
            yield from (f"batch {number} that was drawn ahead: {what}" for what in wrong)
        if self._setting.order == "epochs":
            yield from self._epoch(state, queue, there)

    def _in_order(self, by_age: Ints) -> Iterator[str]:
        """Judge the ages; `by_age` are the records, oldest first."""
        writers, numbers = by_age // SPREAD, by_age % SPREAD
        for place, size in self._sizes.items():
            mine = writers == place
            if (np.diff(numbers[mine]) < 0).any():
                shown = numbers[mine].tolist()
                yield f"records of writer {place} have ages in another order: {shown}"
            batches = np.where(mine, numbers // size, -1)
            begun = np.flatnonzero(mine & (np.diff(batches, prepend=-2) != 0))
            if len(np.unique(batches[begun])) != len(begun):
                yield f"a batch of writer {place} was not written at once, by its ages"

    def _full(self, state: dict[str, Any]) -> Iterator[str]:
        """Judge how much is free: what was never used, and what writers fill; or was dropped."""
        used = len(state["free"]["order"]) - state["free"]["fresh"]
        if used > sum(self._sizes.values()) and not self._setting.empties:
            yield f"{used} slots are free that were used, more than all writers can fill"

    def _new(self, snapshot: Snapshot, found: Ints) -> Iterator[str]:
        """Judge that the oldest were overwritten since the last snapshot, if all could be."""
        last, setting = self._last, self._setting
        most = setting.most_pinned
        if last is None or most >= setting.capacity:
            return
        if setting.surely_written(last.after, snapshot.before) < setting.capacity:
            return
        self.renewed += 1
        old = sum(
            int(((found // SPREAD == place) & (found % SPREAD < last.after[place] * size)).sum())
            for place, size in self._sizes.items()
        )
        if old > most:
            yield f"{old} records were not overwritten though newer ones were; at most {most} may"

    def _batch(self, ahead: Ahead, there: dict[int, int], ages: dict[int, int]) -> Iterator[str]:
        """Judge a batch that was drawn ahead by itself."""
        setting = self._setting
        short = setting.order == "epochs" and not setting.drop_last
        if len(ahead.slots) != setting.batch_size and not short:
            yield f"it has {len(ahead.slots)} records"
        by_slot = dict(zip(ahead.slots, ahead.records, strict=True))
        distinct = len(set(ahead.records))
        if distinct != len(by_slot) or (setting.order == "epochs" and distinct < len(ahead.slots)):
            yield f"it has {distinct} different records in {len(by_slot)} slots"
        remembers = any(ahead.ages)
        for slot, age, record in zip(*ahead, strict=True):
            now = there.get(slot)
            if age and (now != record or ages[slot] != age):
                yield f"it remembers slot {slot} at age {age}, which has another record"
            if remembers and not age and now == record:
                yield f"it has forgotten slot {slot}, which has its record still"
            if now is not None and now // SPREAD == record // SPREAD and now < record:
                yield f"slot {slot} has an older record now"

    def _epoch(
        self, state: dict[str, Any], queue: list[Ahead], there: dict[int, int]
    ) -> Iterator[str]:
        """Judge what is left of the epoch."""
        left = set(state["sampler"]["dense"].tolist())
        drawn = [slot for ahead in queue for slot, age in zip(*ahead[:2], strict=True) if age]
        if len(set(drawn)) != len(drawn) or left & set(drawn):
            yield f"slots {drawn} were drawn ahead in an epoch that has {sorted(left)} left"
        begun = False
        for number, ahead in enumerate(queue):
            begun |= any(ahead.ages)
            ended = not any(ahead.ages) and any(
                there.get(slot) == record for slot, _, record in zip(*ahead, strict=True)
            )
            if begun and ended:
                yield f"batch {number} that was drawn ahead is of an older epoch than others before"
        for slot in sorted(there.keys() - left - set(drawn)):
            place, number = divmod(there[slot], SPREAD)
            if not self._after.of(place, number + 1)[number]:
                yield f"record {number} of writer {place} was given to nobody and is not left"
                return


def judge_of(setting: Setting, evidence: Evidence) -> Judge:
    """Return who judges the snapshots of a round."""
    return RingJudge(setting, evidence) if setting.overwrites else Judge(setting, evidence)


def _drawn_twice(evidence: Evidence) -> list[str]:
    return [
        f"a reader was given a record twice in one batch: {batch.tolist()}"
        for log in evidence.logs.values()
        for batch in log
        if len(np.unique(batch)) != len(batch)
    ]
