"""A failure comes again from its token, every time, at the level where it was found."""

import subprocess
import sys
from pathlib import Path

import pytest
from forebay_models.adapters.adapter import Adapter
from forebay_models.adapters.local import LocalAdapter
from forebay_models.campaign.report import outcome_of
from forebay_models.campaign.run import STEPS, run
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import Setting
from forebay_models.explore.outcomes import explore_outcome, liveness_outcome
from forebay_models.explore.show import SENTENCES
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.mutants.spec import SPEC_MUTANTS
from forebay_models.outcome import Outcome, Verdict
from forebay_models.replay import regression_test, replay
from forebay_models.runs.spec import SpecRun
from forebay_models.runs.tlc import TlcRun
from forebay_models.runs.walk import WalkRun
from forebay_models.tokens import TokenError, read_token, token_of
from forebay_spec import properties
from forebay_spec.actions import Label
from forebay_spec.bounds import QUICK, Bounds
from forebay_spec.named import StepProperty
from forebay_spec.state import State

from tests.replay.walks import CASES, SETTING, Case

TIMES = 10


@pytest.mark.parametrize("case", CASES, ids=[case.fault for case in CASES])
def test_a_walk_fails_again_every_time_and_only_with_its_fault(case: Case) -> None:
    outcome = replay(token_of(case.run, fault=case.fault), times=TIMES)
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.figures == {
        "steps": len(case.labels),
        "times": TIMES,
        "failed": TIMES,
        "planted": case.fault,
    }
    found = outcome.counterexample
    assert found is not None
    assert any(case.wrong in sentence for sentence in found.what)
    assert [row.label for row in found.rows[1:]] == list(map(str, case.labels))
    # Its own counterexample gives the same token, so that it can be passed on.
    assert found.token == token_of(case.run, fault=case.fault)

    honest = replay(token_of(case.run), times=TIMES)
    assert (honest.verdict, honest.figures["failed"]) == (Verdict.HOLDS, 0)
    assert honest.counterexample is None


def start(setting: Setting) -> Adapter:
    return LocalAdapter(setting.bounds, setting.storage, setting.seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["barging_reader", "dropped_never_freed", "reopens", "deadline_overslept"]
)
def test_what_a_campaign_finds_fails_again_every_time(fault: str) -> None:
    session = Session(start, seconds=None, examples=400, shrinking=0.5)
    with LOCAL_MUTANTS[fault].plant():
        run(session, seed_number=0, steps=STEPS)
    outcome = outcome_of(session, repeat="", steps=STEPS, fault=fault)
    assert outcome.counterexample is not None
    token = outcome.counterexample.token
    again = replay(token, times=TIMES)
    assert again.figures["failed"] == TIMES
    assert again.counterexample is not None
    assert again.counterexample.rows == outcome.counterexample.rows
    assert replay(token_of(read_token(token).run)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("fault", ["overwrite_sampleable", "partial_publish", "barging_writer"])
def test_a_path_of_the_specification_fails_again_every_time(fault: str) -> None:
    mutant = SPEC_MUTANTS[fault]
    bounds = QUICK[mutant.graph]
    if mutant.graph == "liveness":
        outcome = liveness_outcome(bounds, machine=mutant.machine(bounds), fault=fault)
    else:
        outcome = explore_outcome(bounds, machine=mutant.machine(bounds), fault=fault)
    found = outcome.counterexample
    assert found is not None
    again = replay(found.token, times=TIMES)
    assert (again.verdict, again.figures["failed"]) == (Verdict.VIOLATED, TIMES)
    assert again.counterexample is not None
    assert again.counterexample.rows == found.rows
    honest = replay(token_of(read_token(found.token).run))
    assert honest.verdict is Verdict.HOLDS


@pytest.mark.parametrize("slot", [0, 1])
def test_a_path_at_random_is_followed_through_every_outcome(
    slot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = (
        Label("Arrive", ("p1", 2)),
        Label("Publish", ("p1",)),
        Label("Ask", ("c1", "plain", 1, 1)),
        Label("Ready", (0,)),
    )

    def other_slot(bounds: Bounds, before: State, label: Label, after: State) -> bool:
        return label.name != "Ready" or after.holds[0].slots != (slot,)

    promise = StepProperty("OtherSlot", "", other_slot)
    monkeypatch.setitem(properties.STEPS, "OtherSlot", promise)
    monkeypatch.setitem(SENTENCES, "OtherSlot", "The other slot is drawn.")
    outcome = SpecRun(QUICK["random"], labels, "OtherSlot").again("")
    assert outcome.verdict is Verdict.VIOLATED
    assert f"c1 plain ({slot}) aged" in outcome.detail


def test_a_path_that_the_specification_does_not_have_shows_nothing() -> None:
    outcome = SpecRun(QUICK["writers"], (Label("Publish", ("p1",)),), "TypeOK").again("")
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.detail == "step 1, Publish(p1), cannot happen here any more"


def test_a_walk_that_the_specification_does_not_have_shows_nothing() -> None:
    strange = Case("", (Label("Publish", ("p1",)),), "").run
    outcome = replay(token_of(strange))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "the walk cannot be taken any more" in outcome.detail


def test_a_run_of_tlc_is_run_again_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def check_tlc(**arguments: object) -> list[Outcome]:
        asked.append(arguments)
        verdict = Verdict.VIOLATED if len(asked) == 2 else Verdict.HOLDS
        return [Outcome(name="tlc toy", verdict=verdict, bounds="C=2", figures={}, seconds=0.1)]

    monkeypatch.setattr("forebay_models.tlc_check.check_tlc", check_tlc)
    outcome = replay(token_of(TlcRun("toy")), times=3)
    assert asked == [{"names": ["toy"]}] * 3
    assert (outcome.name, outcome.verdict) == ("replay tlc toy", Verdict.VIOLATED)
    assert outcome.figures == {"times": 3, "failed": 1}
    assert "only 1 of 3 times failed: something is left to chance here" in outcome.detail


@pytest.mark.slow
def test_tlc_itself_can_be_replayed() -> None:
    outcome = replay(token_of(TlcRun("random")))
    assert (outcome.name, outcome.verdict) == ("replay tlc random", Verdict.HOLDS)
    unknown = replay(token_of(TlcRun("nonsense")))
    assert unknown.verdict is Verdict.COULD_NOT_RUN
    assert "no run is called 'nonsense'" in unknown.detail


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (CASES[0].run, "no fault is called 'gremlin'; there are: .*partial_publish"),
        (SpecRun(QUICK["writers"], (), "TypeOK"), "no fault is called 'gremlin'; there are: "),
        (TlcRun("writers"), "no fault can be planted into a run of TLC"),
    ],
)
def test_an_unknown_fault_is_named(run: WalkRun | SpecRun | TlcRun, complaint: str) -> None:
    with pytest.raises(TokenError, match=complaint):
        replay(token_of(run, fault="gremlin"))


def test_a_replay_runs_at_least_once() -> None:
    with pytest.raises(ValueError, match="at least once, not 0 times"):
        replay(token_of(CASES[0].run), times=0)


def test_the_setting_of_a_walk_is_told() -> None:
    assert replay(token_of(CASES[0].run)).bounds == SETTING.line()


@pytest.mark.slow
def test_the_test_that_is_written_fails_with_the_fault_and_passes_without(tmp_path: Path) -> None:
    token = token_of(CASES[0].run, fault=CASES[0].fault)
    (tmp_path / "test_kept.py").write_text(regression_test(token, keep_fault=True))
    (tmp_path / "test_plain.py").write_text(regression_test(token))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "FAILED test_kept.py::test_failure_" in done.stdout
    assert "the state is not one that the specification allows" in done.stdout


def test_the_test_that_is_written_keeps_to_the_width_and_says_what_it_is_about() -> None:
    text = regression_test(token_of(CASES[0].run, fault=CASES[0].fault))
    assert max(map(len, text.splitlines())) <= 100
    names: dict[str, object] = {}
    exec(text, names)
    kept = names["TOKEN"]
    assert isinstance(kept, str)
    assert kept == token_of(CASES[0].run)
    assert f"test_failure_{kept[-12:]}_does_not_come_again" in names
    with pytest.raises(TokenError):
        regression_test("forebay1.x.y")
