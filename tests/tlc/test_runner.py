"""TLC itself, on toys: each start of Java takes a second or two, so there are few of them."""

import subprocess
from pathlib import Path

import pytest
from forebay_models.outcome import Verdict
from forebay_models.tlc.java import find_tools
from forebay_models.tlc.manifest import find_models, load_runs, select
from forebay_models.tlc.messages import Report
from forebay_models.tlc.runner import Stopped, TlcRunner
from forebay_models.tlc_check import MANY, check_tlc, example_of

from tests.tlc.recorder import Recorder

DATA = Path(__file__).parent / "data"


def test_runs_end_as_their_manifest_says() -> None:
    observer = Recorder()
    names = ["door", "door-invariant", "door-temporal", "broken"]
    holds, invariant, temporal, broken = check_tlc(names=names, models=DATA, observer=observer)
    assert holds.verdict is Verdict.HOLDS, holds.detail
    assert holds.figures == {"states": 8, "depth": 5, "witnesses": 1}
    assert invariant.verdict is Verdict.HOLDS, invariant.detail
    assert invariant.figures["found"] == "OneAtATime"
    assert temporal.verdict is Verdict.HOLDS, temporal.detail
    assert temporal.figures["found"] == "AllPass"
    assert broken.verdict is Verdict.COULD_NOT_RUN
    assert 'token "("' in broken.detail
    assert observer.expected == 4
    assert sorted(observer.begun) == sorted(f"tlc {name}" for name in names)
    assert sorted(observer.ended) == sorted(observer.begun)


def test_printed_values_can_be_taken_as_they_come() -> None:
    run = load_runs(DATA)[0]
    taken: list[str] = []
    seen: list[Report] = []

    def take(line: str) -> bool:
        taken.append(line)
        return True

    with TlcRunner(find_tools(), DATA) as runner:
        result = runner.run(run, take=take, progress=seen.append)
    assert result.exit_code == 0
    assert set(taken) == {'<<"WITNESS", "SomebodyEnters">>'}
    assert result.printed == frozenset()
    assert seen[-1].distinct == 8


def test_after_a_kill_no_run_starts() -> None:
    runner = TlcRunner(find_tools(), DATA)
    runner.kill()
    with pytest.raises(Stopped):
        runner.run(load_runs(DATA)[0])


def test_runs_after_an_example_find_the_classes_loaded_and_end_as_before() -> None:
    tools, (run, *_) = find_tools(), load_runs(DATA)
    known = [str(tools.java), "-XX:AOTMode=off", "-version"]
    can_keep = subprocess.run(known, capture_output=True, check=False).returncode == 0
    with TlcRunner(tools, DATA, example=run) as runner:
        before = runner.run(run)
        assert not runner.prepared
        runner.prepare()
        assert runner.prepared == can_keep
        after = runner.run(run)
    assert (after.exit_code, after.printed) == (before.exit_code, before.printed)
    assert after.report == before.report


def test_without_an_example_nothing_is_prepared() -> None:
    with TlcRunner(find_tools(), DATA) as runner:
        runner.prepare()
        assert not runner.prepared


def test_after_a_kill_nothing_is_prepared() -> None:
    with TlcRunner(find_tools(), DATA, example=load_runs(DATA)[0]) as runner:
        runner.kill()
        with pytest.raises(Stopped):
            runner.prepare()


def test_only_many_quick_runs_are_prepared_for_and_by_one_that_ends_early() -> None:
    runs = select(load_runs(find_models()), tier="quick", names=())
    example = example_of(runs)
    assert example is not None
    assert (example.tier, example.expect == "holds") == ("quick", False)
    assert example_of(runs[: MANY - 1]) is None


def test_unknown_names_and_missing_models_are_told(tmp_path: Path) -> None:
    (unknown,) = check_tlc(names=["dor"], models=DATA)
    assert unknown.verdict is Verdict.COULD_NOT_RUN
    assert "no run is called 'dor'" in unknown.detail
    (missing,) = check_tlc(models=tmp_path)
    assert missing.verdict is Verdict.COULD_NOT_RUN
    assert "manifest.toml" in missing.detail


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_TLA2TOOLS", str(DATA / "none.jar"))
    (outcome,) = check_tlc(models=DATA)
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert "FOREBAY_TLA2TOOLS" in outcome.detail
