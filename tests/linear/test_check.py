"""What happened is explained, and what cannot have happened is not."""

from collections.abc import Callable

import pytest
from forebay_models.linear.check import check
from forebay_models.linear.history import Ending, History
from forebay_models.linear.model import Model
from forebay_models.outcome import Verdict
from forebay_spec.actions import Machine

from tests.linear.scripts import Script, edited, without


def holds(history: History) -> bool:
    """Tell whether a history is explained; the search must come to an end."""
    verdict = check(history).verdict
    assert verdict in (Verdict.HOLDS, Verdict.VIOLATED)
    return verdict is Verdict.HOLDS


def two_batches(*first: int) -> Script:
    """Write 1 2 and 3 4 one after the other, and read two records, `first`."""
    script = Script(4)
    script.write("p1", 1, 2)
    script.write("p2", 3, 4)
    script.read("c1", *first)
    return script


def test_nothing_is_explained() -> None:
    assert holds(History(Script(1).history().setting, ()))


def test_batches_come_in_the_order_in_which_they_were_written() -> None:
    script = two_batches(1, 2)
    script.read("c1", 3, 4)
    assert holds(script.history())


@pytest.mark.parametrize(
    ("records", "what"),
    [
        ((3, 4), "out of order"),
        ((1, 3), "torn: half of one batch and half of the other"),
        ((2, 1), "turned round"),
        ((1, 9), "never written"),
        ((1, 0), "a torn row"),
        ((1, 1), "one record twice in a batch"),
    ],
)
def test_other_records_are_not_explained(records: tuple[int, ...], what: str) -> None:
    assert not holds(two_batches(*records).history())


def test_writes_that_overlap_may_come_in_either_order() -> None:
    for first, second in ((1, 2), (2, 1)):
        script = Script(2)
        one, two = script.begin_write("p1", 1), script.begin_write("p2", 2)
        script.end(one)
        script.end(two)
        script.read("c1", first)
        script.read("c1", second)
        assert holds(script.history())


def test_a_batch_is_not_interleaved_with_another() -> None:
    script = Script(4)
    one, two = script.begin_write("p1", 1, 2), script.begin_write("p2", 3, 4)
    script.end(one)
    script.end(two)
    call = script.read("c1", 3, 4)
    assert holds(script.history())
    assert not holds(edited(script.history(), call, records=(1, 3)))
    assert not holds(edited(script.history(), call, records=(4, 1)))


def test_a_batch_is_seen_as_a_whole_or_not_at_all() -> None:
    """While a write is under way, a reader that takes what is there gets all of it or waits."""
    script = Script(4)
    written = script.begin_write("p1", 1, 2)
    script.end(script.begin_read("c1", 2, m=1), records=(1, 2))
    script.end(written)
    assert holds(script.history())
    torn = edited(script.history(), 2, records=(1,))
    assert not holds(torn)


def test_a_batch_that_is_lost_is_missed() -> None:
    script = Script(4)
    script.write("p1", 1, 2)
    script.at_once("o1", "shutdown", mode="draining")
    script.read("c1", 1, 2)
    script.end(script.begin_read("c1", 1), "shut down")
    assert holds(script.history())
    assert not holds(without(script.history(), 5))  # the read of 1 2


def test_a_record_is_delivered_as_often_as_it_may_be() -> None:
    script = Script(2, uses=2)
    script.write("p1", 1)
    script.read("c1", 1)
    script.read("c2", 1)
    assert holds(script.history())
    script.read("c1", 1)
    assert not holds(script.history())


def test_random_order_takes_any_records_but_each_once() -> None:
    for records, right in (((2, 1), True), ((3, 1), True), ((3, 3), False)):
        script = Script(4, order="random")
        script.write("p1", 1, 2, 3)
        script.read("c1", *records)
        assert holds(script.history()) is right


def test_slots_are_taken_in_their_order() -> None:
    script = Script(3)
    script.write("p1", 1, 2, slots=(0, 1))
    script.read("c1", 1, 2)
    call = script.write("p1", 3, slots=(0,))
    assert holds(script.history())
    assert not holds(edited(script.history(), call, slots=(2,)))


def test_no_more_is_admitted_than_fits() -> None:
    script = Script(3)
    script.write("p1", 1, 2)
    call = script.write("p2", 3)
    assert holds(script.history())
    more = edited(script.history(), call, n=2, m=2, records=(3, 4))
    assert not holds(more)


@pytest.mark.parametrize("ended", ["timeout", "cancelled", "shut down", "mutual wait"])
def test_a_write_that_failed_has_no_effect(ended: Ending) -> None:
    script = Script(1)
    script.write("p1", 1)
    write = script.begin_write("p2", 2, waits="some time", token="t")
    script.at_once("o1", "cancel", token="t")
    script.at_once("o1", "shutdown", mode="draining")
    script.end(write, ended)
    script.read("c1", 1)
    # All of these are possible here but the mutual wait: nobody stays in the way.
    assert holds(script.history()) is (ended != "mutual wait")
    script.read("c1", 2)
    assert not holds(script.history())


def test_a_timeout_needs_a_moment_at_which_the_call_would_have_to_wait() -> None:
    script = Script(2)
    script.write("p1", 1)
    call = script.begin_write("p2", 2, waits="some time")
    script.end(call, "timeout")
    assert not holds(script.history())
    assert holds(edited(script.history(), call, n=2, m=2, records=(2, 3)))


def test_a_call_without_a_timeout_does_not_time_out() -> None:
    script = Script(1)
    script.write("p1", 1)
    call = script.begin_write("p2", 2)
    script.end(call, "timeout")
    assert not holds(script.history())
    assert holds(edited(script.history(), call, waits="not at all"))


def test_a_small_write_may_time_out_behind_a_large_one_only() -> None:
    """The order of those who wait is judged: with room for one, only the head keeps others out."""
    script = Script(2)
    script.write("p1", 1)
    large = script.begin_write("p2", 2, 3)
    small = script.begin_write("p3", 4, waits="some time")
    script.end(small, "timeout")
    script.read("c1", 1)
    script.end(large)
    assert holds(script.history())
    assert not holds(without(script.history(), large))


def test_who_does_not_wait_at_all_keeps_nobody_out() -> None:
    script = Script(2)
    script.write("p1", 1)
    large = script.begin_write("p2", 2, 3, waits="some time")
    small = script.begin_write("p3", 4, waits="some time")
    script.end(small, "timeout")
    script.end(large, "timeout")
    assert holds(script.history())
    assert not holds(edited(script.history(), large, waits="not at all"))


def test_a_cancelled_call_needs_its_token_set_by_then() -> None:
    script = Script(1)
    script.write("p1", 1)
    write = script.begin_write("p2", 2, token="t")
    cancel = script.at_once("o1", "cancel", token="t")
    script.end(write, "cancelled")
    assert holds(script.history())
    assert not holds(without(script.history(), cancel))
    assert not holds(edited(script.history(), cancel, token="another"))
    late = Script(1)
    late.write("p1", 1)
    late.end(late.begin_write("p2", 2, token="t"), "cancelled")
    late.at_once("o1", "cancel", token="t")
    assert not holds(late.history())


def test_a_set_token_wins_over_room() -> None:
    script = Script(1)
    script.at_once("o1", "cancel", token="t")
    write = script.begin_write("p1", 1, token="t")
    script.end(write, "cancelled")
    assert holds(script.history())
    assert not holds(edited(script.history(), write, ended="done"))


def test_a_refused_call_needs_a_closed_buffer() -> None:
    script = Script(1)
    close = script.at_once("o1", "shutdown", mode="draining")
    script.end(script.begin_read("c1", 1), "shut down")
    assert holds(script.history())
    assert not holds(without(script.history(), close))


def test_a_draining_buffer_gives_short_batches_an_open_one_does_not() -> None:
    script = Script(3)
    script.write("p1", 1)
    close = script.at_once("o1", "shutdown", mode="draining")
    script.end(script.begin_read("c1", 3), records=(1,))
    assert holds(script.history())
    assert not holds(without(script.history(), close))
    assert not holds(edited(script.history(), close, mode="stopped"))


def mutual() -> Script:
    """Let a write of two and a read of three meet in a capacity of three with two records in it."""
    script = Script(3)
    script.write("p1", 1, 2)
    write = script.begin_write("p2", 3, 4)
    read = script.begin_read("c1", 3)
    script.end(read, "mutual wait")
    script.at_once("o1", "empty")
    script.end(write)
    return script


def test_a_mutual_wait_has_two_sides() -> None:
    history = mutual().history()
    write, read = history.operations[1:3]
    assert holds(history)
    assert not holds(edited(history, read.call, n=2, m=2))
    assert not holds(edited(history, write.call, n=1, m=1, records=(3,)))


def test_a_call_that_never_fits_beside_its_own_lease_is_refused() -> None:
    script = Script(2)
    script.write("p1", 1)
    lease = script.read("x1", 1, kind="take")
    write = script.begin_write("x1", 2, 3, waits="some time")
    script.end(write, "mutual wait")
    assert holds(script.history())
    assert not holds(edited(script.history(), write, ended="timeout"))
    script.at_once("x1", "commit", lease=lease)
    script.write("x1", 4, 5)
    assert holds(script.history())


def test_a_lease_gives_its_records_back_or_not() -> None:
    script = Script(2)
    script.write("p1", 1, 2)
    lease = script.read("x1", 1, kind="take")
    end = script.at_once("x1", "release", lease=lease)
    script.read("c1", 1, 2)
    assert holds(script.history())
    assert not holds(edited(script.history(), end, kind="commit"))
    assert not holds(without(script.history(), end))


def test_a_lease_ends_once() -> None:
    script = Script(1)
    script.write("p1", 1)
    lease = script.read("x1", 1, kind="take")
    script.at_once("x1", "commit", lease=lease)
    script.at_once("x1", "commit", lease=lease)
    assert not holds(script.history())


def test_records_whose_transform_raised_are_there_again() -> None:
    script = Script(2)
    script.write("p1", 1, 2)
    read = script.begin_read("c1", 1)
    script.end(read, "failed", records=(1,))
    script.read("c1", 1, 2)
    assert holds(script.history())
    assert not holds(edited(script.history(), read, records=(2,)))
    assert not holds(edited(script.history(), read, ended="done"))


@pytest.mark.parametrize(("length", "right"), [(0, True), (2, True), (1, False), (3, False)])
def test_len_is_of_one_moment(length: int, right: bool) -> None:
    script = Script(3)
    write = script.begin_write("p1", 1, 2)
    script.end(script.begin("o1", "len"), length=length)
    script.end(write)
    assert holds(script.history()) is right


def pending_write() -> Script:
    script = Script(2)
    script.begin_write("p1", 1, 2)
    return script


@pytest.mark.parametrize(
    ("then", "right"),
    [
        (lambda script: script.read("c1", 1, 2), True),
        (lambda script: script.end(script.begin("o1", "len"), length=0), True),
        (lambda script: script.write("p2", 3, 4), True),
        # Admitted and not published so far.
        (lambda s: s.end(s.begin_write("p2", 3, 4, waits="some time"), "timeout"), True),
        (lambda script: script.read("c1", 2), False),
        (lambda script: script.end(script.begin("o1", "len"), length=1), False),
    ],
)
def test_a_write_that_never_returned_may_have_come_to_any_point(
    then: Callable[[Script], object], right: bool
) -> None:
    script = pending_write()
    then(script)
    assert holds(script.history()) is right


def test_what_a_dead_actor_had_may_be_given_back_but_only_once() -> None:
    script = Script(1)
    script.write("p1", 1)
    lease = script.read("x1", 1, kind="take")
    script.begin("x1", "release", lease=lease)
    script.read("c1", 1)
    assert holds(script.history())
    script.read("c1", 1)
    assert not holds(script.history())


def test_an_interrupted_write_is_there_as_a_whole_or_not_at_all() -> None:
    script = Script(2)
    script.end(script.begin_write("p1", 1, 2), "interrupted")
    script.end(script.begin("o1", "len"), length=2)
    assert holds(script.history())
    assert holds(edited(script.history(), 3, length=0))
    assert not holds(edited(script.history(), 3, length=1))


def test_an_interrupted_write_has_ended_when_it_returned() -> None:
    script = Script(1)
    script.end(script.begin_write("p1", 1), "interrupted")
    script.end(script.begin("o1", "len"), length=0)
    script.read("c1", 1)
    assert not holds(script.history())


def test_a_search_that_reaches_its_limit_has_shown_nothing() -> None:
    history = two_batches(1, 2).history()
    found = check(history, limit=3)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.visited == 3


def test_the_path_is_one_of_the_machine() -> None:
    """The labels of an explanation lead the specification's own machine to the same states."""
    script = mutual()
    script.write("p1", 5)
    lease = script.read("x1", 3, 4, kind="take")
    script.at_once("x1", "release", lease=lease)
    script.end(script.begin_read("c1", 2, waits="not at all"), "failed", records=(3, 4))
    script.at_once("o1", "shutdown", mode="draining")
    script.read("c1", 3, 4)
    script.end(script.begin("o1", "len"), length=1)
    history = script.history()
    found = check(history)
    assert found.verdict is Verdict.HOLDS
    machine = Machine(Model(history).bounds)
    state = machine.initial()
    names = []
    for move in found.path:
        for label in move.labels:
            (state,) = machine.apply(state, label)
            names.append(label.name)
        assert state == move.after.state
    assert {"Arrive", "Admit", "Publish", "Ask", "Ready", "Deliver", "Fail", "Return"} <= {*names}
