"""The honest specification keeps every promise; a violation comes with a shortest path to it."""

from dataclasses import replace

import pytest
from forebay_models.explore.check import Violation, check
from forebay_models.explore.graph import Limits, explore
from forebay_models.explore.outcomes import WITNESSES_OF
from forebay_models.explore.show import path_table, violation_shown
from forebay_models.mutants.spec import SPEC_MUTANTS
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK, Request, mutual_wait_bounds
from forebay_spec.properties import STEPS, WITNESSES

from tests.spec.walking import label

TINY = mutual_wait_bounds(1, 1, 1)

OVERWRITTEN = """\
mutual-wait-1-1-1: C=1 N=1 fifo; producers p1 write 1; readers c1 ask plain 1 1

step | p1           | state
-----+--------------+----------------------------
0    | initially    | slots[0] = free
     |              | free = (0), 1 of them fresh
     |              | filling = -
     |              | tickets = -
     |              | holds = -
     |              | closing = open
     |              | cancelled = -
     |              | dead = -
     |              | boundary = -
     |              | saved = -
1    | Arrive(p1,1) | slots[0] = filling
     |              | free = (), 0 of them fresh
     |              | filling = p1: (0)
2    | Publish(p1)  | slots[0] = live stamp=1
     |              | filling = -
3    | Arrive(p1,1) | slots[0] = filling
     |              | filling = p1: (0)

NoOverwrite is violated: A record that may still be drawn, or is held or still to be copied, keeps \
its slot, but for evicted ones.
Conservation is violated: Records come only by Publish and Restore and go only by being spent or \
evicted, by Empty or by Load; returned ones are sampleable again."""


@pytest.mark.parametrize("name", list(QUICK))
def test_the_honest_specification_keeps_every_promise(name: str) -> None:
    report = check(Machine(QUICK[name]))
    assert report.violation is None
    assert report.graph.stopped == ""
    assert report.witnesses == WITNESSES_OF[name]


@pytest.mark.parametrize(
    "changes",
    [
        {"write_sizes": (2,), "requests": (Request("plain", 1, 1),)},
        {"capacity": 1, "write_sizes": (1,), "requests": (Request("lease", 1, 1),)},
    ],
    ids=["held-by-two", "leased-twice"],
)
def test_records_with_several_holds_are_recovered_as_promised(changes: dict[str, object]) -> None:
    # The quick graphs with kills have one use a record, so a record has one hold there.
    bounds = replace(QUICK["readers"], name="shared", features=frozenset({"Kill"}))
    bounds = replace(bounds, **changes)  # type: ignore[arg-type]  # a table
    report = check(Machine(bounds))
    assert any(
        any(slot.pins == 2 for slot in state.slots) and state.dead for state in report.graph.states
    )
    assert report.violation is None


def test_the_quick_graphs_together_have_every_witness() -> None:
    together: frozenset[str] = frozenset().union(*WITNESSES_OF.values())
    assert together == frozenset(WITNESSES)


@pytest.mark.parametrize("name", ["leases", "readers", "heals"])
def test_no_witness_comes_up_in_a_step_of_an_action_that_is_not_asked_about_it_before(
    name: str,
) -> None:
    graph = explore(Machine(QUICK[name]))
    seen: dict[str, set[str]] = {}
    for source, found, target in graph.edges:  # breadth first, so that what leads there is before
        before, after = graph.states[source], graph.states[target]
        for witness in WITNESSES.values():
            if witness.predicate(graph.bounds, before, found, after):
                seen.setdefault(witness.name, set()).add(found.name)
                asked = witness.actions or seen[witness.name]
                assert seen[witness.name] & set(asked), (witness.name, found)
    assert seen.keys() == WITNESSES_OF[name]


def test_steps_that_kill_stand_under_nobody() -> None:
    machine = Machine(QUICK["heals"])
    graph = explore(machine)
    number = next(n for n, state in enumerate(graph.states) if state.dead)
    assert path_table(graph.path_to(number)).splitlines()[-1].endswith("| Kill(p1) | dead = p1")


def overwritten() -> Violation:
    violation = check(SPEC_MUTANTS["overwrite_sampleable"].machine(TINY)).violation
    assert violation is not None
    return violation


def test_a_violation_is_shown_as_a_table_of_who_did_what() -> None:
    shown = violation_shown(overwritten(), bounds=TINY, name="explore tiny")
    assert shown.as_text() == OVERWRITTEN


def test_everything_that_a_step_violates_is_named() -> None:
    assert overwritten().properties == ("NoOverwrite", "Conservation")


def test_a_counterexample_is_a_run_and_no_shorter_one_exists() -> None:
    machine = SPEC_MUTANTS["returned_at_tail"].machine(QUICK["readers"])
    violation = check(machine).violation
    assert violation is not None
    assert violation.properties == ("FifoOrder",)
    state = machine.initial()
    for found, after in violation.path[1:]:
        assert found is not None
        assert after in machine.apply(state, found)
        state = after
    # Every step that starts nearer to the beginning than the bad one keeps the property.
    graph = explore(machine)
    depths = {0: 0}
    holds = STEPS["FifoOrder"].predicate
    bad = set()
    for source, found, target in graph.edges:
        depths.setdefault(target, depths[source] + 1)
        if not holds(machine.bounds, graph.states[source], found, graph.states[target]):
            bad.add(depths[source] + 1)
    assert min(bad) == len(violation.path) - 1


def test_a_bad_state_ends_the_path_that_leads_to_it() -> None:
    machine = SPEC_MUTANTS["mutual_wait_unnoticed"].machine(QUICK["writers"])
    violation = check(machine).violation
    assert violation is not None
    assert violation.properties == ("NoSilentDeadlock",)
    *_, last = violation.path
    assert machine.labels(last.state)  # others may still come and go, but nobody is helped
    assert len(last.state.tickets) == 2


def test_a_violation_within_a_limit_counts_and_the_limit_is_named_otherwise() -> None:
    machine = SPEC_MUTANTS["overwrite_sampleable"].machine(TINY)
    assert check(machine, limits=Limits(states=20)).violation is not None
    report = check(Machine(QUICK["writers"]), limits=Limits(states=20))
    assert report.violation is None
    assert report.graph.stopped == "beyond 20 states"


def test_actions_are_counted_by_edges() -> None:
    report = check(Machine(TINY))
    assert sum(report.actions.values()) == report.graph.edge_count == 24
    assert report.actions["Publish"] == 2
    assert report.graph.edges == []


def test_steps_stand_under_who_takes_them() -> None:
    machine = Machine(QUICK["cancel"])
    state = machine.initial()
    path = explore(machine).path_to(0)
    assert path_table(path).splitlines()[2].startswith("0    | initially")
    (after,) = machine.apply(state, label("SetCancel(t1)"))
    path = [path[0], path[0]._replace(label=label("SetCancel(t1)"), state=after)]
    assert path_table(path).splitlines()[0] == "step | outside       | state"
    assert path_table(path).splitlines()[-1] == "1    | SetCancel(t1) | cancelled = t1"
