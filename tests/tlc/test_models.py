"""The manifest leaves nothing out: each configuration is run, each property and witness checked."""

import re

import pytest
from forebay_models.tlc.manifest import find_models, load_runs
from forebay_spec.bounds import QUICK
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS, WITNESSES

MODELS = find_models()
RUNS = load_runs(MODELS)
OWN_WITNESSES = ("MCMonitor", "MCJournal", "MCDirectoryCommit", "MCDeviceStreams")
"""Modules that say themselves what must be possible."""


def source(module: str) -> str:
    return (MODELS / f"{module}.tla").read_text(encoding="utf-8")


def words_of(cfg: str) -> set[str]:
    return set(re.findall(r"\w+", (MODELS / cfg).read_text(encoding="utf-8")))


def test_every_configuration_is_run() -> None:
    assert {run.cfg for run in RUNS} == {file.name for file in MODELS.glob("*.cfg")}


def test_every_quick_graph_is_printed_by_one_run() -> None:
    assert sorted(run.graph for run in RUNS if run.graph is not None) == sorted(QUICK)


def test_the_graph_has_the_actions_of_the_machine_each_with_its_own_label() -> None:
    """An action that `Next` has and `GraphNext` has not would be looked at by no run of a graph."""
    graph = re.search(r"GraphNext ==\n(.*?)\nGraphSpec", source("Graph"), re.DOTALL)
    machine = re.search(r"\nNext ==\n(.*?)\n\n", source("ReplayBuffer"), re.DOTALL)
    assert graph is not None
    assert machine is not None
    said = re.findall(r"(\w+)(?:\(([^)]*)\))? /\\ Says\(<<\"(\w+)\"(?:, (.*?))?>>\)", graph[1])
    assert len(said) == graph[1].count("\\/ ") == graph[1].count("Says")
    assert [(name, given) for name, given, _, _ in said] == [
        (label, shown) for _, _, label, shown in said
    ]
    helpers = {"Arrives": "Arrive", "Asks": "Ask"}
    named = re.findall(r"\b([A-Z]\w+)(?:\(|\b(?= *\\/| *$))", machine[1], re.MULTILINE)
    assert sorted(helpers.get(name, name) for name in named) == sorted(name for name, *_ in said)


def test_every_property_is_checked_by_a_run_that_holds() -> None:
    checked = set()
    for run in RUNS:
        if run.expect == "holds":
            checked |= set(re.findall(r"\w+", (MODELS / run.cfg).read_text(encoding="utf-8")))
    assert {*INVARIANTS, *STEPS, *LIVENESS} - checked == set()


def test_every_witness_is_expected_by_a_quick_run() -> None:
    runs = [run for run in RUNS if run.tier == "quick" and run.module not in OWN_WITNESSES]
    assert {name for run in runs for name in run.witnesses} == set(WITNESSES)


def test_every_witness_is_looked_for_once_and_under_its_own_number() -> None:
    """TLC would take two witnesses of one number for seen when the first of them is."""
    looks = re.findall(r'Look\((\d+), "(\w+)", (\w+)\)', source("Witnesses"))
    assert sorted(name for _, name, _ in looks) == sorted(WITNESSES)
    assert [name for _, name, _ in looks] == [predicate for _, _, predicate in looks]
    assert sorted(int(number) for number, *_ in looks) == list(range(1, len(WITNESSES) + 1))
    assert f"1 .. {len(WITNESSES)} : TLCSet" in source("Witnesses")


@pytest.mark.parametrize("module", OWN_WITNESSES)
def test_every_witness_that_a_module_names_is_expected_by_a_quick_run(module: str) -> None:
    listed = re.search(r"WitnessNames == <<(.*?)>>", source(module), re.DOTALL)
    assert listed is not None
    runs = [run for run in RUNS if run.tier == "quick" and run.module == module]
    expected = {name for run in runs for name in run.witnesses}
    assert expected == set(re.findall(r'"(\w+)"', listed[1]))


@pytest.mark.parametrize("module", OWN_WITNESSES)
def test_every_fault_that_a_module_tells_of_is_planted_by_a_run(module: str) -> None:
    told = set(re.findall(r"^\\\* (\w+_\w+): ", source(module), re.MULTILINE))
    assert len(told) >= 5
    assert told == {run.fault for run in RUNS if run.module == module and run.fault}


def test_every_fault_of_the_buffer_that_is_told_of_is_planted_by_a_run() -> None:
    lines = re.findall(r"^\\\* (\w+_\w+(?:, \w+_\w+)*): ", source("Bugs"), re.MULTILINE)
    told = {name for line in lines for name in line.split(", ")}
    assert told == {run.fault for run in RUNS if run.module not in OWN_WITNESSES and run.fault}


def test_the_property_that_finds_a_fault_holds_without_it() -> None:
    alone = [
        run.name
        for run in RUNS
        if run.property is not None
        and not any(
            other.expect == "holds"
            and other.module == run.module
            and run.property in words_of(other.cfg)
            for other in RUNS
        )
    ]
    assert alone == []


def test_the_bound_on_mutual_waits_is_checked_up_to_six() -> None:
    assert sorted(run.mutual_wait for run in RUNS if run.mutual_wait) == [1, 2, 3, 4, 5, 6]


def test_planted_faults_are_expected_to_be_found() -> None:
    faults = {run.fault: run for run in RUNS if run.fault is not None}
    assert len(faults) >= 6
    assert all(run.expect != "holds" for run in faults.values())
    found = {run.property for run in faults.values()}
    assert len(found) >= 6


def test_what_holds_in_the_quick_tier_has_its_figures() -> None:
    holds = [run for run in RUNS if run.expect == "holds" and run.tier == "quick"]
    assert len(holds) >= len(QUICK)
    assert [run.name for run in holds if not (run.distinct and run.depth)] == []
