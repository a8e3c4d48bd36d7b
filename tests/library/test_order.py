"""Which records are sampled: the oldest first, or any, uniformly, each at most once in a batch."""

from collections import Counter
from itertools import pairwise, permutations

import pytest

from tests.library.support import assert_consistent, ledger_of, make


def test_fifo_samples_in_the_order_of_writing() -> None:
    buffer = make(8)
    buffer.extend([1, 2, 3])
    buffer.extend([4, 5])
    assert buffer.sample(2) == [1, 2]
    buffer.extend([6])
    assert buffer.sample(4) == [3, 4, 5, 6]


def test_records_with_uses_left_move_behind_the_others() -> None:
    buffer = make(4, consume_after_n_samples=2)
    buffer.extend([1, 2, 3])
    assert buffer.sample(2) == [1, 2]
    buffer.extend([4])
    assert buffer.sample(4) == [3, 1, 2, 4]
    assert buffer.sample(2) == [3, 4]
    assert len(buffer) == 0
    assert_consistent(buffer)


def test_slots_are_used_again_in_the_order_in_which_they_became_free() -> None:
    """Freed by consumption first, oldest first, then those that were never used."""
    buffer = make(6)
    assert buffer.extend([1, 2, 3]).tolist() == [0, 1, 2]
    buffer.sample(1)
    buffer.sample(1)
    assert ledger_of(buffer).free_order() == [0, 1, 3, 4, 5]
    assert ledger_of(buffer).fresh == 3
    assert buffer.extend([4, 5, 6]).tolist() == [0, 1, 3]


def test_a_returned_record_comes_first_again() -> None:
    buffer = make(6)
    buffer.extend([1, 2, 3, 4])
    first, second = buffer.lease(1), buffer.lease(2)
    assert buffer.sample(1) == [4]
    buffer.extend([5])
    second.release()
    assert_consistent(buffer)
    first.release()
    assert buffer.sample(4) == [1, 2, 3, 5]
    assert_consistent(buffer)


def test_returned_records_sort_in_among_each_other_in_any_order() -> None:
    for order in permutations(range(4)):
        buffer = make(8)
        buffer.extend([1, 2, 3, 4, 5])
        leases = [buffer.lease(1) for _ in range(4)]
        for number in order:
            leases[number].release()
        assert buffer.sample(5) == [1, 2, 3, 4, 5]
        assert_consistent(buffer)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_record_gets_the_oldest_of_the_ages_that_its_holds_remember(
    order: tuple[int, ...],
) -> None:
    """The order in which several holds on one record are returned does not matter."""
    buffer = make(4, consume_after_n_samples=4)
    buffer.extend(["a"])
    leases = [buffer.lease(1) for _ in range(3)]
    buffer.extend(["b"])
    for number in order:
        leases[number].release()
        assert_consistent(buffer)
    assert buffer.sample(2) == ["a", "b"]


def test_a_record_returned_twice_is_drawn_once_in_a_batch() -> None:
    """Its stale places in the order are not mistaken for records."""
    buffer = make(3, consume_after_n_samples=5)
    buffer.extend(["a", "b"])
    for _ in range(20):
        one, two, three = buffer.lease(1), buffer.lease(2), buffer.lease(1)
        two.release()
        one.release()
        again = buffer.lease(2)
        three.release()
        again.release()
        assert_consistent(buffer)
    assert buffer.stats().returned == 20 * 6
    assert buffer.sample(2) == ["a", "b"]


def test_random_order_is_reproducible_from_its_seed() -> None:
    def draws(seed: int | None) -> list[object]:
        buffer = make(64, order="random", seed=seed, consume_after_n_samples=3)
        buffer.extend(list(range(64)))
        return [buffer.sample(size) for size in (1, 5, 64, 30, 1)]

    assert draws(7) == draws(7)
    assert draws(7) != draws(8)
    assert draws(None) != draws(None)


def test_random_batches_have_distinct_records_and_use_each_up_exactly() -> None:
    for uses in (1, 2, 3):
        buffer = make(32, order="random", seed=0, consume_after_n_samples=uses)
        buffer.extend(list(range(32)))
        seen: Counter[object] = Counter()
        while len(buffer):
            batch = buffer.sample(min(7, len(buffer)))
            assert isinstance(batch, list)
            assert len(set(batch)) == len(batch)
            seen.update(batch)
            assert_consistent(buffer)
        assert seen == dict.fromkeys(range(32), uses)


def test_random_draws_are_uniform_over_ordered_choices() -> None:
    """Each of the 12 ordered pairs of 4 records; chi-square with 11 degrees of freedom.

    The seed is fixed, so the figure is: it would exceed 31.3 for one seed in a thousand.
    """
    counts: Counter[tuple[object, ...]] = Counter()
    buffer = make(4, order="random", seed=3, consume_after_n_samples=10_000)
    buffer.extend([0, 1, 2, 3])
    for _ in range(6000):
        batch = buffer.sample(2)
        assert isinstance(batch, list)
        counts[tuple(batch)] += 1
    assert len(counts) == 12
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 31.3


def test_random_order_mixes_records_of_different_batches() -> None:
    buffer = make(100, order="random", seed=1)
    for start in range(0, 100, 10):
        buffer.extend(list(range(start, start + 10)))
    batch = buffer.sample(100)
    assert isinstance(batch, list)
    assert sorted(batch) == list(range(100))
    assert sum(b == a + 1 for a, b in pairwise(batch)) < 10


def test_a_returned_record_can_be_sampled_again_in_random_order() -> None:
    buffer = make(4, order="random", seed=0)
    buffer.extend([1, 2, 3])
    lease = buffer.lease(2)
    assert len(buffer) == 1
    lease.release()
    assert_consistent(buffer)
    batch = buffer.sample(3)
    assert isinstance(batch, list)
    assert sorted(batch) == [1, 2, 3]


@pytest.mark.parametrize("fill", [4, 3])
def test_what_is_sampled_was_written(fill: int) -> None:
    """L19: fill to exactly capacity, and to one less and then two more."""
    buffer = make(4)
    buffer.extend(list(range(fill)))
    if fill == 3:
        assert buffer.sample(1) == [0]
        buffer.extend([10, 11])
        assert buffer.sample(4) == [1, 2, 10, 11]
    else:
        assert buffer.sample(4) == [0, 1, 2, 3]
    buffer.extend([20, 21, 22, 23])
    assert buffer.sample(4) == [20, 21, 22, 23]
