"""The decisions for whole batches are the kernel's decisions for single slots."""

from itertools import product

import numpy as np
from forebay._rows import (
    are_blocked,
    are_evictable,
    are_sampleable,
    become_free,
    returned_stamps,
)
from forebay._stores import Ints, common, picked, tally_of
from forebay_spec import kernel
from forebay_spec.kernel import Phase

LIMITS = (1, 2, 3)


def column(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def test_sampleable_and_freed_slots() -> None:
    for limit in LIMITS:
        cases = list(product(Phase, range(limit + 1), range(3)))
        phase, uses, pins = (column([case[i] for case in cases]) for i in range(3))
        assert are_sampleable(phase, uses, limit).tolist() == [
            kernel.is_sampleable(p, u, limit) for p, u, _ in cases
        ]
        freed = become_free(phase, uses, limit, pins)
        assert isinstance(freed, np.ndarray)
        assert freed.tolist() == [kernel.becomes_free(p, u, limit, n) for p, u, n in cases]
        for p, u, n in cases:
            assert are_sampleable(int(p), u, limit) is kernel.is_sampleable(p, u, limit)
            assert become_free(int(p), u, limit, n) is kernel.becomes_free(p, u, limit, n)


def test_what_a_batch_has_in_common() -> None:
    assert np.array_equal(common(column([])), [])
    assert common(column([7])) == 7
    assert common(column([-1, -1, -1])) == -1
    for values in ([1, 2], [1, 1, 2], [256, 1], [1, 257]):
        assert np.array_equal(common(column(values)), values)
    slots, flags = column([4, 2, 9]), np.array([True, False, True])
    assert picked(slots, flags).tolist() == [4, 9]
    assert picked(slots, True).tolist() == [4, 2, 9]
    assert picked(slots, False).tolist() == []
    assert (tally_of(3, flags), tally_of(3, True), tally_of(3, False)) == (2, 3, 0)


def test_evictable_slots() -> None:
    cases = list(product(Phase, range(3), range(2)))
    phase, pins, marks = (column([case[i] for case in cases]) for i in range(3))
    assert are_evictable(phase, pins, marks > 0).tolist() == [
        kernel.is_evictable(p, n, bool(mark)) for p, n, mark in cases
    ]


def test_stamps_of_returned_records() -> None:
    cases = list(product(range(4), range(4)))
    current, remembered = (column([case[i] for case in cases]) for i in range(2))
    assert returned_stamps(current, remembered).tolist() == [
        kernel.returned_stamp(a, b) for a, b in cases
    ]


def test_slots_blocked_by_leases() -> None:
    for limit in LIMITS:
        cases = [
            (phase, uses, pins, own)
            for phase, uses, pins in product(Phase, range(limit + 1), range(4))
            for own in range(pins + 1)
        ]
        phase, uses, pins, own = (column([case[i] for case in cases]) for i in range(4))
        assert are_blocked(phase, uses, limit, pins, own).tolist() == [
            kernel.lease_blocks(p, u, limit, n, o) for p, u, n, o in cases
        ]
