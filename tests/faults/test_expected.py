"""What the search through the specification lets come out of a death."""

from forebay_models.faults.expected import Planned, Search
from forebay_models.faults.program import OK, ops_of
from forebay_models.faults.scenarios import SCENARIOS, Scenario
from forebay_spec.kernel import Phase
from forebay_spec.state import State, has_something, initial

SCENARIO = Scenario(name="one", capacity=1, victim="extend 1", after=(("a", "sample 1"),))


def search_of(victim: str, outcome: str | None = None) -> Search:
    call = Planned(ops_of("sample 1")[0], outcome)
    return Search(SCENARIO, {"v": (Planned(ops_of(victim)[0], None),), "a": (call,), "b": ()})


def ends(search: Search, before: State) -> set[State]:
    after = search.without_victim()
    nodes = search.reachable([search.start(initial(SCENARIO.bounds))])
    there = [node for node in nodes if node.state == before]
    assert there
    return {node.state for node in after.reachable(after.killed(there)) if after.is_over(node)}


def states(search: Search) -> set[State]:
    return {node.state for node in search.reachable([search.start(initial(SCENARIO.bounds))])}


def test_a_dead_writer_that_fills_leaves_nothing_to_read() -> None:
    search = search_of("extend 1", OK)
    filling = {state for state in states(search) if state.filling and not state.tickets}
    assert [ends(search, state) for state in filling] == [set()]


def test_what_a_dead_writer_has_published_is_read() -> None:
    search = search_of("extend 1", OK)
    live = {
        state
        for state in states(search)
        if state.slots[0].phase is Phase.LIVE and not state.holds and not state.tickets
    }
    (published,) = live
    assert ends(search, published) == {initial(SCENARIO.bounds)._replace(fresh=0)}


def test_how_a_call_ended_has_to_fit() -> None:
    search = search_of("extend 1", "ShutDown")
    nodes = search.reachable([search.start(initial(SCENARIO.bounds))])
    assert not any(search.is_over(node) for node in nodes)


def test_a_victim_that_has_nothing_is_not_dead_to_the_specification() -> None:
    search = search_of("extend 1")
    killed = search.killed([search.start(initial(SCENARIO.bounds))])
    assert all(not node.state.dead for node in killed)


def test_scenarios_have_names_of_their_own_and_points_for_finders() -> None:
    assert all(scenario.name == name for name, scenario in SCENARIOS.items())
    assert all(scenario.finder_points for scenario in SCENARIOS.values())
    assert not any(has_something(initial(it.bounds), "v") for it in SCENARIOS.values())
