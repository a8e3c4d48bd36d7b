"""Each property of overwriting buffers can be broken: by one thing that is wrong."""

from collections.abc import Callable

import pytest
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK
from forebay_spec.kernel import Phase
from forebay_spec.properties import INVARIANTS, STEPS
from forebay_spec.state import FILLING_SLOT, FREE_SLOT, Slot, State

from tests.spec.walking import label, on, roomy, walk

EPOCHS = roomy(order="epochs", prefetch=2)
RING = roomy(order="replacement", prefetch=2)
FULL = ("Arrive(p1,3)", "Publish(p1)")
ONE = ("Arrive(p1,1)", "Publish(p1)")
LEASED = (*ONE, "Ask(c1,lease,1,1)", "Ready(0)", "Arrive(p2,1)", "Publish(p2)")
GOOD = walk(EPOCHS, *LEASED)
Change = Callable[[State], State]


def slots(state: State, number: int, slot: Slot) -> State:
    return state._replace(slots=(*state.slots[:number], slot, *state.slots[number + 1 :]))


def test_a_good_state_passes() -> None:
    assert (set(GOOD.left), GOOD.holds[0].stamps) == ({1}, (1,))
    assert [name for name, row in INVARIANTS.items() if not row.predicate(EPOCHS, GOOD)] == []


@pytest.mark.parametrize(
    "bad",
    [
        GOOD._replace(left=frozenset({2})),  # free
        slots(GOOD, 0, Slot(Phase.LIVE, 0, 1, 1)),  # pinned by a lease that is ready
        slots(GOOD, 0, Slot(Phase.LIVE, 1, 0, 1)),  # used
        slots(GOOD, 1, Slot(Phase.LIVE, 0, 0, 1)),  # as old as another
        GOOD._replace(holds=(GOOD.holds[0]._replace(stamps=(2,)),)),  # another age
        GOOD._replace(holds=(GOOD.holds[0]._replace(state="gathering"),)),  # without a pin
        GOOD._replace(holds=(GOOD.holds[0]._replace(slots=(2,), stamps=(2,)),)),  # it is gone
    ],
)
def test_a_state_with_one_thing_wrong_does_not(bad: State) -> None:
    assert not INVARIANTS["TypeOK"].predicate(EPOCHS, bad)


def test_only_an_epoch_has_something_left_and_only_replacement_draws_twice() -> None:
    ring = walk(RING, *ONE, "Ask(c1,plain,2,1)")
    assert INVARIANTS["DistinctRows"].predicate(RING, ring)
    assert not INVARIANTS["DistinctRows"].predicate(EPOCHS, ring)
    filling = ring._replace(filling=(("p1", (2, 2)),))
    assert not INVARIANTS["DistinctRows"].predicate(RING, filling)
    assert not INVARIANTS["TypeOK"].predicate(RING, ring._replace(left=frozenset({0})))


@pytest.mark.parametrize(
    ("name", "story", "text", "wrong"),
    [
        ("OldestEvicted", FULL, "Arrive(p1,1)", lambda a: slots(a, 1, FILLING_SLOT)._replace(
            slots=(Slot(Phase.LIVE, 0, 0, 1), FILLING_SLOT, a.slots[2]))),  # the youngest but one
        ("OldestEvicted", FULL, "Arrive(p1,1)", lambda a: a._replace(free=(2,))),
        ("NoOverwrite", (*ONE, "Ask(c1,plain,1,1)"), "Arrive(p1,1)",
            lambda a: slots(a, 0, FILLING_SLOT)),
        ("NoOverwrite", FULL, "Arrive(p1,1)", lambda a: slots(a, 2, FREE_SLOT)),
        ("Conservation", FULL, "Arrive(p1,1)", lambda a: slots(a, 2, FREE_SLOT)),
        ("Conservation", LEASED, "Deliver(0)", lambda a: slots(a, 0, FREE_SLOT)),
        ("Conservation", LEASED, "Return(0)", lambda a: slots(a, 0, FILLING_SLOT)),
        ("OncePerEpoch", LEASED, "Return(0)", lambda a: a._replace(left=frozenset({1}))),
        ("OncePerEpoch", LEASED, "Deliver(0)", lambda a: a._replace(left=frozenset({0, 1}))),
        ("OncePerEpoch", LEASED, "Close(draining)", lambda a: a._replace(left=frozenset())),
        ("OncePerEpoch", LEASED, "Ask(c2,plain,1,1)", lambda a: a._replace(left=frozenset({1}))),
        ("OncePerEpoch", LEASED, "Ask(c2,plain,1,1)", lambda a: a._replace(
            holds=(a.holds[0], a.holds[1]._replace(slots=(0,))))),  # it was drawn
        ("ServedWhole", LEASED, "Ask(c2,plain,2,2)", lambda a: a._replace(
            holds=(a.holds[0], a.holds[1]._replace(slots=(1, 0))))),  # one is left
        ("Continuation",
            (*LEASED, "CaptureAsk(p1)", "Capture(p1)", *["CaptureDone(p1)"] * 2,
             "RestoreAsk(p1)", "Load(p1)"),
            "Restore(p1)", lambda a: a._replace(left=frozenset({1}))),
        ("CaptureComplete", (*LEASED, "CaptureAsk(p1)"), "Capture(p1)", lambda a: a._replace(
            saved=a.saved and a.saved._replace(left=frozenset({1})))),
    ],
)  # fmt: skip
def test_a_step_with_one_thing_wrong_does_not_pass(
    name: str, story: tuple[str, ...], text: str, wrong: Change
) -> None:
    before, step, holds = walk(EPOCHS, *story), label(text), STEPS[name].predicate
    after = on(EPOCHS, before, text)
    assert holds(EPOCHS, before, step, after)
    assert not holds(EPOCHS, before, step, wrong(after))


def test_a_new_epoch_makes_every_hold_forget() -> None:
    before = on(EPOCHS, GOOD, "Ask(c2,plain,1,1)", "Ready(1)", "Deliver(1)", "Arrive(p1,1)")
    before = before._replace(left=frozenset())
    step, holds = label("Ask(c2,plain,2,2)"), STEPS["OncePerEpoch"].predicate
    after, *_ = Machine(EPOCHS).apply(before, step)
    assert holds(EPOCHS, before, step, after)
    remembers = (before.holds[0], *after.holds[1:])
    assert not holds(EPOCHS, before, step, after._replace(holds=remembers))


def test_what_is_about_overwriting_buffers_is_not_asked_elsewhere() -> None:
    within = {name: row.within for name, row in INVARIANTS.items()}
    within |= {name: row.within for name, row in STEPS.items()}
    alone = {name for name, applies in within.items() if not applies(QUICK["writers"])}
    assert alone == {"OldestEvicted", "OncePerEpoch", "NoMutualWait"}
    assert all(applies(QUICK["ring"]) for applies in within.values())
