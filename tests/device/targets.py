"""The targets, for tests of what drives all of them."""

import pytest
import torch
from forebay_models.targets import Target

on_cuda = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
EVERY_TARGET = [
    pytest.param(target, marks=on_cuda if target is Target.CUDA else ()) for target in Target
]
"""Each as a parameter; that of a CUDA device is skipped where there is none."""
