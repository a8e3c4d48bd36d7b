"""The journal by itself: whatever is cut short is whole or absent once somebody looks."""

import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from forebay import BlockingReplayBuffer, Limits, ReplayBuffer
from forebay._errors import LimitReached, MutualWait
from forebay._journal import Journal
from forebay._layout import BATCH_FIELDS, JOURNALED, SCALARS, Layout
from forebay._lease import Lease
from forebay._stores import Store, commit
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict

from tests.library.support import assert_consistent
from tests.processes.journals import commit_with_deaths, size_of, watched_commits
from tests.processes.remote import read_from, shared_buffer, write_to

CAPACITY = 5
LIMITS = Limits(calls=4, tokens=2, participants=2)
VALUES = st.integers(-(2**62), 2**62)


def journal(room: int = 256) -> tuple[Journal, Layout]:
    """Return a journal over a ledger full of small numbers."""
    layout = Layout(CAPACITY, 2, LIMITS, LIMITS.participants)
    layout.block[:] = np.arange(len(layout.block))
    layout.cells[JOURNALED] = 0
    return Journal(layout, np.zeros(room, np.int64)), layout


@st.composite
def lists_of_stores(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Draw stores that name each cell once: of a column, a part of one, a scalar, a list."""
    columns = ["phase", "uses", "pins", "stamp", "entry", "free", "back", "tokens"]
    kinds: list[tuple[Any, ...]] = []
    for name in draw(st.lists(st.sampled_from(columns), unique=True)):
        length = 2 if name == "tokens" else CAPACITY
        start = draw(st.integers(0, length))
        end = draw(st.integers(start, length))
        if draw(st.booleans()):
            where: object = slice(start, end)
        else:
            where = np.array(draw(st.permutations(range(start, end))), np.int64)
        new = draw(VALUES | st.lists(VALUES, min_size=end - start, max_size=end - start))
        kinds.append((name, where, new))
    scalars = st.integers(0, SCALARS - 1).filter(lambda scalar: scalar != JOURNALED)
    kinds += [("cells", at, draw(VALUES)) for at in draw(st.lists(scalars, unique=True))]
    if draw(st.booleans()):
        kinds.append(("own", 0, draw(VALUES)))
    return draw(st.permutations(kinds))


def stores_of(layout: Layout, kinds: list[tuple[Any, ...]], own: list[int]) -> list[Store]:
    """Return drawn stores as those of a ledger."""
    stores: list[Any] = []
    for name, where, new in kinds:
        target = own if name == "own" else getattr(layout, name)
        stores.append((target, where, np.array(new, np.int64) if isinstance(new, list) else new))
    return stores


@settings(deadline=None)
@given(kinds=lists_of_stores())
def test_a_commit_that_is_cut_anywhere_is_whole_or_absent(kinds: list[tuple[Any, ...]]) -> None:
    ours, layout = journal()
    own = [0]
    stores = stores_of(layout, kinds, own)
    places = commit_with_deaths(ours, stores)
    lists = [new for name, _, new in kinds if name == "own"]
    assert places == size_of(stores) + len(lists) + 2
    assert own == (lists or [0])
    _, reference = journal()
    commit(stores_of(reference, kinds, [0]))
    assert (layout.block == reference.block).all()


def test_a_cell_that_is_named_twice_becomes_what_the_last_store_says() -> None:
    """Whoever finishes an action keeps the order of its stores, those of single cells too."""
    ours, layout = journal()
    slots = np.array([3, 1], np.int64)
    stores: list[Store] = [
        (layout.entry, slots, 7),
        (layout.cells, 9, 1),
        (layout.entry, slice(0, 2), np.array([8, 9], np.int64)),
        (layout.block[8:11], slice(0, 3), 5),
        (layout.cells, 10, 2),
        (layout.entry, slots[:1], np.array([6], np.int64)),
    ]
    assert commit_with_deaths(ours, stores) == size_of(stores) + 2
    assert layout.entry[:4].tolist() == [8, 9, layout.entry[2], 6]
    assert layout.block[8:11].tolist() == [5, 5, 2]


def test_a_journal_without_a_mark_is_not_carried_out() -> None:
    ours, layout = journal()
    ours.commit([(layout.phase, slice(0, CAPACITY), 7)])
    layout.phase[:] = 8
    ours.redo()
    assert ours.unfinished() == []
    assert layout.phase.tolist() == CAPACITY * [8]


def test_an_action_that_the_journal_has_no_room_for_changes_nothing() -> None:
    ours, layout = journal(room=4)
    before = layout.block.copy()
    with pytest.raises(struct.error, match="requires a buffer"):
        ours.commit([(layout.phase, slice(0, CAPACITY), 7)])
    with pytest.raises(ValueError, match="different structures"):
        ours.commit([(layout.phase, slice(0, CAPACITY), np.arange(CAPACITY))])
    assert (layout.block == before).all()


class Walk:
    """A buffer, the leases on it, and a source of sizes; each method is one thing to do."""

    def __init__(
        self, buffer: BlockingReplayBuffer | ReplayBuffer, choose: "st.DataObject"
    ) -> None:
        self.buffer = buffer
        self.choose = choose
        self.leases: list[Lease[TensorDict]] = []

    def size(self) -> int:
        return self.choose.draw(st.integers(1, self.buffer.capacity))

    def step(self) -> None:
        """Do one thing that need not wait."""
        work = self.choose.draw(
            st.sampled_from([self.write, self.read, self.lease, self.lease, self.end, self.empty])
        )
        with suppress(TimeoutError, MutualWait, LimitReached):
            work()

    def write(self) -> None:
        write_to(self.buffer, *range(self.size()), timeout=0)

    def read(self) -> None:
        read_from(self.buffer, self.size(), at_least=1, timeout=0)

    def lease(self) -> None:
        self.leases.append(self.buffer.lease(self.size(), at_least=1, timeout=0))

    def end(self) -> None:
        if self.leases:
            which = self.choose.draw(st.integers(0, len(self.leases) - 1))
            commits = self.choose.draw(st.booleans())
            lease = self.leases.pop(which)
            (lease.commit if commits else lease.release)()

    def empty(self) -> None:
        if self.choose.draw(st.integers(0, 3)) == 0:
            self.buffer.empty()

    def __enter__(self) -> "Walk":
        return self

    def __exit__(self, *error: object) -> None:
        while self.leases:
            self.leases.pop().release()


@pytest.mark.parametrize("order", ["fifo", "random"])
@settings(deadline=None, max_examples=30)
@given(choose=st.data(), uses=st.integers(1, 3))
def test_every_action_that_is_cut_anywhere_is_whole_or_absent(
    order: str, choose: "st.DataObject", uses: int
) -> None:
    """Whole calls of a real buffer, each of whose commits dies at each of its places first."""
    options = {"order": order, "consume_after_n_samples": uses, "limits": LIMITS, "seed": 0}
    cut: list[int] = []
    with watched_commits(lambda ours, stores: cut.append(commit_with_deaths(ours, stores))):
        buffer = shared_buffer(CAPACITY, **options)
        with Walk(buffer, choose) as walk:
            walk.write()
            for _ in range(choose.draw(st.integers(1, 12))):
                walk.step()
    assert_consistent(buffer)
    assert max(cut) > 10


def assert_room(buffer: BlockingReplayBuffer | ReplayBuffer, sizes: list[int]) -> int:
    """Check that all these commits fit, and return the largest."""
    room = buffer._core._plan.journal_length()  # type: ignore[attr-defined]  # a shared buffer's core
    largest = max(sizes)
    assert largest <= room, f"{largest} cells changed, the journal has {room}"
    return largest


@pytest.mark.parametrize("order", ["fifo", "random"])
@settings(deadline=None, max_examples=60)
@given(choose=st.data(), uses=st.integers(1, 4), capacity=st.sampled_from([1, 2, 3, 8, 40]))
def test_the_journal_has_room_for_every_action(
    order: str, choose: "st.DataObject", uses: int, capacity: int
) -> None:
    limits = Limits(calls=choose.draw(st.sampled_from([2, 5, 64])), tokens=1, participants=1)
    options = {"order": order, "consume_after_n_samples": uses, "limits": limits, "seed": 0}
    sizes = [0]

    def watch(ours: Journal, stores: list[Store]) -> None:
        sizes.append(size_of(stores))
        Journal.commit(ours, stores)

    with watched_commits(watch):
        buffer = shared_buffer(capacity, **options)
        with Walk(buffer, choose) as walk:
            for _ in range(choose.draw(st.integers(1, 25))):
                walk.step()
    assert_room(buffer, sizes)


@pytest.mark.parametrize("capacity", [1, 2, 64, 500])
@pytest.mark.parametrize("uses", [1, 2, 3, 4])
def test_the_largest_empty_and_the_largest_closing_of_gaps_fit_and_need_most_of_the_room(
    capacity: int, uses: int
) -> None:
    """Leases of all records, one after the other, leave gaps up to the end of the pool."""
    sizes: list[int] = []

    def watch(ours: Journal, stores: list[Store]) -> None:
        sizes.append(size_of(stores))
        Journal.commit(ours, stores)

    with watched_commits(watch):
        limits = Limits(calls=8, tokens=1, participants=1)
        buffer = shared_buffer(capacity, consume_after_n_samples=uses, limits=limits)
        for _ in range(2):
            write_to(buffer, *range(capacity))
            leases = [buffer.lease(capacity) for _ in range(uses)]
            for _ in range(2 * uses if uses > 1 else 0):
                leases.pop(0).release()
                leases.append(buffer.lease(capacity))
            buffer.empty()
            for lease in leases:
                lease.release()
    largest = assert_room(buffer, sizes)
    assert buffer.stats().free == capacity
    if uses > 1:
        room = buffer._core._plan.journal_length()  # type: ignore[attr-defined]  # a shared buffer's core
        for_a_queue = BATCH_FIELDS * limits.calls  # which a restore may enter
        assert largest > (room - SCALARS - for_a_queue) / 2
    assert_consistent(buffer)
