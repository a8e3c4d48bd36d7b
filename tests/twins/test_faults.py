"""Mistakes planted in captures and restores show in how a twin goes on.

Each shows in one program at least; the campaign itself finds some of them here, and all of them in
as many runs as it has.
"""

from pathlib import Path

import pytest
from forebay import CheckpointError
from forebay_models.mutants.resumes import RESUME_MUTANTS
from forebay_models.outcome import Verdict
from forebay_models.targets import Target
from forebay_models.twins.judge import Counts, Parted, judge
from forebay_models.twins.life import Life, Saved
from forebay_models.twins.places import live_in
from forebay_models.twins.program import Recipe, Step, Way
from forebay_models.twins.run import run_programs

from tests.twins.programs import FIFO, IN_RINGS, PROGRAMS, RING_PROGRAMS, Steps, program


def test_each_fault_has_a_program() -> None:
    assert PROGRAMS.keys() | RING_PROGRAMS.keys() == RESUME_MUTANTS.keys()


@pytest.mark.parametrize(
    ("name", "parts"),
    [*PROGRAMS.items(), *RING_PROGRAMS.items(), *IN_RINGS.items()],
    ids=[*PROGRAMS, *RING_PROGRAMS, *(f"{name}-in-a-ring" for name in IN_RINGS)],
)
def test_a_fault_is_found_and_without_it_nothing_is(
    name: str, parts: tuple[Recipe, Steps, Steps]
) -> None:
    counts = Counts()
    judge(program(parts), "twins", counts)
    assert counts.exact + counts.accounted == 1
    with pytest.raises(Parted) as parted:
        judge(program(parts), "twins", counts, fault=name)
    assert parted.value.failure.rows
    assert "twin 1" in str(parted.value)


@pytest.mark.parametrize("way", ["dumps", "pickle"])
def test_a_fault_is_found_whatever_the_way_of_saving(way: Way) -> None:
    judge(program(PROGRAMS["queue_order_lost"], way), "twins", Counts())
    with pytest.raises(Parted, match="the result"):
        judge(
            program(PROGRAMS["queue_order_lost"], way), "twins", Counts(), fault="queue_order_lost"
        )


def test_a_fault_is_found_in_a_new_process_and_in_shared_storage() -> None:
    saved = program(PROGRAMS["queue_dropped"], storage="shared", place="forkserver")
    counts = Counts()
    judge(saved, "twins", counts)
    assert (counts.exact, counts.elsewhere, counts.crossed, counts.queued) == (1, 1, 1, 1)
    with pytest.raises(Parted, match="twin 1"):
        judge(saved, "twins", counts, fault="queue_dropped")


def test_what_raises_in_a_life_is_a_failure() -> None:
    saved = program(PROGRAMS["counters_lost"])
    unknown = saved._replace(segments=(saved.segments[0], (Step("no such step", 1),)))
    with pytest.raises(Parted, match="original: LookupError: no step is called no such step"):
        judge(unknown, "twins", Counts())


def test_what_raises_in_a_new_process_is_raised_here(tmp_path: Path) -> None:
    life = Life(recipe=FIFO, storage="tensor", saved=Saved("dumps", str(tmp_path / "nothing")))
    with pytest.raises(CheckpointError) as raised:
        live_in("forkserver", life)
    assert raised.value.__notes__ == ["raised in a new process"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases left
def test_the_campaign_finds_a_fault_and_shrinks_it() -> None:
    outcome = run_programs(
        Target.LOCAL, runs=200, seconds=None, seed_number=0, fault="counters_lost"
    )
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert any(
        "the stats, " in line or "state in the end" in line for line in outcome.counterexample.what
    )
    assert "--seed 0 --runs 200 --plant counters_lost" in outcome.detail


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases left
@pytest.mark.parametrize("name", RESUME_MUTANTS)
def test_the_campaign_finds_every_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay_models.twins.run.SHRINKING", 0.0)
    outcome = run_programs(Target.LOCAL, runs=500, seconds=None, seed_number=0, fault=name)
    assert outcome.verdict is Verdict.VIOLATED
