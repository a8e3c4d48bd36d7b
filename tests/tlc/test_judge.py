"""A run of TLC passes only if it ended as the manifest says, for the reason that it says."""

from pathlib import Path

import pytest
from forebay_models.outcome import Outcome, Verdict
from forebay_models.runs.tlc import TlcRun
from forebay_models.tlc.judge import bound_complaints, judge
from forebay_models.tlc.manifest import Run
from forebay_models.tlc.messages import MessageReader, Report
from forebay_models.tlc.runner import Result
from forebay_models.tokens import Token, read_token

DATA = Path(__file__).parent / "data"
EXIT_CODES = {"invariant": 12, "action": 13, "temporal": 13, "deadlock": 11}


def run_of(
    expect: str = "holds",
    named: str | None = None,
    *,
    distinct: int | None = None,
    depth: int | None = None,
    witnesses: tuple[str, ...] = (),
    mutual_wait: int | None = None,
    fault: str | None = None,
) -> Run:
    """Return a run with these expectations."""
    return Run(
        name="toy",
        module="Toy",
        cfg="Toy.cfg",
        expect=expect,
        property=named,
        distinct=distinct,
        depth=depth,
        witnesses=witnesses,
        mutual_wait=mutual_wait,
        fault=fault,
    )


def success(*printed: str, distinct: int = 8, depth: int = 5) -> Result:
    """Return the result of a run in which nothing was violated."""
    report = Report(succeeded=True, distinct=distinct, depth=depth)
    return Result(0, report, frozenset(printed), 1.5)


def failure(name: str) -> Result:
    """Return the result of a stored run in which something was violated."""
    reader = MessageReader()
    for line in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        reader.feed(line)
    kind = reader.report.violated
    return Result(EXIT_CODES[kind] if kind else 75, reader.report, frozenset(), 1.5)


def judged(run: Run, result: Result, *, show: bool = False) -> Outcome:
    return judge(run, result, bounds="C=2", show=show)


def test_a_run_that_holds_as_expected() -> None:
    run = run_of(distinct=8, depth=5, witnesses=("Rare",))
    outcome = judged(run, success('<<"WITNESS", "Rare">>', '<<"WITNESS", "Other">>'))
    assert outcome.verdict is Verdict.HOLDS
    assert outcome.figures == {"states": 8, "depth": 5, "witnesses": 1}
    assert (outcome.name, outcome.bounds, outcome.seconds) == ("tlc toy", "C=2", 1.5)
    assert outcome.detail == ""


def test_a_witness_may_be_printed_as_a_string() -> None:
    outcome = judged(run_of(witnesses=("Rare",)), success('"<<\\"WITNESS\\", \\"Rare\\">>"'))
    assert outcome.verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (run_of(distinct=9), "distinct states: the manifest says 9, TLC found 8"),
        (run_of(depth=4), "depth: the manifest says 4, TLC found 5"),
        (run_of(witnesses=("Rare",)), "witness Rare was not reached"),
        (run_of("invariant", "Small", fault="off-by-one"), "fault off-by-one was not found"),
    ],
)
def test_a_run_that_holds_otherwise_than_expected_is_a_violation(run: Run, complaint: str) -> None:
    outcome = judged(run, success())
    assert outcome.verdict is Verdict.VIOLATED
    assert complaint in outcome.detail


@pytest.mark.parametrize(
    ("stored", "expect", "named", "found"),
    [
        ("door_invariant", "invariant", "OneAtATime", "OneAtATime"),
        ("door_action", "action", "NeverBack", "NeverBack"),
        ("door_temporal", "temporal", "AllPass", "AllPass"),
        ("door_deadlock", "deadlock", None, "deadlock"),
    ],
)
def test_an_expected_failure_passes_and_is_shown_on_demand(
    stored: str, expect: str, named: str | None, found: str
) -> None:
    outcome = judged(run_of(expect, named), failure(stored))
    assert outcome.verdict is Verdict.HOLDS
    assert outcome.figures["found"] == found
    assert outcome.detail == ""
    assert outcome.counterexample is None
    shown = judged(run_of(expect, named), failure(stored), show=True)
    assert "initially" in shown.detail
    assert shown.counterexample is not None
    # A planted fault that is found is no failure that could come again.
    assert shown.counterexample.token == ""


@pytest.mark.parametrize(
    ("expect", "named"),
    [("holds", None), ("invariant", "Another"), ("action", "OneAtATime"), ("deadlock", None)],
)
def test_an_unexpected_failure_is_a_violation_with_its_trace(
    expect: str, named: str | None
) -> None:
    outcome = judged(run_of(expect, named), failure("door_invariant"))
    assert outcome.verdict is Verdict.VIOLATED
    found = outcome.counterexample
    assert found is not None
    assert found.what[0].startswith("invariant OneAtATime is violated; expected: ")
    assert found.setting == outcome.bounds == "C=2"
    assert "inside = {ann, bob}" in outcome.detail
    assert outcome.detail == found.as_text()
    assert read_token(found.token) == Token(TlcRun("toy"))


def test_an_error_of_tlc_is_neither_pass_nor_failure() -> None:
    outcome = judged(run_of("invariant", "Wrong"), failure("door_error"))
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert 'Attempted to select field "nobody"' in outcome.detail


def test_a_java_that_dies_is_neither_pass_nor_failure() -> None:
    report = Report()
    report.last_lines.append("Error: Could not find or load main class tlc2.TLC")
    outcome = judged(run_of(), Result(1, report, frozenset(), 0.1))
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert "ended with code 1" in outcome.detail
    assert "Could not find" in outcome.detail


def test_an_end_without_a_word_of_success_is_no_pass() -> None:
    outcome = judged(run_of(), Result(0, Report(distinct=8), frozenset(), 0.1))
    assert outcome.verdict is Verdict.COULD_NOT_RUN


@pytest.mark.parametrize("code", [10, 11, 12, 13])
def test_a_code_of_a_violation_without_a_violation_is_no_pass(code: int) -> None:
    result = Result(code, Report(), frozenset(), 1.5)
    assert judged(run_of(), result).verdict is Verdict.COULD_NOT_RUN


def test_a_violation_under_another_code_is_no_pass() -> None:
    stored = failure("door_invariant")
    for code in (0, 11, 13):
        result = Result(code, stored.report, frozenset(), 1.5)
        outcome = judged(run_of("invariant", stored.report.property), result)
        assert outcome.verdict is Verdict.COULD_NOT_RUN


def test_the_bound_on_mutual_waits_is_compared_in_both_directions() -> None:
    # C = 3: n + k > C + gcd(n, k) for (2, 3) and (3, 2) alone.
    assert bound_complaints(3, {(3, 2, 3), (3, 3, 2)}) == []
    (missing,) = bound_complaints(3, {(3, 2, 3)})
    assert missing.startswith("no mutual wait with (C, n, k) = (3, 3, 2)")
    (beyond,) = bound_complaints(3, {(3, 2, 3), (3, 3, 2), (3, 2, 2)})
    assert beyond.startswith("a mutual wait with (C, n, k) = (3, 2, 2)")


def test_a_run_for_the_bound_on_mutual_waits() -> None:
    run = run_of(mutual_wait=3)
    both = ('<<"MUTUAL", 3, 2, 3>>', '<<"MUTUAL", 3, 3, 2>>')
    assert judged(run, success(*both)).verdict is Verdict.HOLDS
    assert judged(run, success(*both)).figures["mutual waits"] == 2
    assert judged(run, success(both[0])).verdict is Verdict.VIOLATED
