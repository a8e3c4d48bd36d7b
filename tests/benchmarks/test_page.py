"""Pages get their tables from results, and keep what is written by hand."""

from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.charts import CHARTS, draw
from benchmarks.page import NoMark, filled
from benchmarks.report import figure
from benchmarks.results import Document, Goal, Row
from benchmarks.timing import OURS, Spread

HAND = "# Title\n\nby hand, `<!-- bench -->`\n\n"
PAGE = (
    f"{HAND}<!-- bench:begin goals -->\nold\n<!-- bench:end -->\n\n## Why\n\nreasons\n\n"
    "<!-- bench:begin short -->\n<!-- bench:end -->\nthe end\n"
)


def one(case: str, size: str, ratio: float, goal: Goal | None, x: float | None = None) -> Row:
    return Row(
        case=case,
        size=size,
        ours=Spread(210.0, 200.0, 2200.0),
        unit="us",
        peer="TorchRL consuming",
        theirs=Spread(210.0 * ratio, 1.0, 9999.0),
        ratio=Spread(ratio, ratio / 2, ratio * 2),
        goal=goal,
        curve="small",
        x=x,
    )


def growing(call: str, axis: str, x: float, who: str = OURS) -> Row:
    ours = Spread(x + 1.0, x + 1.0, x + 1.0)
    size = f"{call}, {axis} {x}"
    return Row(
        case="growth", size=size, ours=ours, unit="us", who=who, curve=f"{axis}: {call}", x=x
    )


@pytest.fixture
def document() -> Document:
    rows = [
        one("P1", "small, batch 32", 16.5, Goal("at least", 15), 32.0),
        one("P1", "small, batch 256", 40.0, Goal("at least", 50), 256.0),
        one("P4", "small, batch 32", 20.0, Goal("at least", 15), 32.0),
        one("P5", "small, batch 32", 2.0, Goal("at least", 1.5), 32.0),
        *(growing("extend", axis, x) for axis in ("capacity", "waiters") for x in (0.0, 4.0, 64.0)),
        growing("extend", "capacity", 4.0, "forebay, shared"),
    ]
    titles = {"P1": "one thread", "P4": "threads", "P5": "processes", "growth": "growth"}
    return Document(
        machine="a machine",
        versions={"torch": "2.13"},
        repetitions=7,
        quick=False,
        titles=titles,
        rows=rows,
        notes=["no Ray"],
    )


def test_only_what_is_between_the_marks_changes(document: Document) -> None:
    found = filled(PAGE, document)
    assert found.startswith(f"{HAND}<!-- bench:begin goals -->\n3 of 4 goals are met.\n\n| case |")
    assert "\nold\n" not in found
    assert "<!-- bench:end -->\n\n## Why\n\nreasons\n\n<!-- bench:begin short -->\n" in found
    assert found.endswith("<!-- bench:end -->\nthe end\n")


def test_filling_again_changes_nothing(document: Document) -> None:
    once = filled(PAGE, document)
    assert filled(once, document) == once


def test_a_goal_is_a_row_with_its_spread(document: Document) -> None:
    assert (
        "| P1 | small, batch 32 | forebay | 210 us | TorchRL consuming | 3,465 us | 16.5"
        " | 8.25 to 33.0 | at least 15 | yes |"
    ) in filled(PAGE, document)


def test_the_short_table_has_few_rows(document: Document) -> None:
    found = page.short(document)
    assert (
        "| one thread, small, batch 32 | 210 us | TorchRL consuming | 3,465 us"
        " | 16.5 (at least 15) |"
    ) in found
    assert found.count("\n| ") == 5, "rules and four rows"
    assert "3 of 4 goals are met; medians of 7 interleaved turns; a machine; torch 2.13." in found


def test_all_results_and_what_was_not_measured_are_there(document: Document) -> None:
    found = page.results(document)
    assert all(f"### {name}: {title}" in found for name, title in document.titles.items())
    assert found.count("\n| extend") == 7
    assert found.endswith("- no Ray")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("by hand\n", "no place for results"),
        ("<!-- bench:begin goals -->\n", "not closed"),
        ("<!-- bench:begin poems -->\n<!-- bench:end -->\n", "no part is called poems; there are"),
    ],
)
def test_a_page_without_a_place_is_refused(text: str, message: str, document: Document) -> None:
    with pytest.raises(NoMark, match=message):
        filled(text, document)


def test_the_command_fills_pages_and_draws(
    document: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, text, charts = tmp_path / "bench.json", tmp_path / "page.md", tmp_path / "charts"
    document.save(results)
    text.write_text(PAGE)
    assert page.main([str(results), str(text), "--charts", str(charts)]) == 0
    assert text.read_text() == filled(PAGE, document)
    drawn = [charts / f"performance-{name}.png" for name in CHARTS]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in (text, *drawn)]
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_nothing_is_written_if_one_page_is_wrong(
    document: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, right, wrong = tmp_path / "bench.json", tmp_path / "right.md", tmp_path / "wrong.md"
    document.save(results)
    right.write_text(PAGE)
    wrong.write_text("nothing\n")
    command = [str(results), str(right), str(wrong), "--charts", str(tmp_path / "charts")]
    assert page.main(command) == 2
    assert f"{wrong}: it has no place" in capsys.readouterr().err
    assert right.read_text() == PAGE
    assert not (tmp_path / "charts").exists()


def test_results_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert page.main([str(tmp_path / "bench.json")]) == 2
    assert "make it with --json" in capsys.readouterr().err


def test_charts_say_what_their_axes_are(document: Document) -> None:
    for name, chart in CHARTS.items():
        drawn = chart(document)
        assert drawn is not None, name
        for axes in drawn.axes:
            assert axes.get_xlabel(), name
            assert axes.get_ylabel() or name == "goals"
            assert axes.get_xscale() in ("log", "symlog"), name
        assert drawn.get_suptitle() or drawn.axes[0].get_title(), name


def test_a_chart_without_results_is_not_drawn(document: Document, tmp_path: Path) -> None:
    document.rows = document.of("P4")
    names = [path.name for path in draw(document, tmp_path)]
    assert names == ["performance-goals.png", "performance-two-threads.png"]


def test_the_page_of_the_documentation_has_every_part_but_the_short_one() -> None:
    text = (page.ROOT / "docs/reference/performance.md").read_text(encoding="utf-8")
    names = [found["name"] for found in page.MARKED.finditer(text)]
    assert names == ["goals", "run", "results"]
    assert "## Why a goal is not met" in page.MARKED.sub("", text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (16.54, "16.5"), (0.0123456, "0.0123"), (999.6, "1,000"), (9.996, "10.0")],
)
def test_numbers_have_three_figures(value: float, shown: str) -> None:
    assert figure(value) == shown
