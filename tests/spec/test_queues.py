"""Batches that are drawn ahead: how they come into a queue, out of it, and who waits for whom."""

import pytest
from forebay_spec.actions import ACTIONS, Machine, actor_of
from forebay_spec.kernel import Closing, Phase, Verdict
from forebay_spec.state import FREE_SLOT, Hold, Slot, Ticket
from forebay_spec.verdicts import all_wait, mutual_wait_victim

from tests.spec.walking import ages, drawable, enabled, gets, label, on, roomy, walk

LIVE, DROPPED = Phase.LIVE, Phase.DROPPED
ONE = roomy(prefetch=2)
TWO = roomy(uses=2, prefetch=2)
PAIRS = roomy(prefetch=2, batch_size=2)
TOGETHER = roomy(prefetch=2, together=True)
SMALL = roomy(capacity=2, prefetch=2)
FULL = ("Arrive(p1,3)", "Publish(p1)")


def test_a_process_draws_the_oldest_ahead() -> None:
    state = walk(ONE, *FULL, "Refill(c1)")
    assert state.holds == (Hold("c1", "prefetched", (0,), (1,), "gathering"),)
    assert state.slots[0] == Slot(LIVE, 1, 1, 1)
    assert drawable(ONE, state) == [1, 2]
    assert walk(PAIRS, *FULL, "Refill(c1)").holds[0].slots == (0, 1)


def test_at_random_any_records_may_be_drawn_ahead() -> None:
    bounds = roomy(order="random", prefetch=1, batch_size=2)
    found = Machine(bounds).apply(walk(bounds, *FULL), label("Refill(c1)"))
    assert sorted(after.holds[0].slots for after in found) == [
        *((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))
    ]


@pytest.mark.parametrize(
    ("story", "who"),
    [
        (FULL, {"c1", "c2", "x1"}),
        ((), set()),  # nothing is sampleable
        ((*FULL, "Refill(c1)", "Refill(c1)"), {"c2", "x1"}),  # c1 has two
        ((*FULL, "Refill(c1)", "Refill(c1)", "Refill(c2)"), set()),
        ((*FULL, "Close(draining)"), {"c1", "c2", "x1"}),
        ((*FULL, "Close(stopped)"), set()),
        ((*FULL, "CaptureAsk(c1)"), {"c2", "x1"}),
        ((*FULL, "CaptureAsk(c1)", "Capture(c1)"), {"c1", "c2", "x1"}),
        ((*FULL, "RestoreAsk(p2)"), set()),
        ((*FULL, "Ask(c1,lease,1,1)", "Kill(c1)"), {"c2", "x1"}),
        (("Arrive(p1,2)", "Publish(p1)", "Ask(c2,plain,3,3)"), set()),  # a reader waits
    ],
)
def test_who_may_draw_ahead(story: tuple[str, ...], who: set[str]) -> None:
    found = enabled(ONE, walk(ONE, *story))
    assert {text for text in found if "Refill" in text} == {f"Refill({q})" for q in who}


def test_nobody_draws_ahead_less_than_a_batch() -> None:
    state = walk(PAIRS, "Arrive(p1,1)", "Publish(p1)")
    assert not {text for text in enabled(PAIRS, state) if "Refill" in text}


@pytest.mark.parametrize("end", [(), ("Ready(0)",), ("Fail(0)",)])
def test_a_call_of_the_size_takes_the_oldest_gathered_or_not(end: tuple[str, ...]) -> None:
    before = walk(ONE, *FULL, "Refill(c1)", *end, "Refill(c1)")
    after = on(ONE, before, "Ask(c1,lease,1,1)")
    taken = before.holds[0]._replace(owner="c1", kind="lease")
    assert after == before._replace(holds=(taken, before.holds[1]))


def test_what_was_taken_is_delivered_or_returned_like_any_other_batch() -> None:
    state = walk(ONE, *FULL, "Refill(c1)", "Ask(c1,plain,1,1)", "Ready(0)", "Deliver(0)")
    assert (state.slots[0], state.free, state.holds) == (FREE_SLOT, (0,), ())
    state = walk(ONE, *FULL, "Refill(c1)", "Fail(0)", "Ask(c1,plain,1,1)")
    assert on(ONE, state, "Return(0)") == walk(ONE, *FULL)


def test_a_call_of_another_size_or_of_another_process_draws() -> None:
    state = walk(ONE, *FULL, "Refill(c1)")
    assert on(ONE, state, "Ask(c1,plain,2,2)").holds[1].slots == (1, 2)
    assert on(ONE, state, "Ask(c2,plain,1,1)").holds[1].slots == (1,)


def test_threads_of_one_process_take_from_one_queue_whoever_waits_in_front() -> None:
    state = walk(TOGETHER, *FULL, "Refill(q1)", "Refill(q1)")
    state = on(TOGETHER, state, "Ask(c1,plain,3,3)", "Ask(c2,plain,1,1)")
    assert state.tickets == (Ticket("plain", "c1", 3, 3),)
    assert [hold.owner for hold in state.holds] == ["c2", "q1"]


def test_who_prefetches_is_not_in_a_call() -> None:
    state = walk(ONE, *FULL, "Refill(c1)")
    assert {"Ask(c1,plain,1,1)", "CaptureAsk(c1)"} <= enabled(ONE, state)
    assert actor_of(state, label("Ready(0)")) == "c1"
    assert actor_of(walk(TOGETHER, *FULL, "Refill(q1)"), label("Ready(0)")) == "q1"
    assert actor_of(state, label("Recall")) is None
    assert actor_of(state, label("Refill(c1)")) == "c1"


def test_a_prefetched_batch_is_not_delivered_and_returned_only_by_a_flush() -> None:
    state = walk(ONE, *FULL, "Refill(c1)")
    assert {text for text in enabled(ONE, state) if "(0)" in text} == {"Ready(0)", "Fail(0)"}
    for end in ("Ready(0)", "Fail(0)"):
        settled = on(ONE, state, end)
        assert {text for text in enabled(ONE, settled) if "(0)" in text} == {"Return(0)"}
        assert on(ONE, settled, "Return(0)") == walk(ONE, *FULL)


def test_empty_drops_the_queue_and_what_gathers_becomes_stale() -> None:
    state = walk(TWO, *FULL, "Refill(c1)", "Ready(0)", "Refill(c1)", "Empty")
    assert state.slots == (FREE_SLOT, Slot(DROPPED, 0, 1, 0), FREE_SLOT)
    assert state.free == (0, 2)
    assert state.holds == (Hold("c1", "prefetched", (1,), (0,), "gathering"),)


@pytest.mark.parametrize("end", ["Ready(0)", "Fail(0)"])
def test_a_stale_batch_is_nobodys_and_goes_when_it_has_gathered(end: str) -> None:
    state = walk(ONE, *FULL, "Refill(c1)", "Empty")
    assert gets(ONE, state, "Ask(c1,plain,1,1)") == Verdict.WAIT
    after = on(ONE, state, end)
    assert (after.holds, after.free, after.slots[0]) == ((), (1, 2, 0), FREE_SLOT)


def test_a_stale_batch_counts_as_drawn_ahead() -> None:
    state = walk(ONE, *FULL, "Refill(c1)", "Refill(c1)", "Empty", "Arrive(p1,1)", "Publish(p1)")
    assert {"Refill(c2)", "Refill(x1)"} <= enabled(ONE, state)
    assert "Refill(c1)" not in enabled(ONE, state)


# Two slots, both of them drawn ahead, and a writer who waits.
STUCK = ("Arrive(p1,2)", "Publish(p1)", "Refill(c1)", "Ready(0)", "Refill(c1)", "Arrive(p1,1)")


def test_all_wait_when_the_queue_has_everything_and_its_youngest_batch_is_given_back() -> None:
    state = walk(SMALL, *STUCK)
    assert not all_wait(SMALL, state)  # it gathers still
    state = on(SMALL, state, "Fail(1)")
    assert all_wait(SMALL, state)
    assert mutual_wait_victim(SMALL, state) is None
    after = on(SMALL, state, "Recall")
    assert after.holds == state.holds[:1]
    assert (after.slots[1], after.tickets) == (Slot(LIVE, 0, 0, 2), state.tickets)


def test_there_is_no_mutual_wait_while_a_waiting_call_can_take() -> None:
    state = on(SMALL, walk(SMALL, *STUCK), "Ready(1)")
    waits = state._replace(tickets=(*state.tickets, Ticket("plain", "c1", 1, 1)))
    assert not all_wait(SMALL, waits)
    assert "Recall" not in enabled(SMALL, waits)
    other = state._replace(tickets=(*state.tickets, Ticket("plain", "c2", 1, 1)))
    assert "Recall" in enabled(SMALL, other)


def test_with_nothing_left_to_recall_somebody_must_give_way() -> None:
    state = on(SMALL, walk(SMALL, *STUCK), "Ready(1)", "Ask(c2,plain,2,2)", "Recall", "Recall")
    assert state.holds == ()
    state = on(SMALL, state, "Draw(c2)")
    assert state.holds[0].slots == (0, 1)


def test_there_is_no_recall_while_somebody_captures() -> None:
    state = on(SMALL, walk(SMALL, *STUCK), "Ready(1)")
    assert "Recall" in enabled(SMALL, state)
    assert "Recall" not in enabled(SMALL, on(SMALL, state, "CaptureAsk(c2)"))


def test_a_queue_is_served_while_draining_and_not_when_stopped() -> None:
    state = walk(ONE, *FULL, "Refill(c1)", "Ready(0)", "Ask(c2,plain,2,2)", "Ready(1)")
    state = on(ONE, state, "Deliver(1)", "Close(draining)")
    assert gets(ONE, state, "Ask(c1,plain,1,1)") == Verdict.SERVE
    assert gets(ONE, state, "Ask(c1,plain,2,2)") == Verdict.SHUT_DOWN
    assert gets(ONE, state, "Ask(c2,plain,1,1)") == Verdict.SHUT_DOWN
    state = on(ONE, state, "Close(stopped)")
    assert gets(ONE, state, "Ask(c1,plain,1,1)") == Verdict.SHUT_DOWN
    assert state.closing == Closing.STOPPED


def test_the_queue_of_the_dead_stands_still_and_is_returned() -> None:
    before = walk(ONE, *FULL)
    state = on(ONE, before, "Refill(c1)", "Refill(c1)", "Ready(0)")
    assert "Kill(c1)" in enabled(ONE, state)
    state = on(ONE, state, "Kill(c1)")
    assert not {text for text in enabled(ONE, state) if text.endswith(("(0)", "(1)"))}
    assert on(ONE, state, "Recover(c1)") == before


def test_records_that_were_drawn_again_are_as_old_as_before_when_a_queue_is_flushed() -> None:
    state = walk(TWO, *FULL, "Refill(c1)", "Ready(0)")
    assert drawable(TWO, state) == [1, 2, 0]
    assert ages(on(TWO, state, "Return(0)")) == {0: 1, 1: 2, 2: 3}


def test_no_action_of_queues_or_boundaries_happens_without_its_feature() -> None:
    bare = roomy()
    for name in ("Refill", "Recall"):
        assert not ACTIONS[name].within(bare)
        assert ACTIONS[name].within(ONE)
