"""The page of a counterexample, as it is written: whole, escaped, and with nothing from outside."""

import json
import re
from dataclasses import replace

import pytest
from forebay_models.counterexample import Counterexample, Row
from forebay_models.pages import embedded
from forebay_models.pages.failure import data_of, failure_page, lanes_of, slot_of

from tests.pages.browser import Dom
from tests.pages.examples import DRAWN, LESS, LIVE, NASTY, SMALL, START, TWICE, large

PAGE = failure_page(SMALL)
DOM = Dom(PAGE)
SEEN = " ".join(NASTY.split())


def test_the_violated_property_stands_on_top_as_a_sentence() -> None:
    assert DOM.one("h1").text == f"UseBound is violated: {SEEN}"
    assert [it.text for it in DOM.all("p", "what")] == ["and something else"]
    assert DOM.one("p", "setting").text == f"small: C=2 {SEEN}"
    assert DOM.one("title").text.endswith(f"UseBound is violated: {SEEN}")


def test_the_timeline_has_a_column_for_each_actor_and_a_row_for_each_step() -> None:
    table = DOM.one("div", "timeline")
    head, *rows = table.all("tr")
    assert [it.text for it in head.all("th")] == ["step", "p1", "outside", "c1"]
    assert [[it.text for it in row.all("td")] for row in rows] == [
        ["initially", "", ""],
        ["Arrive(p1,1)", "", ""],
        ["", "Close(draining)", ""],
        ["", "", f"Ask({SEEN})"],
    ]
    assert [row.attributes["data-step"] for row in rows] == ["0", "1", "2", "3"]


def test_a_text_that_would_break_the_page_is_escaped_wherever_it_stands() -> None:
    assert DOM.all("img") == []
    # Two scripts and no more: the data and the program; no text has ended one or begun one.
    assert len(DOM.all("script")) == PAGE.count("<script") == PAGE.count("</script>") == 2
    assert SEEN in DOM.one("pre").text
    assert "{{ 7*7 }}" in DOM.one("pre").text
    assert embedded(NASTY).isascii()
    assert not set("<>&'") & set(embedded(NASTY))
    assert json.loads(embedded(NASTY)) == NASTY


def test_nothing_comes_from_outside() -> None:
    assert re.findall(r"https?://|@import|url\(|src=\"|<link", PAGE.replace(NASTY, "")) == []
    policies = [it for it in DOM.all("meta") if "http-equiv" in it.attributes]
    (policy,) = (it.attributes["content"] for it in policies)
    assert policy.startswith("default-src 'none'")


def test_the_embedded_data_gives_every_state_by_its_changes() -> None:
    data = json.loads(DOM.one("script", "data").text)
    assert data == json.loads(json.dumps(data_of(SMALL)))
    states: list[dict[str, str]] = [{}]
    for step in data["steps"]:
        state = {name: text for name, text in states[-1].items() if name not in step["gone"]}
        states.append({**state, **{name: it["text"] for name, it in step["set"].items()}})
    # What the last step has led to is what was seen.
    assert states[1:] == [START, LIVE, LESS, TWICE]
    assert list(data["steps"][1]["set"]) == ["slots[0]"]
    assert data["steps"][2]["gone"] == ["note"]
    assert data["steps"][1]["notes"] == [NASTY]


def test_expected_and_seen_are_compared_with_the_nearest_that_was_allowed() -> None:
    data = data_of(replace(SMALL, expected=(LESS, DRAWN)))
    assert data["others"] == 1
    comparison = data["comparison"]
    assert isinstance(comparison, list)
    assert comparison[0] == {
        "name": "slots[0]",
        "before": "live stamp=1",
        "expected": "live uses=1 pins=1 stamp=1",
        "seen": "live uses=2 pins=1 stamp=1",
        "same": False,
    }
    assert [(it["name"], it["same"]) for it in comparison[1:]] == [("holds", True), ("note", True)]
    unseen = data_of(replace(SMALL, expected=(DRAWN,), seen=None))
    assert isinstance(unseen["comparison"], list)
    assert {it["seen"] for it in unseen["comparison"]} == {None}
    assert data_of(replace(SMALL, expected=()))["comparison"] == []


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("free", {"phase": "free", "uses": 0, "pins": 0, "stamp": 0}),
        ("live uses=2 stamp=13", {"phase": "live", "uses": 2, "pins": 0, "stamp": 13}),
        ("dropped pins=1", {"phase": "dropped", "uses": 0, "pins": 1, "stamp": 0}),
        ("[phase=live uses=1]", None),
        ("torn", None),
    ],
)
def test_slots_are_known_by_their_texts(text: str, slot: object) -> None:
    assert slot_of("slots[7]", text) == slot
    assert slot_of("holds", text) is None


def test_the_token_can_be_copied_and_is_left_out_where_there_is_none() -> None:
    assert DOM.one("button", "copy").attributes["data-copy"] == SMALL.token
    assert DOM.one("div", "token").one("code").text == f"forebay replay {SMALL.token}"
    assert Dom(failure_page(replace(SMALL, token=""))).all("button", "copy") == []


def test_the_plain_text_is_on_the_page_too() -> None:
    page = Dom(failure_page(replace(SMALL, token="")))
    assert page.one("pre").text == " ".join(replace(SMALL, token="").as_text().split())


def test_controls_have_names_for_those_who_do_not_see_them() -> None:
    for control in (*DOM.all("button"), *DOM.all("input")):
        assert control.attributes.get("aria-label") or control.text
    assert DOM.one("output").attributes["aria-live"] == "polite"


def test_steps_that_nobody_takes_and_steps_without_states_have_a_place() -> None:
    alone = Counterexample(name="x", setting="", rows=(Row(label="initially"),), what=())
    assert lanes_of(alone) == ["outside"]
    assert Dom(failure_page(alone)).one("h1").text == "A counterexample"
    assert Dom(failure_page(replace(alone, rows=()))).one("div", "timeline").all("td") == []


def test_a_large_buffer_and_hundreds_of_steps_make_a_page_of_two_megabytes_at_most() -> None:
    failure = large()
    page = failure_page(failure)
    assert len(Dom(page).one("div", "timeline").all("tr")) == 1 + 301
    assert len(page) < 2_000_000
