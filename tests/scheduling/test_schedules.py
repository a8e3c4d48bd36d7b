"""The library under the scheduler: small scenarios are as the specification says, in any order."""

from collections.abc import Callable, Sequence

import pytest
from forebay_models.campaign.quiet import quiet_library
from forebay_models.scheduling import play
from forebay_models.scheduling.play import Run, Theatre
from forebay_models.scheduling.scenario import Scenario
from forebay_models.scheduling.scenarios import QUICK
from forebay_models.scheduling.search import Search, deviations, replay, search
from forebay_models.scheduling.stage import LeftToChance, Option
from forebay_models.scheduling.strategies import DepthFirst, Digest, Priorities, Uniform


class Unpruned(DepthFirst):
    """Every schedule, also those that come to where another one has been."""

    def pick(self, options: Sequence[Option], digest: Digest) -> int:
        self._number = getattr(self, "_number", 0) + 1
        return super().pick(options, lambda: self._number)


def few(count: int) -> Callable[[Search], bool]:
    return lambda found: found.schedules >= count


def judged(run: Run) -> Run:
    assert run.failure is None, f"{run.failure}\n{run.slices[-10:]}"
    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_the_library_is_as_the_specification_says(name: str) -> None:
    with quiet_library(), Theatre(QUICK[name].scenario) as theatre:
        for strategy in (DepthFirst(0), DepthFirst(1), Uniform(0), Priorities(0)):
            found = search(theatre, strategy, enough=few(150))
            assert found.failed is None, found.failed
            assert found.repeated > 0


def test_all_schedules_of_the_smallest_scenario_are_run() -> None:
    with Theatre(QUICK["smallest"].scenario) as theatre:
        found = search(theatre, DepthFirst(2))
    assert found.exhausted
    assert found.failed is None
    assert found.schedules > 100


@pytest.mark.parametrize(("name", "bound"), [("smallest", 2), ("hand-over", 1), ("draining", 1)])
def test_what_is_not_followed_further_shows_nothing_new(name: str, bound: int) -> None:
    """Pruned or not, the same steps are taken from the same states."""
    seen: list[set[object]] = []
    slices = []
    with quiet_library(), Theatre(QUICK[name].scenario) as theatre:
        for strategy in (DepthFirst(bound), Unpruned(bound)):
            edges: set[object] = set()

            def see(run: Run, edges: set[object] = edges) -> None:
                before = None
                for it in judged(run).slices:
                    edges.add((before, it.actor, it.label, it.step, it.state))
                    before = it.state

            found = search(theatre, strategy, see=see)
            assert found.exhausted
            seen.append(edges)
            slices.append(found.slices)
    assert seen[0] == seen[1]
    assert slices[0] < slices[1]


def test_a_schedule_is_run_again_by_its_choices_alone() -> None:
    scenario = QUICK["batches"].scenario
    with Theatre(scenario) as theatre, Theatre(scenario) as another:
        strategy = Uniform(3)
        for _ in range(20):
            assert strategy.begin()
            run = judged(theatre.run(strategy))
            assert replay(another, deviations(run)).slices == run.slices


def test_what_is_left_to_chance_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter(range(10_000))
    make = play._Performance._transform

    def transform(self: play._Performance, batch: object) -> object:
        for _ in range(next(rounds) % 2):
            self._monitor.point("now and then")
        return make(self, batch)

    monkeypatch.setattr(play._Performance, "_transform", transform)
    with Theatre(QUICK["smallest"].scenario) as theatre:
        found = search(theatre, Uniform(0), enough=few(200))
    assert found.failed is not None
    assert isinstance(found.failed.failure, LeftToChance)


def test_who_waits_for_what_never_comes_is_no_failure() -> None:
    scenario = Scenario(name="alone", capacity=1, programs=(("p1", "extend 1; extend 1"),))
    with Theatre(scenario) as theatre:
        found = search(theatre, DepthFirst(1))
    assert found.exhausted
    assert found.failed is None


def test_a_reader_could_see_a_batch_in_the_making() -> None:
    """The copies are cut at every row, so that a torn batch would show."""
    labels: set[str] = set()
    with Theatre(QUICK["batches"].scenario) as theatre:
        search(
            theatre,
            DepthFirst(0),
            see=lambda run: labels.update(it.label for it in judged(run).slices),
        )
    assert {"copying", "gathering"} <= labels
