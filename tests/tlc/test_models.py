"""The manifest leaves nothing out: each configuration is run, each property and witness checked."""

import re

from forebay_models.tlc.manifest import find_models, load_runs
from forebay_spec.bounds import QUICK
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS, WITNESSES

MODELS = find_models()
RUNS = load_runs(MODELS)


def test_every_configuration_is_run() -> None:
    assert {run.cfg for run in RUNS} == {file.name for file in MODELS.glob("*.cfg")}


def test_every_quick_graph_is_printed_by_one_run() -> None:
    assert sorted(run.graph for run in RUNS if run.graph is not None) == sorted(QUICK)


def test_every_property_is_checked_by_a_run_that_holds() -> None:
    checked = set()
    for run in RUNS:
        if run.expect == "holds":
            checked |= set(re.findall(r"\w+", (MODELS / run.cfg).read_text(encoding="utf-8")))
    assert {*INVARIANTS, *STEPS, *LIVENESS} - checked == set()


def test_every_witness_is_expected_by_a_quick_run() -> None:
    expected = {name for run in RUNS if run.tier == "quick" for name in run.witnesses}
    assert expected == set(WITNESSES)


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
