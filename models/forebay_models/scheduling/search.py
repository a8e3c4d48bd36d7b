"""Runs one scenario under a strategy until all its schedules were run, or one fails.

Now and then a schedule is run a second time: if it does not go as before, something is left to
chance that the scheduler does not see, and then no result of it could be trusted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from forebay_models.scheduling.play import Run, Slice, Theatre
from forebay_models.scheduling.stage import LeftToChance
from forebay_models.scheduling.strategies import Fixed, Strategy

AGAIN: Final = 64
"""One schedule in so many is run twice."""

See = Callable[[Run], None]


@dataclass
class Search:
    """How far a search has come.

    Attributes:
        schedules: how many were run.
        slices: the stretches between two choice points in all of them.
        repeated: how many of the schedules were run twice.
        exhausted: whether the strategy has no more of them.
        failed: the run that failed.
    """

    schedules: int = 0
    slices: int = 0
    repeated: int = 0
    exhausted: bool = False
    failed: Run | None = None


def search(
    theatre: Theatre,
    strategy: Strategy,
    *,
    enough: Callable[[Search], bool] = lambda found: False,
    see: See = lambda run: None,
) -> Search:
    """Run schedules until there are no more, there are enough, or one has failed.

    Args:
        theatre: the scenario.
        strategy: gives the schedules.
        enough: is asked before each schedule.
        see: is shown each run.
    """
    found = Search()
    while not enough(found):
        if not strategy.begin():
            found.exhausted = True
            return found
        run = theatre.run(strategy)
        found.schedules += 1
        found.slices += len(run.slices)
        see(run)
        if run.failure is None and found.schedules % AGAIN == 1:
            found.repeated += 1
            run = _repeated(theatre, run)
        if run.failure is not None:
            found.failed = run
            return found
    return found


def deviations(run: Run) -> dict[int, int]:
    """Return where a run did not go by itself: the number of the choice, and what was taken."""
    return {place: index for place, index in enumerate(run.choices) if index}


def replay(theatre: Theatre, choices: Mapping[int, int]) -> Run:
    """Run the schedule that goes by itself but for these choices."""
    strategy = Fixed(choices)
    strategy.begin()
    return theatre.run(strategy)


def taken(run: Run, choices: Mapping[int, int]) -> bool:
    """Tell whether a run could make these choices, each at its place."""
    return all(
        place < len(run.choices) and run.choices[place] == index for place, index in choices.items()
    )


def _repeated(theatre: Theatre, run: Run) -> Run:
    """Run a schedule once more; what comes back has failed if it went differently."""
    again = replay(theatre, deviations(run))
    if again.failure is not None or _same(run.slices, again.slices, run.pruned):
        return again if again.failure is not None else run
    chance = "the same choices led elsewhere the second time: something is left to chance"
    return again._replace(failure=LeftToChance(chance))


def _same(first: tuple[Slice, ...], second: tuple[Slice, ...], pruned: bool) -> bool:
    return first == (second[: len(first)] if pruned else second)
