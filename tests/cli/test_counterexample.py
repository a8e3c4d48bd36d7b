"""A counterexample in the one form: as a table of who did what, and as JSON."""

import json
from dataclasses import replace

import pytest
from forebay_models.counterexample import Counterexample, Row
from forebay_models.documents import DocumentError

START = {"slots[0]": "free", "holds": "-"}
LIVE = {"slots[0]": "live stamp=1", "holds": "-"}
DRAWN = {"slots[0]": "live uses=1 pins=1 stamp=1", "holds": "c1 plain (0) aged (1) gathering"}
TWICE = {"slots[0]": "live uses=2 pins=1 stamp=1", "holds": "c1 plain (0) aged (1) gathering"}

FAILURE = Counterexample(
    name="stateful local",
    setting="small: C=1 N=1 fifo",
    rows=(
        Row(label="initially", state=START),
        Row(label="Publish(p1)", actor="p1", notes=("(late)",), state=LIVE),
        Row(label="Empty", state=LIVE),
        Row(label="Ask(c1,plain,1,1)", actor="c1", notes=("(a note)",)),
    ),
    what=("UseBound is violated: No record is used more than N times.",),
    token="forebay1.abc.123",
    expected=(DRAWN,),
    seen=TWICE,
)

GOLDEN = """\
small: C=1 N=1 fifo

step | p1          | outside | c1                | state
-----+-------------+---------+-------------------+--------------------------------------------------
0    | initially   |         |                   | slots[0] = free
     |             |         |                   | holds = -
1    | Publish(p1) |         |                   | (late)
     |             |         |                   | slots[0] = live stamp=1
2    |             | Empty   |                   | (nothing changes)
3    |             |         | Ask(c1,plain,1,1) | (a note)
     |             |         |                   | expected: slots[0] = live uses=1 pins=1 stamp=1
     |             |         |                   | expected: holds = c1 plain (0) aged (1) gathering
     |             |         |                   | seen: slots[0] = live uses=2 pins=1 stamp=1

UseBound is violated: No record is used more than N times.

to repeat: forebay replay forebay1.abc.123"""


def last_lines(failure: Counterexample) -> list[str]:
    """Return what stands beside the last step."""
    table = failure.as_text().split("\n\n")[1].splitlines()
    rows = [line.split("|") for line in table]
    last = max(number for number, cells in enumerate(rows) if cells[0].strip())
    return [cells[-1].strip() for cells in rows[last:]]


def test_it_reads_as_a_table_with_a_column_for_each_actor() -> None:
    assert FAILURE.as_text() == GOLDEN


def test_of_several_states_that_were_allowed_the_nearest_is_compared() -> None:
    other = {"slots[0]": "free", "holds": "-"}
    failure = replace(FAILURE, expected=(other, DRAWN))
    assert failure.nearest() == DRAWN
    assert "(or 1 other states, since the draw is random)" in last_lines(failure)
    assert last_lines(failure)[-1] == "seen: slots[0] = live uses=2 pins=1 stamp=1"


def test_where_no_state_or_the_right_one_was_seen_the_sentences_below_say_what_is_wrong() -> None:
    assert last_lines(replace(FAILURE, seen=None))[-1] == "seen: see below"
    assert last_lines(replace(FAILURE, seen=DRAWN))[-1] == "seen: the same state, see below"
    assert last_lines(replace(FAILURE, expected=(), seen=None)) == ["(a note)"]
    assert replace(FAILURE, expected=()).nearest() is None


def test_what_is_not_there_is_left_out() -> None:
    bare = Counterexample(name="x", setting="", rows=(), what=("something is wrong",))
    assert bare.as_text() == "something is wrong"


def test_it_comes_back_from_json_as_it_was() -> None:
    assert Counterexample.from_json(json.loads(json.dumps(FAILURE.as_json()))) == FAILURE
    bare = replace(FAILURE, expected=(), seen=None, token="", what=(), rows=())
    assert Counterexample.from_json(bare.as_json()) == bare


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("rows", [[]], "step: expected an object, got a list"),
        ("rows", [{"label": "x"}], "step: 'actor' is missing"),
        ("what", ["a", 1], "counterexample: 'what': expected a text, got a whole number"),
        ("seen", [], "a state should be an object"),
        ("expected", [{"holds": 3}], "state: 'holds': expected a text, got a whole number"),
        ("token", None, "counterexample: 'token' should be a text, got null"),
        ("more", 1, "counterexample: nothing is known of more"),
    ],
)
def test_another_document_is_refused(name: str, value: object, complaint: str) -> None:
    with pytest.raises(DocumentError, match=complaint):
        Counterexample.from_json({**FAILURE.as_json(), name: value})
