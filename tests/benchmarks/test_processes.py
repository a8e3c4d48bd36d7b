"""The benchmarks between processes measure what they say, and leave no process behind."""

import multiprocessing
import re

import pytest
import torch
from tensordict import TensorDict

from benchmarks.between import BATCHES, Channel, SharedOurs, SharedQueue, writer
from benchmarks.peers import small
from benchmarks.processes import main
from benchmarks.waiting import (
    after_a_death_inside,
    after_a_death_with_a_lease,
    blocked_readers,
    wake_up,
)

FORK = multiprocessing.get_context("fork")


@pytest.mark.parametrize("kind", BATCHES)
def test_our_channel_hands_over_whole_batches_between_processes(kind: str) -> None:
    batch = BATCHES[kind](8)
    ours = SharedOurs(batch)
    with writer(ours, batch, FORK) as run:
        run(5)
        assert ours.buffer.stats().delivered == 40
    ours.put(batch)
    drawn = ours.get()
    assert isinstance(drawn, TensorDict)
    assert all(torch.equal(drawn[name], batch[name]) for name in batch.keys())  # noqa: SIM118  # a TensorDict
    assert multiprocessing.active_children() == []


def test_the_queue_hands_over_whole_batches_between_processes() -> None:
    batch = small(8)
    queue: Channel = SharedQueue(batch, FORK)
    with writer(queue, batch, FORK) as run:
        run(5)
    queue.put(batch)
    drawn = queue.get()
    assert isinstance(drawn, dict)
    assert (drawn["obs"] == batch["obs"].numpy()).all()
    assert multiprocessing.active_children() == []


def test_a_blocked_writer_is_timed_in_every_way_of_freeing() -> None:
    found = wake_up(2)
    assert {name: len(seconds) for name, seconds in found.items()} == {
        "forebay": 2,
        "forebay, end of a lease alone": 2,
        "multiprocessing.Queue": 2,
    }
    assert all(second > 0 for seconds in found.values() for second in seconds)
    assert multiprocessing.active_children() == []


def test_deaths_are_timed_until_the_next_call_is_done() -> None:
    for measure in (after_a_death_inside, after_a_death_with_a_lease):
        assert [second > 0 for second in measure(2)] == [True, True]
    assert multiprocessing.active_children() == []


def test_blocked_readers_say_what_share_of_a_core_they_use() -> None:
    shares = blocked_readers(3, 0.1)
    assert len(shares) == 3
    assert all(0 < share < 1 for share in shares)
    assert multiprocessing.active_children() == []


def test_what_a_buffer_takes_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.processes.settle", lambda: "a machine")
    monkeypatch.setattr("benchmarks.processes.CAPACITIES", (1024,))
    assert main(["memory", "--repetitions", "1"]) == 0
    printed = capsys.readouterr().out
    found = re.search(r"capacity +1024: ledger and journal (\d+) bytes, (\d+)\.\d a slot", printed)
    assert found is not None, printed
    assert int(found[1]) // 1024 == int(found[2])


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["P2"])
    assert "unknown case P2; there are P5, P8, P9, memory" in capsys.readouterr().err
