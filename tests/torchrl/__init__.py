"""TorchRL's collectors and trainers on our buffer, unchanged."""

import pytest

pytest.importorskip(
    "torchrl", reason="torchrl is not installed; pip install 'forebay[torchrl]' has it"
)
