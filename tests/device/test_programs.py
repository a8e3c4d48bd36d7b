"""Whoever keeps the order that events give never sees a fault, and whoever forgets a part does."""

from random import Random

import pytest
from forebay_models.device.simulated import SimulatedDevice
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device.programs import CAPACITY, STREAMS, Mistake, Step, any_program, play

LENGTH = 12
ENOUGH = 60
"""Programs among which each mistake has to show; the rarest does in about one of fifteen."""

slots = st.permutations(range(CAPACITY)).flatmap(
    lambda order: st.integers(1, CAPACITY).map(lambda n: tuple(order[:n]))
)
streams = st.sampled_from(STREAMS)
steps = st.tuples(streams, slots) | st.tuples(streams, slots, streams) | st.integers(0, 8)


def shown(seed: int, mistake: Mistake | None) -> list[str]:
    """Return the faults of a program with a mistake."""
    return play(any_program(Random(seed), LENGTH), SimulatedDevice(seed), mistake)


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=14), st.integers(0, 2**32))
def test_order_that_is_kept_is_enough_for_every_adversary(program: list[Step], seed: int) -> None:
    assert play(program, SimulatedDevice(seed)) == []


def test_nothing_shows_where_nothing_is_left_out() -> None:
    assert [shown(seed, None) for seed in range(ENOUGH)] == [[]] * ENOUGH


@pytest.mark.parametrize("mistake", list(Mistake), ids=lambda mistake: mistake.name)
def test_every_mistake_shows_soon(mistake: Mistake) -> None:
    assert any(shown(seed, mistake) for seed in range(ENOUGH)), mistake.value


def test_equal_seeds_show_equal_faults() -> None:
    mistake = Mistake.COPY
    first = [shown(seed, mistake) for seed in range(10)]
    assert first == [shown(seed, mistake) for seed in range(10)]
    assert any(first)


def test_a_device_that_runs_everything_at_once_hides_them() -> None:
    def faults(seed: int, mistake: Mistake) -> list[str]:
        device = SimulatedDevice(seed)
        device.on_queued = lambda stream: device.finish()
        return play(any_program(Random(seed), LENGTH), device, mistake)

    assert [faults(seed, mistake) for seed in range(10) for mistake in Mistake] == [[]] * 70
