"""A history that nothing explains is shown with its longest explanation."""

from pathlib import Path

import pytest
from forebay_models.linear.lines import write
from forebay_models.linear.run import check_history_file, judged
from forebay_models.outcome import Verdict

from tests.linear.scripts import Script

GOLDEN = """\
C=2 N=1 fifo

step | p1           | state
-----+--------------+-----------------------------------------------
0    | initially    | slots[0] = free
     |              | slots[1] = free
     |              | free = (0 1), 2 of them fresh
     |              | filling = -
     |              | tickets = -
     |              | holds = -
     |              | closing = open
     |              | cancelled = -
     |              | dead = -
     |              | boundary = -
     |              | saved = -
     |              | records = (- -)
1    | Arrive(p1,1) | p1 extend(1), called at 1, returned at 2: done
     |              | slots[0] = filling
     |              | free = (1), 1 of them fresh
     |              | filling = p1: (0)
     |              | records = (1 -)
2    | Publish(p1)  | slots[0] = live stamp=1
     |              | filling = -
3    | Arrive(p1,1) | p1 extend(2), called at 3, returned at 4: done
     |              | slots[1] = filling
     |              | free = (), 0 of them fresh
     |              | filling = p1: (1)
     |              | records = (1 2)
4    | Publish(p1)  | slots[1] = live stamp=2
     |              | filling = -

no order of their steps explains these 3 operations; the longest explanation, which ends above, \
has 2 of them. What could have come next there:
- c1 sample(1), called at 5, returned at 6: done, got 2
  it would be served: slots (0), the oldest"""


def lost() -> Script:
    """Write 1 and 2, and read 2 first."""
    script = Script(2)
    script.write("p1", 1)
    script.write("p1", 2)
    script.read("c1", 2)
    return script


def test_the_longest_explanation_is_a_table_and_the_rest_is_said() -> None:
    outcome = judged("a history", lost().history())
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert outcome.detail == GOLDEN


@pytest.mark.parametrize(
    ("ended", "fields", "why"),
    [
        ("timeout", {"waits": "some time"}, "it would be served: slots (0), the oldest"),
        ("cancelled", {}, "it would be served: slots (0), the oldest"),
        ("unexpected", {"error": "KeyError()"}, "no operation ends with such an error"),
    ],
)
def test_it_is_said_what_would_have_been(ended: str, fields: dict[str, str], why: str) -> None:
    script = Script(2)
    script.write("p1", 1)
    script.end(script.begin_read("c1", 1, **fields), ended)  # type: ignore[arg-type]  # a literal
    assert judged("a history", script.history()).detail.endswith(why)


def test_an_ending_that_there_is_not_is_said_first() -> None:
    script = Script(2)
    script.write("p1", 1)
    lease = script.read("x1", 1, kind="take")
    script.end(script.begin("x1", "commit", lease=lease), "shut down")
    failure = judged("a history", script.history()).counterexample
    assert failure is not None
    assert failure.what[0] == (
        "x1 commit of the lease taken at 3, called at 5, returned at 6: shut down\n"
        "  no commit ends with: shut down"
    )


def test_waiting_is_said_with_what_there_is() -> None:
    script = Script(2)
    script.write("p1", 1)
    script.end(script.begin_read("c1", 2), records=(1, 2))
    assert judged("a history", script.history()).detail.endswith(
        "it would have to wait, with 1 free and 1 there, but then nothing explains the rest"
    )


def test_a_saved_history_is_judged(tmp_path: Path) -> None:
    file = tmp_path / "lost.jsonl"
    write(lost().history(), file)
    outcome = check_history_file(file)
    assert outcome.name == "history lost.jsonl"
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.figures["operations"] == 3


def test_a_file_that_is_no_history_could_not_be_judged(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text("{}\n", encoding="utf-8")
    outcome = check_history_file(file)
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert "the first line of a history" in outcome.detail
    assert check_history_file(tmp_path / "none").verdict is Verdict.COULD_NOT_RUN


def test_a_history_that_no_run_can_give_could_not_be_judged(tmp_path: Path) -> None:
    file = tmp_path / "closed.jsonl"
    write(lost().history(), file)
    line = '{"actor": "o1", "kind": "shutdown", "call": 7, "returned": 8, "mode": "closed"}\n'
    file.write_text(file.read_text(encoding="utf-8") + line, encoding="utf-8")
    outcome = check_history_file(file)
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert outcome.detail == (
        f"{file} cannot be read as a history: line 5: the modes are draining and stopped: "
        "o1 shutdown(closed), called at 7, returned at 8: done"
    )


def test_what_is_not_settled_is_inconclusive() -> None:
    outcome = judged("a history", lost().history(), limit=2)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.detail == "not settled within 2 points"
