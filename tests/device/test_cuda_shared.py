"""A CUDA device that several processes share, each started by spawn: what the simulated one does.

Nothing of it has to be different there, so these are the runs of
`tests/processes/test_shared_device.py`.
"""

import pytest
import torch

from tests.processes import on_device_runs as runs
from tests.processes.on_device import Kind, cuda

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
CUDA = Kind(cuda, "spawn")


def test_all_that_several_processes_write_is_read_once_and_whole() -> None:
    runs.all_is_read_once(CUDA, readers=2)


def test_a_write_is_there_when_others_see_it() -> None:
    runs.a_write_is_there_when_others_see_it(CUDA)


def test_what_was_read_stays_what_it_was() -> None:
    runs.what_was_read_stays(CUDA)


def test_batches_that_are_drawn_ahead_are_whole() -> None:
    runs.batches_drawn_ahead_are_whole(CUDA)


@pytest.mark.parametrize("place", ["admitted", "queued", "copied"])
def test_what_a_killed_writer_was_filling_is_free_again(place: str) -> None:
    runs.a_dead_writer_is_recovered(CUDA, place)


def test_the_lease_of_a_killed_reader_returns() -> None:
    runs.the_lease_of_a_dead_reader_returns(CUDA)


@pytest.mark.parametrize("blocked", ["reader", "writer"])
def test_who_waits_and_who_comes_later_is_told_of_the_owners_death(blocked: str) -> None:
    runs.the_end_of_the_owner_is_told(CUDA, blocked)


@pytest.mark.parametrize("work", ["read", "write"])
def test_what_was_queued_when_the_owner_died_is_not_delivered(work: str) -> None:
    runs.nothing_is_delivered_after_the_end_of_the_owner(CUDA, work)


def test_a_buffer_that_was_stopped_has_not_failed_when_its_owner_ends() -> None:
    runs.an_orderly_end_is_no_loss(CUDA)


def test_only_the_owner_can_hand_a_buffer_on() -> None:
    runs.only_the_owner_hands_on(CUDA)


def test_a_process_that_gets_a_buffer_twice_has_one() -> None:
    runs.a_second_handle_is_the_same_buffer(CUDA)
