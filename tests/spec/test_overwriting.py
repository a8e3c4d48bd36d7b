"""Overwriting buffers: whom a writer evicts, what pins a record, and what is left of an epoch."""

from forebay_spec.actions import Machine
from forebay_spec.kernel import Phase, Verdict
from forebay_spec.state import FILLING_SLOT, FREE_SLOT, Hold, Slot, State, room

from tests.spec.walking import ages, enabled, gets, label, on, roomy, walk

LIVE, DROPPED = Phase.LIVE, Phase.DROPPED
RING = roomy(order="replacement", prefetch=2)
EPOCHS = roomy(order="epochs", prefetch=2)
WHOLE = roomy(order="epochs", drop_last=True)
FULL = ("Arrive(p1,3)", "Publish(p1)")


def drawn(state: State, *slots: int) -> State:
    """Return the outcome of c1's lease of so many records that has these slots."""
    size = len(slots)
    outcomes = Machine(EPOCHS).apply(state, label(f"Ask(c1,lease,{size},{size})"))
    (found,) = [after for after in outcomes if after.holds[-1].slots == slots]
    return found


def test_a_writer_takes_free_slots_and_then_those_of_the_oldest_records() -> None:
    state = walk(RING, "Arrive(p1,2)", "Publish(p1)", "Arrive(p1,2)")
    assert state.filling == (("p1", (2, 0)),)
    assert state.slots == (FILLING_SLOT, Slot(LIVE, 0, 0, 1), FILLING_SLOT)
    after = on(RING, state, "Publish(p1)")
    assert ages(after) == {1: 1, 2: 2, 0: 3}


def test_abandoned_slots_are_free_and_the_evicted_do_not_come_back() -> None:
    state = walk(RING, *FULL, "Arrive(p1,2)", "Abandon(p1)")
    assert (state.free, state.fresh) == ((0, 1), 0)
    assert state.slots == (FREE_SLOT, FREE_SLOT, Slot(LIVE, 0, 0, 1))


def test_a_record_that_is_gathered_is_not_evicted_and_one_that_was_gathered_is() -> None:
    state = drawn(walk(EPOCHS, *FULL), 0)
    assert room(EPOCHS, state) == 2
    assert gets(EPOCHS, state, "Arrive(p1,3)") == Verdict.WAIT
    assert on(EPOCHS, state, "Arrive(p1,2)").filling == (("p1", (1, 2)),)
    after = on(EPOCHS, state, "Ready(0)", "Arrive(p1,3)")
    assert after.filling == (("p1", (0, 1, 2)),)
    assert after.holds == (Hold("c1", "lease", (0,), (0,), "ready"),)  # it remembers nothing now


def test_a_record_that_is_still_to_be_copied_is_not_evicted() -> None:
    state = walk(RING, *FULL, "CaptureAsk(c1)", "Capture(c1)")
    assert room(RING, state) == 0
    state = on(RING, state, "CaptureDone(c1)", "Arrive(p1,1)")
    assert (state.filling, room(RING, state)) == ((("p1", (0,)),), 0)


def test_a_batch_with_replacement_pins_each_record_once_and_uses_none_up() -> None:
    state = walk(RING, "Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,3,1)")
    assert state.holds == (Hold("c1", "plain", (0, 0, 0), (0, 0, 0), "gathering"),)
    assert state.slots[0] == Slot(LIVE, 0, 1, 1)
    assert on(RING, state, "Ready(0)").slots[0] == Slot(LIVE, 0, 0, 1)
    dropped = on(RING, state, "Empty")
    assert dropped.slots[0] == Slot(DROPPED, 0, 1, 0)
    after = on(RING, dropped, "Ready(0)")
    assert (after.slots[0], after.free) == (FREE_SLOT, (0, 1, 2))
    assert on(RING, after, "Deliver(0)").holds == ()


def test_with_replacement_every_batch_is_possible() -> None:
    state = walk(RING, "Arrive(p1,2)", "Publish(p1)")
    found = Machine(RING).apply(state, label("Ask(c1,plain,2,2)"))
    assert [after.holds[0].slots for after in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_draw_takes_what_is_left_of_the_epoch_and_then_begins_the_next() -> None:
    state = walk(EPOCHS, *FULL)
    assert state.left == {0, 1, 2}
    state = on(EPOCHS, drawn(state, 1, 0), "Ready(0)")
    assert state.left == {2}
    short = on(EPOCHS, state, "Ask(c2,plain,2,2)")  # 2 are sampleable, but one is left
    assert (short.holds[1].slots, short.left) == ((2,), frozenset())
    first, *_ = Machine(EPOCHS).apply(
        on(EPOCHS, short, "Ready(1)", "Deliver(1)"), label("Ask(c2,plain,2,2)")
    )
    assert first.holds[0].stamps == (0, 0)  # the lease is of the epoch before
    assert first.holds[1].slots == (0, 1)
    assert first.left == {2}


def test_a_short_last_batch_can_be_left_out() -> None:
    state, *_ = Machine(WHOLE).apply(walk(WHOLE, *FULL), label("Ask(c1,plain,2,2)"))
    assert state.left == {2}
    batches = Machine(WHOLE).apply(state, label("Ask(c2,plain,2,2)"))
    assert len(batches) == 6
    assert {len(after.left) for after in batches} == {1}


def test_a_returned_batch_goes_back_into_its_own_epoch_only() -> None:
    leased = on(EPOCHS, drawn(walk(EPOCHS, *FULL), 1, 0), "Ready(0)")
    assert on(EPOCHS, leased, "Return(0)").left == {0, 1, 2}
    later = on(EPOCHS, leased, "Ask(c2,plain,1,1)", "Ready(1)", "Deliver(1)")
    begun, *_ = Machine(EPOCHS).apply(later, label("Ask(c2,plain,3,3)"))
    assert on(EPOCHS, begun, "Return(0)").left == begun.left == frozenset()


def test_what_was_evicted_meanwhile_does_not_come_back() -> None:
    leased = on(EPOCHS, drawn(walk(EPOCHS, *FULL), 1, 0), "Ready(0)", "Arrive(p1,1)")
    assert leased.holds[0].stamps == (1, 0)
    assert on(EPOCHS, leased, "Publish(p1)", "Return(0)").left == {0, 1, 2}
    assert on(EPOCHS, leased, "Return(0)").left == {1, 2}


def test_empty_leaves_nothing_and_publish_adds_to_what_is_left() -> None:
    state = walk(EPOCHS, *FULL, "Empty")
    assert state.left == frozenset()
    assert on(EPOCHS, state, "Arrive(p1,1)", "Publish(p1)").left == {0}


def test_a_snapshot_has_what_is_left_when_everything_else_is_given_back() -> None:
    state = on(EPOCHS, drawn(walk(EPOCHS, *FULL), 1, 0), "Ready(0)", "Refill(c2)", "Ready(1)")
    assert (state.left, state.holds[1].slots) == (frozenset(), (2,))
    state = on(EPOCHS, state, "CaptureAsk(c2)", "Capture(c2)", *["CaptureDone(c2)"] * 3)
    assert state.saved is not None
    assert state.saved.left == {0, 1}
    assert state.saved.queue == (((2,), (3,)),)
    loading = on(EPOCHS, state, "RestoreAsk(c2)", "Load(c2)")
    assert loading.left == frozenset()
    after = on(EPOCHS, loading, "Restore(c2)")
    assert after.left == {0, 1}
    assert after.holds == (Hold("c2", "prefetched", (2,), (3,), "ready"),)
    assert on(EPOCHS, after, "Return(0)").left == {0, 1, 2}


def test_own_leases_are_in_nobodys_way() -> None:
    state = on(EPOCHS, drawn(walk(EPOCHS, *FULL), 0, 1, 2), "Ready(0)")
    assert gets(EPOCHS, state, "Ask(c1,plain,3,3)") == Verdict.SERVE
    assert gets(EPOCHS, on(EPOCHS, state, "Empty"), "Ask(c1,plain,3,3)") == Verdict.WAIT


def test_an_actor_asks_for_one_lease_at_a_time() -> None:
    state, *_ = Machine(EPOCHS).apply(walk(EPOCHS, *FULL), label("Ask(c1,lease,1,1)"))
    asks = {text for text in enabled(EPOCHS, on(EPOCHS, state, "Ready(0)")) if "Ask(" in text}
    assert "Ask(c1,plain,1,1)" in asks
    assert not {text for text in asks if text.startswith("Ask(c1,lease")}
    assert "Ask(c2,lease,1,1)" in asks


def test_a_dead_actor_gives_its_pins_back() -> None:
    state = on(EPOCHS, drawn(walk(EPOCHS, *FULL), 1, 0), "Kill(c1)")
    assert room(EPOCHS, state) == 1
    after = on(EPOCHS, state, "Recover(c1)")
    assert (room(EPOCHS, after), after.holds) == (3, ())
    assert after.left == {0, 1, 2}
