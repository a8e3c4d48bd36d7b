"""A fair run that goes on for ever without an end is found, an unfair one is not blamed."""

import pytest
from forebay_models.explore.fairness import (
    Arrow,
    components,
    fair_components,
    fair_round,
    possible,
)

Graph = dict[int, list[Arrow[str]]]


def graph(*steps: tuple[int, str | None, int]) -> Graph:
    """Return a graph from (source, fair choice or None, target)."""
    found: Graph = {}
    for source, choice, target in steps:
        found.setdefault(source, []).append(Arrow(choice, target))
        found.setdefault(target, [])
    return found


def stays(arrows: Graph, owed: set[int], *, strong: bool = False) -> list[set[int]]:
    """Return the components of the states that owe something where a fair run can stay."""
    found = fair_components(owed, arrows, possible(arrows), strong=strong)
    return sorted((set(component) for component in found), key=min)


# 0 and 1 are a loop in which somebody is owed; 2 is where the debt is paid.
SPIN = ((0, None, 1), (1, None, 0))


def test_components_are_found() -> None:
    arrows = graph((0, None, 1), (1, None, 2), (2, None, 0), (2, None, 3), (3, None, 4))
    assert sorted(sorted(c) for c in components(set(arrows), arrows)) == [[0, 1, 2], [3], [4]]
    assert sorted(sorted(c) for c in components({0, 1, 3}, arrows)) == [[0], [1], [3]]


def test_many_states_in_a_row_are_no_difficulty() -> None:
    arrows = graph(*((n, None, n + 1) for n in range(5_000)), (5_000, None, 0))
    assert [len(c) for c in components(set(arrows), arrows)] == [5_001]


def test_a_loop_without_fair_choices_is_a_fair_run() -> None:
    arrows = graph(*SPIN, (0, None, 2))
    assert stays(arrows, {0, 1}) == [{0, 1}]


def test_a_loop_that_puts_off_a_choice_for_ever_is_unfair() -> None:
    arrows = graph(*SPIN, (0, "serve", 2), (1, "serve", 2))
    assert stays(arrows, {0, 1}) == []


def test_a_choice_that_comes_and_goes_is_put_off_fairly_unless_fairness_is_strong() -> None:
    arrows = graph((0, "go", 1), (1, "go", 0), (0, "serve", 2))
    assert stays(arrows, {0, 1}) == [{0, 1}]
    assert stays(arrows, {0, 1}, strong=True) == []


def test_a_run_may_stand_still_where_nothing_fair_is_possible_though_it_could_go_on() -> None:
    assert stays(graph(*SPIN, (0, "serve", 2)), {0, 1}, strong=True) == [{1}]


def test_a_choice_that_is_taken_inside_the_loop_is_no_way_out() -> None:
    arrows = graph((0, "serve", 1), (1, "serve", 0), (0, "serve", 2), (1, "serve", 2))
    assert stays(arrows, {0, 1}) == [{0, 1}]
    assert stays(arrows, {0, 1}, strong=True) == [{0, 1}]


def test_standing_still_is_fair_only_where_nothing_fair_is_possible() -> None:
    assert stays(graph((0, None, 1)), {0}) == [{0}]
    assert stays(graph((0, "serve", 1)), {0}) == []


def test_a_step_to_itself_is_no_step() -> None:
    assert stays(graph((0, "serve", 0)), {0}) == [{0}]
    assert stays(graph((0, "serve", 0), (0, "help", 1)), {0}) == []


def test_under_strong_fairness_a_smaller_loop_inside_may_be_fair() -> None:
    # 0 -> 1 -> 0 and 1 -> 3 -> 1; the choice is possible in 3 only, so 0 and 1 do without it.
    arrows = graph(*SPIN, (1, None, 3), (3, None, 1), (3, "serve", 2))
    assert stays(arrows, {0, 1, 3}, strong=True) == [{0, 1}]
    assert stays(arrows, {0, 1, 3}) == [{0, 1, 3}]


@pytest.mark.parametrize("strong", [False, True])
def test_a_round_comes_back_and_takes_what_must_not_be_put_off(strong: bool) -> None:
    arrows = graph(
        *((0, None, 1), (1, None, 2), (2, None, 0)),
        *((0, "a", 1), (1, "a", 3), (2, "b", 0), (3, None, 0)),
    )
    component = frozenset({0, 1, 2, 3})
    walk = fair_round(component, arrows, possible(arrows), 0, strong=strong)
    here, visited = 0, {0}
    for arrow in walk:
        assert arrow in arrows[here]
        here = arrow.target
        visited.add(here)
    assert here == 0
    offered = possible(arrows)
    for choice in ("a", "b"):
        taken = choice in {arrow.choice for arrow in walk}
        without = any(choice not in offered[state] for state in visited)
        assert taken or (without and not strong)


def test_a_round_that_takes_a_choice_takes_it() -> None:
    arrows = graph((0, None, 1), (1, None, 0), (0, "a", 1), (1, "a", 1))
    arrows[1].append(Arrow("a", 0))
    walk = fair_round(frozenset({0, 1}), arrows, possible(arrows), 0)
    assert "a" in [arrow.choice for arrow in walk]


def test_a_run_that_stands_still_has_an_empty_round() -> None:
    assert fair_round(frozenset({0}), graph((0, None, 1)), {0: frozenset()}, 0) == []
