"""Every contract of the kernel must be confirmed; a broken one and an unconfirmed one are told."""

from pathlib import Path

import pytest
from forebay_models.kernel_check import (
    check_kernel,
    conditions,
    judge,
    kernel_file,
    parse_report,
)
from forebay_models.outcome import Verdict

WRONG = '''def half(n: int) -> int:
    """Return half of n.

    pre: n >= 0
    post: _ * 2 == n
    post: _ <= n
    """
    return n // 2
'''
# A loop over a list has no end of paths.
ENDLESS = '''def total(numbers: list[int]) -> int:
    """Return the sum.

    post: _ >= 0 or min(numbers) < 0
    """
    result = 0
    for number in numbers:
        result += number
    return result
'''


def written(directory: Path, text: str) -> Path:
    file = directory / "planted.py"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_contract_of_the_kernel_is_confirmed() -> None:
    outcome = check_kernel()
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    expected = kernel_file().read_text(encoding="utf-8").count("\n    post: ")
    assert expected > 30
    assert outcome.figures["conditions"] == outcome.figures["confirmed"] == expected


def test_a_planted_wrong_contract_is_violated(tmp_path: Path) -> None:
    kernel = kernel_file().read_text(encoding="utf-8")
    honest = "    post: _ == k or _ == sampleable\n"
    assert honest in kernel
    file = written(tmp_path, kernel.replace(honest, "    post: _ == k\n"))
    outcome = check_kernel(file=file)
    assert outcome.verdict is Verdict.VIOLATED
    assert "batch_rows: _ == k: false when calling batch_rows(" in outcome.detail


def test_a_contract_that_cannot_be_confirmed_is_inconclusive(tmp_path: Path) -> None:
    outcome = check_kernel(file=written(tmp_path, ENDLESS), seconds_per_condition=1)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.figures["confirmed"] == 0
    assert "planted.py:4: total: not confirmed: _ >= 0 or min(numbers) < 0" in outcome.detail


def test_a_file_that_cannot_be_imported_could_not_run(tmp_path: Path) -> None:
    outcome = check_kernel(file=written(tmp_path, "import no_such_module\n" + WRONG))
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert "no_such_module" in outcome.detail


def test_a_missing_crosshair_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    file = kernel_file()
    monkeypatch.setattr("forebay_models.kernel_check.find_spec", lambda name: None)
    outcome = check_kernel(file=file)
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert "forebay[check]" in outcome.detail


def test_conditions_are_found_by_line() -> None:
    assert [(entry.line, entry.function, entry.text) for entry in conditions(WRONG)] == [
        (5, "half", "_ * 2 == n"),
        (6, "half", "_ <= n"),
    ]


def test_a_condition_that_is_not_reported_is_not_confirmed() -> None:
    reports = parse_report("planted.py:5: info: Confirmed over all paths.\nsomething else\n")
    verdict, confirmed, detail = judge("planted.py", conditions(WRONG), reports)
    assert (verdict, confirmed) == (Verdict.INCONCLUSIVE, 1)
    assert "planted.py:6: half: not confirmed" in detail
    assert "CrossHair did not report it" in detail


def test_an_error_anywhere_is_a_violation() -> None:
    output = (
        "planted.py:1: error: ZeroDivisionError: when calling half(0)\n"
        "planted.py:5: info: Confirmed over all paths.\n"
        "planted.py:6: info: Confirmed over all paths.\n"
    )
    verdict, _, detail = judge("planted.py", conditions(WRONG), parse_report(output))
    assert verdict is Verdict.VIOLATED
    assert detail == "planted.py:1: ZeroDivisionError: when calling half(0)"


def test_a_precondition_that_nothing_meets_confirms_nothing() -> None:
    output = (
        "planted.py:5: info: Unable to meet precondition.\n"
        "planted.py:6: info: Unable to meet precondition.\n"
    )
    verdict, confirmed, _ = judge("planted.py", conditions(WRONG), parse_report(output))
    assert (verdict, confirmed) == (Verdict.INCONCLUSIVE, 0)


def test_a_file_without_contracts_shows_nothing() -> None:
    verdict, _, detail = judge("planted.py", (), {})
    assert verdict is Verdict.INCONCLUSIVE
    assert "no post: line" in detail
