"""Which schedules each strategy gives, over a made-up tree of choices."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import pytest
from forebay_models.scheduling.stage import Kind, LeftToChance, Option, Pruned
from forebay_models.scheduling.strategies import DepthFirst, Fixed, Priorities, Strategy, Uniform

FREE = (Option(Kind.RUN, 0, 0), Option(Kind.RUN, 1, 0))
COSTLY = (Option(Kind.RUN, 0, 0), Option(Kind.RUN, 1, 1))


def paths(strategy: Strategy, *choices: Sequence[Option], most: int = 100) -> list[tuple[int, ...]]:
    """Return what a strategy picks in each schedule of a tree with these choices, one a level."""
    found: list[tuple[int, ...]] = []
    while len(found) < most and strategy.begin():
        path: list[int] = []
        for options in choices:
            path.append(strategy.pick(options, partial(hash, tuple(path))))
        found.append(tuple(path))
    return found


@pytest.mark.parametrize(("bound", "count"), [(0, 2), (1, 8), (2, 14), (3, 16)])
def test_depth_first_gives_every_schedule_within_its_bound_once(bound: int, count: int) -> None:
    found = paths(DepthFirst(bound), FREE, COSTLY, COSTLY, COSTLY)
    assert len(found) == len(set(found)) == count
    assert all(sum(path[1:]) <= bound for path in found)


def test_depth_first_does_not_go_on_where_it_has_been() -> None:
    strategy = DepthFirst(1)
    ended = []
    while strategy.begin():
        try:
            strategy.pick(FREE, lambda: 1)
            strategy.pick(COSTLY, lambda: 2)
            ended.append("whole")
        except Pruned:
            ended.append("pruned")
    assert ended == ["whole", "whole", "pruned"]


def test_depth_first_notices_that_a_choice_has_other_options_the_second_time() -> None:
    strategy = DepthFirst(1)
    assert strategy.begin()
    strategy.pick(FREE, lambda: 1)
    assert strategy.begin()
    with pytest.raises(LeftToChance):
        strategy.pick((*FREE, *COSTLY), lambda: 1)


def test_a_fixed_schedule_deviates_where_it_is_told_to() -> None:
    assert paths(Fixed({1: 1, 2: 7}), COSTLY, COSTLY, FREE, COSTLY, most=1) == [(0, 1, 1, 0)]


@pytest.mark.parametrize("make", [Uniform, Priorities])
def test_random_schedules_depend_on_nothing_but_the_seed(make: type[Uniform | Priorities]) -> None:
    tree = [FREE, COSTLY] * 20
    assert paths(make(5), *tree, most=10) == paths(make(5), *tree, most=10)
    assert paths(make(5), *tree, most=10) != paths(make(6), *tree, most=10)


def test_priorities_change_at_few_places_of_a_schedule() -> None:
    tree = [FREE] * 50
    for path in paths(Priorities(1, depth=3), *tree, most=50)[1:]:
        changes = sum(one != two for one, two in pairwise(path))
        assert changes <= 2
