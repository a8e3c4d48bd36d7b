"""The page of a counterexample in a real browser: it runs, shows each step, and obeys."""

from pathlib import Path

import pytest
from forebay_models.outcome import Outcome, Verdict
from forebay_models.pages.failure import failure_page
from forebay_models.pages.report import report_page
from forebay_models.saved import SavedRun

from tests.pages.browser import Dom, Element, loaded, screenshot
from tests.pages.examples import NASTY, SMALL, large

pytestmark = pytest.mark.slow

SEEN = " ".join(NASTY.split())


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "failure.html"
    file.write_text(failure_page(SMALL), encoding="utf-8")
    return file


def where(dom: Dom) -> str:
    """Return which step is shown, after seeing that all parts of the page agree about it."""
    shown = dom.one("output").text
    (row,) = (it for it in dom.all("tr") if "aria-current" in it.attributes)
    assert shown == f"step {row.attributes['data-step']} of 3"
    return shown


def slots(dom: Dom) -> list[tuple[str, set[str]]]:
    """Return the text and the classes of each slot."""
    return [(it.text, it.classes - {"slot"}) for it in dom.one("ol", "slots").all("li")]


def variables(dom: Dom) -> dict[str, Element]:
    return {row.one("th").text: row for row in dom.one("table", "variables").all("tr")}


def test_it_begins_with_the_initial_state(page: Path) -> None:
    dom = loaded(page)
    assert where(dom) == "step 0 of 3"
    assert dom.one("h3", "step").text == "initially"
    assert slots(dom) == [("0free", {"free"}), ("1free", {"free"})]
    assert variables(dom)["note"].one("td").text == SEEN
    assert not any("changed" in row.classes for row in variables(dom).values())


def test_the_fragment_of_the_address_chooses_the_step(page: Path) -> None:
    dom = loaded(page, "#step=1")
    assert where(dom) == "step 1 of 3"
    assert dom.one("h3", "step").text == "Arrive(p1,1), by p1"
    assert [it.text for it in dom.one("ul", "notes").all("li")] == [SEEN]
    (first, second) = slots(dom)
    assert first[1] == {"live", "changed"}
    assert "live" in first[0]
    assert "age 1" in first[0]
    assert first[0].endswith("changed")
    assert second[1] == {"free"}
    assert where(loaded(page, "#step=99")) == "step 3 of 3"
    assert where(loaded(page, "#nonsense")) == "step 0 of 3"


def test_no_text_has_become_a_part_of_the_page(page: Path) -> None:
    dom = loaded(page, "#step=3")
    assert dom.all("img") == []
    assert dom.one("title").text != "broken"


def test_a_variable_that_goes_is_shown_once_more(page: Path) -> None:
    row = variables(loaded(page, "#step=2"))["note"]
    assert "changed" in row.classes
    assert row.one("td").text.startswith("gone changed")
    assert row.one("span", "was").text == f"was {SEEN}"


def test_the_last_step_compares_what_was_expected_with_what_was_seen(page: Path) -> None:
    dom = loaded(page, "#step=3")
    parting = dom.one("div", "parting")
    assert "hidden" not in parting.attributes
    rows = {
        row.one("th").text: ([it.text for it in row.all("td")], "differs" in row.classes)
        for row in parting.one("tbody").all("tr")
    }
    assert rows["slots[0]"] == (
        ["live stamp=1", "live uses=1 pins=1 stamp=1", "live uses=2 pins=1 stamp=1 differs"],
        True,
    )
    assert rows["holds"] == (["-", "c1 plain (0)", "c1 plain (0)"], False)
    assert slots(dom)[0][1] == {"live", "changed", "wrong-slot"}
    assert "not as expected" in slots(dom)[0][0]
    assert "hidden" in loaded(page, "#step=2").one("div", "parting").attributes


def pressing(*keys: str) -> str:
    """Return a script that presses keys one after the other."""
    events = (f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})" for key in keys)
    return "".join(f"document.body.dispatchEvent({event});" for event in events)


@pytest.mark.parametrize(
    ("keys", "step"),
    [
        (("ArrowRight",), 1),
        (("ArrowRight", "ArrowRight", "ArrowLeft"), 1),
        (("End",), 3),
        (("End", "ArrowRight", "ArrowLeft"), 2),
        (("End", "Home"), 0),
        (("ArrowLeft",), 0),
        (("x", "ArrowRight", "Enter"), 1),
    ],
)
def test_keys_step_through_it(page: Path, keys: tuple[str, ...], step: int) -> None:
    assert where(loaded(page, script=pressing(*keys))) == f"step {step} of 3"


def test_slider_buttons_and_rows_step_through_it_and_the_address_follows(page: Path) -> None:
    slide = """
        const slider = document.querySelector('.slider');
        slider.value = 2; slider.dispatchEvent(new Event('input', {bubbles: true}));
        document.title = location.hash;
    """
    dom = loaded(page, script=slide)
    assert (where(dom), dom.one("title").text) == ("step 2 of 3", "#step=2")
    click = "document.querySelector('{}').click();"
    dom = loaded(page, script=click.format("[data-go=on]"))
    assert (where(dom), usable(dom)) == ("step 1 of 3", {"first", "back", "on", "last"})
    dom = loaded(page, script=click.format("[data-go=last]"))
    assert (where(dom), usable(dom)) == ("step 3 of 3", {"first", "back"})
    assert usable(loaded(page)) == {"on", "last"}
    assert where(loaded(page, script=click.format('tr[data-step="2"]'))) == "step 2 of 3"


def usable(dom: Dom) -> set[str]:
    """Return what the buttons do that can be pressed."""
    buttons = [it.attributes for it in dom.one("div", "controls").all("button")]
    return {it["data-go"] for it in buttons if "disabled" not in it}


def test_the_token_is_copied(page: Path) -> None:
    script = """
        navigator.clipboard.writeText = async (text) => { document.title = text; };
        document.querySelector('.copy').click();
    """
    dom = loaded(page, script=script)
    assert dom.one("title").text == SMALL.token
    assert dom.one("button", "copy").text == "copied"
    refused = """
        navigator.clipboard.writeText = async () => { throw new Error('not allowed'); };
        document.execCommand = (what) => {
            document.title = what + ' ' + String(document.activeElement.value);
        };
        document.querySelector('.copy').click();
    """
    assert loaded(page, script=refused).one("title").text == f"copy {SMALL.token}"


def test_a_large_buffer_is_shown_at_any_of_hundreds_of_steps(tmp_path: Path) -> None:
    file = tmp_path / "large.html"
    file.write_text(failure_page(large()), encoding="utf-8")
    dom = loaded(file, "#step=200")
    assert dom.one("output").text == "step 200 of 300"
    assert len(slots(dom)) == 64
    assert "many" in dom.one("ol", "slots").classes


def test_it_can_be_looked_at(page: Path, tmp_path: Path) -> None:
    picture = tmp_path / "failure.png"
    screenshot(page, "#step=3", picture)
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    # An empty white page of this size takes a few kilobytes.
    assert len(content) > 30_000


def test_a_report_with_two_counterexamples_steps_through_the_one_that_is_used(
    tmp_path: Path,
) -> None:
    def failed(name: str) -> Outcome:
        return Outcome(
            name=name,
            verdict=Verdict.VIOLATED,
            bounds="C=2",
            figures={"states": 3},
            seconds=1.0,
            counterexample=SMALL,
        )

    file = tmp_path / "report.html"
    runs = [SavedRun("run.json", "check toy", (failed("toy one"), failed("toy two")))]
    file.write_text(report_page(runs), encoding="utf-8")
    use = "document.querySelectorAll('.viewer')[1].querySelector('[data-go=on]').click();"
    touch = (
        "document.querySelectorAll('.viewer')[1].dispatchEvent(new Event('pointerdown'));"
        + pressing("End")
    )
    assert [it.text for it in loaded(file, script=use).all("output")] == [
        "step 0 of 3",
        "step 1 of 3",
    ]
    assert [it.text for it in loaded(file, script=touch).all("output")] == [
        "step 0 of 3",
        "step 3 of 3",
    ]
