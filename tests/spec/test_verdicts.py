"""What a call gets: the lists of precedence, entry by entry, and who must give way when."""

import pytest
from forebay_spec.actions import verdict
from forebay_spec.kernel import Verdict
from forebay_spec.verdicts import misfit, mutual_wait_victim, waiting

from tests.spec.walking import enabled, gets, on, roomy, walk

ONE = roomy()
SMALL = roomy(capacity=2)
TWICE = roomy(capacity=2, uses=2)

# One record is live and another reserved, so that one slot is free and one record sampleable.
MIXED = ("Arrive(p2,1)", "Publish(p2)", "Arrive(x1,1)")


@pytest.mark.parametrize(
    ("story", "call", "expired", "expected"),
    [
        # Closing comes before the flag, the flag before free space, free space before the deadline.
        ((*MIXED, "SetCancel(t1)", "Close(draining)"), "Arrive(p1,1)", False, "SHUT_DOWN"),
        ((*MIXED, "Close(stopped)"), "Arrive(p1,1)", True, "SHUT_DOWN"),
        ((*MIXED, "SetCancel(t1)"), "Arrive(p1,1)", True, "CANCELLED"),
        ((*MIXED,), "Arrive(p1,1)", True, "SERVE"),
        ((*MIXED,), "Arrive(p1,2)", True, "TIMEOUT"),
        ((*MIXED,), "Arrive(p1,2)", False, "WAIT"),
        # Behind another writer even what fits waits, and expires.
        ((*MIXED, "Arrive(p2,2)"), "Arrive(p1,1)", False, "WAIT"),
        ((*MIXED, "Arrive(p2,2)"), "Arrive(p1,1)", True, "TIMEOUT"),
        # A reader in front is in no writer's way.
        ((*MIXED, "Ask(c2,plain,3,3)"), "Arrive(p1,1)", False, "SERVE"),
    ],
)
def test_a_writer_gets_the_first_that_holds(
    story: tuple[str, ...], call: str, expired: bool, expected: str
) -> None:
    assert gets(ONE, walk(ONE, *story), call, expired=expired) == Verdict[expected]


@pytest.mark.parametrize(
    ("story", "call", "expired", "expected"),
    [
        ((*MIXED, "SetCancel(t1)", "Close(stopped)"), "Ask(c1,plain,1,1)", True, "SHUT_DOWN"),
        ((*MIXED, "SetCancel(t1)", "Close(draining)"), "Ask(c1,plain,1,1)", True, "CANCELLED"),
        ((*MIXED, "SetCancel(t1)"), "Ask(c1,plain,1,1)", False, "CANCELLED"),
        ((*MIXED,), "Ask(c1,plain,3,1)", True, "SERVE"),
        ((*MIXED,), "Ask(c1,plain,3,2)", True, "TIMEOUT"),
        ((*MIXED,), "Ask(c1,plain,3,2)", False, "WAIT"),
        ((*MIXED, "Ask(c2,plain,2,2)"), "Ask(c1,plain,1,1)", False, "WAIT"),
        ((*MIXED, "Arrive(p2,2)"), "Ask(c1,plain,1,1)", False, "SERVE"),
        # While draining the least is what it was as long as something may still be published.
        ((*MIXED, "Close(draining)"), "Ask(c1,plain,2,2)", False, "WAIT"),
        ((*MIXED, "Close(draining)", "Abandon(x1)"), "Ask(c1,plain,2,2)", False, "SERVE"),
        (("Close(draining)",), "Ask(c1,plain,2,2)", True, "SHUT_DOWN"),
        (("Arrive(p2,1)", "Close(draining)"), "Ask(c1,plain,1,1)", False, "WAIT"),
    ],
)
def test_a_reader_gets_the_first_that_holds(
    story: tuple[str, ...], call: str, expired: bool, expected: str
) -> None:
    assert gets(ONE, walk(ONE, *story), call, expired=expired) == Verdict[expected]


def test_a_call_that_has_begun_sees_no_flag_and_no_closing() -> None:
    state = walk(ONE, "Arrive(p1,1)", "SetCancel(t1)", "Close(stopped)")
    assert "Publish(p1)" in enabled(ONE, state)
    assert not {text for text in enabled(ONE, state) if text.startswith(("Cancel", "Refuse"))}


def test_a_ticket_behind_the_head_sees_its_flag_at_once() -> None:
    state = walk(ONE, "Arrive(x1,3)", "Arrive(p2,3)", "Arrive(p1,3)", "SetCancel(t1)")
    assert verdict(ONE, state, "p1") == Verdict.CANCELLED
    assert verdict(ONE, state, "p2") == Verdict.WAIT


def test_nobody_is_judged_who_does_not_wait() -> None:
    with pytest.raises(LookupError, match="p1 does not wait"):
        verdict(ONE, walk(ONE), "p1")


# A mutual wait: three slots, two records are live, a reader wants three, a writer brings two.
STUCK = ("Arrive(p1,2)", "Publish(p1)")


def test_the_later_of_the_two_heads_gives_way() -> None:
    reader_first = walk(ONE, *STUCK, "Ask(c1,plain,3,3)")
    assert gets(ONE, reader_first, "Arrive(p1,2)") == Verdict.MUTUAL_WAIT
    writer_first = walk(ONE, *STUCK, "Arrive(p1,2)")
    assert gets(ONE, writer_first, "Ask(c1,plain,3,3)") == Verdict.MUTUAL_WAIT


def test_a_mutual_wait_beats_the_deadline() -> None:
    state = walk(ONE, *STUCK, "Ask(c1,plain,3,3)")
    assert gets(ONE, state, "Arrive(p1,2)", expired=True) == Verdict.MUTUAL_WAIT


def test_tickets_come_to_wait_for_each_other_when_the_last_hold_ends() -> None:
    state = walk(ONE, *STUCK, "Ask(x1,plain,1,1)", "Arrive(p1,3)", "Ask(c1,plain,2,2)")
    assert mutual_wait_victim(ONE, state) is None
    state = on(ONE, state, "Ready(0)", "Deliver(0)")
    assert mutual_wait_victim(ONE, state) == waiting(state, "c1")
    assert on(ONE, state, "Refuse(c1)").tickets == (waiting(state, "p1"),)


@pytest.mark.parametrize(
    "hope",
    [
        ("Arrive(p2,1)",),  # somebody fills
        ("Ask(x1,plain,1,1)",),  # a batch gathers
        ("Ask(x1,lease,1,1)", "Ready(0)"),  # a lease whose owner does not wait
    ],
)
def test_there_is_no_mutual_wait_while_somebody_can_go_on(hope: tuple[str, ...]) -> None:
    state = walk(ONE, *STUCK, *hope, "Arrive(p1,3)")
    assert gets(ONE, state, "Ask(c1,plain,3,3)") == Verdict.WAIT


def test_a_head_that_is_about_to_leave_takes_part_in_no_mutual_wait() -> None:
    state = walk(ONE, *STUCK, "Arrive(p1,2)", "SetCancel(t1)")
    assert gets(ONE, state, "Ask(x1,plain,3,3)") == Verdict.WAIT


@pytest.mark.parametrize("dead", ["c1", "x1"])
def test_there_is_no_mutual_wait_while_somebody_is_dead(dead: str) -> None:
    state = walk(ONE, *STUCK, "Ask(x1,lease,1,1)", "Ready(0)", "Ask(c1,plain,2,2)")
    state = on(ONE, state, "Ask(x1,plain,2,1)", f"Kill({dead})")
    assert gets(ONE, state, "Arrive(p1,2)") == Verdict.WAIT
    alive = state._replace(dead=frozenset())
    assert gets(ONE, alive, "Arrive(p1,2)") == Verdict.MUTUAL_WAIT


def test_a_dead_head_blocks_those_behind_it() -> None:
    state = walk(ONE, *STUCK, "Arrive(p2,2)", "Kill(p2)")
    assert gets(ONE, state, "Arrive(p1,1)") == Verdict.WAIT
    assert gets(ONE, on(ONE, state, "Recover(p2)"), "Arrive(p1,1)") == Verdict.SERVE


def test_a_call_that_never_fits_is_told_though_somebody_is_dead() -> None:
    state = walk(SMALL, "Arrive(x1,1)", "Publish(x1)", "Ask(x1,lease,1,1)", "Ready(0)")
    state = on(SMALL, state, "Arrive(p1,1)", "Kill(p1)")
    assert gets(SMALL, state, "Arrive(x1,2)") == Verdict.MUTUAL_WAIT


def test_a_closed_buffer_has_no_mutual_wait() -> None:
    state = walk(ONE, *STUCK, "Ask(c1,plain,3,3)", "Arrive(p2,1)", "Close(stopped)")
    assert mutual_wait_victim(ONE, state) is None
    assert verdict(ONE, state, "c1") == Verdict.SHUT_DOWN


def test_two_who_wait_for_each_others_leases_are_noticed_though_nobody_writes() -> None:
    state = walk(SMALL, "Arrive(p1,2)", "Publish(p1)")
    state = on(SMALL, state, "Ask(c1,lease,1,1)", "Ready(0)", "Ask(c2,lease,1,1)", "Ready(1)")
    state = on(SMALL, state, "Ask(c1,plain,1,1)")
    assert verdict(SMALL, state, "c1") == Verdict.WAIT
    # c1 is the head, so it is c1 that gives way, and c2 waits on.
    state = on(SMALL, state, "Ask(c2,plain,1,1)")
    assert verdict(SMALL, state, "c1") == Verdict.MUTUAL_WAIT
    assert verdict(SMALL, state, "c2") == Verdict.WAIT


def test_a_lone_writer_waits_as_long_as_a_newcomer_could_draw() -> None:
    state = walk(SMALL, "Arrive(p1,2)", "Publish(p1)", "Arrive(p1,1)")
    assert verdict(SMALL, state, "p1") == Verdict.WAIT


def test_a_writer_that_never_fits_beside_its_own_lease_is_told() -> None:
    state = walk(SMALL, "Arrive(x1,1)", "Publish(x1)", "Ask(x1,lease,1,1)", "Ready(0)")
    assert gets(SMALL, state, "Arrive(x1,2)") == Verdict.MUTUAL_WAIT
    assert gets(SMALL, state, "Arrive(x1,1)") == Verdict.SERVE
    assert gets(SMALL, state, "Arrive(p1,2)") == Verdict.WAIT


def test_two_leases_on_one_record_keep_one_slot() -> None:
    state = walk(TWICE, "Arrive(x1,1)", "Publish(x1)", "Ask(x1,lease,1,1)", "Ready(0)")
    state = on(TWICE, state, "Ask(x1,lease,1,1)", "Ready(1)")
    assert state.slots[0].pins == 2
    assert gets(TWICE, state, "Arrive(x1,1)") == Verdict.SERVE
    assert gets(TWICE, state, "Arrive(x1,2)") == Verdict.MUTUAL_WAIT


def test_a_lease_blocks_its_own_reader_only_while_it_spends_the_record() -> None:
    state = walk(SMALL, "Arrive(x1,2)", "Publish(x1)", "Ask(x1,lease,1,1)", "Ready(0)")
    assert gets(SMALL, state, "Ask(x1,plain,2,2)") == Verdict.MUTUAL_WAIT
    assert gets(SMALL, state, "Ask(x1,plain,2,1)") == Verdict.SERVE
    state = walk(TWICE, "Arrive(x1,2)", "Publish(x1)", "Ask(x1,lease,1,1)", "Ready(0)")
    assert gets(TWICE, state, "Ask(x1,plain,2,2)") == Verdict.SERVE


def test_a_use_that_another_hold_may_return_does_not_block() -> None:
    state = walk(TWICE, "Arrive(x1,2)", "Publish(x1)", "Ask(x1,lease,2,2)", "Ready(0)")
    state = on(TWICE, state, "Ask(c1,plain,2,2)", "Ask(x1,plain,1,1)")
    assert not misfit(TWICE, state, waiting(state, "x1"))
    assert verdict(TWICE, state, "x1") == Verdict.WAIT
    # Once the other batch is delivered, only the caller's own lease is left, and it blocks.
    state = on(TWICE, state, "Ready(1)", "Deliver(1)")
    assert misfit(TWICE, state, waiting(state, "x1"))
    assert verdict(TWICE, state, "x1") == Verdict.MUTUAL_WAIT


def test_a_dropped_record_blocks_the_reader_that_leases_it() -> None:
    state = walk(TWICE, "Arrive(x1,1)", "Publish(x1)", "Ask(x1,lease,1,1)", "Ready(0)", "Empty")
    assert gets(TWICE, state, "Ask(x1,plain,2,2)") == Verdict.MUTUAL_WAIT
    assert gets(TWICE, state, "Ask(x1,plain,2,1)") == Verdict.WAIT
