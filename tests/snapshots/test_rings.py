"""Snapshots of an overwriting buffer, made by hand and spoilt: each way is noticed."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from forebay import ReplayBuffer
from forebay_models.mutants.resumes import planted_in_resumes
from forebay_models.snapshots.records import SPREAD, identities, records
from forebay_models.snapshots.restored import wrong_when_restored
from forebay_models.snapshots.ring_judge import RingJudge, judge_of
from forebay_models.snapshots.round import Evidence, Snapshot
from forebay_models.snapshots.setting import Reader, Setting

from tests.library.queues import AtOnce, prefetcher_of

RING = Setting(
    "epochs",
    1,
    2,
    8,
    2,
    "tensor",
    writers=(3,),
    readers=(Reader("sample", 2, True),),
    empties=False,
)
SMALL = RING._replace(prefetch=0)


SEED = 1
"""So that a record of one of the batches drawn ahead is overwritten, and none of the other."""


def filled(setting: Setting) -> ReplayBuffer:
    """Return a buffer with 9 records written, the last of them over the first."""
    buffer = setting.make(SEED)
    assert isinstance(buffer, ReplayBuffer)
    if setting.prefetch:
        prefetcher_of(buffer).use(AtOnce())
    for first in (0, 3, 6):
        buffer.extend(records(1, first, 3))
    return buffer


class Given:
    """A snapshot after a sample and 3 records more, which can be spoilt before it is judged."""

    def __init__(self, setting: Setting = RING) -> None:
        self.setting = setting
        buffer = filled(setting)
        self.log = {2: [identities(buffer.sample())[0]]}
        buffer.extend(records(1, 9, 3))
        self.state = buffer.state_dict()

    @property
    def queue(self) -> list[dict[str, Any]]:
        """The batches that were drawn ahead."""
        batches: list[dict[str, Any]] = self.state["prefetched"]["batches"]
        return batches

    def wrong(self) -> str:
        """Return what is wrong with it, by the judge and when it is restored."""
        snapshot = Snapshot(self.state, "", before=(0, 4, 1), after=(0, 4, 1))
        judge = judge_of(self.setting, Evidence([snapshot], self.log))
        return "\n".join(judge.wrong(snapshot))


@pytest.mark.parametrize("order", ["epochs", "replacement"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_it_holds_and_is_taken_out(order: Any, prefetch: int) -> None:
    given = Given(RING._replace(order=order, prefetch=prefetch))
    assert len(given.queue) == prefetch
    assert given.wrong() == ""
    snapshot = Snapshot(given.state, "", (), ())
    assert wrong_when_restored(given.setting, snapshot) == []


def swapped(values: torch.Tensor) -> torch.Tensor:
    changed = values.clone()
    changed[[0, -1]] = values[[-1, 0]]
    return changed


def records_of(given: Given) -> Any:
    return given.state["records"]


def ages_swapped(given: Given) -> None:
    records_of(given)["stamps"] = swapped(records_of(given)["stamps"])


def one_record_dropped(given: Given) -> None:
    slot = int(records_of(given)["slots"][0])
    for name in ("slots", "uses", "stamps", "data"):
        records_of(given)[name] = records_of(given)[name][1:]
    given.state["free"]["order"] = torch.tensor([slot])


def one_of_a_batch_forgotten(given: Given) -> None:
    whole = next(batch for batch in given.queue if batch["stamps"].all())
    whole["stamps"][0] = 0


def batches_forgotten(given: Given) -> None:
    given.queue[1]["stamps"][:] = 0


def one_record_another(given: Given) -> None:
    first, second = given.queue
    first["batch"], second["batch"] = second["batch"], first["batch"]


def one_left_again(given: Given) -> None:
    dense = given.state["sampler"]["dense"]
    ahead = next(batch["slots"][batch["stamps"] > 0] for batch in given.queue)
    given.state["sampler"]["dense"] = torch.cat([dense, ahead[:1]])


def one_not_left(given: Given) -> None:
    given.state["sampler"]["dense"] = given.state["sampler"]["dense"][:-1]


def one_twice(given: Given) -> None:
    batch = given.queue[0]["batch"]
    batch[0] = batch[1]


def one_of_nobody(given: Given) -> None:
    given.queue[0]["batch"][0] = records(1, 99, 1)[0]


def counted_less(given: Given) -> None:
    given.state["counters"]["evicted"] -= 1


def counted_as_spent(given: Given) -> None:
    given.state["counters"]["evicted"] -= 1
    given.state["counters"]["spent"] += 1


SPOILT: list[tuple[Callable[[Given], None], str]] = [
    (ages_swapped, "records of writer 1 have ages in another order"),
    (one_record_dropped, "12 records were admitted; 7 are there; 0 spent, 4 evicted, 0 dropped"),
    (one_of_a_batch_forgotten, "which has its record still"),
    (batches_forgotten, "of an older epoch than others before"),
    (one_record_another, "which has another record"),
    (one_left_again, "were drawn ahead in an epoch that has"),
    (one_not_left, "was given to nobody and is not left"),
    (one_twice, "it has 1 different records in 2 slots"),
    (one_of_nobody, "record 99 of writer 1 is there before it was written"),
    (counted_less, "8 are there; 0 spent, 3 evicted, 0 dropped"),
    (counted_as_spent, "records have gone as they cannot"),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILT)
def test_what_is_spoilt_is_noticed(spoil: Callable[[Given], None], message: str) -> None:
    given = Given()
    given.state = copy.deepcopy(given.state)
    spoil(given)
    assert message in given.wrong()


def test_batches_that_were_not_written_at_once() -> None:
    setting = SMALL._replace(writers=(2, 2))
    buffer = setting.make()
    for writer, first in ((1, 0), (2, 0), (1, 1), (2, 1)):
        buffer.extend(records(writer, first, 1))
    snapshot = Snapshot(buffer.state_dict(), "", before=(0, 1, 1, 0), after=(0, 1, 1, 0))
    found = RingJudge(setting, Evidence([snapshot], {3: []})).wrong(snapshot)
    assert "a batch of writer 1 was not written at once, by its ages" in found


def test_slots_that_nobody_fills() -> None:
    setting = RING._replace(writers=(1,), prefetch=0)
    buffer = setting.make()
    for number in range(8):
        buffer.extend(records(1, number, 1))
    buffer.empty()
    snapshot = Snapshot(buffer.state_dict(), "", before=(0, 8, 0), after=(0, 8, 0))
    found = RingJudge(setting, Evidence([snapshot], {2: []})).wrong(snapshot)
    assert found == ["8 slots are free that were used, more than all writers can fill"]


def test_old_records_among_new_ones() -> None:
    buffer = SMALL.make()
    states = []
    for first in range(0, 24, 3):
        buffer.extend(records(1, first, 3))
        states.append(buffer.state_dict())
    marks = [(0, number + 1, 0) for number in range(8)]
    early = Snapshot(states[2], "", marks[2], marks[2])
    late = Snapshot(states[7], "", marks[7], marks[7])
    judge = RingJudge(SMALL, Evidence([early, late], {2: []}))
    assert judge.wrong(early) + judge.wrong(late) == []
    assert judge.renewed == 1
    old = states[2]["records"]["data"]
    late.state["records"]["data"][:5] = old[:5]
    judge = RingJudge(SMALL, Evidence([early, late], {2: []}))
    judge.wrong(early)
    assert "5 records were not overwritten though newer ones were; at most 2 may" in judge.wrong(
        late
    )


def test_a_reader_that_was_given_a_record_twice_in_an_epoch() -> None:
    given = Given()
    (batch,) = given.log[2]
    batch[0] = batch[1]
    evidence = Evidence([], given.log)
    judge_of(RING, evidence)
    assert evidence.wrong == [
        f"a reader was given a record twice in one batch: {[int(batch[0])] * 2}"
    ]
    assert batch[0] // SPREAD == 1
    uniform = Evidence([], given.log)
    judge_of(RING._replace(order="replacement"), uniform)
    assert uniform.wrong == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("all_left_restored", "after a restore the rest of an epoch of"),
        ("queue_dropped", "after a restore batch 0 has"),
    ],
)
def test_what_comes_out_of_a_restored_buffer_is_compared(fault: str, message: str) -> None:
    given = Given()
    with planted_in_resumes(fault):
        wrong = wrong_when_restored(RING, Snapshot(given.state, "", (), ()))
    assert message in "\n".join(wrong)
