"""Leases: committed, released, lost, and what is not theirs."""

import gc
import warnings

import numpy as np
import pytest
from forebay import AdmissionTimeout, BlockingReplayBuffer, SampleTimeout
from forebay._calls import Call
from forebay._layout import NONE
from forebay._threads import thread_number

from tests.library.support import (
    Stage,
    assert_consistent,
    ledger_of,
    make,
    patience,
    result,
    snapshot,
)


def test_a_block_that_ends_commits() -> None:
    buffer = make(4)
    buffer.extend([1, 2, 3])
    with buffer.lease(2) as batch:
        assert batch == [1, 2]
        assert (len(buffer), buffer.stats().pinned, buffer.stats().delivered) == (1, 2, 0)
    assert (buffer.stats().delivered, buffer.stats().spent, buffer.stats().pinned) == (2, 2, 0)
    assert buffer.sample(1) == [3]


def test_a_block_that_raises_returns_the_records() -> None:
    buffer = make(4)
    buffer.extend([1, 2, 3])
    with pytest.raises(ArithmeticError), buffer.lease(2):
        raise ArithmeticError
    assert (buffer.stats().returned, buffer.stats().delivered) == (2, 0)
    assert buffer.sample(3) == [1, 2, 3]


def test_leases_by_hand_end_once() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    committed, released = buffer.lease(1), buffer.lease(1)
    assert (committed.batch, released.batch) == ([1], [2])
    assert (committed.index.tolist(), released.index.tolist()) == ([0], [1])
    committed.commit()
    released.release()
    for lease in (committed, released):
        assert not lease.active
        with pytest.raises(RuntimeError, match="has ended already"):
            lease.commit()
        with pytest.raises(RuntimeError, match="has ended already"):
            lease.release()
    assert (buffer.stats().delivered, buffer.stats().returned) == (1, 1)
    assert buffer.sample(1) == [2]


def test_a_lease_may_be_ended_by_hand_inside_its_block() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    lease = buffer.lease(1)
    with lease:
        lease.release()
    again = buffer.lease(1)

    def commit_and_fail() -> None:
        with again:
            again.commit()
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        commit_and_fail()
    assert (buffer.stats().delivered, buffer.stats().returned) == (1, 1)


def test_a_lease_that_is_dropped_is_returned_with_a_warning() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    lease = buffer.lease(2)
    assert len(buffer) == 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del lease
        gc.collect()
    assert [warning.category for warning in caught] == [ResourceWarning]
    assert "a lease of 2 records was neither committed nor released" in str(caught[0].message)
    assert buffer.sample(2) == [1, 2]
    assert_consistent(buffer)


def test_a_dropped_lease_serves_a_reader_that_sleeps() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    leases = [buffer.lease(2)]
    with patience() as start:
        reading = start(lambda: buffer.sample(2))
        stage.await_sleepers(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            leases.clear()
            gc.collect()
        assert result(reading) == [1, 2]


def test_a_lease_that_is_dropped_inside_the_critical_section_does_not_block() -> None:
    """A finaliser may run anywhere, in the thread that holds the lock too."""
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2, 3])
    leases = [buffer.lease(2)]
    original = stage.clock

    def clock() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            leases.clear()
            gc.collect()
        return original()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "clock", clock)
        with buffer._core.section:
            stage.clock()
    assert leases == []
    assert buffer.sample(3) == [1, 2, 3]


def test_committing_frees_room_for_a_writer_that_sleeps() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1, 2])
    lease = buffer.lease(2)
    with patience() as start:
        writing = start(lambda: buffer.extend([3]))
        stage.await_sleepers(1)
        lease.commit()
        assert result(writing).tolist() == [0]


def test_a_lease_can_be_ended_by_another_thread() -> None:
    buffer = make(2)
    buffer.extend([1])
    lease = buffer.lease(1)
    with patience() as start:
        result(start(lease.commit))
    assert buffer.stats().delivered == 1


def test_a_batch_is_a_copy() -> None:
    """L33: a reader keeps a batch while its slots are written again."""
    import torch
    from forebay import BlockingReplayBuffer, TensorStorage

    buffer = BlockingReplayBuffer(TensorStorage(2))
    buffer.extend({"x": torch.tensor([1.0, 2.0])})
    kept = buffer.sample(2)
    buffer.extend({"x": torch.tensor([3.0, 4.0])})
    assert kept["x"].tolist() == [1.0, 2.0]
    with buffer.lease(2) as leased:
        leased["x"].zero_()
        kept["x"].zero_()
        raised = buffer.stats().sampleable
    assert raised == 0
    source = torch.tensor([5.0])
    index = buffer.extend({"x": source})
    source.zero_()
    index.fill_(99)
    assert buffer.sample(1)["x"].tolist() == [5.0]


def test_a_lease_with_uses_left_is_returned_with_its_old_age() -> None:
    buffer = make(4, consume_after_n_samples=2)
    buffer.extend([1, 2, 3])
    lease = buffer.lease(1)
    assert buffer.sample(3) == [2, 3, 1]
    lease.release()
    assert buffer.sample(3) == [1, 2, 3]
    assert len(buffer) == 0


def test_emptying_drops_leased_records_for_good() -> None:
    buffer = make(4)
    buffer.extend([1, 2, 3])
    lease, kept = buffer.lease(1), buffer.lease(1)
    buffer.empty()
    assert (len(buffer), buffer.stats().free, buffer.stats().dropped) == (0, 2, 3)
    assert_consistent(buffer)
    lease.release()
    kept.commit()
    assert (buffer.stats().free, buffer.stats().returned, buffer.stats().delivered) == (4, 1, 1)
    assert buffer.stats().spent == 0
    with pytest.raises(SampleTimeout):
        buffer.sample(1, timeout=0)
    buffer.extend([4, 5, 6, 7])
    with pytest.raises(AdmissionTimeout):
        buffer.extend([8], timeout=0)
    assert_consistent(buffer)


def test_the_copies_of_an_emptied_lease_stay_the_readers() -> None:
    buffer = make(2)
    buffer.extend(["a"])
    with buffer.lease(1) as batch:
        buffer.empty()
        buffer.extend(["b"])
        assert batch == ["a"]
    assert buffer.sample(1) == ["b"]


def test_a_new_thread_does_not_come_into_the_leases_of_one_that_has_ended() -> None:
    """The identities of threads are used again, as a rule by the very next thread."""
    buffer = make(2)
    buffer.extend([1, 2])
    with patience() as start:
        lease = result(start(lambda: buffer.lease(2)))
    for _ in range(20):
        with patience() as start, pytest.raises(SampleTimeout):
            result(start(lambda: buffer.sample(1, timeout=0)))
    lease.release()
    assert buffer.sample(2) == [1, 2]


def test_no_two_threads_ever_have_the_same_number() -> None:
    numbers = [thread_number()]
    for _ in range(20):
        with patience() as start:
            numbers.append(result(start(thread_number)))
    assert len(set(numbers)) == 21
    assert thread_number() == numbers[0]


def test_a_lease_that_has_ended_cannot_be_entered() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    committed, released = buffer.lease(1), buffer.lease(1)
    committed.commit()
    released.release()
    for lease in (committed, released):
        with pytest.raises(RuntimeError, match="the lease has ended already"), lease:
            raise AssertionError("unreachable")
    assert buffer.sample(1) == [2]


def restored(buffer: BlockingReplayBuffer) -> None:
    """End all batches, and draw another one into the row of the first, as after a restore."""
    ledger = ledger_of(buffer)
    for hold in ledger.holds():
        row = next(row for row in range(8) if ledger.batches.number(row) == hold.number)
        places = [NONE, row, 0, hold.number]
        call = Call(hold.kind, hold.owner, len(hold.slots), len(hold.slots), places=places)
        call.slots = np.array(hold.slots)
        ledger.give_back(call)


def test_a_lease_that_a_restore_has_made_void_says_so_and_touches_nothing() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    old = buffer.lease(1)
    restored(buffer)
    new = buffer.lease(1)
    assert (old.active, new.active) == (False, True)
    before = snapshot(buffer)
    for end in (old.commit, old.release):
        with pytest.raises(RuntimeError, match="was made void by a restore of the buffer"):
            end()
    with pytest.raises(RuntimeError, match="made void"), old:
        pass
    del old
    gc.collect()
    assert snapshot(buffer) == before
    new.commit()
    assert_consistent(buffer)


def test_the_block_of_a_lease_that_became_void_says_so_unless_it_raises_itself() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    with pytest.raises(RuntimeError, match="made void"), buffer.lease(1):
        restored(buffer)

    def restore_and_fail() -> None:
        with buffer.lease(1):
            restored(buffer)
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        restore_and_fail()
    assert buffer.sample(2) == [1, 2]
    assert_consistent(buffer)


def test_empty_makes_no_lease_void() -> None:
    buffer = make(4)
    buffer.extend([1, 2, 3])
    kept, given_back = buffer.lease(1), buffer.lease(1)
    buffer.empty()
    assert (kept.active, given_back.active) == (True, True)
    kept.commit()
    given_back.release()
    assert (len(buffer), buffer.stats().free) == (0, 4)
    assert_consistent(buffer)
