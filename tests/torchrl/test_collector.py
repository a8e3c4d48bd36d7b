"""`Collector` writes to a buffer through the names that it knows from TorchRL's own."""

import threading
from typing import Any

import pytest
import torch
from forebay import BlockingReplayBuffer, RecordMismatch, TensorStorage
from forebay.torchrl import example
from tensordict import TensorDictBase
from torchrl.collectors import Collector, MultiAsyncCollector, MultiSyncCollector
from torchrl.collectors.distributed import RayCollector
from torchrl.modules import RandomPolicy
from torchrl.modules.llm.trl_interop import TorchRLBufferDataset

from tests.processes.support import until

from .support import ENVS, MakeEnv, actor, buffer_of, leaves, one_env, same

PATIENCE = 60.0
"""Seconds after which a test gives up; reaching them is a failure."""


@pytest.mark.parametrize("make_env", ENVS)
def test_every_frame_arrives_in_order(make_env: MakeEnv) -> None:
    seen: list[TensorDictBase] = []
    buffer = buffer_of(16, 8)
    collector = Collector(
        make_env,
        replay_buffer=buffer,
        frames_per_batch=8,
        total_frames=40,
        post_collect_hook=lambda batch: seen.append(batch.contiguous().clone()),
    )
    try:
        for _ in collector:
            batch = buffer.sample()
            assert same(batch, seen[-1].flatten())
    finally:
        collector.shutdown()
    assert len(seen) == 5
    assert (buffer.write_count, buffer.stats().delivered) == (40, 40)


def test_steps_arrive_one_by_one_where_the_collector_adds_them() -> None:
    buffer = buffer_of(8, 8)
    collector = Collector(
        one_env, replay_buffer=buffer, frames_per_batch=4, total_frames=8, extend_buffer=False
    )
    try:
        for _ in collector:
            pass
    finally:
        collector.shutdown()
    stats = buffer.stats()
    assert (stats.admitted, stats.admitted_batches) == (8, 8)
    batch = buffer.sample()
    # Each step starts where the one before has ended, since no episode ends so soon.
    assert torch.equal(batch["observation"][1:], batch["next", "observation"][:-1])


def test_whole_trajectories_arrive() -> None:
    buffer = buffer_of(256, 1)
    collector = Collector(
        one_env, replay_buffer=buffer, frames_per_batch=64, total_frames=128, trajs_per_batch=1
    )
    try:
        for _ in collector:
            pass
    finally:
        collector.shutdown()
    batch = buffer.sample(len(buffer))
    ids = batch["collector", "traj_ids"]
    last = torch.cat([ids[1:] != ids[:-1], torch.tensor([True])])
    assert torch.equal(batch["next", "done"].squeeze(-1), last)
    assert 1 < len(batch) <= 128


def test_the_write_count_ends_the_random_frames() -> None:
    buffer = buffer_of(16, 16)
    env = one_env()
    chosen: list[int] = []

    def policy(record: TensorDictBase) -> TensorDictBase:
        chosen.append(buffer.write_count)
        return record.set("action", env.action_spec.rand())

    collector = Collector(
        env,
        policy,
        replay_buffer=buffer,
        frames_per_batch=4,
        total_frames=16,
        init_random_frames=8,
    )
    try:
        for _ in collector:
            pass
    finally:
        collector.shutdown()
    assert buffer.write_count == 16
    assert [count for count in chosen if count] == [8] * 4 + [12] * 4


def test_random_frames_that_lack_what_the_policy_adds_are_refused() -> None:
    env = one_env()
    policy = actor(env)
    record = example(env, policy, auto_register_policy_transforms=False)
    buffer = buffer_of(16, 16, record)
    collector = Collector(
        env,
        policy,
        replay_buffer=buffer,
        frames_per_batch=4,
        total_frames=8,
        init_random_frames=4,
        auto_register_policy_transforms=False,
    )
    try:
        with pytest.raises(RecordMismatch, match="logits"):
            next(iter(collector))
    finally:
        collector.shutdown()
    assert buffer.write_count == 0


def test_a_collector_in_the_background_waits_and_ends_when_the_buffer_closes() -> None:
    buffer = buffer_of(16, 8)
    collector = Collector(
        one_env,
        replay_buffer=buffer.writer(when_closed="discard"),
        frames_per_batch=8,
        total_frames=-1,
    )
    try:
        collector.start()
        for _ in range(20):
            assert len(buffer.sample(timeout=PATIENCE)) == 8
        until(lambda: buffer.stats().waiting_writers == 1)
    finally:
        buffer.shutdown()
        collector.async_shutdown(timeout=PATIENCE)
    assert not collector.is_running()
    stats = buffer.stats()
    assert stats.admitted == stats.delivered + len(buffer)
    assert stats.refusals >= 1
    assert stats.admitted <= stats.delivered + 16


def test_a_learner_iterates_over_what_a_collector_writes() -> None:
    buffer = buffer_of(16, 8)
    collector = Collector(one_env, replay_buffer=buffer, frames_per_batch=8, total_frames=64)

    def collect() -> None:
        try:
            for _ in collector:
                pass
        finally:
            buffer.shutdown()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    try:
        observed = [batch["observation"] for batch in buffer]
    finally:
        buffer.shutdown(immediate=True)
        thread.join(PATIENCE)
        collector.shutdown()
    assert not thread.is_alive()
    assert sum(len(part) for part in observed) == 64


def test_a_collector_knows_the_buffer_by_its_names() -> None:
    buffer = buffer_of(16, 8)
    for given in (buffer, buffer.writer()):
        collector = Collector(
            one_env, replay_buffer=given, frames_per_batch=8, total_frames=8, policy=RandomPolicy()
        )
        try:
            next(iter(collector))
            assert collector.getattr_rb("write_count") == buffer.write_count
            assert collector.getattr_rb("batch_size") == 8
        finally:
            collector.shutdown()
    assert leaves(buffer.sample(), 1) == leaves(example(one_env))


@pytest.mark.parametrize("through_writer", [False, True], ids=["buffer", "writer"])
@pytest.mark.parametrize("kind", [MultiSyncCollector, MultiAsyncCollector])
def test_a_buffer_of_threads_is_refused_by_collectors_with_processes(
    kind: Any, through_writer: bool
) -> None:
    buffer = BlockingReplayBuffer(TensorStorage(16), batch_size=8)
    given = buffer.writer() if through_writer else buffer
    with pytest.raises(NotImplementedError, match="SharedStorage"):
        kind([one_env, one_env], replay_buffer=given, frames_per_batch=8, total_frames=8)


def test_what_asks_for_a_buffer_of_torchrl_refuses_ours() -> None:
    buffer = buffer_of(16, 8)
    with pytest.raises(TypeError, match="service_backend='ray'"):
        RayCollector([one_env], replay_buffer=buffer, frames_per_batch=8, total_frames=8)
    with pytest.raises(TypeError, match="torchrl ReplayBuffer instance"):
        TorchRLBufferDataset(buffer, batch_size=8)
