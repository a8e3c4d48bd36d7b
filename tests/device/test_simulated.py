"""What is queued runs in the order of its stream, when somebody says so, and behind its events."""

import pytest
import torch
from forebay._streams import Streams
from forebay_models.device.simulated import SimulatedDevice

from tests.device.support import numbers, run


@pytest.fixture
def device() -> SimulatedDevice:
    return SimulatedDevice()


class TestTheDeviceIsTheStoragesPort:
    """It is what a storage wants of a device, and of everybody's work with it."""

    def test_as_the_protocol_says(self) -> None:
        streams: Streams = SimulatedDevice()
        assert streams.device == torch.device("cpu")

    def test_a_new_one_holds_only_its_own_memory(self, device: SimulatedDevice) -> None:
        made = device.empty((2, 2), torch.float32)
        assert device.holds(made)
        assert device.holds(made[1:])
        assert device.holds(device.empty((0, 3), torch.int64))
        assert not device.holds(device.staging(8))
        assert not device.holds(torch.zeros(2))
        assert not device.holds(torch.zeros(0))
        assert not SimulatedDevice().holds(made)


class TestQueuesHoldWhatHasNotHappened:
    """A queued operation does nothing before it is run, and then in the order of its stream."""

    def test_a_copy_runs_in_two_halves(self, device: SimulatedDevice) -> None:
        source, target = device.tensor(numbers(1, 2, 3)), device.tensor(numbers(7, 8, 9))
        stream = device.current()
        device.copy(stream, source, target)
        assert target.equal(numbers(7, 8, 9))
        assert device.step(stream)
        assert target.equal(numbers(1, 8, 9))
        assert device.step(stream)
        assert target.equal(numbers(1, 2, 3))
        assert not device.step(stream)

    def test_one_row_is_torn_between_its_words(self, device: SimulatedDevice) -> None:
        source, target = device.tensor(numbers(1)), device.tensor(numbers(7))
        device.copy(device.current(), source, target)
        device.step(device.current())
        assert target.tolist() == [[1, 7]]

    def test_rows_are_put_into_slots_half_by_half(self, device: SimulatedDevice) -> None:
        column = device.tensor(numbers(0, 0, 0, 0))
        rows, slots = device.tensor(numbers(1, 2)), device.tensor(torch.tensor([3, 1]))
        device.put(device.current(), rows, slots, column)
        device.step(device.current())
        assert column.equal(numbers(0, 0, 0, 1))
        device.step(device.current())
        assert column.equal(numbers(0, 2, 0, 1))

    def test_one_row_is_put_word_by_word(self, device: SimulatedDevice) -> None:
        column, rows = device.tensor(numbers(0, 0)), device.tensor(numbers(5))
        device.put(device.current(), rows, device.tensor(torch.tensor([1])), column)
        device.step(device.current())
        assert column.tolist() == [[0, 0], [5, 0]]
        device.step(device.current())
        assert column.tolist() == [[0, 0], [5, 5]]

    def test_rows_are_taken_out_of_slots(self, device: SimulatedDevice) -> None:
        column = device.tensor(numbers(4, 5, 6))
        slots, rows = device.tensor(torch.tensor([2, 0, 2])), device.tensor(numbers(0, 0, 0))
        device.take(device.current(), column, slots, rows)
        assert rows.equal(numbers(0, 0, 0))
        device.finish()
        assert rows.equal(numbers(6, 4, 6))

    def test_slots_are_looked_up_when_it_runs(self, device: SimulatedDevice) -> None:
        column = device.tensor(numbers(4, 5, 6))
        slots, rows = device.tensor(torch.tensor([0])), device.tensor(numbers(0))
        device.take(device.stream("a"), column, slots, rows)
        device.copy(device.stream("b"), device.tensor(torch.tensor([2])), slots)
        run(device, device.stream("b"))
        run(device, device.stream("a"))
        assert rows.equal(numbers(6))

    def test_slots_that_there_are_not_are_a_fault(self, device: SimulatedDevice) -> None:
        column, rows = device.tensor(numbers(4, 5)), device.tensor(numbers(7))
        slots = device.empty((1,), torch.int64)
        device.copy(device.stream("b"), device.tensor(torch.tensor([1])), slots)
        device.put(device.stream("a"), rows, slots, column)
        run(device, device.stream("a"))
        assert column.equal(numbers(4, 5))
        (fault, *_) = device.faults
        assert fault.startswith("a put of 1 rows ran with slots that there are not: [-65")

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool])
    def test_a_copy_converts(self, device: SimulatedDevice, dtype: torch.dtype) -> None:
        target = device.empty((3,), dtype)
        device.copy(device.current(), device.tensor(torch.tensor([0.0, 1.0, 1.0])), target)
        assert device.promised(target).tolist() == [0, 1, 1]
        device.finish()
        assert target.tolist() == [0, 1, 1]
        assert target.dtype is dtype

    def test_views_are_copied_where_they_lie(self, device: SimulatedDevice) -> None:
        target = device.tensor(torch.zeros(2, 3, dtype=torch.int16))
        source = device.tensor(torch.arange(6, dtype=torch.int16).view(3, 2))
        device.copy(device.current(), source.t(), target)
        device.finish()
        assert target.tolist() == [[0, 2, 4], [1, 3, 5]]
        assert device.promised(target[:, 1]).tolist() == [2, 3]

    def test_single_numbers_and_nothing_can_be_copied(self, device: SimulatedDevice) -> None:
        target = device.tensor(torch.tensor(1.5))
        device.copy(device.current(), device.tensor(torch.tensor(2.5)), target)
        nothing = device.empty((0, 2), torch.float32)
        device.copy(device.current(), nothing, device.empty((0, 2), torch.float32))
        assert device.current().queued == 1
        device.finish()
        assert target.item() == 2.5

    def test_staging_memory_is_read_when_the_copy_runs(self, device: SimulatedDevice) -> None:
        staging = device.staging(32).view(torch.int64).view(2, 2)
        staging.copy_(numbers(1, 2))
        target = device.empty((2, 2), torch.int64)
        device.copy(device.current(), staging, target)
        staging.copy_(numbers(3, 4))
        device.finish()
        assert device.promised(target).equal(numbers(1, 2))
        assert target.equal(numbers(3, 4))

    def test_staging_memory_is_written_when_the_copy_runs(self, device: SimulatedDevice) -> None:
        staging = device.staging(16).view(torch.int64)
        device.copy(device.current(), device.tensor(torch.tensor([1, 2])), staging)
        assert staging.tolist() != [1, 2]
        device.synchronize(device.record(device.current()))
        assert staging.tolist() == [1, 2]


class TestEvents:
    """An event is what had been queued; to wait for it holds what comes after, and no more."""

    def test_it_is_complete_when_all_before_it_has_run(self, device: SimulatedDevice) -> None:
        stream = device.current()
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        device.copy(stream, source, target)
        event = device.record(stream)
        device.copy(stream, source, target)
        assert not device.over(event)
        device.step(stream)
        assert not device.over(event)
        device.step(stream)
        assert device.over(event)
        assert not device.over(device.record(stream))

    def test_it_is_complete_at_once_in_an_empty_queue(self, device: SimulatedDevice) -> None:
        event = device.record(device.stream("a"))
        assert device.over(event)
        device.synchronize(event)
        device.wait(device.stream("b"), event)
        assert device.stream("b").queued == 0

    def test_a_stream_stands_still_until_then(self, device: SimulatedDevice) -> None:
        a, b = device.stream("a"), device.stream("b")
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        device.copy(a, source, target)
        device.wait(b, device.record(a))
        device.copy(b, target, source)
        assert not device.step(b)
        assert device.runnable() == [a]
        run(device, a)
        assert device.runnable() == [b]
        assert device.step(b)
        assert [repr(it) for it in b.operations] == ["copy of (1, 2)"]

    def test_what_was_queued_before_the_wait_runs(self, device: SimulatedDevice) -> None:
        a, b = device.stream("a"), device.stream("b")
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        device.copy(a, source, target)
        device.copy(b, source, target)
        device.wait(b, device.record(a))
        assert device.step(b)

    def test_it_stays_as_it_was_recorded(self, device: SimulatedDevice) -> None:
        a = device.stream("a")
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        device.copy(a, source, target)
        first = device.record(a)
        device.copy(a, source, target)
        second = device.record(a)
        device.synchronize(first)
        assert (device.over(first), device.over(second)) == (True, False)

    def test_a_stream_need_not_wait_for_itself(self, device: SimulatedDevice) -> None:
        a = device.stream("a")
        device.copy(a, device.tensor(numbers(1)), device.tensor(numbers(0)))
        device.wait(a, device.record(a))
        assert a.queued == 1


class TestMisuse:
    """What does not go together is refused, and nothing is queued."""

    def test_memory_of_somebody_else(self, device: SimulatedDevice) -> None:
        stream, mine = device.current(), device.tensor(numbers(1))
        slots = device.tensor(torch.tensor([0]))
        queued = stream.queued
        host = "memory of the device nor staging memory: torch.int64"
        with pytest.raises(TypeError, match=rf"a source is neither {host}\(1, 2\) at 0x"):
            device.copy(stream, numbers(2), mine)
        with pytest.raises(TypeError, match="a target is neither"):
            device.copy(stream, mine, SimulatedDevice().tensor(numbers(1)))
        with pytest.raises(TypeError, match="a tensor of rows is neither"):
            device.put(stream, numbers(1), slots, mine)
        with pytest.raises(TypeError, match="a tensor of slots is not memory of the device"):
            device.take(stream, mine, device.staging(8).view(torch.int64), mine)
        with pytest.raises(TypeError, match="a tensor to keep is not memory"):
            device.keep(numbers(1), stream)
        with pytest.raises(TypeError, match="a tensor to look at is neither"):
            device.look(numbers(1), "it")
        with pytest.raises(TypeError, match="a tensor is neither"):
            device.promised(numbers(1))
        with pytest.raises(TypeError, match="this one does neither"):
            device.copy(stream, device.staging(4), device.staging(4))
        assert stream.queued == queued

    def test_shapes(self, device: SimulatedDevice) -> None:
        stream, rows = device.current(), device.tensor(numbers(1, 2))
        slots = device.tensor(torch.tensor([0, 1]))
        with pytest.raises(ValueError, match=r"one shape, got \(1, 2\) to be copied into \(2, 2\)"):
            device.copy(stream, rows[:1], rows)
        with pytest.raises(ValueError, match=r"are rows \(1, 2\), got \(2, 2\)"):
            device.put(stream, rows, slots[:1], rows)
        with pytest.raises(ValueError, match=r"are rows \(2, 1\), got \(2, 2\)"):
            device.take(stream, rows[:, :1], slots, rows)
        with pytest.raises(ValueError, match="slots of a column"):
            device.put(stream, rows, slots.view(2, 1), rows)
        assert stream.queued == 0

    def test_dtypes(self, device: SimulatedDevice) -> None:
        stream, rows = device.current(), device.tensor(numbers(1, 2))
        slots = device.tensor(torch.tensor([0, 1]))
        with pytest.raises(TypeError, match=r"slots are int64 or int32, got torch.float64"):
            device.put(stream, rows, slots.view(torch.float64), rows)
        with pytest.raises(TypeError, match=r"do not go with a column of torch\.float64"):
            device.put(stream, rows, slots, rows.view(torch.float64))

    def test_slots_outside_of_the_column(self, device: SimulatedDevice) -> None:
        rows, slots = device.tensor(numbers(1)), device.tensor(torch.tensor([7]))
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            device.put(device.current(), rows, slots, rows)
        assert device.current().queued == 0

    def test_streams_and_events_of_somebody_else(self, device: SimulatedDevice) -> None:
        other = SimulatedDevice()
        event = other.record(other.current())
        for refused in (object(), event, device.current()):
            with pytest.raises(TypeError, match="is no event of this device"):
                device.wait(device.current(), refused)
        with pytest.raises(TypeError, match="is no event of this device"):
            device.over(event)
        with pytest.raises(TypeError, match="is no event of this device"):
            device.synchronize(event)
        with pytest.raises(TypeError, match="stream common is no stream of this device"):
            device.record(other.current())
        with pytest.raises(TypeError, match="3 is no stream of this device"):
            device.on(3)
