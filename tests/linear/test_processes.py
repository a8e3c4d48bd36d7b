"""Real runs of processes that are killed: explained, and whatever else goes wrong is noticed."""

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace

import pytest
from forebay_models.linear.actor import Actor
from forebay_models.linear.lines import as_lines, from_lines
from forebay_models.linear.outsider import Outsider
from forebay_models.linear.processes import record_processes
from forebay_models.linear.run import judged, run_histories
from forebay_models.linear.workload import PROCESSES, VICTIMS, workload
from forebay_models.outcome import Outcome, Verdict
from forebay_models.targets import Target

LEAST = 60  # operations of a history


def nobody_is_left(before: int) -> bool:
    """Tell whether no process and no end of a pipe has stayed behind."""
    return not multiprocessing.active_children() and len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("seed", range(3))
def test_a_recorded_history_is_explained(seed: int) -> None:
    record_processes(workload(seed, Target.SHARED))  # whatever is opened once is open now
    before = len(os.listdir("/proc/self/fd"))
    recording = record_processes(workload(seed, Target.SHARED))
    assert nobody_is_left(before)
    assert (recording.hang, recording.deaths) == ("", ())
    history = recording.history
    assert len(history.operations) >= LEAST
    assert set(history.kills) == {kill.victim for kill in workload(seed).kills()}
    assert history.setting.source == f"shared storage, seed {seed}"
    outcome = judged("a run", history)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    assert from_lines(as_lines(history)) == history


def test_the_run_ends_with_a_look_for_the_dead_and_what_is_left() -> None:
    operations = record_processes(workload(5, Target.SHARED)).history.operations
    look = next(place for place, op in enumerate(operations) if op.kind == "recover")
    assert {op.actor for op in operations[look:]} == {"o1"}
    assert {"sample", "len"} <= {op.kind for op in operations[look:]}
    (*_, last) = (op for op in operations if op.kind == "sample" and op.actor == "o1")
    assert last.ended == "shut down"


def test_the_seed_decides_who_is_killed_and_somebody_of_each_kind_is_not() -> None:
    names = {name for name, _ in PROCESSES}
    assert names - set(VICTIMS) == {"p2", "c2"}
    plans = [workload(seed, Target.SHARED) for seed in range(40)]
    assert [plan.kills() for plan in plans] == [workload(n).kills() for n in range(40)]
    assert {kill.victim for plan in plans for kill in plan.kills()} == set(VICTIMS)


def violated(outcome: Outcome) -> tuple[str, ...]:
    """Return what is wrong in the first history of a campaign."""
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.figures["histories"] == 1
    assert outcome.counterexample is not None
    return outcome.counterexample.what


def test_a_run_that_does_not_end_is_a_failure_and_its_processes_are_gone() -> None:
    """It is never closed here, since nobody lives to see so many operations."""
    before = len(os.listdir("/proc/self/fd"))
    outcome = run_histories(
        Target.SHARED,
        seconds=None,
        seed=0,
        histories=2,
        patience=1.0,
        plan=lambda seed, target: replace(workload(seed, target), operations=10**9),
    )
    assert violated(outcome)[0].startswith("the run hangs")
    assert "\nthe buffer says of itself:\nbuffer of" in outcome.detail
    assert nobody_is_left(before)


def fail(*_: object) -> None:
    raise KeyError("in the checker")


def leave(*_: object) -> None:
    os._exit(7)


@pytest.mark.parametrize(
    ("where", "method", "do", "says"),
    [
        (Actor, "_token", fail, "KeyError: 'in the checker'"),
        (Actor, "_token", leave, "it ended with exit code 7"),
        (Outsider, "close", fail, "KeyError: 'in the checker'"),
        (Outsider, "close", leave, "o1: it ended with exit code 7"),
    ],
)
def test_a_process_that_ends_by_itself_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
    where: type[Actor | Outsider],
    method: str,
    do: Callable[..., None],
    says: str,
) -> None:
    """Its own code fails between two calls; nothing of that is in the history."""
    monkeypatch.setattr(where, method, do)
    outcome = run_histories(Target.SHARED, seconds=None, seed=0, histories=2)
    first, second, *_ = violated(outcome)
    assert first == "the run ended, but not every actor came to the end of its work"
    assert second.startswith("this one died of an error: ")
    assert second.endswith(says)
