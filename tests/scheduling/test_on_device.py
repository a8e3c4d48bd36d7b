"""The schedule campaign on a simulated device, whose streams are players beside the actors."""

from dataclasses import replace

import pytest
from forebay_models.campaign.quiet import quiet_library
from forebay_models.mutants.device import DEVICE_MUTANTS
from forebay_models.runs.schedule import ScheduleRun
from forebay_models.scheduling.device import WrongOrder
from forebay_models.scheduling.play import Run, Theatre
from forebay_models.scheduling.scenario import Scenario
from forebay_models.scheduling.scenarios import QUICK, plans_for
from forebay_models.scheduling.search import Search, deviations, replay, search
from forebay_models.scheduling.strategies import DepthFirst, Uniform
from forebay_models.targets import Target
from forebay_models.tokens import token_of

ON_DEVICE = plans_for(Target.SIMULATED, full=False)


def searched(scenario: Scenario, bound: int) -> Search:
    """Run all schedules of a scenario up to a bound."""
    with quiet_library(), Theatre(scenario) as theatre:
        return search(theatre, DepthFirst(bound))


def failing(scenario: Scenario, bound: int) -> Run:
    """Return the schedule of a scenario that fails."""
    found = searched(scenario, bound)
    assert found.failed is not None
    return found.failed


def test_the_scenarios_are_those_of_threads() -> None:
    assert set(ON_DEVICE) == set(QUICK)
    assert all(plan.scenario.storage == "simulated" for plan in ON_DEVICE.values())


@pytest.mark.parametrize(("name", "bound"), [("smallest", 1), ("hand-over", 0), ("batches", 0)])
def test_every_schedule_holds(name: str, bound: int) -> None:
    found = searched(ON_DEVICE[name].scenario, bound)
    assert found.failed is None
    assert found.exhausted
    assert found.schedules > searched(QUICK[name].scenario, bound).schedules


@pytest.mark.parametrize("name", ["twice", "leases", "dice", "mutual-wait", "closing"])
def test_random_schedules_hold(name: str) -> None:
    with quiet_library(), Theatre(ON_DEVICE[name].scenario) as theatre:
        found = search(theatre, Uniform(1), enough=lambda found: found.schedules >= 20)
    assert found.failed is None


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("published_without_event", "smallest"),
        ("event_recorded_before_copy", "smallest"),
        ("reused_without_readers_event", "hand-over"),
        ("staging_reused_at_once", "hand-over"),
    ],
)
def test_a_fault_in_the_order_is_found(fault: str, name: str) -> None:
    with DEVICE_MUTANTS[fault].plant():
        run = failing(ON_DEVICE[name].scenario, 1)
    assert isinstance(run.failure, WrongOrder)
    assert "is not what was promised" in str(run.failure)


def test_a_failing_schedule_repeats_from_its_token() -> None:
    scenario = ON_DEVICE["smallest"].scenario
    with DEVICE_MUTANTS["published_without_event"].plant():
        run = failing(scenario, 0)
        with quiet_library(), Theatre(scenario) as theatre:
            again = replay(theatre, deviations(run))
    assert str(again.failure) == str(run.failure)
    saved = ScheduleRun(scenario, deviations(run))
    assert ScheduleRun.from_json(saved.as_json()) == saved
    assert token_of(saved) != token_of(replace(saved, scenario=QUICK["smallest"].scenario))


def test_a_token_of_before_there_were_devices_is_of_plain_numbers() -> None:
    document = ScheduleRun(QUICK["smallest"].scenario, {}).as_json()
    assert "storage" not in document
    assert ScheduleRun.from_json(document).scenario.storage == "numbers"
