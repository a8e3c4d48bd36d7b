"""The accounts of records: what is lost, doubled, torn or delivered in part does not go through."""

from collections.abc import Mapping
from typing import NamedTuple

import pytest
from forebay_models.faults import accounts, load
from forebay_models.faults.crew import Wrong
from forebay_models.faults.labour import Account, block_for, notes_in
from forebay_models.faults.program import Did, Op

WROTE = Op("extend", (2,))
READ = Op("sample", (2, 2))


class Counts(NamedTuple):
    """Stands for the image of a ledger that has counted this."""

    counted: Mapping[str, int]

    def scalar(self, name: str) -> int:
        return self.counted[name]


def settle_load(account: Account, *, uses: int = 1, admitted: int, delivered: int) -> None:
    counts = Counts({"ADMITTED": admitted, "DELIVERED": delivered})
    load.settle(account, counts, uses)  # type: ignore[arg-type]  # only counts are asked for


def did(*calls: tuple[Op, tuple[int, ...]]) -> dict[str, list[Did]]:
    return {"a": [Did(op, "ok", numbers) for op, numbers in calls]}


def test_what_was_written_and_received_is_settled() -> None:
    calls = did((WROTE, (1, 2)), (READ, (1, 2)))
    accounts.settle(uses=1, did=calls, died_with=(), delivered=2, admitted=2, dropped=0)
    settle_load(Account([(1, 2)], [(1, 2)], [], []), admitted=2, delivered=2)


def test_what_went_to_the_dead_is_settled() -> None:
    calls = did((WROTE, (1, 2)), (READ, (1,)))
    accounts.settle(uses=1, did=calls, died_with=(), delivered=2, admitted=2, dropped=0)
    settle_load(Account([(1, 2)], [(1,)], [], [(2,)]), admitted=2, delivered=2)


def test_a_batch_of_the_dead_is_there_or_not() -> None:
    for came in (True, False):
        calls = did((READ, (1, 2) if came else ()))
        count = 2 * came
        accounts.settle(
            uses=1, did=calls, died_with=(1, 2), delivered=count, admitted=count, dropped=0
        )
        received: list[tuple[int, ...]] = [(1, 2)] if came else []
        settle_load(Account([], received, [(1, 2)], []), admitted=count, delivered=count)


@pytest.mark.parametrize(
    ("received", "delivered", "words"),
    [
        ((1,), 1, "missing"),
        ((1, 1, 2), 3, "too often"),
        ((1, 2, 0), 3, "nobody has written whole"),
    ],
)
def test_a_lost_a_doubled_and_a_torn_record_are_noticed(
    received: tuple[int, ...], delivered: int, words: str
) -> None:
    calls = did((WROTE, (1, 2)), (READ, received))
    with pytest.raises(Wrong, match=words):
        accounts.settle(uses=1, did=calls, died_with=(), delivered=delivered, admitted=2, dropped=0)


@pytest.mark.parametrize(
    ("account", "admitted", "delivered", "words"),
    [
        (Account([(1, 2)], [(1,)], [], []), 2, 1, "missing"),
        (Account([(1, 2)], [(1, 2), (1,)], [], []), 2, 3, "too many"),
        (Account([(1, 2)], [(1, 2), (0,)], [], []), 2, 3, "nobody has written whole"),
        (Account([], [(1,)], [(1, 2)], []), 1, 1, "only"),
        (Account([(1, 2)], [(1,)], [], [(1, 2)]), 2, 2, "in part"),
        (Account([(1, 2)], [(1,)], [], [(2,)]), 2, 1, "went to the dead"),
        (Account([(1, 2)], [(1, 2)], [], []), 3, 2, "admitted"),
    ],
)
def test_under_load_too(account: Account, admitted: int, delivered: int, words: str) -> None:
    with pytest.raises(Wrong, match=words):
        settle_load(account, admitted=admitted, delivered=delivered)


def test_notes_tell_what_was_done_and_what_was_cut_short() -> None:
    notes = notes_in(block_for(2), 1)
    notes.about(0, (1, 2))
    notes.ended(0, True)
    notes.about(0, (3,))
    notes.ended(0, False)
    notes.about(4, (1,))
    notes.ended(4, True)
    notes.about(4, (2,))
    notes.about(0, (4, 5))
    assert notes.read() == Account([(1, 2)], [(1,)], [(4, 5)], [(2,)])
    assert notes.done == 2
    notes.clear()
    assert notes.read() == Account([], [], [], [])
