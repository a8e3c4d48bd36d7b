"""Memory is used again as early as may be, is full of garbage then, and has a twin."""

import gc
import weakref
from itertools import pairwise

import pytest
import torch
from forebay_models.device.memory import CLASS, VIEWS
from forebay_models.device.simulated import SimulatedDevice
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device.support import numbers, run


@pytest.fixture
def device() -> SimulatedDevice:
    return SimulatedDevice()


def at(device: SimulatedDevice, stream: str, words: int = 4) -> int:
    """Return where new memory for a stream is, which is given back at once."""
    with device.on(device.stream(stream)):
        return device.empty((words,), torch.int64).data_ptr()


class TestReuse:
    """Memory that nobody knows any more is handed out again, to its own stream at once."""

    def test_the_last_that_came_back_goes_first(self, device: SimulatedDevice) -> None:
        first, second = (device.empty((4,), torch.int64) for _ in range(2))
        places = [first.data_ptr(), second.data_ptr()]
        assert places[0] != places[1]
        del first
        del second
        kept = [device.empty((2, 2), torch.float32), device.empty((1,), torch.int8)]
        assert [tensor.data_ptr() for tensor in kept] == places[::-1]

    def test_a_view_is_enough_to_keep_it(self, device: SimulatedDevice) -> None:
        whole = device.empty((4,), torch.int64)
        place, view = whole.data_ptr(), whole[2:].view(torch.float32)
        del whole
        assert at(device, "common") != place
        del view
        assert device.empty((4,), torch.int64).data_ptr() == place

    def test_a_queued_operation_is_not(self, device: SimulatedDevice) -> None:
        target = device.tensor(numbers(0))
        source = device.tensor(numbers(1))
        place = source.data_ptr()
        device.copy(device.current(), source, target)
        del source
        again = device.empty((2,), torch.int64)
        assert again.data_ptr() == place
        device.finish()
        assert target.equal(numbers(1)), "the copy came before the garbage, in its own stream"

    def test_memory_of_another_size_is_other_memory(self, device: SimulatedDevice) -> None:
        assert at(device, "common", CLASS // 8) != at(device, "common", CLASS // 8 + 1)

    def test_another_stream_has_to_wait_until_all_has_run(self, device: SimulatedDevice) -> None:
        place = at(device, "a")
        with device.on(device.stream("b")):
            first = device.empty((4,), torch.int64)
            assert first.data_ptr() != place, "the garbage is still in the queue of a"
            assert device.step(device.stream("a"))
            second = device.empty((4,), torch.int64)
        assert second.data_ptr() == place
        del second
        assert at(device, "b") == place, "it is memory for b now"

    def test_what_came_later_does_not_matter(self, device: SimulatedDevice) -> None:
        a, b = device.stream("a"), device.stream("b")
        source, target = device.tensor(numbers(1)), device.tensor(numbers(2))
        with device.on(a):
            tensor = device.empty((4,), torch.int64)
        place = tensor.data_ptr()
        device.step(a)
        del tensor
        device.copy(b, source, target)
        device.copy(a, source, target)
        assert at(device, "b") == place

    def test_kept_memory_waits_for_the_other_stream(self, device: SimulatedDevice) -> None:
        a, b = device.stream("a"), device.stream("b")
        target = device.tensor(numbers(0))
        with device.on(a):
            tensor = device.empty((1, 2), torch.int64)
        place = tensor.data_ptr()
        device.copy(b, tensor, target)
        device.keep(tensor[0], b)
        del tensor
        assert at(device, "a") != place
        run(device, b)
        with device.on(a):
            taken = [device.empty((2,), torch.int64) for _ in range(2)]
        assert place in [it.data_ptr() for it in taken]

    def test_a_tensor_that_was_kept_before_is_forgotten(self, device: SimulatedDevice) -> None:
        a, b = device.stream("a"), device.stream("b")
        with device.on(a):
            tensor = device.empty((4,), torch.int64)
            device.keep(tensor, b)
            place = tensor.data_ptr()
            del tensor
            tensor = device.empty((4,), torch.int64)
            assert tensor.data_ptr() == place, "b had nothing to do"
        device.copy(b, device.tensor(numbers(0)), device.tensor(numbers(1)))
        del tensor
        assert at(device, "a") == place

    def test_to_keep_it_for_its_own_stream_changes_nothing(self, device: SimulatedDevice) -> None:
        with device.on(device.stream("a")):
            tensor = device.empty((4,), torch.int64)
            device.keep(tensor, device.stream("a"))
        place = tensor.data_ptr()
        del tensor
        assert at(device, "a") == place

    def test_values_go_where_nothing_is_queued(self, device: SimulatedDevice) -> None:
        place = at(device, "common")
        values = device.tensor(numbers(1, 2).double().requires_grad_())
        assert values.data_ptr() != place
        device.finish()
        assert values.equal(numbers(1, 2).double())
        assert device.promised(values).equal(values)
        assert not values.requires_grad
        assert device.tensor(numbers(3)).data_ptr() == place, "its garbage has run by now"

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("abkf0123"), st.sampled_from((1, 400, 600)))))
    def test_no_two_tensors_have_the_same_memory(self, steps: list[tuple[str, int]]) -> None:
        device = SimulatedDevice(memory=8 * CLASS)
        a, b = device.stream("a"), device.stream("b")
        live: list[torch.Tensor] = []
        for what, size in steps:
            if what in "ab":
                with device.on(a if what == "a" else b):
                    try:
                        live.append(device.empty((size,), torch.uint8))
                    except MemoryError:
                        assert sum(-(-it.numel() // CLASS) for it in live) >= 7
            elif what == "f":
                device.advance(4)
            elif live and what == "k":
                device.keep(live[0], b)
            elif live:
                del live[int(what) % len(live)]
        ranges = sorted((it.data_ptr(), it.data_ptr() + it.numel()) for it in live)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(ranges))

    def test_a_queued_copy_still_has_its_staging_memory(self, device: SimulatedDevice) -> None:
        staging = device.staging(16)
        staging.view(torch.int64).fill_(7)
        target = device.tensor(numbers(1))
        device.copy(device.current(), staging.view(torch.int64), target[0])
        del staging
        assert set(device.staging(16).tolist()) == {0xA5}
        device.finish()
        assert target.equal(numbers(7))

    def test_a_device_goes_without_the_collector(self) -> None:
        gc.disable()
        try:
            device = SimulatedDevice()
            tensor, other = device.tensor(numbers(3)), device.empty((1, 2), torch.int64)
            device.copy(device.stream("a"), tensor, other)
            device.keep(other, device.stream("a"))
            left = [weakref.ref(it) for it in (device, device.current(), device.stream("a"))]
            del device, other
            assert [it() for it in left] == [None, None, None]
            assert tensor.equal(numbers(3))
        finally:
            gc.enable()


class TestGarbage:
    """What nobody has written is neither zero nor what was there before, once the queue says so."""

    def test_new_memory_is_garbage(self, device: SimulatedDevice) -> None:
        tensor = device.empty((3,), torch.uint8)
        assert device.promised(tensor).tolist() == [0xA5] * 3
        device.finish()
        assert tensor.tolist() == [0xA5] * 3
        assert device.staging(2).tolist() == [0xA5] * 2

    def test_used_memory_is_garbage_when_its_stream_gets_there(
        self, device: SimulatedDevice
    ) -> None:
        tensor = device.tensor(torch.tensor([1, 2]))
        del tensor
        tensor = device.empty((2,), torch.int64)
        assert tensor.tolist() == [1, 2]
        assert set(device.promised(tensor.view(torch.uint8)).tolist()) == {0xA5}
        device.finish()
        assert set(tensor.view(torch.uint8).tolist()) == {0xA5}

    def test_another_stream_that_writes_there_has_to_wait(self, device: SimulatedDevice) -> None:
        a, b = device.stream("a"), device.stream("b")
        source = device.tensor(numbers(1))
        with device.on(a):
            tensor = device.empty((1, 2), torch.int64)
        device.copy(b, source, tensor)
        run(device, b)
        run(device, a)
        with device.on(b):
            device.look(tensor, "new memory")
        device.finish()
        assert device.faults == [
            "new memory used on stream b is not what was promised in [0] of 1 rows: "
            "expected the words [1, 1], got garbage"
        ]


class TestLimits:
    """A device has so much memory, of which idle blocks are given up before anybody is refused."""

    def test_both_figures_are_named(self) -> None:
        device = SimulatedDevice(memory=4 * CLASS)
        kept = device.empty((CLASS,), torch.uint8)
        with pytest.raises(
            MemoryError, match="2048 bytes were asked for, and 1536 of the 2048 bytes of the sim"
        ):
            device.empty((4, CLASS), torch.uint8)
        assert device.holds(kept)

    def test_idle_memory_of_another_size_is_given_up(self) -> None:
        device = SimulatedDevice(memory=4 * CLASS)
        for _ in range(3):
            device.empty((CLASS,), torch.uint8)
            device.empty((3, CLASS), torch.uint8)
            assert device.empty((4, CLASS), torch.uint8).numel() == 4 * CLASS

    def test_the_host_waits_for_what_was_kept(self) -> None:
        device = SimulatedDevice(memory=CLASS)
        b = device.stream("b")
        target = device.staging(8)
        tensor = device.empty((8,), torch.uint8)
        device.copy(b, tensor, target)
        device.keep(tensor, b)
        del tensor
        assert len(b.operations) == 1
        assert device.holds(device.empty((8,), torch.uint8))
        assert len(b.operations) == 0


class TestTwins:
    """The twin holds what a device without queues would, and a use that sees less is a fault."""

    def test_it_is_ahead_of_the_memory(self, device: SimulatedDevice) -> None:
        target = device.tensor(numbers(0, 0))
        device.copy(device.current(), device.tensor(numbers(1, 2)), target)
        assert device.promised(target).equal(numbers(1, 2))
        assert device.promised(target[1]).equal(numbers(2)[0])
        assert target.equal(numbers(0, 0))

    def test_a_copy_of_a_copy_is_ahead_as_well(self, device: SimulatedDevice) -> None:
        first, second, third = (device.tensor(numbers(n)) for n in range(3))
        device.copy(device.current(), first, second)
        device.copy(device.current(), second, third)
        assert device.promised(third).equal(numbers(0))
        device.finish()
        assert third.equal(numbers(0))

    def test_many_views_cost_no_more_memory(self, device: SimulatedDevice) -> None:
        whole = device.tensor(torch.arange(3 * VIEWS))
        for row in range(3 * VIEWS):
            assert device.promised(whole[row:]).tolist()[0] == row
        found = device._memory.find(whole)
        assert found is not None
        assert len(found[0].views) <= VIEWS

    def test_all_that_is_there_can_be_compared(self, device: SimulatedDevice) -> None:
        target = device.tensor(numbers(0, 0))
        empty = device.contents()
        device.copy(device.current(), device.tensor(numbers(1, 2)), target)
        queued = device.contents()
        assert len(queued) == 2 * len(empty) == 2 * CLASS
        device.finish()
        assert len(device.contents()) == len(queued)
        assert device.contents() != queued

    def test_what_is_promised_is_a_copy(self, device: SimulatedDevice) -> None:
        target = device.tensor(numbers(0))
        promised = device.promised(target)
        device.copy(device.current(), device.tensor(numbers(1)), target)
        assert promised.equal(numbers(0))

    @pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.bfloat16, torch.complex128])
    def test_it_has_the_dtype(self, device: SimulatedDevice, dtype: torch.dtype) -> None:
        values = torch.tensor([[0, 1], [1, 0]]).to(dtype)
        assert device.promised(device.tensor(values)).equal(values)

    def test_a_use_that_sees_what_was_promised_is_no_fault(self, device: SimulatedDevice) -> None:
        source, target = device.tensor(torch.tensor([float("nan")])), device.tensor(torch.zeros(1))
        device.copy(device.current(), source, target)
        device.look(target, "it")
        device.copy(device.current(), device.tensor(torch.ones(1)), target)
        device.finish()
        assert device.faults == []

    def test_a_use_that_comes_too_early_is_a_fault(self, device: SimulatedDevice) -> None:
        target = device.tensor(numbers(0, 0, 0))
        device.copy(device.stream("a"), device.tensor(numbers(1, 2, 3)), target)
        device.step(device.stream("a"))
        with device.on(device.stream("b")):
            device.look(target, "the batch")
        assert device.faults == []
        run(device, device.stream("b"))
        assert device.faults == [
            "the batch used on stream b is not what was promised in [1, 2] of 3 rows: "
            "expected the words [2, 2], got [0, 0]"
        ]

    def test_a_use_that_comes_too_late_is_a_fault(self, device: SimulatedDevice) -> None:
        target = device.tensor(torch.tensor(5))
        device.look(target, "a number")
        device.copy(device.stream("b"), device.tensor(torch.tensor(6)), target)
        run(device, device.stream("b"))
        device.finish()
        assert device.faults == [
            "a number used on stream common is not what was promised: "
            "expected the words [5], got [6]"
        ]
