"""Endings that an operation cannot have are explained by nothing, whatever else happened."""

import pytest
from forebay_models.linear.accounts import hopeless
from forebay_models.linear.check import check
from forebay_models.linear.history import Ending, History
from forebay_models.outcome import Verdict

from tests.linear.scripts import Script, edited


def holds(history: History) -> bool:
    """Tell whether a history is explained."""
    return check(history).verdict is Verdict.HOLDS


def test_an_error_that_no_operation_has_is_never_explained() -> None:
    script = Script(1)
    script.end(script.begin("o1", "len"), "unexpected", error="KeyError()")
    assert not holds(script.history())


@pytest.mark.parametrize("ended", ["timeout", "cancelled", "shut down", "mutual wait", "failed"])
def test_what_does_not_wait_never_ends_as_waiting_does(ended: Ending) -> None:
    script = Script(2)
    script.write("p1", 1)
    lease = script.read("x1", 1, kind="take")
    last = script.at_once("x1", "commit", lease=lease)
    script.at_once("o1", "cancel", token="t")
    script.at_once("o1", "empty")
    script.at_once("o1", "shutdown", mode="draining")
    history = script.history()
    assert holds(history)
    for op in history.operations:
        if op.call >= last:
            assert not holds(edited(history, op.call, ended=ended)), op.kind
            assert holds(edited(history, op.call, ended="interrupted")), op.kind
    script.end(script.begin("o1", "len"), ended)
    assert not holds(script.history())


def test_a_write_has_no_transform_that_could_fail() -> None:
    script = Script(1)
    script.write("p1", 1, ended="failed")
    assert not holds(script.history())


@pytest.mark.parametrize(
    ("numbers", "says"),
    [((9,), "nobody had written 9 by then"), ((1,), "1 was delivered 2 times")],
)
def test_records_that_cannot_be_are_found_by_counting(numbers: tuple[int, ...], says: str) -> None:
    script = Script(4)
    script.write("p1", 1, 2)
    script.read("c1", 1)
    script.read("c1", 2)
    assert hopeless(script.history()) == ""
    script.read("c1", *numbers)
    assert check(script.history(), limit=3).verdict is Verdict.VIOLATED
    assert hopeless(script.history()).endswith(says)


def test_a_committed_lease_counts_and_a_released_one_does_not() -> None:
    script = Script(4)
    script.write("p1", 1)
    for end in ("release", "commit"):
        lease = script.read("x1", 1, kind="take")
        script.at_once("x1", end, lease=lease)
    assert hopeless(script.history()) == ""
    script.read("c1", 1)
    assert hopeless(script.history()).endswith("1 was delivered 2 times")


def test_an_ending_that_no_path_has_is_wrong_however_short_the_search() -> None:
    script = Script(4)
    script.write("p1", 1, 2)
    script.read("c1", 1, 2)
    script.end(script.begin("o1", "len"), "timeout")
    assert check(script.history(), limit=3).verdict is Verdict.VIOLATED
