"""KeyboardInterrupt at any place of the calls of an overwriting buffer: nothing half done."""

import itertools
import warnings
from collections.abc import Callable
from functools import partial

import pytest
from forebay import ListStorage, RandomSampler, ReplayBuffer, SamplerWithoutReplacement

from tests.library.interrupts import interrupted
from tests.library.queues import AtOnce, prefetcher_of
from tests.library.saving import assert_nothing_left, plain
from tests.library.support import Slots, assert_consistent, ring_of
from tests.library.test_interrupts import Plain


def make(epochs: bool, prefetch: int = 0) -> ReplayBuffer:
    """Return a ring of four with three records, all of which are left of the epoch."""
    sampler = SamplerWithoutReplacement() if epochs else RandomSampler()
    ring = ReplayBuffer(Slots(4), sampler, batch_size=1, prefetch=prefetch, seed=0, monitor=Plain())
    if prefetch:
        prefetcher_of(ring).use(AtOnce())
    ring.extend([1, 2, 3])
    return ring


def lease_and_commit(ring: ReplayBuffer) -> None:
    with ring.lease(2):
        pass


def lease_and_release(ring: ReplayBuffer) -> None:
    ring.lease(2).release()


ACTIONS: dict[str, Callable[[ReplayBuffer], object]] = {
    "extend": lambda ring: ring.extend([4, 5, 6]),
    "sample": lambda ring: ring.sample(2),
    "lease": lease_and_commit,
    "release": lease_and_release,
    "new epoch": lambda ring: (ring.sample(3), ring.sample(2)),
    "empty": lambda ring: ring.empty(),
}
LENGTHS = {"extend": {3, 1, 4}, "empty": {3, 0}}
"""How many records there may be afterwards; an abandoned write leaves what it has evicted gone."""
LEFT = {"sample": {3, 1}, "lease": {3, 1}, "release": {3}, "new epoch": {3, 0, 1}}
"""How many may be left of the epoch."""


@pytest.mark.parametrize("later", [(), (3,)])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("epochs", [False, True])
def test_an_interrupt_at_any_place_leaves_all_or_nothing(
    epochs: bool, action: str, later: tuple[int, ...]
) -> None:
    lengths, left = set(), set()
    for place in itertools.count():
        ring = make(epochs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            reached = interrupted(partial(ACTIONS[action], ring), place, *later)
        if not reached:
            break
        lengths.add(len(ring))
        ledger = ring_of(ring)
        left.add(len(ledger.left()))
        assert ledger.tickets() == [], place
        assert ledger.holds() == [], place
        assert ledger.fillings() == {}, place
        assert not ledger.pins.any(), place
        assert ledger.evictable == len(ring), place
        assert_consistent(ring)
    assert place > 5
    allowed = LENGTHS.get(action, {3})
    assert lengths <= allowed if later else lengths == allowed
    if epochs and action in LEFT:
        assert left <= LEFT[action] if later else left == LEFT[action]


@pytest.mark.parametrize("epochs", [False, True])
def test_an_interrupt_while_batches_are_drawn_ahead(epochs: bool) -> None:
    for place in itertools.count():
        ring = make(epochs, prefetch=2)
        reached = interrupted(ring.sample, place)
        ring.extend([4, 5, 6, 7])
        assert not ring_of(ring).pins.any(), place
        assert_consistent(ring)
        if not reached:
            break
    assert place > 50


@pytest.mark.parametrize("epochs", [False, True])
def test_an_interrupted_capture_keeps_no_record(epochs: bool) -> None:
    ring = ReplayBuffer(
        ListStorage(3),
        SamplerWithoutReplacement() if epochs else RandomSampler(),
        seed=0,
        monitor=Plain(),
    )
    ring.extend([1, 2, 3])
    ring.extend([4])
    ring.sample(1)
    before = plain(ring.state_dict())
    for place in itertools.count():
        reached = interrupted(ring.state_dict, place)
        assert_nothing_left(ring)
        assert ring_of(ring).evictable == 3
        assert plain(ring.state_dict()) == before, place
        if not reached:
            break
    assert place > 50
