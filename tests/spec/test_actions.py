"""Each action does to the state what the page on the state machine says, and nothing else."""

import pytest
from forebay_spec.actions import ACTIONS, Label, Machine, actor_of
from forebay_spec.kernel import Closing, Phase
from forebay_spec.state import FREE_SLOT, Slot, Ticket, initial

from tests.spec.walking import ages, drawable, enabled, label, on, roomy, walk

LIVE, FREE, FILLING, DROPPED = Phase.LIVE, Phase.FREE, Phase.FILLING, Phase.DROPPED
ONE = roomy()
TWO = roomy(uses=2)
ANY = roomy(uses=2, order="random")


def test_labels_read_as_in_the_documentation() -> None:
    assert str(Label("Arrive", ("p1", 2))) == "Arrive(p1,2)"
    assert str(Label("Ask", ("c1", "lease", 2, 1))) == "Ask(c1,lease,2,1)"
    assert str(Label("Deliver", (0,))) == "Deliver(0)"
    assert str(Label("Close", ("draining",))) == "Close(draining)"
    assert str(Label("Empty")) == "Empty"
    assert str(Label("Kill", ("p1",))) == "Kill(p1)"
    assert str(Label("Recover", ("p1",))) == "Recover(p1)"


def test_at_the_start_everything_is_free_and_fresh() -> None:
    state = initial(ONE)
    assert state.slots == (FREE_SLOT,) * 3
    assert (state.free, state.fresh) == ((0, 1, 2), 3)
    assert (state.filling, state.tickets, state.holds) == ((), (), ())
    assert (state.closing, state.cancelled) == (Closing.OPEN, frozenset())
    assert state.dead == frozenset()


def test_a_writer_that_fits_fills_the_first_free_slots() -> None:
    state = walk(ONE, "Arrive(p1,2)")
    assert state.filling == (("p1", (0, 1)),)
    assert [slot.phase for slot in state.slots] == [FILLING, FILLING, FREE]
    assert (state.free, state.fresh, state.tickets) == ((2,), 1, ())


def test_a_writer_that_does_not_fit_waits_and_is_admitted_later() -> None:
    state = walk(ONE, "Arrive(p1,2)", "Arrive(p2,2)")
    assert state.tickets == (Ticket("write", "p2", 2, 2),)
    assert "Admit(p2)" not in enabled(ONE, state)
    state = on(ONE, state, "Abandon(p1)")
    assert "Admit(p2)" in enabled(ONE, state)
    state = on(ONE, state, "Admit(p2)")
    assert (state.tickets, state.filling) == ((), (("p2", (0, 1)),))


def test_who_fills_is_sorted_by_name() -> None:
    assert walk(ONE, "Arrive(p2,1)", "Arrive(p1,1)").filling == (("p1", (1,)), ("p2", (0,)))


def test_a_batch_becomes_live_as_a_whole_at_the_tail_in_batch_order() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Arrive(p2,2)", "Publish(p2)")
    assert ages(state) == {1: 1, 2: 2}
    state = on(ONE, state, "Publish(p1)")
    assert ages(state) == {1: 1, 2: 2, 0: 3}
    assert state.filling == ()


def test_an_abandoned_batch_goes_to_the_front_in_batch_order_and_is_no_longer_fresh() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Arrive(p2,1)", "Abandon(p1)", "Arrive(x1,2)", "Abandon(p2)")
    assert state.filling == (("x1", (0, 2)),)
    state = on(ONE, state, "Abandon(x1)")
    assert (state.free, state.fresh) == ((0, 2, 1), 0)
    assert state.slots == (FREE_SLOT,) * 3


def test_freed_slots_go_behind_the_used_and_before_the_fresh() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Publish(p1)", "Arrive(p2,1)", "Abandon(p2)")
    assert (state.free, state.fresh) == ((1, 2), 1)
    state = on(ONE, state, "Ask(c1,plain,1,1)", "Ready(0)", "Deliver(0)")
    assert (state.free, state.fresh) == ((1, 0, 2), 1)


def test_a_draw_takes_the_oldest_and_remembers_their_ages() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Arrive(p2,2)", "Publish(p2)", "Publish(p1)")
    state = on(ONE, state, "Ask(c1,plain,2,1)")
    (hold,) = state.holds
    assert (hold.owner, hold.kind, hold.state) == ("c1", "plain", "gathering")
    assert (hold.slots, hold.stamps) == ((1, 2), (1, 2))
    assert state.slots[1] == Slot(LIVE, 1, 1, 1)
    assert drawable(ONE, state) == [0]


def test_drawn_records_that_are_not_spent_move_to_the_tail() -> None:
    state = walk(TWO, "Arrive(p1,3)", "Publish(p1)", "Ask(c1,plain,2,2)")
    assert state.holds[0].slots == (0, 1)
    assert drawable(TWO, state) == [2, 0, 1]
    assert [slot.uses for slot in state.slots] == [1, 1, 0]
    # The hold remembers that its records were older than the one that nobody has drawn.
    assert state.holds[0].stamps == (1, 2)
    assert ages(state) == {2: 3, 0: 4, 1: 5}


def test_a_reader_gets_what_is_there_when_that_will_do() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,2,1)")
    assert state.holds[0].slots == (0,)


def test_a_reader_that_waited_draws() -> None:
    state = walk(ONE, "Ask(c1,lease,2,2)", "Arrive(p1,2)", "Publish(p1)")
    assert state.tickets == (Ticket("lease", "c1", 2, 2),)
    state = on(ONE, state, "Draw(c1)")
    assert (state.tickets, state.holds[0].kind) == ((), "lease")


def test_a_draw_at_random_may_be_any_distinct_records_in_any_order() -> None:
    state = walk(ANY, "Arrive(p1,3)", "Publish(p1)")
    assert [slot.stamp for slot in state.slots] == [0, 0, 0]
    found = Machine(ANY).apply(state, label("Ask(c1,plain,2,2)"))
    batches = {after.holds[0].slots for after in found}
    assert batches == {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}
    assert len(found) == 6
    assert {after.holds[0].stamps for after in found} == {(0, 0)}


def test_a_delivery_frees_what_is_spent_in_batch_order() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Arrive(p2,2)", "Publish(p2)", "Publish(p1)")
    state = on(ONE, state, "Ask(c1,plain,3,3)", "Ready(0)")
    assert state.holds[0].state == "ready"
    state = on(ONE, state, "Deliver(0)")
    assert (state.free, state.fresh, state.holds) == ((1, 2, 0), 0, ())
    assert state.slots == (FREE_SLOT,) * 3


def test_a_record_that_may_be_used_again_stays() -> None:
    state = walk(TWO, "Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,1,1)", "Ready(0)", "Deliver(0)")
    assert state.slots[0] == Slot(LIVE, 1, 0, 1)
    assert state.free == (1, 2)


def test_a_spent_record_stays_until_the_last_hold_on_it_ends() -> None:
    state = walk(TWO, "Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,1,1)", "Ask(c2,plain,1,1)")
    assert state.slots[0][:3] == (LIVE, 2, 2)
    state = on(TWO, state, "Ready(0)", "Ready(1)", "Deliver(0)")
    assert state.slots[0][:3] == (LIVE, 2, 1)
    assert [hold.owner for hold in state.holds] == ["c2"]
    assert on(TWO, state, "Deliver(0)").slots[0] == FREE_SLOT


def test_a_failed_draw_puts_its_records_back_where_they_were() -> None:
    before = walk(TWO, "Arrive(p1,3)", "Publish(p1)")
    state = on(TWO, before, "Ask(c1,plain,2,2)", "Fail(0)")
    assert state.holds[0].state == "failed"
    assert on(TWO, state, "Return(0)") == before


@pytest.mark.parametrize("order", [("Return(0)", "Return(0)"), ("Return(1)", "Return(0)")])
def test_holds_on_one_record_may_be_returned_in_any_order(order: tuple[str, str]) -> None:
    before = walk(TWO, "Arrive(p1,2)", "Publish(p1)")
    state = on(TWO, before, "Ask(c1,plain,1,1)", "Ask(c2,plain,2,2)", "Fail(0)", "Fail(1)")
    assert (state.holds[0].slots, state.holds[1].slots) == ((0,), (1, 0))
    assert on(TWO, state, *order) == before


def test_a_lease_is_kept_until_it_is_committed_or_released() -> None:
    before = walk(ONE, "Arrive(p1,1)", "Publish(p1)")
    state = on(ONE, before, "Ask(c1,lease,1,1)", "Ready(0)")
    assert {"Deliver(0)", "Return(0)", "Ask(c1,plain,1,1)"} <= enabled(ONE, state)
    assert on(ONE, state, "Return(0)") == before
    assert on(ONE, state, "Deliver(0)").slots[0] == FREE_SLOT


def test_a_plain_batch_that_is_ready_can_only_be_delivered() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,1,1)", "Ready(0)")
    about_the_hold = {text for text in enabled(ONE, state) if text.endswith("(0)")}
    assert about_the_hold == {"Deliver(0)"}


def test_an_actor_in_a_call_makes_no_other() -> None:
    fills = walk(ONE, "Arrive(x1,1)")
    gathers = walk(ONE, "Arrive(p1,1)", "Publish(p1)", "Ask(x1,plain,1,1)")
    waits = walk(ONE, "Ask(x1,plain,1,1)")
    for state in (fills, gathers, waits):
        found = enabled(ONE, state)
        assert not any(text.startswith(("Arrive(x1", "Ask(x1")) for text in found)
        assert "Arrive(p2,1)" in found


def test_empty_frees_what_nobody_holds_in_slot_order_and_drops_the_rest() -> None:
    state = walk(TWO, "Arrive(p1,1)", "Arrive(p2,2)", "Publish(p2)", "Publish(p1)")
    state = on(TWO, state, "Ask(c1,plain,1,1)", "Empty")
    assert state.slots == (FREE_SLOT, Slot(DROPPED, 0, 1, 0), FREE_SLOT)
    assert state.free == (0, 2)
    assert state.holds[0].stamps == (0,)
    assert drawable(TWO, state) == []


@pytest.mark.parametrize("end", [("Ready(0)", "Deliver(0)"), ("Fail(0)", "Return(0)")])
def test_a_dropped_record_is_gone_when_its_last_hold_ends(end: tuple[str, str]) -> None:
    state = walk(TWO, "Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,1,1)", "Empty")
    state = on(TWO, state, *end)
    assert (state.slots[0], state.free, state.fresh) == (FREE_SLOT, (0, 1, 2), 2)


def test_empty_leaves_those_alone_who_fill_or_wait() -> None:
    state = walk(ONE, "Arrive(p1,2)", "Arrive(p2,2)")
    assert on(ONE, state, "Empty") == state


def test_closing_moves_one_way() -> None:
    state = walk(ONE, "Close(stopped)")
    assert state.closing == Closing.STOPPED
    assert on(ONE, state, "Close(draining)") == state
    assert walk(ONE, "Close(draining)", "Close(stopped)") == state


def test_a_flag_is_set_once_and_for_everybody_who_has_it() -> None:
    state = walk(ONE, "SetCancel(t1)")
    assert state.cancelled == {"t1"}
    assert {text for text in enabled(ONE, state) if "SetCancel" in text} == {"SetCancel(t2)"}


def test_tickets_leave_alone_and_change_nothing() -> None:
    before = walk(ONE, "Arrive(p1,3)")
    state = on(ONE, before, "Arrive(p2,1)", "SetCancel(t2)")
    assert on(ONE, state, "Cancel(p2)") == before._replace(cancelled=frozenset({"t2"}))
    state = on(ONE, before, "Arrive(x1,1)", "Expire(x1)")
    assert state == before
    state = on(ONE, before, "Arrive(x1,1)", "Close(draining)", "Refuse(x1)")
    assert state == before._replace(closing=Closing.DRAINING)


def test_a_call_that_is_turned_away_at_once_is_a_step_to_the_same_state() -> None:
    state = walk(ONE, "SetCancel(t1)")
    assert Machine(ONE).apply(state, label("Arrive(p1,1)")) == (state,)
    assert Machine(ONE).apply(state, label("Ask(c1,plain,1,1)")) == (state,)


WAITS = ("Arrive(p1,3)", "Arrive(p2,1)")
FILLS = ("Arrive(p1,2)",)
GATHERS = ("Arrive(p2,2)", "Publish(p2)", "Ask(c1,plain,1,1)")
LEASES = ("Arrive(p2,2)", "Publish(p2)", "Ask(c1,lease,1,1)", "Ready(0)")


@pytest.mark.parametrize(
    ("story", "victims"),
    [
        ((), set()),
        (WAITS, {"p1", "p2"}),
        (FILLS, {"p1"}),
        (GATHERS, {"c1"}),
        (LEASES, {"c1"}),
        ((*LEASES, "Kill(c1)"), set()),
    ],
)
def test_only_who_lives_and_has_something_is_killed(
    story: tuple[str, ...], victims: set[str]
) -> None:
    found = enabled(ONE, walk(ONE, *story))
    assert {text for text in found if text.startswith("Kill")} == {f"Kill({x})" for x in victims}


@pytest.mark.parametrize(("story", "x"), [(WAITS, "p2"), (FILLS, "p1"), (GATHERS, "c1")])
def test_a_death_changes_nothing_but_who_is_dead(story: tuple[str, ...], x: str) -> None:
    before = walk(ONE, *story)
    assert on(ONE, before, f"Kill({x})") == before._replace(dead=frozenset({x}))


@pytest.mark.parametrize(
    ("story", "x", "stopped"),
    [
        (("Arrive(p1,3)", "Arrive(x1,1)"), "x1", {"Expire(x1)"}),
        (("Arrive(p1,2)", "Arrive(p2,2)", "Abandon(p1)"), "p2", {"Admit(p2)"}),
        (("Arrive(p1,3)", "Arrive(p2,1)", "SetCancel(t2)"), "p2", {"Cancel(p2)"}),
        (("Arrive(p1,3)", "Arrive(p2,1)", "Close(draining)"), "p2", {"Refuse(p2)"}),
        (FILLS, "p1", {"Publish(p1)", "Abandon(p1)"}),
        (("Ask(c1,plain,1,1)", *FILLS, "Publish(p1)"), "c1", {"Draw(c1)"}),
        (GATHERS, "c1", {"Ready(0)", "Fail(0)"}),
        ((*GATHERS, "Ready(0)"), "c1", {"Deliver(0)"}),
        ((*GATHERS, "Fail(0)"), "c1", {"Return(0)"}),
        (LEASES, "c1", {"Deliver(0)", "Return(0)", "Ask(c1,plain,1,1)"}),
    ],
)
def test_who_is_dead_takes_no_step(story: tuple[str, ...], x: str, stopped: set[str]) -> None:
    state = walk(ONE, *story)
    assert stopped <= enabled(ONE, state)
    found = enabled(ONE, on(ONE, state, f"Kill({x})"))
    assert not stopped & found
    assert {text for text in found if f"({x}" in text} == {f"Recover({x})"}


def test_a_dead_writer_frees_its_slots_at_the_front_as_by_abandon() -> None:
    state = walk(ONE, "Arrive(p1,2)", "Arrive(p2,1)", "Abandon(p2)")
    assert on(ONE, state, "Kill(p1)", "Recover(p1)") == on(ONE, state, "Abandon(p1)")


def test_the_call_of_the_dead_leaves_and_those_behind_it_move_up() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Arrive(p2,3)", "Arrive(x1,1)", "Kill(p2)")
    assert "Admit(x1)" not in enabled(ONE, state)
    state = on(ONE, state, "Recover(p2)")
    assert state.tickets == (Ticket("write", "x1", 1, 1),)
    assert "Admit(x1)" in enabled(ONE, state)


@pytest.mark.parametrize("end", [(), ("Ready(0)",), ("Fail(0)",)])
def test_records_that_the_dead_held_are_as_if_never_drawn(end: tuple[str, ...]) -> None:
    before = walk(TWO, "Arrive(p1,3)", "Publish(p1)")
    state = on(TWO, before, "Ask(c1,plain,2,2)", *end, "Kill(c1)")
    assert on(TWO, state, "Recover(c1)") == before


def test_all_holds_of_the_dead_return_in_draw_order_and_the_others_stay() -> None:
    state = walk(TWO, "Arrive(p1,3)", "Publish(p1)", "Ask(c1,lease,1,1)", "Ready(0)")
    state = on(TWO, state, "Ask(c2,lease,1,1)", "Ready(1)", "Ask(c1,lease,2,2)", "Ready(2)")
    assert [hold.slots for hold in state.holds] == [(0,), (1,), (2, 0)]
    found = on(TWO, state, "Kill(c1)", "Recover(c1)")
    assert found == on(TWO, state, "Return(0)", "Return(1)")
    assert [hold.owner for hold in found.holds] == ["c2"]
    # Record 0 is again the oldest; record 1 was drawn by one who lives, and is the youngest.
    assert drawable(TWO, found) == [0, 2, 1]


def test_dropped_records_of_the_dead_become_free() -> None:
    state = walk(ONE, *LEASES, "Empty", "Kill(c1)", "Recover(c1)")
    assert state == walk(ONE, *LEASES, "Empty", "Return(0)")
    assert state.free == (1, 0, 2)


def test_everything_of_a_dead_actor_comes_back_at_once_and_it_may_call_again() -> None:
    state = walk(ONE, "Arrive(x1,1)", "Publish(x1)", "Ask(x1,lease,1,1)", "Ready(0)")
    state = on(ONE, state, "Arrive(x1,2)", "Kill(x1)")
    state = on(ONE, state, "Recover(x1)")
    assert (state.filling, state.holds, state.dead) == ((), (), frozenset())
    assert (state.slots[0], state.free) == (Slot(LIVE, 0, 0, 1), (1, 2))
    assert {"Arrive(x1,2)", "Ask(x1,plain,1,1)"} <= enabled(ONE, state)


def test_features_that_are_off_never_happen() -> None:
    bounds = roomy(capacity=2)
    bare = type(bounds)(
        name="bare",
        capacity=2,
        producers=("p1",),
        readers=("c1",),
        write_sizes=(1,),
        requests=bounds.requests[:1],
    )
    machine, seen = Machine(bare), set()
    states = [machine.initial()]
    for state in states:
        for found, after in machine.successors(state):
            seen.add(found.name)
            if after not in states:
                states.append(after)
    # Sizes of one: nobody is ever refused, and each side may have to wait for the other.
    assert seen == {"Arrive", "Admit", "Publish", "Ask", "Draw", "Ready", "Deliver"}


def test_a_step_that_cannot_happen_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Publish\(p1\) cannot happen here"):
        walk(ONE, "Publish(p1)")
    with pytest.raises(ValueError, match=r"Deliver\(0\)"):
        walk(ONE, "Deliver(0)")


def test_labels_and_successors_tell_the_same() -> None:
    machine = Machine(ANY)
    state = walk(ANY, "Arrive(p1,3)", "Publish(p1)", "Arrive(p2,2)")
    steps = list(machine.successors(state))
    assert len(set(steps)) == len(steps)
    assert {found for found, _ in steps} == set(machine.labels(state))
    for found in machine.labels(state):
        outcomes = {after for name, after in steps if name == found}
        assert outcomes == set(machine.apply(state, found))


def test_who_takes_a_step() -> None:
    state = walk(ONE, "Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,1,1)")
    assert actor_of(state, label("Ready(0)")) == "c1"
    assert actor_of(state, label("Arrive(p2,1)")) == "p2"
    assert actor_of(state, label("SetCancel(t1)")) is None
    assert actor_of(state, label("Empty")) is None
    assert actor_of(state, label("Kill(c1)")) is None
    assert actor_of(state, label("Recover(c1)")) is None


def test_every_action_goes_by_its_own_name() -> None:
    assert {name: action.name for name, action in ACTIONS.items()} == {n: n for n in ACTIONS}
