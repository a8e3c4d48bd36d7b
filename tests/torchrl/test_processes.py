"""Collectors with worker processes write to one buffer, and end when it closes.

Workers get the buffer, or a writer of it, as an argument of their process. TorchRL spawns them;
with another start method set they are forked, and the same handle arrives without being pickled.
"""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from forebay import BlockingReplayBuffer, SharedStorage
from forebay.torchrl import example
from tensordict import TensorDict
from torchrl.collectors import MultiAsyncCollector, MultiSyncCollector

from tests.processes.support import PATIENCE, until

from .support import actor, leaves, one_env, two_envs

FRAMES = 32

pytestmark = pytest.mark.slow


def shared(record: TensorDict, capacity: int = 2 * FRAMES) -> BlockingReplayBuffer:
    """Return a buffer for all processes."""
    return BlockingReplayBuffer(SharedStorage(capacity, example=record), batch_size=FRAMES)


@contextmanager
def collecting(kind: Any, buffer: BlockingReplayBuffer, **arguments: Any) -> Iterator[Any]:
    """Give a collector with two workers, which are all gone afterwards."""
    arguments = {"create_env_fn": [one_env, one_env], "replay_buffer": buffer, **arguments}
    collector = kind(frames_per_batch=FRAMES, **arguments)
    workers = list(collector.procs)
    try:
        yield collector
    finally:
        try:
            buffer.shutdown(immediate=True)
            collector.shutdown(timeout=PATIENCE)
        finally:
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.join(PATIENCE)


@pytest.fixture
def forked() -> Iterator[None]:
    """Have TorchRL fork its workers."""
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    try:
        yield
    finally:
        multiprocessing.set_start_method(before, force=True)


def ends(collector: Any) -> list[int]:
    """Stop a collector and return the exit codes of its workers."""
    workers = list(collector.procs)
    collector.shutdown(timeout=PATIENCE)
    return [worker.exitcode for worker in workers]


@pytest.mark.parametrize("kind", [MultiSyncCollector, MultiAsyncCollector])
def test_the_frames_of_all_workers_arrive(kind: Any) -> None:
    record = example(one_env)
    buffer = shared(record)
    with collecting(kind, buffer, total_frames=4 * FRAMES) as collector:
        for _ in collector:
            batch = buffer.sample(timeout=PATIENCE)
            assert leaves(batch, 1) == leaves(record)
        buffer.shutdown()
        assert ends(collector) == [0, 0]
    stats = buffer.stats()
    assert stats.delivered == 4 * FRAMES
    assert stats.admitted == stats.delivered + stats.sampleable


def test_workers_that_wait_for_room_end_well_when_the_buffer_closes() -> None:
    buffer = shared(example(one_env))
    writer = buffer.writer(when_closed="discard")
    with collecting(
        MultiAsyncCollector, buffer, replay_buffer=writer, total_frames=-1
    ) as collector:
        collector.start()
        for _ in range(10):
            assert len(buffer.sample(timeout=PATIENCE)) == FRAMES
        until(lambda: buffer.stats().waiting_writers == 2)
        buffer.shutdown()
        assert ends(collector) == [0, 0]
    stats = buffer.stats()
    assert stats.refusals >= 2
    assert stats.admitted == stats.delivered + stats.sampleable
    assert stats.delivered == 10 * FRAMES


def test_a_killed_worker_does_not_stop_the_other() -> None:
    buffer = shared(example(one_env))
    writer = buffer.writer(when_closed="discard")
    with collecting(
        MultiAsyncCollector, buffer, replay_buffer=writer, total_frames=-1
    ) as collector:
        first = collector.procs[0]
        collector.start()
        until(lambda: buffer.stats().waiting_writers == 2)
        os.kill(first.pid, signal.SIGKILL)
        first.join(PATIENCE)
        for _ in range(10):
            assert len(buffer.sample(timeout=PATIENCE)) == FRAMES
        buffer.shutdown()
        assert ends(collector) == [-signal.SIGKILL, 0]
    assert buffer.stats().recoveries == 1


def test_a_policy_and_batches_of_environments_go_with_workers() -> None:
    env = two_envs()
    policy = actor(env)
    record = example(env, policy, auto_register_policy_transforms=False)
    buffer = shared(record)
    trajectories: set[int] = set()
    with collecting(
        MultiSyncCollector,
        buffer,
        create_env_fn=[two_envs, two_envs],
        policy=policy,
        total_frames=2 * FRAMES,
        auto_register_policy_transforms=False,
    ) as collector:
        for _ in collector:
            batch = buffer.sample(timeout=PATIENCE)
            assert leaves(batch, 1) == leaves(record)
            assert bool((batch["action"].sum(-1) == 1).all())
            assert bool((batch["action_log_prob"] < 0).all())
            trajectories |= set(batch["collector", "traj_ids"].tolist())
        buffer.shutdown()
        assert ends(collector) == [0, 0]
    env.close()
    # The first ones of both environments of both workers.
    assert {0, 1, 2, 3} <= trajectories
    assert buffer.stats().delivered == 2 * FRAMES


@pytest.mark.usefixtures("forked")
def test_forked_workers_write_to_the_same_buffer() -> None:
    threads = torch.get_num_threads()
    buffer = shared(example(one_env))
    with collecting(MultiSyncCollector, buffer, total_frames=2 * FRAMES) as collector:
        for _ in collector:
            assert len(buffer.sample(timeout=PATIENCE)) == FRAMES
        buffer.shutdown()
        assert ends(collector) == [0, 0]
    torch.set_num_threads(threads)
    assert buffer.stats().delivered == 2 * FRAMES
