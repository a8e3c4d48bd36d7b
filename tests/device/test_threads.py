"""Threads share a device: each has its current stream, and anybody may run what is queued."""

import threading

import pytest
import torch
from forebay_models.device.queues import SimulatedStream
from forebay_models.device.simulated import SimulatedDevice

from tests.device.support import numbers, run


@pytest.fixture
def device() -> SimulatedDevice:
    return SimulatedDevice()


class TestCurrentStreams:
    """Threads have one stream in common or one each, and another while they say so."""

    def test_all_threads_begin_with_the_common_one(self, device: SimulatedDevice) -> None:
        assert elsewhere(device) is device.current()

    def test_or_each_with_one_of_its_own(self) -> None:
        device = SimulatedDevice(apart=True)
        mine = device.current()
        assert mine is device.current()
        assert elsewhere(device) is not mine

    def test_within_a_block_it_is_another(self, device: SimulatedDevice) -> None:
        common, a, b = device.current(), device.stream("a"), device.stream("b")
        with device.on(a):
            with device.on(b):
                assert device.current() is b
                assert elsewhere(device) is common
            assert device.current() is a
            with pytest.raises(KeyError), device.on(b):
                raise KeyError
            assert device.current() is a
        assert device.current() is common

    def test_a_thread_has_one_aside(self, device: SimulatedDevice) -> None:
        aside = device.own()
        assert device.own() is aside
        assert aside is not device.current()
        with device.on(aside):
            assert device.current() is device.own()


def elsewhere(device: SimulatedDevice) -> SimulatedStream:
    """Return the stream that is current in another thread."""
    found: list[SimulatedStream] = []
    thread = threading.Thread(target=lambda: found.append(device.current()))
    thread.start()
    thread.join(10)
    return found[0]


class TestThreads:
    """Several may use one stream at once, and somebody else may run it."""

    def test_nothing_is_lost(self, device: SimulatedDevice) -> None:
        pairs = [(device.tensor(numbers(n, n)), device.tensor(numbers(0, 0))) for n in range(1, 5)]
        stream = device.stream("a")

        def work(source: torch.Tensor, target: torch.Tensor) -> None:
            with device.on(stream):
                for _ in range(50):
                    device.copy(stream, source, target)
                    device.look(target, "target")
                    device.advance(4)
                device.synchronize(device.record(stream))

        threads = [threading.Thread(target=work, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert (stream.ran, device.faults) == (400, [])

    def test_a_driver_hears_of_what_is_queued(self, device: SimulatedDevice) -> None:
        heard: list[SimulatedStream] = []
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        a, b = device.stream("a"), device.stream("b")
        device.on_queued = heard.append
        device.copy(a, source, target)
        device.wait(b, device.record(a))
        with device.on(b):
            device.look(target, "target")
            device.empty((1,), torch.int8)
        assert heard == [a, b, b, b]

    def test_a_driver_that_is_told_may_leave_the_device_to_others(
        self, device: SimulatedDevice
    ) -> None:
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        slots, stream = device.tensor(torch.tensor([0])), device.current()
        device.copy(device.stream("a"), source, target)
        event = device.record(device.stream("a"))

        def let_another_run(stream: SimulatedStream) -> None:
            thread = threading.Thread(target=run, args=(device, stream), daemon=True)
            thread.start()
            thread.join(10)
            assert not thread.is_alive()

        device.on_queued = let_another_run
        device.copy(stream, source, target)
        assert target.equal(numbers(1))
        device.put(stream, source, slots, target)
        device.take(stream, target, slots, source)
        device.look(target, "target")
        assert set(device.empty((4,), torch.uint8).tolist()) == {0xA5}
        assert not stream.operations
        device.wait(stream, event)
        assert len(stream.operations) == 1
