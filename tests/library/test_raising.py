"""Calls that end with an exception of somebody else, or at a limit, leave everything as it was."""

import pytest
from forebay import (
    LimitReached,
    Limits,
    SampleTimeout,
)
from forebay._transforms import Transforms

from tests.library.support import (
    Stage,
    assert_consistent,
    ledger_of,
    make,
    patience,
    result,
    snapshot,
)


def test_a_transform_that_raises_returns_the_records() -> None:
    """L36."""

    def transform(batch: object) -> object:
        raise KeyError("no such column")

    buffer = make(4, transform=transform)
    buffer.extend([1, 2, 3])
    for _ in range(3):
        with pytest.raises(KeyError, match="no such column"):
            buffer.sample(2)
    assert len(buffer) == 3
    assert buffer.stats().returned == 6
    buffer._transforms = Transforms()
    assert buffer.sample(3) == [1, 2, 3]
    assert_consistent(buffer)


def test_a_gather_that_raises_returns_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = make(4)
    buffer.extend([1, 2])

    def read(slots: object) -> object:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(buffer.storage, "read", read)
        with pytest.raises(MemoryError):
            buffer.sample(1)
        with pytest.raises(MemoryError):
            buffer.lease(1)
    assert buffer.sample(2) == [1, 2]


def test_a_copy_that_raises_gives_the_slots_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """L31: space was reserved, then the copy raises."""
    buffer = make(4)
    buffer.extend([1])
    before = ledger_of(buffer).free_order()

    def write(slots: object, rows: object) -> None:
        raise OSError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(buffer.storage, "write", write)
        with pytest.raises(OSError, match="broken"):
            buffer.extend([2, 3])
    assert ledger_of(buffer).free_order() == before
    assert (len(buffer), buffer.stats().admitted, buffer.stats().filling) == (1, 1, 0)
    assert buffer.extend([2, 3, 4]).tolist() == [1, 2, 3]


def test_a_write_transform_that_leaves_nothing_is_a_no_op() -> None:
    """L21: nothing is written, and nobody is woken."""
    stage = Stage()
    buffer = make(4, stage, write_transform=lambda batch: [])
    gone = make(4, write_transform=lambda batch: None)
    with patience() as start:
        reading = start(lambda: buffer.sample(1, timeout=5))
        stage.await_sleepers(1)
        wakes = stage.wakes
        assert buffer.extend([1, 2]).tolist() == []
        assert stage.wakes == wakes
        stage.advance(5)
        with pytest.raises(SampleTimeout):
            result(reading)
    assert gone.extend([1, 2]).tolist() == []
    assert (len(buffer), len(gone)) == (0, 0)


def test_a_write_transform_that_raises_changes_nothing() -> None:
    def refuse(batch: object) -> object:
        raise ArithmeticError("no")

    buffer = make(4, write_transform=refuse)
    before = snapshot(buffer)
    with pytest.raises(ArithmeticError):
        buffer.extend([1])
    assert snapshot(buffer) == before


def test_tables_that_are_full_name_the_limit_before_any_effect() -> None:
    buffer = make(4, limits=Limits(calls=2, tokens=1))
    buffer.extend([1, 2, 3, 4])
    leases = [buffer.lease(1), buffer.lease(1)]
    before = snapshot(buffer)
    with pytest.raises(LimitReached, match=r"limits=Limits\(calls=\.\.\.\)"):
        buffer.sample(1)
    with pytest.raises(LimitReached, match="2 calls wait, copy or hold a batch"):
        buffer.extend([5])
    assert snapshot(buffer) == before
    for lease in leases:
        lease.commit()
    assert buffer.sample(2) == [3, 4]
    token = buffer.cancel_token()
    with pytest.raises(LimitReached, match=r"limits=Limits\(tokens=\.\.\.\)"):
        buffer.cancel_token()
    del token
    assert not buffer.cancel_token().is_set()


@pytest.mark.parametrize("uses", [1, 2, 3, 4])
def test_every_record_can_be_held_for_each_of_its_uses(uses: int) -> None:
    buffer = make(3, consume_after_n_samples=uses)
    buffer.extend([1, 2, 3])
    leases = [buffer.lease(3) for _ in range(uses)]
    assert buffer.stats().sampleable == 0
    for lease in leases:
        lease.commit()
    assert buffer.stats().spent == 3


def test_a_pool_of_held_records_that_is_full_names_the_limit_before_any_effect() -> None:
    buffer = make(2, consume_after_n_samples=3, limits=Limits(held=4))
    buffer.extend([1, 2])
    leases = [buffer.lease(2), buffer.lease(2)]
    before = snapshot(buffer)
    with pytest.raises(LimitReached, match=r"limits=Limits\(held=\.\.\.\)"):
        buffer.sample(1)
    assert snapshot(buffer) == before
    leases.pop().commit()
    assert buffer.sample(2) == [1, 2]
    leases.pop().commit()
