"""One run of TLC judges a graph and prints it; what it prints counts only if the run holds."""

from pathlib import Path

import pytest
from forebay_models import agree_check
from forebay_models.agree_check import Agreement, check_agree, check_tlc_and_agree
from forebay_models.graphs import LabelledGraph
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Quiet
from forebay_spec.actions import ACTIONS, Machine

from tests.agree.test_against_tlc import BOUNDS, CFG, write_models
from tests.tlc.recorder import Recorder

ENTRY = """[[run]]
name = "tiny-run"
module = "Tiny"
cfg = "Tiny.cfg"
graph = "tiny"
"""
NEVER = """
Never == \\A s \\in Slots : slots[s].phase # "live"
====
"""


@pytest.fixture(autouse=True)
def only_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tiny graph be the only one that there is."""
    monkeypatch.setattr(agree_check, "QUICK", {"tiny": BOUNDS})


def models(directory: Path, *, entry: str = ENTRY, violated: bool = False) -> Path:
    """Put the tiny model and a manifest into a directory, and plant a property that fails."""
    write_models(directory, CFG + ("INVARIANT Never\n" if violated else ""))
    module = directory / "Tiny.tla"
    module.write_text(module.read_text().replace("\n====\n", NEVER), encoding="utf-8")
    (directory / "manifest.toml").write_text(entry, encoding="utf-8")
    return directory


def verdicts(outcomes: list[Outcome]) -> dict[str, Verdict]:
    return {outcome.name: outcome.verdict for outcome in outcomes}


def test_a_graph_is_printed_by_the_run_that_judges_it(tmp_path: Path) -> None:
    observer = Recorder()
    judged, agreed, together = check_tlc_and_agree(models=models(tmp_path), observer=observer)
    assert (judged.name, judged.verdict) == ("tlc tiny-run", Verdict.HOLDS)
    assert (agreed.name, agreed.verdict) == ("agree tiny", Verdict.HOLDS), agreed.detail
    assert agreed.figures["states"] == judged.figures["states"]
    # The tiny graph does not have every action, and says so.
    assert (together.name, together.verdict) == ("agree actions", Verdict.VIOLATED)
    assert observer.ended == ["tlc tiny-run", "agree tiny"]
    assert observer.expected == 2


def test_what_a_violated_run_has_printed_is_not_compared(tmp_path: Path) -> None:
    directory = models(tmp_path, violated=True)
    judged, agreed = check_agree(names=["tiny"], models=directory)
    assert (judged.name, judged.verdict) == ("tlc tiny-run", Verdict.VIOLATED)
    assert (agreed.name, agreed.verdict) == ("agree tiny", Verdict.COULD_NOT_RUN)
    assert "tlc tiny-run does not hold" in agreed.detail
    assert "edges" not in agreed.figures
    # The steps were printed before, so the counterexample has their labels.
    assert judged.counterexample is not None
    assert [row.label for row in judged.counterexample.rows] == [
        "initially",
        "Arrive(p1,1)",
        "Publish(p1)",
    ]
    both = check_tlc_and_agree(models=directory)
    assert verdicts(both) == {
        "tlc tiny-run": Verdict.VIOLATED,
        "agree tiny": Verdict.COULD_NOT_RUN,
        "agree actions": Verdict.INCONCLUSIVE,
    }


def test_a_graph_of_another_size_than_the_manifest_says_is_not_compared(tmp_path: Path) -> None:
    outcomes = check_agree(models=models(tmp_path, entry=f"{ENTRY}distinct = 3\n"))
    assert verdicts(outcomes) == {
        "tlc tiny-run": Verdict.VIOLATED,
        "agree tiny": Verdict.COULD_NOT_RUN,
        "agree actions": Verdict.INCONCLUSIVE,
    }


def test_a_graph_that_differs_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    agreement = Agreement({"tiny": "tiny-run"}, Quiet())
    whole = agree_check.explored(Machine(BOUNDS))
    agreement.compare("tiny", LabelledGraph(whole.states, whole.initial, frozenset()))
    agreement.compare("another", whole)
    (outcome,) = agreement.outcomes()
    assert (outcome.name, outcome.verdict) == ("agree tiny", Verdict.VIOLATED)
    assert "only Python makes the step" in outcome.detail
    together = agreement.together()
    assert together.verdict is Verdict.VIOLATED
    assert all(name in together.detail for name in ACTIONS)
