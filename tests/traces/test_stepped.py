"""Driven step by step, the library writes down exactly the steps that it was told to take."""

from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from forebay import Trace
from forebay_models.adapters.handles import BlockingHandle
from forebay_models.adapters.local import LocalAdapter
from forebay_models.tracing.files import OF_HOLDS, read_trace
from forebay_spec.actions import Label, Machine
from forebay_spec.bounds import QUICK, Bounds
from forebay_spec.events import Event

STEPS = 150


def walked(bounds: Bounds, path: Path, seed: int) -> list[Label]:
    """Take random steps and write a trace; return the steps."""
    trace, machine, dice = Trace(path), Machine(bounds), Random(seed)
    traced = partial(BlockingHandle, trace=trace)
    with patch("forebay_models.adapters.handles.BlockingHandle", traced):
        adapter = LocalAdapter(bounds)
    taken, state = [], machine.initial()
    try:
        for step in range(STEPS):
            # A buffer that is closed, cancelled or emptied all the time does little.
            rare = {"Close", "Empty", "SetCancel"} if step < STEPS - 40 else set()
            if step % 30 == 0:
                rare.discard("Empty")
            label = dice.choice([each for each in machine.labels(state) if each.name not in rare])
            adapter.apply(label)
            (state,) = machine.apply(state, label)
            taken.append(label)
        trace.flush()
    finally:
        adapter.close()
    return taken


def label_of(event: Event) -> Label:
    actor = (event.actor or "").removeprefix("stepped-")
    if event.name == "SetCancel":
        return Label("SetCancel", ("t1",))
    if event.actor is None or event.name in OF_HOLDS:
        return Label(event.name, event.args)
    return Label(event.name, (actor, *event.args))


@pytest.mark.parametrize("graph", ["writers", "readers", "leases", "cancel"])
def test_the_trace_has_the_labels_of_the_specification(graph: str, tmp_path: Path) -> None:
    taken = walked(QUICK[graph], tmp_path / "trace.jsonl", seed=3)
    events = read_trace(tmp_path / "trace.jsonl").events
    assert [label_of(event) for event in events] == taken
    assert len({label.name for label in taken}) > 6
