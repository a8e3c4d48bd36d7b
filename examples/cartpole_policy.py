"""The policy of the CartPole example: a small network, and one clipped policy-gradient step.

Actors play one observation at a time, where numpy is faster than torch, so the network's weights
are handed to them as arrays. The learner trains the same network in torch.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from tensordict import TensorDict

Floats = npt.NDArray[np.float32]

HIDDEN = 64
OBSERVATION = 4
ACTIONS = 2
DISCOUNT = 0.99
CLIP = 0.2
VALUE_SCALE = 100.0  # returns-to-go stay below 1 / (1 - DISCOUNT); the critic predicts a fraction


class Weights(NamedTuple):
    """The actor network as arrays: a forward pass of one observation is faster in numpy."""

    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: Floats


class Network(torch.nn.Module):
    """Two small perceptrons: one gives action logits, one the value of an observation."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(OBSERVATION, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, ACTIONS)
        self.critic = torch.nn.Sequential(
            torch.nn.Linear(OBSERVATION, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1)
        )
        with torch.no_grad():
            self.out.weight.mul_(0.01)  # start close to uniform

    def logits(self, observation: torch.Tensor) -> torch.Tensor:
        """Return action logits, shape [B, ACTIONS], for observations of shape [B, OBSERVATION]."""
        logits: torch.Tensor = self.out(torch.tanh(self.hidden(observation)))
        return logits

    def value(self, observation: torch.Tensor) -> torch.Tensor:
        """Return predicted returns-to-go over VALUE_SCALE, shape [B]."""
        value: torch.Tensor = self.critic(observation).squeeze(-1)
        return value

    def weights(self) -> Weights:
        """Copy the actor network out as arrays."""
        parts = (self.hidden.weight, self.hidden.bias, self.out.weight, self.out.bias)
        return Weights(*(part.detach().numpy().copy() for part in parts))


def choose(weights: Weights, observation: Floats, draw: float) -> tuple[int, float]:
    """Return an action and its log-probability; `draw` is uniform in [0, 1)."""
    features = np.tanh(weights.hidden @ observation + weights.hidden_bias)
    left, right = (weights.out @ features + weights.out_bias).tolist()
    right_probability = 1.0 / (1.0 + math.exp(left - right))
    if draw < right_probability:
        return 1, math.log(right_probability)
    return 0, math.log1p(-right_probability)


def returns_to_go(rewards: int) -> Floats:
    """Return discounted returns-to-go of an episode with `rewards` rewards of one each."""
    steps = np.arange(rewards, 0, -1, dtype=np.float64)
    return ((1.0 - DISCOUNT**steps) / (1.0 - DISCOUNT)).astype(np.float32)


def improve(network: Network, optimiser: torch.optim.Optimizer, batch: TensorDict) -> None:
    """Take one clipped policy-gradient step (Schulman et al. 2017) on a batch of records."""
    observation = batch["observation"]
    target = batch["return_to_go"] / VALUE_SCALE
    value = network.value(observation)
    advantage = target - value.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    log_probs = torch.log_softmax(network.logits(observation), dim=-1)
    log_prob = log_probs.gather(1, batch["action"].unsqueeze(1)).squeeze(1)
    ratio = torch.exp(log_prob - batch["log_prob"])
    clipped = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
    entropy = -(log_probs.exp() * log_probs).sum(dim=-1).mean()
    loss = (
        -torch.minimum(ratio * advantage, clipped * advantage).mean()
        + 0.5 * (target - value).square().mean()
        - 0.01 * entropy
    )
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
