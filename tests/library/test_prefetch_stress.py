"""Many threads at once over a buffer that draws ahead: nothing lost, nothing twice, no hang."""

import threading
from collections import Counter
from functools import partial

import pytest
from forebay import BlockingReplayBuffer

from tests.library.queues import await_no_pool_threads
from tests.library.support import assert_consistent, make, patience, result
from tests.library.test_stress import PRODUCERS, READERS, assert_whole, consume, produce


def count_off(buffer: BlockingReplayBuffer, stop: threading.Event) -> int:
    """Look at the buffer until told to stop; no look may find more ahead than there can be."""
    looks = 0
    while not stop.is_set():
        stats = buffer.stats()
        assert stats.prefetched <= 3
        assert stats.free + stats.filling + stats.pinned <= 8
        looks += 1
    return looks


@pytest.mark.parametrize("order", ["fifo", "random"])
@pytest.mark.parametrize("uses", [1, 3])
def test_what_is_admitted_is_delivered_as_often_as_it_may_be(order: str, uses: int) -> None:
    """Batches are recalled all the time, since the producers need the room they take."""
    buffer = make(8, order=order, consume_after_n_samples=uses, seed=1, batch_size=2, prefetch=3)
    stop = threading.Event()
    with patience() as start:
        producers = [start(partial(produce, buffer, me)) for me in range(PRODUCERS)]
        readers = [start(partial(consume, buffer, me)) for me in range(READERS)]
        looker = start(partial(count_off, buffer, stop))
        try:
            written = [record for producer in producers for record in result(producer)]
            buffer.shutdown()
            taken = [record for reader in readers for record in result(reader)]
        finally:
            stop.set()
        assert result(looker) > 0
    # Who asked for another size was told that nothing is left; the queue is for this one.
    taken += [record for batch in buffer for record in batch]
    assert Counter(taken) == dict.fromkeys(written, uses)
    assert_whole(written)
    stats = buffer.stats()
    assert stats.admitted == len(written) == stats.spent
    assert stats.delivered == len(taken)
    assert (stats.sampleable, stats.free, stats.pinned, stats.filling) == (0, 8, 0, 0)
    assert stats.refusals == READERS + 1, "nobody was a victim"
    buffer.shutdown()
    await_no_pool_threads()
    assert_consistent(buffer)
