"""Batches are copies in both directions, and rows are never torn.

Ledger rows L33 (a batch that is kept while its slots are rewritten) and L11 (threads at once).
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from forebay._errors import RecordMismatch
from forebay._tensor_storage import TensorStorage
from tensordict import TensorDict

from tests.storage.support import put, same, slots, steps, taken


@pytest.mark.parametrize("numbers", [(1,), (1, 2), (2, 1), (3, 0)])
class TestL33:
    """A batch is a copy, however its slots lie."""

    def test_a_batch_outlives_its_slots(self, numbers: tuple[int, ...]) -> None:
        storage = TensorStorage(4)
        put(storage, slots(0, 1, 2, 3), steps(4))
        batch = taken(storage, *numbers)
        kept = batch.clone()
        put(storage, slots(0, 1, 2, 3), steps(4, start=100))
        assert same(batch, kept)
        assert batch["action"].tolist() == list(numbers)

    def test_changing_a_batch_changes_no_record(self, numbers: tuple[int, ...]) -> None:
        storage = TensorStorage(4)
        put(storage, slots(0, 1, 2, 3), steps(4))
        for leaf in taken(storage, *numbers).values(include_nested=True, leaves_only=True):
            leaf.zero_()
        assert same(taken(storage, 0, 1, 2, 3), steps(4))

    def test_changing_what_was_written_changes_no_record(self, numbers: tuple[int, ...]) -> None:
        storage = TensorStorage(4)
        batch = steps(len(numbers))
        put(storage, slots(*numbers), batch)
        for leaf in batch.values(include_nested=True, leaves_only=True):
            leaf.fill_(77)
        assert same(taken(storage, *numbers), steps(len(numbers)))


def test_a_batch_that_was_read_can_be_written_again() -> None:
    storage = TensorStorage(4)
    put(storage, slots(0, 1), steps(2))
    put(storage, slots(3, 2), taken(storage, 0, 1))
    assert same(taken(storage, 3, 2), steps(2))


def test_no_gradient_history_is_kept() -> None:
    weight = torch.ones(2, requires_grad=True)
    storage = TensorStorage(2)
    put(storage, slots(0, 1), {"x": weight * 3})
    read = taken(storage, 0, 1)["x"]
    assert read.tolist() == [3.0, 3.0]
    assert not read.requires_grad
    assert (weight * 3).requires_grad


def test_check_changes_nothing() -> None:
    storage = TensorStorage(4)
    storage.check(steps(2))
    put(storage, slots(0), {"x": torch.ones(1)})
    storage.check({"x": torch.zeros(3)})
    assert taken(storage, 0)["x"].tolist() == [1.0]


def test_l11_rows_are_never_torn() -> None:
    """Two threads write and read their own slots of the same arrays, all at the same time."""
    rounds, half, width = 200, 16, 512
    storage = TensorStorage(2 * half, example={"x": torch.zeros(width), "y": torch.zeros(())})
    start = threading.Barrier(2)

    def work(mine: np.ndarray[tuple[int], np.dtype[np.int64]], first: int) -> list[int]:
        wrong: list[int] = []
        start.wait(timeout=60)
        for number in range(first, first + rounds):
            values = torch.arange(half) + 1000.0 * number
            batch = {"x": values.unsqueeze(1).expand(half, width), "y": values}
            put(storage, mine, batch)
            read = storage.read(mine)
            assert isinstance(read, TensorDict)
            whole = (read["x"] == values.unsqueeze(1)).all() and torch.equal(read["y"], values)
            if not whole:
                wrong.append(number)
        return wrong

    even, odd = np.arange(0, 2 * half, 2), np.arange(1, 2 * half, 2)
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(work, even, 0), pool.submit(work, odd, rounds)]
        assert [result.result(timeout=120) for result in results] == [[], []]


class TestFirstWrite:
    """The first write fixes the schema, also when two were checked before either wrote."""

    def test_a_second_first_write_that_differs_is_refused(self) -> None:
        storage = TensorStorage(2)
        first = storage.check({"x": torch.ones(1)})
        second = storage.check({"x": torch.ones(1), "y": torch.ones(1)})
        storage.write(slots(0), first)
        with pytest.raises(RecordMismatch, match="'y': expected no such leaf, got float32"):
            storage.write(slots(1), second)
        assert taken(storage, 0)["x"].tolist() == [1.0]

    def test_a_second_first_write_that_agrees_is_written_in_the_first_ones_order(self) -> None:
        storage = TensorStorage(2)
        first = storage.check({"x": torch.tensor([1]), "y": torch.tensor([2])})
        second = storage.check({"y": torch.tensor([4]), "x": torch.tensor([3])})
        storage.write(slots(0), first)
        storage.write(slots(1), second)
        read = taken(storage, 0, 1)
        assert read["x"].tolist() == [1, 3]
        assert read["y"].tolist() == [2, 4]

    def test_a_second_first_write_may_be_cast(self) -> None:
        storage = TensorStorage(2)
        first = storage.check({"x": torch.tensor([1.5])})
        second = storage.check({"x": torch.tensor([2.5], dtype=torch.float64)}, cast=True)
        storage.write(slots(0), first)
        storage.write(slots(1), second)
        assert taken(storage, 0, 1)["x"].tolist() == [1.5, 2.5]

    def test_of_many_at_once_one_decides(self) -> None:
        n = 8
        for _ in range(20):
            storage = TensorStorage(n)
            start = threading.Barrier(n)

            def write(i: int, storage: TensorStorage, start: threading.Barrier) -> bool:
                rows = storage.check({f"key{i % 2}": torch.tensor([i])})
                start.wait(timeout=60)
                try:
                    storage.write(slots(i), rows)
                except RecordMismatch:
                    return False
                return True

            with ThreadPoolExecutor(n) as pool:
                futures = [pool.submit(write, i, storage, start) for i in range(n)]
                wrote = [i for i, future in enumerate(futures) if future.result(timeout=60)]
            (key,) = taken(storage, wrote[0]).keys()
            assert wrote == [i for i in range(n) if f"key{i % 2}" == key]
            assert taken(storage, *wrote)[key].tolist() == wrote


def test_nothing_can_be_read_before_the_first_write() -> None:
    with pytest.raises(RuntimeError, match="nothing to read before the first write"):
        TensorStorage(2).read(slots(0))


def test_rows_and_slots_must_be_as_many() -> None:
    storage = TensorStorage(4)
    with pytest.raises(ValueError, match="expected as many slots as rows, got 1 for 2"):
        storage.write(slots(0), storage.check(steps(2)))
