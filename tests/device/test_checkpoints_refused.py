"""What is left of a checkpoint that an interrupt or a fault ends, on a device: all or nothing."""

import gc
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from forebay import BlockingReplayBuffer, CheckpointError
from forebay_models.device.simulated import SimulatedDevice

from tests.device.checkpoints import (
    SORTS,
    SimulatedStorage,
    drained,
    make,
    on_device,
    on_host,
    settle,
)
from tests.library.interrupts import interrupted as interrupted_at
from tests.library.saving import assert_nothing_left


def interrupted(
    device: SimulatedDevice, operation: str, after: int, call: Callable[[], object]
) -> bool:
    """Call with an interrupt in an operation of the port; False if it had no so many of them."""
    honest, left = getattr(device, operation), after

    def interrupt(*args: object) -> object:
        nonlocal left
        left -= 1
        if left == -1:
            raise KeyboardInterrupt
        result = honest(*args)
        if left == -2:
            raise KeyboardInterrupt
        return result

    with patch.object(device, operation, interrupt):
        try:
            call()
        except KeyboardInterrupt:
            return True
    assert left >= 0, "an interrupt that came has to be raised"
    return False


STRIDE = 11
"""Between places that are interrupted; all of them would take minutes."""

OPERATIONS = ("copy", "put", "record", "synchronize", "empty", "staging", "wait")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_interrupt_leaves_the_old_buffer_or_the_new_one(operation: str) -> None:
    source, new = on_host(SORTS["dict"])
    state = source.state_dict()
    seen = set()
    for after in range(200):
        device = SimulatedDevice(after)
        target = on_device(device, "dict", 4)
        old = 1
        with device.on(device.stream("loader")):
            raised = interrupted(device, operation, after, partial(target.load_state_dict, state))
        assert_nothing_left(target)
        restored = target.stats().prefetched == 2
        batches = drained(device, target, 3 if restored else old)
        assert batches == new if restored else len(batches) == old
        settle(device)
        seen.add((raised, restored))
        if not raised:
            break
    assert not raised, "there was no end to it"
    assert (False, True) in seen


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_interrupted_capture_leaves_nothing(operation: str) -> None:
    _, rest = on_host(SORTS["dict"])
    for after in range(200):
        device = SimulatedDevice(after)
        buffer = on_device(device, "dict")
        with device.on(device.stream("saver")):
            raised = interrupted(device, operation, after, buffer.state_dict)
        assert_nothing_left(buffer)
        with device.on(device.stream("saver")):
            state = buffer.state_dict()
        assert state["records"]["data"]["x"].tolist() == list(range(2, 8))
        assert drained(device, buffer) == rest
        settle(device)
        if not raised:
            break
    assert not raised, "there was no end to it"


def test_an_interrupt_anywhere_in_a_load_leaves_the_old_buffer_or_the_new_one() -> None:
    source, new = on_host(SORTS["dict"])
    state = source.state_dict()
    seen = set()
    for place in itertools.count(0, STRIDE):
        device = SimulatedDevice(place)
        target = on_device(device, "dict", 4)
        with device.on(device.stream("loader")):
            reached = interrupted_at(partial(target.load_state_dict, state), place)
        assert_nothing_left(target)
        restored = target.stats().prefetched == 2
        batches = drained(device, target, 3 if restored else 1)
        assert batches == new if restored else len(batches) == 1
        settle(device)
        seen.add(restored)
        if not reached:
            break
    assert seen == {False, True}
    assert place > 40 * STRIDE


def test_an_interrupt_anywhere_in_a_capture_leaves_nothing() -> None:
    _, rest = on_host(SORTS["dict"])
    for place in itertools.count(0, STRIDE):
        device = SimulatedDevice(place)
        buffer = on_device(device, "dict")
        with device.on(device.stream("saver")):
            reached = interrupted_at(buffer.state_dict, place)
        assert_nothing_left(buffer)
        assert drained(device, buffer) == rest
        settle(device)
        if not reached:
            break
    assert place > 40 * STRIDE


def broken(name: str) -> dict[str, Any]:
    """Return a state that cannot be loaded."""
    source, _ = on_host(SORTS["dict"])
    state = source.state_dict()
    batch = state["prefetched"]["batches"][1]
    if name == "records":
        state["records"]["data"]["x"] = state["records"]["data"]["x"].float()
    elif name == "transforms":
        state["transforms"] = [{"a": 1}, {"b": 2}]
    else:
        batch["elsewhere"] = {"beyond": [1, 5], "no number": ["1"], "falling": [2, 1]}[name]
    return state


REFUSED = {
    "records": "x",
    "transforms": "transforms",
    "beyond": r"prefetched.batches\[1\].elsewhere: expected numbers of the 5 tensors",
    "no number": r"prefetched.batches\[1\].elsewhere: expected an int",
    "falling": r"prefetched.batches\[1\].elsewhere: expected rising numbers",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_load_changes_nothing_on_the_device(name: str) -> None:
    limit = 64 * 2**10
    device = SimulatedDevice(7, memory=limit)
    target = on_device(device, "dict", 4)
    settle(device)
    before = [column.clone() for column in columns_of(target)]
    free = most(device, limit)
    with device.on(device.stream("loader")), pytest.raises(CheckpointError, match=REFUSED[name]):
        target.load_state_dict(broken(name))
    settle(device)
    assert all(map(torch.equal, before, columns_of(target)))
    assert most(device, limit) == free
    assert len(drained(device, target, 1)) == 1
    settle(device)


def test_a_load_without_memory_for_the_batches_changes_nothing() -> None:
    source, _ = on_host(SORTS["TensorDict"])
    # Eight records in two columns take two blocks of 512 bytes, batches take more than is left.
    device = SimulatedDevice(7, memory=5 * 512)
    target = make(SimulatedStorage(8, device), SORTS["TensorDict"])
    with pytest.raises(MemoryError, match="bytes were asked for"):
        target.load_state_dict(source.state_dict())
    assert_nothing_left(target)
    assert len(target) == 0
    assert columns_of(target) == []
    assert most(device, 5 * 512) == 5 * 512


def columns_of(buffer: BlockingReplayBuffer) -> list[torch.Tensor]:
    """Return the memory of the records."""
    storage = buffer.storage
    assert isinstance(storage, SimulatedStorage)
    return storage._columns


def most(device: SimulatedDevice, limit: int) -> int:
    """Return how many bytes of the device can be had."""
    gc.collect()
    for nbytes in range(limit, 0, -512):
        try:
            device.empty((nbytes,), torch.uint8)
        except MemoryError:
            continue
        device.finish()
        return nbytes
    return 0
