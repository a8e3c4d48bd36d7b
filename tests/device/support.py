"""What the tests of the simulated device have in common."""

import torch
from forebay_models.device.queues import SimulatedStream
from forebay_models.device.simulated import SimulatedDevice


def numbers(*values: int) -> torch.Tensor:
    """Return rows of two words each, of these numbers."""
    return torch.tensor([[value, value] for value in values])


def run(device: SimulatedDevice, stream: SimulatedStream) -> None:
    """Carry out all that a stream can."""
    while device.step(stream):
        pass
