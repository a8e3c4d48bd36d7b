"""Makes a failing schedule short: fewer calls, then fewer choices that do not go by themselves.

Nobody reads a schedule of two hundred steps. A call is left out if some schedule of the shorter
programs still fails, which takes a small search each time; a choice is left out if the schedule
still fails with whatever goes by itself instead. Only failures of the same kind count.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from forebay_models.scheduling.play import Run, Theatre
from forebay_models.scheduling.scenario import Scenario
from forebay_models.scheduling.search import Search, deviations, replay, search
from forebay_models.scheduling.strategies import DepthFirst

SECONDS: Final = 10.0
"""How long shortening takes at most."""

_BOUND: Final = 2
_SCHEDULES: Final = 2_000


class Failing(NamedTuple):
    """A schedule that fails: the scenario, its choices, and how it went."""

    scenario: Scenario
    choices: Mapping[int, int]
    run: Run


def shortened(scenario: Scenario, run: Run, seconds: float = SECONDS) -> Failing:
    """Return a failure that is as short as time allows; the one given, if it does not repeat."""
    until = time.monotonic() + seconds
    found = Failing(scenario, deviations(run), run)
    progress = True
    while progress and time.monotonic() < until:
        progress = False
        for smaller in _without_a_call(found.scenario):
            failing = _search(smaller, type(run.failure), until)
            if failing is not None:
                found, progress = failing, True
                break
    return _fewer_choices(found, type(run.failure), until)


def _without_a_call(scenario: Scenario) -> Iterator[Scenario]:
    """Yield the scenario without one of its actors, then without one of its calls."""
    programs = scenario.programs
    for number in range(len(programs)) if len(programs) > 1 else ():
        yield from _with(scenario, (*programs[:number], *programs[number + 1 :]))
    for number, ops in enumerate(scenario.ops):
        for left_out in range(len(ops)) if len(ops) > 1 else ():
            text = "; ".join(str(op) for place, op in enumerate(ops) if place != left_out)
            shorter = (programs[number][0], text)
            yield from _with(scenario, (*programs[:number], shorter, *programs[number + 1 :]))


def _with(scenario: Scenario, programs: tuple[tuple[str, str], ...]) -> Iterator[Scenario]:
    """Yield the scenario with other programs, if they can be run."""
    actors = {actor for actor, _ in programs}
    tokens = tuple((actor, token) for actor, token in scenario.token_of if actor in actors)
    with suppress(ValueError):
        yield replace(scenario, programs=programs, token_of=tokens)


def _search(scenario: Scenario, kind: type[object], until: float) -> Failing | None:
    def enough(found: Search) -> bool:
        return found.schedules >= _SCHEDULES or time.monotonic() >= until

    with Theatre(scenario) as theatre:
        for bound in range(_BOUND + 1):
            run = search(theatre, DepthFirst(bound), enough=enough).failed
            if run is not None and isinstance(run.failure, kind):
                return Failing(scenario, deviations(run), run)
    return None


def _fewer_choices(found: Failing, kind: type[object], until: float) -> Failing:
    """Leave out choices one by one, as long as the schedule still fails."""
    with Theatre(found.scenario) as theatre:
        progress = True
        while progress and time.monotonic() < until:
            progress = False
            for place in found.choices:
                choices = {at: index for at, index in found.choices.items() if at != place}
                run = replay(theatre, choices)
                if isinstance(run.failure, kind):
                    found, progress = found._replace(choices=deviations(run), run=run), True
                    break
    return found
