"""Many threads at once: whole batches, exact uses, nothing lost, nothing invented.

Each run is bounded by its amount of work, and its threads are joined whatever happens.
"""

import random
from collections import Counter
from functools import partial

import pytest
import torch
from forebay import (
    AdmissionTimeout,
    BlockingReplayBuffer,
    Cancelled,
    SampleTimeout,
    ShutDown,
    TensorStorage,
)

from tests.library.support import assert_consistent, make, patience, result

PRODUCERS, READERS, BATCHES = 3, 3, 80
Record = tuple[int, int, int, int]


def produce(buffer: BlockingReplayBuffer, me: int) -> list[Record]:
    """Write batches of records (producer, batch, row, rows); return those that were admitted."""
    choice = random.Random(me)
    written: list[Record] = []
    for number in range(BATCHES):
        rows = choice.randint(1, 4)
        batch = [(me, number, row, rows) for row in range(rows)]
        token = buffer.cancel_token() if choice.random() < 0.2 else None
        timeout = choice.choice([None, None, 0.0, 1e-3])
        if token is not None and choice.random() < 0.5:
            token.set()
        try:
            buffer.extend(batch, timeout=timeout, cancel_event=token)
        except (AdmissionTimeout, Cancelled):
            continue
        written += batch
    return written


def consume(buffer: BlockingReplayBuffer, me: int) -> list[Record]:
    """Read until the buffer is drained; return what was delivered."""
    choice = random.Random(100 + me)
    taken: list[Record] = []
    while True:
        rows = choice.randint(1, 4)
        try:
            if choice.random() < 0.4:
                lease = buffer.lease(rows, at_least=1, timeout=choice.choice([None, 1e-3]))
                if choice.random() < 0.5:
                    lease.release()
                else:
                    taken += lease.batch
                    lease.commit()
            else:
                taken += buffer.sample(rows, at_least=1, timeout=choice.choice([None, 1e-3]))
        except SampleTimeout:
            continue
        except ShutDown:
            return taken


@pytest.mark.parametrize("order", ["fifo", "random"])
@pytest.mark.parametrize("uses", [1, 2, 3])
def test_what_is_admitted_is_delivered_as_often_as_it_may_be(order: str, uses: int) -> None:
    buffer = make(8, order=order, consume_after_n_samples=uses, seed=1)
    with patience() as start:
        producers = [start(partial(produce, buffer, me)) for me in range(PRODUCERS)]
        readers = [start(partial(consume, buffer, me)) for me in range(READERS)]
        written = [record for producer in producers for record in result(producer)]
        buffer.shutdown()
        taken = [record for reader in readers for record in result(reader)]
    assert Counter(taken) == dict.fromkeys(written, uses)
    assert_whole(written)
    stats = buffer.stats()
    assert stats.admitted == len(written) == stats.spent
    assert stats.delivered == len(taken)
    assert (stats.sampleable, stats.free, stats.pinned, stats.filling) == (0, 8, 0, 0)
    assert (stats.waiting_writers, stats.waiting_readers) == (0, 0)
    assert_consistent(buffer)


def assert_whole(written: list[Record]) -> None:
    sizes = Counter((me, number) for me, number, _, _ in written)
    assert all(sizes[me, number] == rows for me, number, _, rows in written)


def test_batches_of_several_producers_are_not_interleaved() -> None:
    """With one reader in arrival order, the rows of each batch come one after the other."""
    buffer = make(8)
    with patience() as start:
        producers = [start(partial(produce, buffer, me)) for me in range(PRODUCERS)]
        reader = start(lambda: consume_in_order(buffer))
        for producer in producers:
            result(producer)
        buffer.shutdown()
        taken = result(reader)
    rows_due = 0
    for me, number, row, rows in taken:
        assert row == (0 if not rows_due else rows - rows_due), (me, number)
        rows_due = rows - row - 1
    assert rows_due == 0


def consume_in_order(buffer: BlockingReplayBuffer) -> list[Record]:
    taken: list[Record] = []
    while True:
        try:
            taken += buffer.sample(3, at_least=1)
        except ShutDown:
            return taken


def test_no_torn_rows_when_writing_and_reading_at_once() -> None:
    """L11, on the host: every row that is read has one value in all of its elements."""
    buffer = BlockingReplayBuffer(TensorStorage(32))
    rows, width, rounds = 8, 512, 150

    def write(me: int) -> None:
        for number in range(rounds):
            value = float(me * rounds + number)
            buffer.extend({"x": torch.full((rows, width), value)})

    def read() -> set[float]:
        seen: set[float] = set()
        while True:
            try:
                batch = buffer.sample(rows)["x"]
            except ShutDown:
                return seen
            assert (batch == batch[:, :1]).all()
            seen |= set(batch[:, 0].tolist())

    with patience() as start:
        writers = [start(partial(write, me)) for me in range(2)]
        readers = [start(read) for _ in range(2)]
        for writer in writers:
            result(writer)
        buffer.shutdown()
        seen = set().union(*(result(reader) for reader in readers))
    assert seen == {float(value) for value in range(2 * rounds)}
