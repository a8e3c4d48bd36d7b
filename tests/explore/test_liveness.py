"""Whoever is owed an end gets it on every fair run, and a run on which not is shown as a lasso."""

from dataclasses import replace

import pytest
from forebay_models.explore.graph import Graph, Limits, explore
from forebay_models.explore.liveness import answer
from forebay_models.mutants.spec import SPEC_MUTANTS
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK
from forebay_spec.properties import LIVENESS, fair_choice
from forebay_spec.state import ticket_of


@pytest.fixture(scope="module")
def honest() -> Graph:
    return explore(Machine(QUICK["liveness"]))


@pytest.fixture(scope="module")
def healing() -> Graph:
    return explore(Machine(QUICK["heals"]))


@pytest.fixture(scope="module")
def capturing() -> Graph:
    return explore(Machine(QUICK["captures"]))


@pytest.mark.parametrize("name", list(LIVENESS))
@pytest.mark.parametrize("strong", [False, True])
def test_everybody_gets_an_end(
    honest: Graph, healing: Graph, capturing: Graph, name: str, strong: bool
) -> None:
    prop = LIVENESS[name]
    graph = {"liveness": honest, "heals": healing, "captures": capturing}[prop.theme]
    found = answer(graph, prop, strong=strong)
    assert found.starvation is None
    assert found.owed > 500


def test_with_an_idle_caller_nobody_is_served_but_that_is_not_promised(honest: Graph) -> None:
    lazy = replace(LIVENESS["EventuallyServed"], fairness="BufferGoesOn")
    found = answer(honest, lazy).starvation
    assert found is not None
    assert [str(move.label) for move in found.path[1:]] == ["Ask(c1,plain,1,1)"]
    assert (found.actor, found.round) == ("c1", ())


def test_a_small_writer_that_passes_a_large_one_starves_it() -> None:
    machine = SPEC_MUTANTS["barging_writer"].machine(QUICK["liveness"])
    graph = explore(machine)
    found = answer(graph, LIVENESS["EventuallyServed"]).starvation
    assert found is not None
    assert len(found.round) > 0
    # The lasso is a run of the machine, it closes, and the writer waits all the way round.
    state = machine.initial()
    for label, after in (*found.path[1:], *found.round):
        assert label is not None
        assert after in machine.apply(state, label)
        state = after
    assert state == found.path[-1].state
    waiting = {ticket_of(after, found.actor) for _, after in found.round}
    assert len(waiting) == 1
    assert None not in waiting
    # It is fair: what is possible in every state of the round is taken in it.
    states = [found.path[-1].state, *(after for _, after in found.round)]
    taken = {
        fair_choice("CallersGoOn", before, label)
        for before, (label, _) in zip(states, found.round, strict=False)
        if label is not None
    }
    always = set.intersection(
        *(
            {
                fair_choice("CallersGoOn", before, label)
                for label, after in machine.successors(before)
                if after != before
            }
            for before in states
        )
    )
    assert always - {None} <= taken


def test_who_is_killed_again_and_again_keeps_others_waiting_but_kills_end(healing: Graph) -> None:
    endless = replace(LIVENESS["KillHeals"], end=frozenset())
    found = answer(healing, endless).starvation
    assert found is not None
    assert {label.name for label, _ in found.round if label is not None} >= {"Kill", "Recover"}


def test_the_dead_whom_nobody_looks_for_stay_dead() -> None:
    machine = SPEC_MUTANTS["dead_never_recovered"].machine(QUICK["heals"])
    found = answer(explore(machine), LIVENESS["KillHeals"]).starvation
    assert found is not None
    assert found.path[-1].label is not None
    assert found.path[-1].label.name == "Kill"
    assert found.path[-1].state.dead or ticket_of(found.path[-1].state, found.actor)


def test_half_a_graph_gives_no_answer() -> None:
    graph = explore(Machine(QUICK["liveness"]), limits=Limits(states=100))
    with pytest.raises(ValueError, match="whole graph"):
        answer(graph, LIVENESS["CloseEnds"])
    bare = explore(Machine(QUICK["liveness"]), keep_edges=False)
    with pytest.raises(ValueError, match="whole graph"):
        answer(bare, LIVENESS["CloseEnds"])
