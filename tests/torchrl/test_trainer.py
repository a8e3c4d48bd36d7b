"""TorchRL's trainers learn from a buffer as they do from one of TorchRL's."""

from typing import Any

import pytest
import torch
from forebay import BlockingReplayBuffer
from tensordict import TensorDictBase
from torch import nn
from torchrl.collectors import Collector
from torchrl.modules import ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from torchrl.trainers import ReplayBufferTrainer, Trainer
from torchrl.trainers.algorithms import PPOTrainer

from .support import actor, buffer_of, one_env

# What torchrl's own trainers say about themselves.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PPOTrainer is an experimental:UserWarning"),
    pytest.mark.filterwarnings("ignore:The '(optimizer|post_loss)' hook stage:FutureWarning"),
]
FRAMES = 64
SUB_BATCH = 16


class Course:
    """A loss with its networks, and the arguments that all trainers take."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.env = one_env()
        self.policy = actor(self.env)
        self.loss = ClipPPOLoss(self.policy, ValueOperator(nn.Linear(4, 1), ["observation"]))
        self.before = [weight.detach().clone() for weight in self.loss.parameters()]

    def collector(self, **arguments: Any) -> Collector:
        return Collector(self.env, self.policy, auto_register_policy_transforms=False, **arguments)

    def arguments(self, total_frames: int) -> dict[str, Any]:
        return {
            "total_frames": total_frames,
            "frame_skip": 1,
            "loss_module": self.loss,
            "optimizer": torch.optim.Adam(self.loss.parameters(), 1e-3),
            "progress_bar": False,
            "optim_steps_per_batch": FRAMES // SUB_BATCH,
        }

    def has_learned(self) -> bool:
        """Tell whether every weight has changed and is a number."""
        after = list(self.loss.parameters())
        return all(
            bool(weight.isfinite().all()) and not torch.equal(weight, old)
            for weight, old in zip(after, self.before, strict=True)
        )


def counts(buffer: BlockingReplayBuffer) -> tuple[int, int, int]:
    """Return how many records were written, read, and are left."""
    stats = buffer.stats()
    return stats.admitted, stats.delivered, stats.sampleable


@pytest.mark.filterwarnings("ignore:Sampler is not a SamplerWithoutReplacement:UserWarning")
def test_ppo_learns_from_each_frame_once_an_epoch() -> None:
    course = Course()
    buffer = buffer_of(FRAMES, SUB_BATCH)
    trainer = PPOTrainer(
        collector=course.collector(frames_per_batch=FRAMES, total_frames=3 * FRAMES),
        replay_buffer=buffer,
        num_epochs=2,
        **course.arguments(3 * FRAMES),
    )
    trainer.train()
    assert counts(buffer) == (6 * FRAMES, 6 * FRAMES, 0)
    assert trainer.collected_frames == 3 * FRAMES
    assert course.has_learned()


def test_ppo_learns_while_a_collector_writes_in_the_background() -> None:
    course = Course()
    buffer = buffer_of(FRAMES, SUB_BATCH)
    advantages = GAE(gamma=0.99, lmbda=0.95, value_network=course.loss.critic_network)

    def with_advantages(batch: TensorDictBase) -> TensorDictBase:
        done: TensorDictBase = advantages(batch.contiguous())
        return done

    collector = course.collector(
        replay_buffer=buffer.writer(when_closed="discard"),
        frames_per_batch=FRAMES // 2,
        total_frames=-1,
        postproc=with_advantages,
    )
    trainer = PPOTrainer(
        collector=collector,
        replay_buffer=buffer,
        async_collection=True,
        add_gae=False,
        num_epochs=1,
        **course.arguments(4 * FRAMES),
    )
    trainer.register_op("shutdown", buffer.shutdown)
    try:
        trainer.train()
    finally:
        buffer.shutdown()
        collector.shutdown()
    written, read, left = counts(buffer)
    assert written >= 4 * FRAMES
    assert written == read + left
    assert read >= 3 * FRAMES
    assert course.has_learned()


def test_the_replay_buffer_hook_learns_from_each_frame_once() -> None:
    course = Course()
    advantages = GAE(gamma=0.99, lmbda=0.95, value_network=course.loss.critic_network)
    buffer = buffer_of(FRAMES, SUB_BATCH)
    trainer = Trainer(
        collector=course.collector(frames_per_batch=FRAMES, total_frames=2 * FRAMES),
        **course.arguments(2 * FRAMES),
    )
    trainer.register_op("batch_process", advantages)
    ReplayBufferTrainer(buffer, flatten_tensordicts=True).register(trainer)
    trainer.train()
    assert counts(buffer) == (2 * FRAMES, 2 * FRAMES, 0)
    assert course.has_learned()
