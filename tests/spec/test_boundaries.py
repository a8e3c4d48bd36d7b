"""Captures and restores: what a snapshot has, what is kept for it, and how a buffer becomes one."""

import pytest
from forebay_spec.kernel import Closing, Phase, Verdict
from forebay_spec.state import FREE_SLOT, NO_BOUNDARY, Boundary, Hold, Saved, Slot, State, Ticket

from tests.spec.walking import drawable, enabled, gets, on, roomy, walk

LIVE, DROPPED = Phase.LIVE, Phase.DROPPED
ONE = roomy(prefetch=2)
TWO = roomy(uses=2, prefetch=2)
TOGETHER = roomy(uses=2, prefetch=2, together=True)
FULL = ("Arrive(p1,3)", "Publish(p1)")
COPY = ("CaptureAsk(p2)", "Capture(p2)")
BOUNDARY = ("Capture(", "CaptureDone(", "Load(", "Restore(", "Reject(")


def about_boundaries(found: set[str]) -> set[str]:
    return {text for text in found if text.startswith(BOUNDARY)}


def saved(state: State) -> Saved:
    assert state.saved is not None
    return state.saved


def test_one_boundary_at_a_time_and_whoever_is_at_it_makes_no_call() -> None:
    state = walk(ONE, "CaptureAsk(x1)")
    assert state.boundary == Boundary("capturing", "x1", ())
    found = enabled(ONE, state)
    assert about_boundaries(found) == {"Capture(x1)"}
    assert not {text for text in found if text.startswith(("CaptureAsk", "RestoreAsk"))}
    assert not {text for text in found if text.startswith(("Arrive(x1", "Ask(x1"))}
    assert {"Arrive(p1,1)", "Ask(c1,plain,1,1)", "Kill(x1)"} <= found


@pytest.mark.parametrize(
    "story", [("Arrive(x1,1)",), ("Ask(x1,plain,1,1)",), ("CaptureAsk(x1)", "Kill(x1)")]
)
def test_who_is_in_a_call_or_dead_asks_for_no_boundary(story: tuple[str, ...]) -> None:
    found = enabled(ONE, walk(ONE, *story))
    assert not {"CaptureAsk(x1)", "RestoreAsk(x1)"} & found


def test_an_empty_buffer_has_nothing_to_copy() -> None:
    state = walk(ONE, *COPY)
    assert state.boundary == NO_BOUNDARY
    assert saved(state) == Saved((FREE_SLOT,) * 3, (0, 1, 2), 3, ())


def test_a_capture_copies_the_oldest_first_and_lets_go_one_by_one() -> None:
    state = walk(TWO, *FULL, "Ask(c1,plain,1,1)", "Ready(0)", "Deliver(0)", *COPY)
    assert state.boundary == Boundary("copying", "p2", (1, 2, 0))
    before = state
    for left in ((2, 0), (0,)):
        state = on(TWO, state, "CaptureDone(p2)")
        assert state == before._replace(boundary=Boundary("copying", "p2", left))
    assert on(TWO, state, "CaptureDone(p2)") == before._replace(boundary=NO_BOUNDARY)


def test_at_random_slots_are_copied_in_their_order() -> None:
    bounds = roomy(order="random")
    assert walk(bounds, *FULL, *COPY).boundary.slots == (0, 1, 2)


def test_a_spent_record_makes_room_when_it_is_copied() -> None:
    state = walk(ONE, *FULL, "Ask(c1,plain,2,2)", "Ready(0)", *COPY, "Deliver(0)")
    assert (state.slots[0], state.free) == (Slot(LIVE, 1, 0, 1), ())
    state = on(ONE, state, "CaptureDone(p2)")
    assert (state.slots[0], state.free, state.boundary.slots) == (FREE_SLOT, (0,), (1, 2))
    assert gets(ONE, state, "Arrive(p1,1)") == Verdict.SERVE


def test_a_record_that_is_held_when_it_is_copied_goes_with_its_hold() -> None:
    state = walk(ONE, *FULL, "Ask(c1,plain,1,1)", "Ready(0)", *COPY, "CaptureDone(p2)")
    assert state.free == ()
    assert on(ONE, state, "Deliver(0)").free == (0,)


def test_empty_drops_what_is_still_to_be_copied() -> None:
    state = walk(ONE, *FULL, *COPY, "CaptureDone(p2)", "Empty")
    dropped = Slot(DROPPED, 0, 0, 0)
    assert (state.slots, state.free) == ((FREE_SLOT, dropped, dropped), (0,))
    state = on(ONE, state, "CaptureDone(p2)", "CaptureDone(p2)")
    assert (state.slots, state.free) == ((FREE_SLOT,) * 3, (0, 1, 2))
    assert [slot.phase for slot in saved(state).slots] == [LIVE] * 3


def test_a_snapshot_has_nothing_that_fills_and_the_records_of_all_holds() -> None:
    state = walk(TWO, "Arrive(p1,2)", "Publish(p1)", "Arrive(p1,1)", "Ask(c1,lease,2,1)")
    state = on(TWO, state, "Arrive(p2,1)", "CaptureAsk(x1)", "Capture(x1)")
    assert saved(state) == Saved((Slot(LIVE, 0, 0, 1), Slot(LIVE, 0, 0, 2), FREE_SLOT), (2,), 0, ())
    assert state.boundary == Boundary("copying", "x1", (0, 1))
    assert state.tickets == (Ticket("write", "p2", 1, 1),)


def test_the_free_order_of_a_snapshot() -> None:
    # p2 fills 1 and 2 (in another order than x1 fills 0), c1 leases a record that was dropped.
    bounds = roomy(capacity=5)
    state = walk(bounds, "Arrive(p1,2)", "Publish(p1)", "Ask(c1,lease,1,1)", "Ready(0)", "Empty")
    assert state.free == (1, 2, 3, 4)
    state = on(bounds, state, "Arrive(p2,2)", "Arrive(x1,1)", "CaptureAsk(p1)", "Capture(p1)")
    assert saved(state) == Saved((FREE_SLOT,) * 5, (1, 2, 3, 0, 4), 1, ())
    assert (state.boundary, state.free) == (NO_BOUNDARY, (4,))


def test_a_snapshot_has_the_queue_of_its_process_alone() -> None:
    state = walk(ONE, *FULL, "Refill(c1)", "Ready(0)", "Refill(c2)", "Refill(c1)", "Fail(2)")
    mine = on(ONE, state, "CaptureAsk(c1)", "Capture(c1)")
    assert saved(mine).queue == (((0,), (1,)),)
    assert saved(mine).slots == (Slot(LIVE, 1, 1, 1), Slot(LIVE, 0, 0, 2), Slot(LIVE, 0, 0, 3))
    theirs = on(ONE, state, *COPY)
    assert saved(theirs).queue == ()
    assert [slot[:3] for slot in saved(theirs).slots] == [(LIVE, 0, 0)] * 3


def test_a_record_that_is_given_back_in_a_snapshot_is_as_old_as_it_was() -> None:
    state = walk(TWO, *FULL, "Ask(c1,plain,1,1)")
    assert drawable(TWO, state) == [1, 2, 0]
    found = saved(on(TWO, state, *COPY))
    assert [slot.stamp for slot in found.slots] == [1, 2, 3]
    # The queue remembers the ages in the same ranks: record 0 is drawn again, and is the youngest.
    state = walk(TWO, *FULL, "Refill(c1)", "Ready(0)", "CaptureAsk(c1)", "Capture(c1)")
    assert [slot.stamp for slot in saved(state).slots] == [4, 2, 3]
    assert saved(state).queue == (((0,), (1,)),)


@pytest.mark.parametrize(
    ("story", "waits"),
    [
        (("Refill(q1)",), True),
        (("Refill(q1)", "Ready(0)"), False),
        (("Ask(c1,plain,1,1)",), True),  # of the same process
        (("Ask(c1,lease,1,1)", "Ready(0)"), False),
        (("Refill(q1)", "Empty"), True),  # a stale one gathers too
    ],
)
def test_a_capture_waits_for_what_its_process_gathers(story: tuple[str, ...], waits: bool) -> None:
    state = walk(TOGETHER, *FULL, *story, "CaptureAsk(p2)")
    assert ("Capture(p2)" not in enabled(TOGETHER, state)) == waits


def test_a_capture_does_not_wait_for_what_others_gather() -> None:
    state = walk(ONE, *FULL, "Refill(c1)", "Ask(c2,plain,1,1)", "CaptureAsk(p2)")
    assert "Capture(p2)" in enabled(ONE, state)


def test_readers_of_a_process_that_is_about_to_be_captured_are_held_off() -> None:
    state = walk(TOGETHER, *FULL, "Refill(q1)", "CaptureAsk(p2)")
    assert gets(TOGETHER, state, "Ask(c1,plain,1,1)") == Verdict.WAIT
    assert gets(TOGETHER, state, "Ask(c1,plain,2,2)") == Verdict.WAIT
    assert gets(TOGETHER, state, "Ask(c1,plain,2,2)", expired=True) == Verdict.TIMEOUT
    state = on(TOGETHER, state, "Ready(0)", "Capture(p2)")
    assert gets(TOGETHER, state, "Ask(c1,plain,1,1)") == Verdict.SERVE
    apart = walk(ONE, *FULL, "CaptureAsk(p2)")
    assert gets(ONE, apart, "Ask(c1,plain,1,1)") == Verdict.SERVE


def test_writers_are_not_held_off_by_a_capture_but_by_a_restore() -> None:
    assert gets(TOGETHER, walk(TOGETHER, "CaptureAsk(p2)"), "Arrive(p1,1)") == Verdict.SERVE
    state = walk(TOGETHER, *COPY, "RestoreAsk(p2)")
    for step in ("Load(p2)", "Restore(p2)"):
        assert gets(TOGETHER, state, "Arrive(p1,1)") == Verdict.WAIT
        assert gets(TOGETHER, state, "Arrive(p1,1)", expired=True) == Verdict.TIMEOUT
        state = on(TOGETHER, state, step)
    assert gets(TOGETHER, state, "Arrive(p1,1)") == Verdict.SERVE


def test_a_reader_is_not_told_of_the_end_while_records_may_be_restored() -> None:
    state = walk(ONE, *COPY, "Close(draining)", "RestoreAsk(p2)")
    assert gets(ONE, state, "Ask(c1,plain,1,1)") == Verdict.WAIT
    assert gets(ONE, on(ONE, state, "Reject(p2)"), "Ask(c1,plain,1,1)") == Verdict.SHUT_DOWN
    assert gets(ONE, on(ONE, state, "Close(stopped)"), "Ask(c1,plain,1,1)") == Verdict.SHUT_DOWN


SAVED = (*FULL, "Refill(c1)", "Ready(0)", "CaptureAsk(c1)", "Capture(c1)", *["CaptureDone(c1)"] * 3)


@pytest.mark.parametrize(
    ("story", "may"),
    [
        (("RestoreAsk(x1)",), False),  # nothing was saved
        ((*SAVED, "RestoreAsk(x1)"), True),
        ((*SAVED, "Ask(c2,lease,1,1)", "RestoreAsk(x1)"), False),
        ((*SAVED, "Ask(c2,lease,1,1)", "Ready(1)", "RestoreAsk(x1)"), True),
        ((*SAVED, "Ask(c2,plain,1,1)", "Ready(1)", "RestoreAsk(x1)"), False),
        ((*SAVED, "Refill(c2)", "RestoreAsk(x1)"), False),
        ((*SAVED, "Refill(c2)", "Fail(1)", "RestoreAsk(x1)"), True),
        ((*SAVED, "Empty", "Arrive(p1,1)", "RestoreAsk(x1)"), False),
        ((*SAVED, "Ask(c2,plain,3,3)", "Kill(c2)", "RestoreAsk(x1)"), False),
        ((*SAVED, "Ask(c2,plain,3,3)", "RestoreAsk(x1)"), True),
    ],
)
def test_records_are_thrown_away_only_when_nobody_is_in_the_middle(
    story: tuple[str, ...], may: bool
) -> None:
    found = about_boundaries(enabled(ONE, walk(ONE, *story)))
    assert found == ({"Load(x1)", "Reject(x1)"} if may else {"Reject(x1)"})


def test_a_rejected_restore_has_changed_nothing() -> None:
    before = walk(ONE, *SAVED)
    assert on(ONE, before, "RestoreAsk(x1)", "Reject(x1)") == before


def test_a_restore_makes_the_buffer_what_it_was_and_leases_void() -> None:
    state = walk(ONE, *SAVED, "Ask(x1,lease,1,1)", "Ready(1)", "Ask(c2,plain,3,3)", "SetCancel(t1)")
    state = on(ONE, state, "RestoreAsk(c1)", "Load(c1)")
    assert (state.slots, state.free, state.fresh) == ((FREE_SLOT,) * 3, (0, 1, 2), 3)
    assert (state.holds, state.boundary) == ((), Boundary("loading", "c1", ()))
    state = on(ONE, state, "Restore(c1)")
    expected = walk(ONE, *SAVED)
    assert state == expected._replace(
        tickets=(Ticket("plain", "c2", 3, 3),), cancelled=frozenset({"t1"})
    )


def test_the_queue_is_that_of_whoever_restores() -> None:
    state = walk(ONE, *SAVED, "RestoreAsk(c2)", "Load(c2)", "Restore(c2)")
    assert state.holds == (Hold("c2", "prefetched", (0,), (1,), "ready"),)


def test_a_closed_buffer_stays_closed() -> None:
    state = walk(ONE, *SAVED, "Close(draining)", "RestoreAsk(c1)", "Load(c1)", "Restore(c1)")
    assert state == walk(ONE, *SAVED)._replace(closing=Closing.DRAINING)


def test_there_is_no_mutual_wait_while_somebody_captures_or_restores() -> None:
    small = roomy(capacity=2)
    state = walk(small, "Arrive(p1,1)", "Publish(p1)", "Arrive(p1,2)")
    assert gets(small, state, "Ask(c1,plain,2,2)") == Verdict.MUTUAL_WAIT
    for ask in ("CaptureAsk(p2)", "RestoreAsk(p2)"):
        assert gets(small, on(small, state, ask), "Ask(c1,plain,2,2)") == Verdict.WAIT


def test_the_dead_take_no_step_of_a_boundary() -> None:
    for story in (("CaptureAsk(p2)",), COPY, ("RestoreAsk(p2)",)):
        state = walk(ONE, *FULL, *story, "Kill(p2)")
        assert not about_boundaries(enabled(ONE, state))
        assert not {text for text in enabled(ONE, state) if "Ask(p" in text}


def test_what_the_dead_had_still_to_copy_is_let_go() -> None:
    state = walk(ONE, *FULL, "Ask(c1,plain,2,2)", "Ready(0)", *COPY, "Deliver(0)", "Kill(p2)")
    state = on(ONE, state, "Recover(p2)")
    assert (state.boundary, state.free, state.dead) == (NO_BOUNDARY, (0, 1), frozenset())
    assert state.slots == (FREE_SLOT, FREE_SLOT, Slot(LIVE, 0, 0, 1))
    assert state.closing == Closing.OPEN


def test_who_dies_before_the_records_are_gone_leaves_the_buffer_as_it_was() -> None:
    before = walk(ONE, *SAVED)
    assert on(ONE, before, "RestoreAsk(x1)", "Kill(x1)", "Recover(x1)") == before


def test_who_dies_while_loading_leaves_an_empty_buffer_that_is_stopped() -> None:
    state = walk(ONE, *SAVED, "RestoreAsk(x1)", "Load(x1)", "Kill(x1)", "Recover(x1)")
    assert (state.closing, state.boundary) == (Closing.STOPPED, NO_BOUNDARY)
    assert (state.slots, state.free, state.holds) == ((FREE_SLOT,) * 3, (0, 1, 2), ())
