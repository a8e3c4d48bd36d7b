"""`forebay replay` on the command line."""

import json
from pathlib import Path

import pytest
from forebay_models import cli
from forebay_models.campaign_cli import app as campaign
from forebay_models.replay import regression_test
from forebay_models.tokens import token_of
from typer.testing import CliRunner

from tests.replay.walks import CASES

CASE = CASES[0]
FAILING = token_of(CASE.run, fault=CASE.fault)
HONEST = token_of(CASE.run)


def run(*arguments: object) -> tuple[int, str, str]:
    """Return the exit code and what was printed to standard output and standard error."""
    result = CliRunner().invoke(cli.build(), ["replay", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_a_failure_that_comes_again_is_shown_and_violates() -> None:
    code, shown, _ = run(FAILING, "--times", "3")
    assert code == 1
    assert "expected: slots[0] = live uses=1 pins=1 stamp=1" in shown
    assert f"to repeat: forebay replay {FAILING}" in shown
    assert "3 failed" in " ".join(shown.split())


def test_a_failure_that_does_not_come_again_holds() -> None:
    code, shown, _ = run(HONEST)
    assert code == 0
    assert "every step is as the specification says" in shown


def test_json_is_one_document_and_the_same_is_saved(tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    code, shown, _ = run(FAILING, "--json", "--save", saved)
    printed = json.loads(shown)
    assert (code, printed["command"], printed["verdict"]) == (1, "replay", "violated")
    assert printed["outcomes"][0]["counterexample"]["token"] == FAILING
    assert json.loads(saved.read_text()) == printed


def test_the_failure_is_written_as_a_page_and_only_if_it_comes(tmp_path: Path) -> None:
    page = tmp_path / "pages" / "failure.html"
    _, _, told = run(FAILING, "--html", page)
    assert f"the failure is in {page}" in told
    assert FAILING in page.read_text()
    missing = tmp_path / "none.html"
    code, _, told = run(HONEST, "--html", missing)
    assert code == 0
    assert "is not written: there is no failure to show" in told
    assert not missing.exists()


def test_a_token_that_cannot_be_read_could_not_run() -> None:
    code, shown, _ = run(FAILING[:-1])
    assert code == 2
    assert "this token is damaged" in shown
    code, _, told = run(FAILING[:-1], "--as", "pytest")
    assert code == 2
    assert "forebay replay: this token is damaged" in told


def test_the_failure_is_written_as_a_test(tmp_path: Path) -> None:
    code, shown, _ = run(FAILING, "--as", "pytest")
    assert (code, shown) == (0, regression_test(FAILING))
    file = tmp_path / "kept" / "test_failure.py"
    code, shown, told = run(FAILING, "--as", "pytest", file, "--keep-fault")
    assert (code, shown) == (0, "")
    assert f"the test is in {file}" in told
    assert file.read_text() == regression_test(FAILING, keep_fault=True)


@pytest.mark.parametrize("wrong", [("file.py",), ("--keep-fault",)])
def test_what_belongs_to_a_test_is_refused_without_one(wrong: tuple[str, ...]) -> None:
    code, _, told = run(FAILING, *wrong)
    assert code == 2
    assert "go with --as pytest" in told


@pytest.mark.slow
def test_a_campaign_with_a_planted_fault_gives_a_token_that_fails(tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    options = ["--examples", "400", "--plant", "lost_wakeup", "--save", str(saved)]
    result = CliRunner().invoke(campaign, ["stateful", *options])
    assert result.exit_code == 1
    token = json.loads(saved.read_text())["outcomes"][0]["counterexample"]["token"]
    assert f"to repeat: forebay replay {token}" in result.stdout
    assert "--plant lost_wakeup --examples" in result.stdout
    assert run(token)[0] == 1


def test_an_unknown_fault_is_refused_with_those_that_there_are() -> None:
    result = CliRunner().invoke(campaign, ["stateful", "--plant", "gremlin"])
    assert result.exit_code == 2
    assert "lost_wakeup" in result.stderr
