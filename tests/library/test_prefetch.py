"""Batches that are drawn and gathered ahead: who gets which, and when."""

import random
from collections.abc import Callable

import pytest
from forebay import MutualWait, SampleTimeout, ShutDown
from forebay._batches import HoldState
from forebay._layout import Limits

from tests.library.queues import at_once, by_hand, prefetcher_of, queue_of
from tests.library.support import Stage, assert_consistent, ledger_of, make, patience, result

GATHERING, READY, FAILED = HoldState


def test_the_first_sample_draws_ahead_and_the_next_ones_get_that_in_order() -> None:
    """L24: three batches are ahead, gathered in any order, and come in the order of drawing."""
    buffer, pool = by_hand(16, batch_size=2, prefetch=3)
    buffer.extend(list(range(12)))
    assert buffer.sample() == [0, 1]
    assert queue_of(buffer) == [([2, 3], GATHERING), ([4, 5], GATHERING), ([6, 7], GATHERING)]
    pool.do(2, 0)
    pool.do()
    assert [state for _, state in queue_of(buffer)] == [READY, READY, READY]
    assert buffer.stats().prefetched == 3
    assert len(buffer) == 4
    assert [buffer.sample(at_least=1), buffer.sample(2)] == [[2, 3], [4, 5]]
    assert [slots for slots, _ in queue_of(buffer)] == [[6, 7], [8, 9], [10, 11]]
    pool.do()
    assert [buffer.sample() for _ in range(3)] == [[6, 7], [8, 9], [10, 11]]
    assert queue_of(buffer) == []
    assert buffer.stats().delivered == 12
    assert_consistent(buffer)


def test_index_and_batch_belong_together() -> None:
    buffer = at_once(8, batch_size=2, prefetch=2)
    buffer.extend([10, 11, 12, 13, 14, 15])
    for slot in (0, 2, 4):
        batch, info = buffer.sample(return_info=True)
        assert batch == [10 + slot, 11 + slot]
        assert info["index"].tolist() == [slot, slot + 1]


def test_a_prefetched_sample_is_as_many_sections_as_actions() -> None:
    stage = Stage()
    buffer, pool = by_hand(16, stage, batch_size=2, prefetch=2)
    buffer.extend(list(range(14)))
    before = stage.sections
    buffer.sample()
    assert stage.sections - before == 4, "Ask, two Refills, Deliver"
    pool.do()
    stage.points.clear()
    before = stage.sections
    buffer.sample()
    assert stage.sections - before == 3, "Ask, Refill, Deliver"
    assert stage.points == ["asking", "drawn", "gathered"]
    before = stage.sections
    pool.do()
    assert stage.sections - before == 1, "Ready"
    assert stage.wakes == 0, "nobody waits"


def test_other_sizes_draw_for_themselves() -> None:
    buffer = at_once(8, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4, 5, 6, 7])
    assert buffer.sample() == [1, 2]
    assert buffer.sample(1) == [5]
    assert buffer.sample(3, at_least=2) == [6, 7]
    assert buffer.sample() == [3, 4]


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_iteration_gives_full_batches_while_there_is_enough_and_ends_with_none_left(
    order: str,
) -> None:
    """L34, with real threads."""
    buffer = make(32, batch_size=3, prefetch=4, order=order, seed=5)
    buffer.extend(list(range(31)))
    buffer.shutdown()
    batches = list(buffer)
    assert [len(batch) for batch in batches] == [3] * 10 + [1]
    values = [value for batch in batches for value in batch]
    assert sorted(values) == list(range(31))
    if order == "fifo":
        assert values == list(range(31))
    assert (buffer.stats().prefetched, buffer.stats().pinned) == (0, 0)
    assert_consistent(buffer)


def test_what_is_left_now_has_the_queue_in_it() -> None:
    buffer = at_once(8, batch_size=2, prefetch=2)
    buffer.extend([1, 2, 3, 4, 5])
    assert buffer.sample() == [1, 2]
    assert list(buffer.available()) == [[3, 4], [5]]
    assert list(buffer.available()) == []


def test_equal_seeds_give_equal_batches_with_records_used_several_times() -> None:
    def run() -> list[list[int]]:
        buffer = at_once(
            16, batch_size=3, prefetch=2, order="random", seed=3, consume_after_n_samples=3
        )
        buffer.extend(list(range(12)))
        return [buffer.sample() for _ in range(8)]

    batches = run()
    assert batches == run()
    assert all(len(set(batch)) == 3 for batch in batches)
    values = [value for batch in batches for value in batch]
    assert all(values.count(value) <= 3 for value in range(12))


def test_questions_count_what_is_queued() -> None:
    buffer = at_once(4, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4])
    buffer.sample()
    assert len(buffer) == 0
    assert buffer.can_sample()
    assert buffer.can_sample(2, at_least=1)
    assert not buffer.can_sample(1)
    assert buffer.wait_until_sampleable(2, timeout=0)
    assert not buffer.wait_until_sampleable(1, timeout=0)
    assert buffer.stats().prefetched == 1
    assert "a prefetch queue of this process holds a batch of 2 records, ready" in buffer.describe()
    buffer.sample()
    assert not buffer.can_sample()
    assert buffer.stats().prefetched == 0


def test_a_closed_buffer_hands_out_the_queue_and_a_stopped_one_does_not() -> None:
    buffer = at_once(8, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4, 5, 6])
    buffer.sample()
    buffer.shutdown()
    assert buffer.sample() == [3, 4]
    assert queue_of(buffer) == [([4, 5], READY)], "draining buffers draw ahead still"
    buffer.shutdown(immediate=True)
    with pytest.raises(ShutDown, match="was stopped"):
        buffer.sample()
    assert queue_of(buffer) == [([4, 5], READY)]


def test_a_batch_is_recalled_when_a_writer_and_a_reader_of_another_size_need_it() -> None:
    stage = Stage()
    buffer = at_once(4, stage, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4])
    assert buffer.sample() == [1, 2]
    with patience() as start:
        writing = start(lambda: buffer.extend([5, 6, 7]))
        stage.await_sleepers(1)
        assert queue_of(buffer) == [], "a writer alone waits for records that nobody else can use"
        reading = start(lambda: buffer.sample(1))
        assert result(reading) == [3]
        assert result(writing).tolist() == [0, 1, 2]
    assert buffer.sample() == [4, 5]
    assert (buffer.stats().returned, buffer.stats().refusals) == (2, 0)
    assert_consistent(buffer)


def test_the_youngest_batch_is_recalled_first_and_then_there_is_a_victim() -> None:
    stage = Stage()
    buffer = at_once(6, stage, batch_size=1, prefetch=2)
    buffer.extend([1, 2, 3])
    assert buffer.sample() == [1]
    with patience() as start:
        writing = start(lambda: buffer.extend([4, 5, 6, 7, 8]))
        stage.await_sleepers(1)
        # Four are free and five are wanted; one came back, so a reader of one could be served.
        assert queue_of(buffer) == [([1], READY)]
        with pytest.raises(MutualWait, match=r"a writer of 5 .* and a reader of 3 "):
            buffer.sample(3)
        assert queue_of(buffer) == []
        assert buffer.sample(1) == [2]
        assert result(writing).tolist() == [0, 1, 3, 4, 5]
    assert_consistent(buffer)


def test_no_batch_is_recalled_while_one_is_gathered() -> None:
    stage = Stage()
    buffer, pool = by_hand(4, stage, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4])
    buffer.sample()
    with patience() as start:
        writing = start(lambda: buffer.extend([5, 6, 7]))
        stage.await_sleepers(1)
        reading = start(lambda: buffer.sample(1))
        stage.await_sleepers(2)
        assert queue_of(buffer) == [([2, 3], GATHERING)]
        pool.do()
        assert result(reading) == [3]
        result(writing)


def test_a_reader_that_waits_keeps_others_from_drawing_ahead() -> None:
    stage = Stage()
    buffer = at_once(8, stage, batch_size=1, prefetch=2)
    buffer.extend([1, 2, 3])
    with patience() as start:
        reading = start(lambda: buffer.sample(4))
        stage.await_sleepers(1)
        with pytest.raises(SampleTimeout):
            buffer.sample(timeout=0)
        buffer.extend([4])
        assert result(reading) == [1, 2, 3, 4]
    assert queue_of(buffer) == []


@pytest.mark.parametrize("limits", [Limits(calls=2), Limits(held=4)])
def test_full_tables_keep_from_drawing_ahead_and_fail_nobody(limits: Limits) -> None:
    buffer = at_once(4, batch_size=2, prefetch=2, consume_after_n_samples=8, limits=limits)
    buffer.extend([1, 2, 3, 4])
    for _ in range(8):
        buffer.sample()
        assert len(queue_of(buffer)) <= 1
    assert_consistent(buffer)


def test_empty_drops_settled_batches_and_makes_others_stale() -> None:
    stage = Stage()
    buffer, pool = by_hand(8, stage, batch_size=2, prefetch=2)
    buffer.extend([1, 2, 3, 4, 5, 6])
    buffer.sample()
    pool.do(0)
    assert queue_of(buffer) == [([2, 3], READY), ([4, 5], GATHERING)]
    buffer.empty()
    assert queue_of(buffer) == [([4, 5], GATHERING)]
    assert (buffer.stats().dropped, buffer.stats().prefetched, buffer.stats().free) == (4, 0, 6)
    assert_consistent(buffer)
    with pytest.raises(SampleTimeout):
        buffer.sample(timeout=0)
    with patience() as start:
        writing = start(lambda: buffer.extend(list(range(7))))
        stage.await_sleepers(1)
        pool.do()
        assert len(result(writing)) == 7
    assert queue_of(buffer) == []
    assert buffer.sample() == [0, 1]
    assert_consistent(buffer)


def test_a_stale_batch_counts_against_the_depth() -> None:
    buffer, pool = by_hand(8, batch_size=2, prefetch=1)
    buffer.extend([1, 2, 3, 4])
    buffer.sample()
    buffer.empty()
    buffer.extend([5, 6, 7, 8])
    assert buffer.sample() == [5, 6]
    assert queue_of(buffer) == [([2, 3], GATHERING)]
    pool.do()
    assert queue_of(buffer) == []
    assert buffer.sample() == [7, 8]


def test_a_new_transform_meets_all_that_is_drawn_afterwards() -> None:
    def negated(batch: list[int]) -> list[int]:
        return [-value for value in batch]

    stage = Stage()
    buffer, pool = by_hand(8, stage, batch_size=2, prefetch=2)
    buffer.extend([1, 2, 3, 4, 5, 6, 7, 8])
    assert buffer.sample() == [1, 2]
    pool.do(1)
    with patience() as start:
        changing = start(lambda: buffer.append_transform(negated))
        stage.await_sleepers(1)
        assert not changing.done()
        pool.do()
        result(changing)
    assert queue_of(buffer) == []
    assert buffer.sample() == [-3, -4]
    pool.do()
    assert [buffer.sample(), buffer.sample()] == [[-5, -6], [-7, -8]]


def test_prefetching_needs_a_batch_size() -> None:
    with pytest.raises(ValueError, match=r"prefetch=2 draws whole batches .* needs a batch_size"):
        make(4, prefetch=2)
    assert make(4, batch_size=1).prefetch == 0
    assert make(4, batch_size=1, prefetch=3).prefetch == 3


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("order", ["fifo", "random"])
def test_any_mix_of_calls_keeps_the_books(order: str, seed: int) -> None:
    """Every record is delivered as often as it may be, whatever happens to those drawn ahead."""
    choice = random.Random(seed)
    uses = choice.randint(1, 3)
    buffer, pool = by_hand(
        8, batch_size=2, prefetch=3, order=order, seed=seed, consume_after_n_samples=uses
    )
    delivered: list[int] = []
    written = iter(range(10_000))

    def write() -> None:
        rows = choice.randint(1, 3)
        if buffer.can_extend(rows):
            buffer.extend([next(written) for _ in range(rows)])

    def sample() -> None:
        pool.do()
        size = choice.choice([1, 2, 2, 2, 3])
        if buffer.can_sample(size):
            delivered.extend(buffer.sample(size))

    def lease() -> None:
        pool.do()
        if buffer.can_sample(2):
            held = buffer.lease(2)
            if choice.random() < 0.5:
                held.release()
            else:
                delivered.extend(held.batch)
                held.commit()

    def gather() -> None:
        if pool.jobs:
            pool.do(choice.randrange(len(pool.jobs)))

    steps: list[Callable[[], None]] = [write, write, sample, sample, sample, lease, gather]
    for _ in range(300):
        choice.choice(steps)()
        assert_consistent(buffer)
        assert ledger_of(buffer).batches.prefetched() == sorted(
            ledger_of(buffer).batches.prefetched(), key=ledger_of(buffer).batches.number
        )
    pool.do()
    with prefetcher_of(buffer).emptied():
        assert queue_of(buffer) == []
        delivered += [value for batch in buffer.available(8) for value in batch]
    total = next(written)
    while buffer.can_sample(1):
        delivered += buffer.sample(1)
    assert [delivered.count(value) for value in range(total)] == [uses] * total
