"""What the tests with TorchRL share: small environments, policies, and how to look at batches."""

from collections.abc import Callable

import pytest
import torch
from forebay import BlockingReplayBuffer, TensorStorage
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModule
from torchrl.envs import EnvBase, GymEnv, SerialEnv, StepCounter, TransformedEnv
from torchrl.modules import MLP, OneHotCategorical, ProbabilisticActor

Leaves = dict[str, tuple[torch.dtype, tuple[int, ...]]]


def one_env() -> EnvBase:
    """Return an environment without batch dimensions."""
    return GymEnv("CartPole-v1")


def two_envs() -> EnvBase:
    """Return a batch of two environments."""
    return SerialEnv(2, one_env)


def counted_env() -> EnvBase:
    """Return an environment whose transform adds a key."""
    return TransformedEnv(one_env(), StepCounter())


ENVS = [
    pytest.param(one_env, id="one"),
    pytest.param(two_envs, id="two"),
    pytest.param(counted_env, id="counted"),
]
MakeEnv = Callable[[], EnvBase]


def actor(env: EnvBase) -> ProbabilisticActor:
    """Return a policy that adds more than the action: logits and a log-probability."""
    network = TensorDictModule(
        MLP(in_features=4, out_features=2, num_cells=[8]), ["observation"], ["logits"]
    )
    return ProbabilisticActor(
        network,
        in_keys=["logits"],
        out_keys=["action"],
        spec=env.action_spec,
        distribution_class=OneHotCategorical,
        return_log_prob=True,
    )


def leaves(batch: TensorDictBase, batch_dims: int = 0) -> Leaves:
    """Return the dtype and the shape, without batch dimensions, of each leaf by dotted name."""
    return {
        key if isinstance(key, str) else ".".join(key): (
            value.dtype,
            tuple(value.shape[batch_dims:]),
        )
        for key, value in batch.items(include_nested=True, leaves_only=True)
    }


def same(left: TensorDictBase, right: TensorDictBase) -> bool:
    """Tell whether two batches have the same leaves and values."""
    return leaves(left) == leaves(right) and bool((left == right).all())


def buffer_of(
    capacity: int, batch_size: int, example: TensorDict | None = None
) -> BlockingReplayBuffer:
    """Return a buffer in arrival order that says who waits after a few seconds."""
    return BlockingReplayBuffer(
        TensorStorage(capacity, example=example), batch_size=batch_size, stall_warning=5.0
    )
