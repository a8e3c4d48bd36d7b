"""What is queued runs in many orders, the same one for the same seed, and as far as it should."""

from itertools import groupby

import pytest
from forebay_models.device.adversary import Adversary, Elsewhere
from forebay_models.device.queues import SimulatedEvent, SimulatedStream
from forebay_models.device.simulated import SimulatedDevice

from tests.device.support import numbers, run


@pytest.fixture
def device() -> SimulatedDevice:
    return SimulatedDevice()


class TestTheHostWaits:
    """By default what it waits for is run, and more of the rest or less, as the adversary likes."""

    def chain(self, seed: int) -> tuple[SimulatedDevice, SimulatedEvent]:
        """Return an event behind a wait for another stream, with other work around it."""
        device = SimulatedDevice(seed)
        source, target = device.tensor(numbers(1, 2)), device.tensor(numbers(0, 0))
        for name in ("c", "a"):
            device.copy(device.stream(name), source, target)
        device.wait(device.stream("b"), device.record(device.stream("a")))
        device.copy(device.stream("b"), source, target)
        event = device.record(device.stream("b"))
        for name in ("a", "b"):
            device.copy(device.stream(name), source, target)
        return device, event

    def test_until_the_event_is_complete(self) -> None:
        for seed in range(20):
            device, event = self.chain(seed)
            device.synchronize(event)
            assert device.over(event)
            assert len(device.stream("b").operations) == 1

    def test_with_much_or_little_elsewhere(self) -> None:
        seen = set()
        for seed in range(60):
            device, event = self.chain(seed)
            device.synchronize(event)
            seen.add(tuple(len(device.stream(name).operations) for name in "ac"))
        assert {(1, 1), (0, 0)} <= seen
        assert len(seen) > 2

    def test_as_a_driver_says(self, device: SimulatedDevice) -> None:
        device.copy(device.current(), device.tensor(numbers(1)), device.tensor(numbers(0)))
        event = device.record(device.current())
        asked = []

        def wait(event: SimulatedEvent) -> None:
            asked.append(event)
            run(device, event.stream)

        device.wait_on_host = wait
        device.synchronize(event)
        device.synchronize(event)
        assert asked == [event]

    def test_and_does_not_go_on_before_it(self, device: SimulatedDevice) -> None:
        device.copy(device.current(), device.tensor(numbers(1)), device.tensor(numbers(0)))
        device.wait_on_host = lambda event: None
        with pytest.raises(AssertionError, match="the host went on before event 1 of stream comm"):
            device.synchronize(device.record(device.current()))

    def test_for_nothing_that_cannot_come(self, device: SimulatedDevice) -> None:
        with pytest.raises(AssertionError, match="nothing that is queued leads to event 1 of"):
            device.synchronize(SimulatedEvent(device.current(), 1))


class TestTheAdversary:
    """It runs what may run, in many orders, and in the same one for the same seed."""

    def orders(self, seed: int) -> list[str]:
        device = SimulatedDevice(seed)
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        for name in ("a", "b", "c"):
            device.copy(device.stream(name), source, target)
            device.copy(device.stream(name), source, target)
        order = []
        while device.runnable():
            before = [device.stream(name).ran for name in "abc"]
            device.advance(1)
            after = [device.stream(name).ran for name in "abc"]
            order += [name for name, x, y in zip("abc", before, after, strict=True) if x != y]
        return order

    def test_equal_seeds_give_equal_runs(self) -> None:
        assert [self.orders(seed) for seed in range(10)] == [self.orders(s) for s in range(10)]

    def test_every_order_of_three_streams_comes_up(self) -> None:
        firsts = {tuple(dict.fromkeys(self.orders(seed))) for seed in range(200)}
        assert len(firsts) == 6

    def turns(self, seed: int, most: int) -> list[int]:
        """Return how long it stayed with one of two streams that have much to do, each time."""
        adversary = Adversary(seed)
        streams = [SimulatedStream(name, number, None) for number, name in enumerate("ab")]
        picked = []
        for _ in range(60):
            picked += [adversary.pick(streams) for _ in range(adversary.begin(most))]
        return [len(list(turn)) for _, turn in groupby(picked)]

    def test_streams_take_turns_or_one_goes_first(self) -> None:
        adversaries = [Adversary(seed) for seed in range(20)]
        streams = [SimulatedStream(name, number, None) for number, name in enumerate("ab")]
        kinds = [len({adversary.pick(streams) for _ in range(30)}) for adversary in adversaries]
        assert {1, 2} == set(kinds)

    @pytest.mark.parametrize("seed", range(5))
    def test_no_habit_lasts_for_ever(self, seed: int) -> None:
        turns = self.turns(seed, 20)
        assert max(turns) >= 30
        assert turns.count(1) >= 30

    def test_much_elsewhere_is_all_that_can_run(self) -> None:
        for seed in range(20):
            device, event = TestTheHostWaits().chain(seed)
            needed, other = device.stream("a"), device.stream("c")
            adversary, can = Adversary(seed), device.runnable()
            assert set(can) == {needed, other}
            assert adversary.pick_for(event, can, Elsewhere.MUCH) is other
            assert adversary.pick_for(event, can, Elsewhere.LITTLE) is needed
            assert adversary.pick_for(event, [needed], Elsewhere.MUCH) is needed

    def test_it_goes_no_further_than_it_may(self, device: SimulatedDevice) -> None:
        source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
        for _ in range(50):
            device.copy(device.current(), source, target)
        counts = [device.advance(3) for _ in range(100)]
        assert sum(counts) == 100
        assert set(counts) == {0, 1, 2, 3}

    def test_it_finishes_everything(self) -> None:
        for seed in range(20):
            device = SimulatedDevice(seed)
            source, target = device.tensor(numbers(1)), device.tensor(numbers(0))
            device.copy(device.stream("a"), source, target)
            device.wait(device.stream("b"), device.record(device.stream("a")))
            device.copy(device.stream("b"), source, target)
            device.finish()
            assert device.runnable() == []
            assert (device.stream("a").ran, device.stream("b").ran) == (1, 2)

    def test_it_says_what_is_stuck(self, device: SimulatedDevice) -> None:
        device.wait(device.stream("b"), SimulatedEvent(device.stream("a"), 1))
        with pytest.raises(AssertionError, match="stream b is stuck at: wait for event 1 of str"):
            device.finish()
