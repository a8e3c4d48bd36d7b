"""`forebay report` collects saved runs into one page and one document."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from forebay_models import cli
from forebay_models.counterexample import Counterexample, Row
from forebay_models.documents import DocumentError, Json
from forebay_models.outcome import Outcome, Verdict
from forebay_models.saved import SavedRun, collected, coverage
from forebay_models.verdicts import document, report
from typer.testing import CliRunner

from tests.pages.browser import Dom

FAILURE = Counterexample(
    name="stateful local",
    setting="C=2",
    rows=(Row(label="initially", state={"slots[0]": "free"}), Row(label="Empty", state={})),
    what=("Bounded is <violated>",),
    token="forebay1.x.0",
)
WRITERS = Outcome(
    name="explore writers",
    verdict=Verdict.HOLDS,
    bounds="C=2 N=1 fifo",
    figures={"states": 3824},
    seconds=2.0,
    heat={"Arrive": {"empty": 3, "full": 10}, "Publish": {"filling": 1}},
)
READERS = replace(WRITERS, name="explore readers", seconds=4.0, heat={"Arrive": {"empty": 1}})
STATEFUL = replace(
    WRITERS,
    name="stateful local",
    verdict=Verdict.VIOLATED,
    seconds=1.0,
    detail=f"{FAILURE.as_text()}\n\nto repeat the search: forebay campaign",
    counterexample=FAILURE,
    heat={"Empty": {"stopped": 7}},
)
MISSING = Outcome(
    name="tlc writers",
    verdict=Verdict.COULD_NOT_RUN,
    bounds="-",
    figures={},
    seconds=0.0,
    detail="no <java> was found",
)
CHECK = SavedRun("check.json", "check explore", (WRITERS, READERS))
CAMPAIGN = SavedRun("campaign.json", "campaign stateful", (STATEFUL, MISSING))


def saved(directory: Path, run: SavedRun) -> Path:
    """Save a run as a command does."""
    file = directory / run.source
    report(run.outcomes, command=run.command, as_json=False, save=file)
    return file


def run(*arguments: object) -> tuple[int, str]:
    """Return the exit code and what was printed to standard error."""
    result = CliRunner().invoke(cli.build(), ["report", *map(str, arguments)])
    assert result.stdout == ""
    return result.exit_code, result.stderr


def test_a_saved_run_comes_back_as_it_was(tmp_path: Path) -> None:
    for original in (CHECK, CAMPAIGN):
        content = json.loads(saved(tmp_path, original).read_text())
        assert SavedRun.from_json(content, source=original.source) == original


def test_what_was_covered_is_added_up_by_kind_of_check() -> None:
    assert coverage([CHECK, CAMPAIGN, CAMPAIGN]) == {
        "explore": {"Arrive": {"empty": 4, "full": 10}, "Publish": {"filling": 1}},
        "stateful": {"Empty": {"stopped": 14}},
    }


def test_the_document_has_every_run_and_the_verdict_of_all(tmp_path: Path) -> None:
    files = [saved(tmp_path, CHECK), saved(tmp_path, CAMPAIGN)]
    code, told = run(*files, "--json", tmp_path / "out" / "report.json")
    content = json.loads((tmp_path / "out" / "report.json").read_text())
    assert code == 1
    assert "the report is in" in told
    assert (content["format"], content["verdict"], content["exit_code"]) == (1, "violated", 1)
    assert content["seconds"] == 7.0
    assert [(it["source"], it["command"], it["verdict"]) for it in content["runs"]] == [
        ("check.json", "check explore", "holds"),
        ("campaign.json", "campaign stateful", "violated"),
    ]
    assert content["coverage"]["explore"]["Arrive"] == {"empty": 4, "full": 10}
    assert content == json.loads(json.dumps(collected([CHECK, CAMPAIGN])))


def test_the_page_has_verdicts_bounds_times_coverage_and_counterexamples(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, _ = run(saved(tmp_path, CHECK), saved(tmp_path, CAMPAIGN), "--html", page)
    assert code == 1
    dom = Dom(page.read_text(encoding="utf-8"))
    assert dom.one("h1").text == "violated"
    assert "2 of 4 checks hold within the bounds named" in dom.text
    rows = [
        [it.text for it in row.all("td")]
        for it in dom.all("table", "plain")
        for row in it.one("tbody").all("tr")
    ]
    assert rows[0] == ["holds", "C=2 N=1 fifo", "3,824 states", "2.0"]
    assert rows[2][0] == "violated counterexample"
    # What the counterexample says is shown as one, and not a second time here.
    assert rows[2][2] == "3,824 states what it saysto repeat the search: forebay campaign"
    assert rows[3][2] == "what it saysno <java> was found"
    bars = [it.attributes["style"] for it in dom.all("span", "timebar")]
    assert bars == ["width: 50.0%", "width: 100.0%", "width: 25.0%", "width: 0.0%"]
    explored, _ = dom.all("table", "heat")
    rows_of = explored.one("tbody").all("tr")
    (arrive,) = (row for row in rows_of if row.one("th").text == "Arrive")
    assert [it.text for it in arrive.all("td")] == ["4", "·", "10", *["·"] * 9, "14"]
    (viewer,) = dom.all("section", "viewer")
    assert viewer.one("h3", "what").text == "Bounded is <violated>"
    assert dom.all("div", "block")[0].attributes["id"] == "failure-1"


def test_a_page_of_runs_that_hold_has_no_script(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, _ = run(saved(tmp_path, CHECK), "--html", page)
    assert code == 0
    assert Dom(page.read_text(encoding="utf-8")).all("script") == []


def test_something_has_to_be_written(tmp_path: Path) -> None:
    code, told = run(saved(tmp_path, CHECK))
    assert code == 2
    assert "say what to write" in told


@pytest.mark.parametrize(
    "content", ["", "[]", "[" * 200_000, "{no json", '{"format": 1}', '{"format": 2}']
)
def test_a_file_that_is_no_saved_run_could_not_run(tmp_path: Path, content: str) -> None:
    file = tmp_path / "strange.json"
    file.write_text(content)
    code, told = run(file, "--html", tmp_path / "report.html")
    assert code == 2
    assert f"forebay report: {file} is no saved run" in told
    assert not (tmp_path / "report.html").exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, told = run(tmp_path / "none.json", "--html", tmp_path / "report.html")
    assert code == 2
    assert "none.json" in told


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format": 9}, "only documents of format 1 can be read"),
        ({"verdict": "holds"}, "it says holds with exit code 1, and its outcomes say violated"),
        ({"exit_code": 0}, "it says violated with exit code 0, and its outcomes say violated"),
        ({"surprise": 1}, "nothing is known of surprise"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(
    changes: dict[str, Json], complaint: str
) -> None:
    content = {**document(CAMPAIGN.outcomes, command="x"), **changes}
    with pytest.raises(DocumentError, match=complaint):
        SavedRun.from_json(content, source="x")


def test_commands_save_what_they_print(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = CliRunner().invoke(
        cli.build(), ["check", "explore", "for-ever", "--json", "--save", str(file)]
    )
    assert result.exit_code == 0
    assert json.loads(file.read_text()) == json.loads(result.stdout)
    (outcome,) = json.loads(file.read_text())["outcomes"]
    assert (outcome["name"], outcome["verdict"]) == ("explore for-ever", "holds")
