"""What a death leaves open is explained both ways, and nothing else that it could be blamed for."""

import pytest
from forebay_models.linear.check import check
from forebay_models.linear.history import History
from forebay_models.linear.model import Model
from forebay_models.linear.report import counterexample
from forebay_models.outcome import Verdict
from forebay_spec.actions import Machine

from tests.linear.scripts import Script, edited, without


def holds(history: History) -> bool:
    """Tell whether a history is explained; the search must come to an end."""
    verdict = check(history).verdict
    assert verdict in (Verdict.HOLDS, Verdict.VIOLATED)
    return verdict is Verdict.HOLDS


def kill(script: Script, victim: str) -> int:
    """Kill an actor."""
    return script.at_once("k1", "kill", victim=victim)


def recover(script: Script) -> int:
    """Look for the dead."""
    return script.at_once("o1", "recover")


def count(script: Script, length: int) -> int:
    """Ask how many records there are."""
    call = script.begin("o1", "len")
    script.end(call, length=length)
    return call


def drained(script: Script) -> None:
    """Close the buffer and find nothing more in it."""
    script.at_once("o1", "shutdown", mode="draining")
    script.end(script.begin_read("o1", 1), "shut down")


@pytest.mark.parametrize(("lengths", "right"), [((0,), True), ((2,), True), ((1,), False)])
def test_a_killed_write_is_there_as_a_whole_or_not_at_all(
    lengths: tuple[int, ...], right: bool
) -> None:
    script = Script(3)
    script.begin_write("p1", 1, 2)
    kill(script, "p1")
    recover(script)
    for length in lengths:
        count(script, length)
    assert holds(script.history()) is right


def test_a_record_of_a_killed_write_never_comes_without_the_others() -> None:
    script = Script(3)
    script.begin_write("p1", 1, 2)
    kill(script, "p1")
    read = script.begin_read("c1", 2, m=1)
    script.end(read, records=(1, 2))
    assert holds(script.history())
    assert not holds(edited(script.history(), read, records=(1,)))
    assert not holds(edited(script.history(), read, records=(2, 1)))


def test_nothing_is_published_after_its_writer_has_died() -> None:
    script = Script(1)
    script.begin_write("p1", 1)
    kill(script, "p1")
    first = count(script, 0)
    script.read("c1", 1)
    assert not holds(script.history())
    assert holds(without(script.history(), first))


def test_a_killed_write_that_waited_is_not_admitted_any_more() -> None:
    script = Script(1)
    script.write("p1", 1)
    script.begin_write("p2", 2)
    kill(script, "p2")
    script.read("c1", 1)
    recover(script)
    last = count(script, 0)
    assert holds(script.history())
    assert not holds(edited(script.history(), last, length=1))


def test_a_write_that_was_answered_stays_whoever_dies() -> None:
    script = Script(2)
    script.write("p1", 1, 2)
    kill(script, "p1")
    recover(script)
    read = script.read("c1", 1, 2)
    drained(script)
    assert holds(script.history())
    assert not holds(without(script.history(), read))


def test_a_record_that_was_delivered_before_its_reader_died_does_not_come_back() -> None:
    script = Script(1)
    script.write("p1", 1)
    read = script.read("c1", 1)
    kill(script, "c1")
    recover(script)
    again = script.read("c2", 1)
    assert not holds(script.history())
    assert holds(without(script.history(), again))
    pending = edited(script.history(), read, ended="pending", returned=None, records=None)
    assert holds(pending)  # nobody knows whether it was delivered


def test_what_a_killed_sample_had_is_gone_or_comes_back_once() -> None:
    script = Script(1)
    script.write("p1", 1)
    script.begin_read("c1", 1)
    kill(script, "c1")
    recover(script)
    last = count(script, 1)
    assert holds(script.history())
    assert holds(edited(script.history(), last, length=0))
    script.read("c2", 1)
    assert holds(script.history())
    script.read("c2", 1)
    assert not holds(script.history())


@pytest.mark.parametrize(
    ("end", "answered", "lengths"),
    [
        (None, False, {1}),
        ("commit", True, {0}),
        ("commit", False, {0, 1}),
        ("release", True, {1}),
        ("release", False, {1}),
    ],
)
def test_a_lease_of_the_dead_comes_back_unless_it_was_committed(
    end: str | None, answered: bool, lengths: set[int]
) -> None:
    script = Script(1)
    script.write("p1", 1)
    lease = script.read("x1", 1, kind="take")
    if end is not None:
        call = script.begin("x1", end, lease=lease)  # type: ignore[arg-type]  # a literal
        if answered:
            script.end(call)
    kill(script, "x1")
    recover(script)
    last = count(script, 0)
    assert {n for n in (0, 1, 2) if holds(edited(script.history(), last, length=n))} == lengths


def test_what_the_dead_held_comes_back_at_some_point_and_is_there_after_a_look() -> None:
    script = Script(1)
    script.write("p1", 1)
    script.read("x1", 1, kind="take")
    kill(script, "x1")
    count(script, 0)
    count(script, 1)
    assert holds(script.history())
    count(script, 0)
    assert not holds(script.history())
    late = Script(1)
    late.write("p1", 1)
    late.read("x1", 1, kind="take")
    kill(late, "x1")
    look = recover(late)
    count(late, 0)
    assert not holds(late.history())
    assert holds(without(late.history(), look))


def test_what_comes_back_has_its_old_place_in_the_order() -> None:
    script = Script(3)
    script.write("p1", 1)
    script.write("p1", 2)
    script.read("x1", 1, kind="take")
    kill(script, "x1")
    look = recover(script)
    script.read("c1", 1)
    script.read("c1", 2)
    assert holds(script.history())
    turned = Script(3)
    turned.write("p1", 1)
    turned.write("p1", 2)
    turned.read("x1", 1, kind="take")
    kill(turned, "x1")
    look = recover(turned)
    turned.read("c1", 2)
    turned.read("c1", 1)
    assert not holds(turned.history())
    assert holds(without(turned.history(), look))  # 1 was still held when 2 was read


def test_the_order_of_writes_outlives_their_writers() -> None:
    script = Script(4)
    script.write("p1", 1)
    script.begin_write("p2", 2)
    kill(script, "p2")
    script.write("p1", 3)
    first = script.begin_read("c1", 3)
    script.end(first, records=(1, 2, 3))
    assert holds(script.history())
    assert not holds(edited(script.history(), first, records=(1, 3, 2)))
    assert not holds(edited(script.history(), first, records=(2, 1, 3)))


def test_a_dead_head_is_in_the_way_until_somebody_looks() -> None:
    script = Script(2)
    script.write("p1", 1)
    script.begin_write("p2", 2, 3)
    kill(script, "p2")
    look = recover(script)
    script.end(script.begin_write("p3", 4, waits="some time"), "timeout")
    assert not holds(script.history())
    assert holds(without(script.history(), look))


@pytest.mark.parametrize("looked", [False, True])
def test_one_who_had_nothing_hides_no_mutual_wait(looked: bool) -> None:
    script = Script(3)
    script.end(script.begin_read("c1", 1, waits="not at all"), "timeout")
    script.write("p1", 1, 2)
    write = script.begin_write("p2", 3, 4)
    script.end(script.begin_write("p3", 5, waits="not at all"), "timeout")  # so p2 waits
    kill(script, "c1")
    if looked:
        recover(script)
    read = script.begin_read("c2", 3, waits="some time")
    script.end(read, "timeout")
    script.at_once("o1", "empty")
    script.end(write)
    assert not holds(script.history())
    assert holds(edited(script.history(), read, ended="mutual wait"))


def test_a_kill_takes_effect_somewhere_before_it_returns() -> None:
    """What the victim is answered meanwhile has happened, and what others find may be either."""
    script = Script(2)
    dying = script.begin("k1", "kill", victim="p1")
    script.write("p1", 1)
    script.begin_write("p1", 2)
    first = count(script, 1)
    script.end(dying)
    recover(script)
    assert holds(script.history())
    assert holds(edited(script.history(), first, length=2))
    assert not holds(edited(script.history(), first, length=0))


def test_who_never_called_anything_dies_without_a_trace() -> None:
    script = Script(1)
    kill(script, "p1")
    recover(script)
    count(script, 0)
    assert holds(script.history())


def every_death() -> Script:
    """Let one die while it waits, one while it fills and one with a lease and a drawn batch."""
    script = Script(4, uses=2)
    script.write("p1", 1, 2, 3)
    script.read("x1", 1, kind="take")
    script.begin_read("x1", 1)
    script.begin_write("p2", 4)
    script.end(script.begin_write("p3", 5, waits="not at all"), "timeout")  # so p2 is filling
    script.begin_write("p1", 6, 7)
    for victim in ("x1", "p1", "p2"):
        kill(script, victim)
    script.read("c1", 2)
    recover(script)
    script.write("p4", 8, slots=(3,))
    return script


def test_the_path_is_one_of_the_machine() -> None:
    history = every_death().history()
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
    assert names.count("Kill") == names.count("Recover") == 3


def test_deaths_and_recoveries_are_shown() -> None:
    script = every_death()
    count(script, 0)
    model = Model(script.history())
    failure = counterexample("deaths", model, check(script.history()))
    actors = {row.label: row.actor for row in failure.rows}
    assert actors["Kill(x1)"] == "k1"
    assert actors["Recover(x1)"] is None


def test_it_is_said_who_was_not_recovered() -> None:
    script = Script(1)
    script.write("p1", 1)
    script.read("x1", 1, kind="take")
    kill(script, "x1")
    history = script.history()
    model = Model(history)
    end = check(history).last
    assert end.state.dead == {"x1"}
    recover(script)
    wider = Model(script.history())
    assert list(wider.steps(end, script.history().operations[-1])) == []
    assert model.finished(end)
