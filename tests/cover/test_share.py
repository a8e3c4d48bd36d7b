"""Paths are walked on the library's buffer, and an edge counts only once it was really taken."""

from collections.abc import Iterator

import pytest
from forebay_models.adapters.adapter import MANNERS, drawing, slots_of
from forebay_models.campaign.driver import Exercise
from forebay_models.campaign.quiet import quiet_library
from forebay_models.cover.plan import paths
from forebay_models.cover.share import GraphFacts, Share
from forebay_models.explore.graph import Graph, explore
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.stepping.worker import Hands
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK, Bounds, Request, mutual_wait_bounds

SMALL = mutual_wait_bounds(2, 1, 2)
DICE = Bounds(
    name="dice",
    capacity=3,
    order="random",
    producers=("p1",),
    readers=("c1",),
    write_sizes=(3,),
    requests=(Request("plain", 2, 2),),
    features=frozenset({"Fail"}),
)


@pytest.fixture
def hands() -> Iterator[Hands]:
    with Hands() as lent, quiet_library():
        yield lent


def share_of(bounds: Bounds, hands: Hands) -> tuple[Graph, Share]:
    graph = explore(Machine(bounds))
    return graph, Share(graph, hands, Exercise(), patience=5.0)


@pytest.mark.parametrize("bounds", [SMALL, DICE], ids=lambda bounds: bounds.name)
def test_a_whole_graph_is_taken(bounds: Bounds, hands: Hands) -> None:
    graph, share = share_of(bounds, hands)
    steps = 0
    for number, path in enumerate(paths(graph)):
        assert share.walk(number, path, lambda: True) is None
        steps += len(path)
    assert share.taken == b"\1" * len(graph.edges)
    assert share.seen == b"\1" * len(graph.states)
    assert share.exercise.steps == steps


def test_only_what_was_taken_counts(hands: Hands) -> None:
    graph, share = share_of(SMALL, hands)
    everything = list(paths(graph))
    lost = everything[-1][-1]
    for number, path in enumerate(everything):
        assert share.walk(number, path[: path.index(lost)] if lost in path else path, bool) is None
    # `bool()` is false, so that no step was taken at all.
    assert share.taken.count(1) == share.exercise.steps == 0
    for number, path in enumerate(everything):
        share.walk(number, path[: path.index(lost)] if lost in path else path, lambda: True)
    assert share.taken[lost] == 0
    assert share.taken.count(0) >= 1


def test_draws_are_steered_to_each_of_their_edges(hands: Hands) -> None:
    graph, share = share_of(DICE, hands)
    manners = {
        move.manner
        for number, path in enumerate(paths(graph))
        for move in share.moves(number, path)
    }
    wanted = {slots_of(manner) for manner in manners} - {()}
    assert wanted == {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}


def test_a_draw_that_goes_elsewhere_is_a_failure(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, share = share_of(DICE, hands)
    monkeypatch.setattr(
        "forebay_models.cover.share.drawing", lambda slots: drawing(tuple(reversed(slots)))
    )
    failures = [share.walk(number, path, lambda: True) for number, path in enumerate(paths(graph))]
    assert failures[0] is not None
    assert failures[0].what == ("the draw went elsewhere than it was steered to",)


def test_a_failure_names_the_step_and_ends_the_walk(hands: Hands) -> None:
    graph, share = share_of(SMALL, hands)
    with LOCAL_MUTANTS["use_count_off_by_one"].plant():
        found = (share.walk(number, path, lambda: True) for number, path in enumerate(paths(graph)))
        failure = next(it for it in found if it is not None)
    assert failure.steps[-1].after is None
    assert failure.what == ("the state is not one that the specification allows",)
    assert share.taken.count(1) < len(graph.edges)


def test_counters_are_compared_at_the_end_of_a_path_too(hands: Hands) -> None:
    graph, share = share_of(SMALL, hands)
    path = next(iter(paths(graph)))[:1]
    with LOCAL_MUTANTS["stats_raise"].plant():
        failure = share.walk(0, path, lambda: True)
    assert failure is not None
    assert "planted" in failure.what[0]


def test_the_facts_of_a_graph_are_those_of_its_model() -> None:
    graph = explore(Machine(DICE))
    machine, facts = Machine(DICE), GraphFacts(graph)
    for source, label, _ in graph.edges:
        state = graph.states[source]
        assert sorted(facts.allowed(state, label)) == sorted(machine.apply(state, label))


@pytest.mark.slow
def test_every_manner_of_every_action_has_its_turn(hands: Hands) -> None:
    left = {(name, manner) for name, manners in MANNERS.items() for manner in manners}
    for name in ("writers", "droplast", "restores"):  # none of them has Abandon, Fail and Reject
        graph, share = share_of(QUICK[name], hands)
        for number, path in enumerate(paths(graph)):
            left -= {(move.label.name, move.manner) for move in share.moves(number, path)}
    assert left == set()
