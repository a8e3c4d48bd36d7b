"""TLC and the explorer on one tiny graph: equal, and not equal once either has a planted fault.

The graph is printed by a run of TLC on the real model, so the whole way is tested, from `Graph.tla`
to the comparison.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from forebay_models.agree import Comparison, Kind, compare
from forebay_models.agree_check import describe_state, explored
from forebay_models.graphs import LabelledGraph
from forebay_models.tlc.edges import EdgeReader
from forebay_models.tlc.java import find_tools
from forebay_models.tlc.manifest import Run
from forebay_models.tlc.runner import TlcRunner
from forebay_spec.actions import ACTIONS, Action, Machine
from forebay_spec.bounds import Bounds, Request
from forebay_spec.state import State, initial

TLA = Path(__file__).parents[2] / "tla"
BOUNDS = Bounds(
    name="tiny",
    capacity=1,
    producers=("p1",),
    readers=("c1",),
    write_sizes=(1,),
    requests=(Request("plain", 1, 1),),
    prefetch=1,
    features=frozenset({"Abandon", "Capture", "Restore"}),
)
MODULE = """---- MODULE Tiny ----
EXTENDS Graph
TheRequests == {<<"plain", 1, 1>>}
TheTokens == [x \\in Actors |-> NoToken]
====
"""
CFG = """SPECIFICATION GraphSpec
CONSTANTS
    Capacity = 1
    UsesPerRecord = 1
    Order = "fifo"
    Producers = {"p1"}
    Readers = {"c1"}
    WriteSizes = {1}
    Requests <- TheRequests
    TokenOf <- TheTokens
    ProcessOf <- EachItsOwn
    PrefetchDepth = 1
    BatchSize = 1
    Features = {"Abandon", "Capture", "Restore"}
    Closings = {}
INVARIANT PrintInit
"""


def write_models(directory: Path, cfg: str = CFG) -> None:
    """Put the tiny model into a directory, with all that it extends."""
    for source in (*TLA.glob("ReplayBuffer*.tla"), TLA / "Graph.tla"):
        (directory / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    (directory / "Tiny.tla").write_text(MODULE, encoding="utf-8")
    (directory / "Tiny.cfg").write_text(cfg, encoding="utf-8")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> LabelledGraph:
    """The graph as TLC prints it."""
    directory = tmp_path_factory.mktemp("tiny")
    write_models(directory)
    reader = EdgeReader()
    with TlcRunner(find_tools(), directory) as runner:
        result = runner.run(Run(name="tiny", module="Tiny", cfg="Tiny.cfg"), take=reader.take)
    assert result.exit_code == 0, result.report
    assert result.report.distinct == len(reader.graph().states)
    return reader.graph()


def compared(printed: LabelledGraph, machine: Machine) -> Comparison:
    return compare(printed, explored(machine), names=("TLA+", "Python"), describe=describe_state)


def with_action(action: Action) -> Mapping[str, Action]:
    return {**ACTIONS, action.name: action}


def test_both_have_the_same_graph(printed: LabelledGraph) -> None:
    comparison = compared(printed, Machine(BOUNDS))
    assert comparison.text() == ""
    assert len(printed.states) > 10
    assert {label.partition("(")[0] for _, label, _ in printed.edges} == {
        "Arrive", "Admit", "Publish", "Abandon", "Ask", "Draw", "Ready", "Deliver",
        "Refill", "CaptureAsk", "Capture", "CaptureDone", "RestoreAsk", "Load", "Restore", "Reject",
        "Recall",
    }  # fmt: skip


def test_a_step_that_python_does_not_allow_is_a_missing_edge(printed: LabelledGraph) -> None:
    never = replace(ACTIONS["Abandon"], enabled=lambda bounds, state, *args: False)
    comparison = compared(printed, Machine(BOUNDS, with_action(never)))
    assert comparison.counts[Kind.EDGE] > 0
    assert comparison.counts[Kind.LABEL] == 0
    assert "where Python does not allow Abandon(p1)" in comparison.text()


def test_another_effect_is_a_missing_state(printed: LabelledGraph) -> None:
    honest = ACTIONS["Publish"].apply

    def publish(bounds: Bounds, state: State, p: str) -> tuple[State, ...]:
        return tuple(after._replace(fresh=after.fresh + 1) for after in honest(bounds, state, p))

    comparison = compared(
        printed, Machine(BOUNDS, with_action(replace(ACTIONS["Publish"], apply=publish)))
    )
    assert comparison.counts[Kind.STATE] > 0
    assert "Python leads by Publish(p1) to" in comparison.text()


def test_another_name_is_a_wrong_label(printed: LabelledGraph) -> None:
    graph = explored(Machine(BOUNDS))
    renamed = LabelledGraph(
        graph.states,
        graph.initial,
        frozenset((a, label.replace("Ready", "Deliver"), b) for a, label, b in graph.edges),
    )
    comparison = compare(printed, renamed, names=("TLA+", "Python"), describe=describe_state)
    assert comparison.counts[Kind.LABEL] > 0
    assert comparison.counts[Kind.EDGE] == comparison.counts[Kind.STATE] == 0
    assert "TLA+ says Ready(0) and Python says Deliver(0)" in comparison.text()


def test_another_start_is_a_wrong_initial_state(printed: LabelledGraph) -> None:
    class Elsewhere(Machine):
        def initial(self) -> State:
            return super().initial()._replace(fresh=0)

    comparison = compared(printed, Elsewhere(BOUNDS))
    assert comparison.counts[Kind.INITIAL_STATE] == 2
    assert "only Python starts in this state" in comparison.text()


@pytest.mark.parametrize("field", ["boundary", "saved"])
def test_another_boundary_or_snapshot_is_a_missing_state(
    printed: LabelledGraph, field: str
) -> None:
    """Each of both is compared: a capture that keeps nothing of one of them is noticed."""
    honest = ACTIONS["Capture"].apply

    def capture(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
        return tuple(
            after._replace(**{field: getattr(initial(bounds), field)})
            for after in honest(bounds, state, x)
        )

    comparison = compared(
        printed, Machine(BOUNDS, with_action(replace(ACTIONS["Capture"], apply=capture)))
    )
    assert comparison.counts[Kind.EDGE] > 0
    assert "Python leads by Capture(c1) to" in comparison.text()


def test_a_queue_that_is_not_restored_is_a_missing_edge(printed: LabelledGraph) -> None:
    honest = ACTIONS["Restore"].apply

    def restore(bounds: Bounds, state: State, x: str) -> tuple[State, ...]:
        return tuple(after._replace(holds=()) for after in honest(bounds, state, x))

    comparison = compared(
        printed, Machine(BOUNDS, with_action(replace(ACTIONS["Restore"], apply=restore)))
    )
    assert comparison.counts[Kind.EDGE] > 0
    assert "only TLA+ makes the step Restore(" in comparison.text()
