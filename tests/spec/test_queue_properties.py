"""Each property of queues, captures and restores can be broken: by one thing that is wrong."""

from collections.abc import Callable

import pytest
from forebay_spec.kernel import Closing, Phase
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS, fair_choice
from forebay_spec.state import FREE_SLOT, NO_BOUNDARY, Boundary, Saved, Slot, State

from tests.spec.walking import label, on, roomy, walk

TWO = roomy(uses=2, prefetch=2)
TOGETHER = roomy(uses=2, prefetch=2, together=True)
FULL = ("Arrive(p1,3)", "Publish(p1)")
QUEUE = (*FULL, "Refill(c1)", "Ready(0)", "Refill(c1)", "Ready(1)")
COPY = (*FULL, "CaptureAsk(p2)", "Capture(p2)")
SPENT = (
    *(*FULL, "Ask(c1,plain,3,3)", "Ready(0)", "Deliver(0)", "Ask(c1,plain,2,2)", "Ready(0)"),
    *("CaptureAsk(p2)", "Capture(p2)", "Deliver(0)"),
)
SAVED = (*QUEUE, "CaptureAsk(c1)", "Capture(c1)", *["CaptureDone(c1)"] * 3)
LOADING = (*SAVED, "RestoreAsk(x1)", "Ask(c2,plain,3,3)", "Load(x1)")
Change = Callable[[State], State]

GOOD = walk(TWO, *QUEUE, "CaptureAsk(c1)", "Capture(c1)")


def slots(state: State, number: int, slot: Slot) -> State:
    return state._replace(slots=(*state.slots[:number], slot, *state.slots[number + 1 :]))


def saved(state: State, **changes: object) -> State:
    """Return the state with a snapshot in which something is otherwise."""
    assert state.saved is not None
    return state._replace(saved=state.saved._replace(**changes))  # type: ignore[arg-type]  # a table


def snapshot(state: State) -> Saved:
    assert state.saved is not None
    return state.saved


def test_a_good_state_passes() -> None:
    assert len(GOOD.boundary.slots) == 3
    assert [name for name, row in INVARIANTS.items() if not row.predicate(TWO, GOOD)] == []


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("TypeOK", GOOD._replace(boundary=Boundary("copying", "p9", (0,)))),  # nobody
        ("TypeOK", GOOD._replace(boundary=Boundary("copying", "c1", ()))),  # copies nothing
        ("TypeOK", GOOD._replace(boundary=Boundary("restoring", "c1", (0,)))),  # copies
        ("TypeOK", GOOD._replace(boundary=Boundary("copying", "c1", (0, 0)))),  # twice
        ("TypeOK", walk(TWO)._replace(boundary=Boundary("copying", "c1", (0,)))),  # free
        ("TypeOK", GOOD._replace(boundary=Boundary("none", "c1", ()))),
        (
            "TypeOK",
            on(TWO, GOOD, "Arrive(p1,1)")._replace(boundary=Boundary("capturing", "p1", ())),
        ),
        ("TypeOK", GOOD._replace(holds=(GOOD.holds[0]._replace(owner="q9"), GOOD.holds[1]))),
        ("TypeOK", slots(GOOD, 0, Slot(Phase.DROPPED, 0, 1, 0))),  # dropped and in the queue
        ("UseBound", slots(GOOD._replace(boundary=NO_BOUNDARY), 2, Slot(Phase.LIVE, 2, 0, 3))),
        ("CaptureAtomic", saved(GOOD, free=(0,))),
        ("CaptureAtomic", saved(GOOD, queue=())),
        ("CaptureAtomic", saved(GOOD, fresh=1)),
        ("CaptureAtomic", saved(GOOD, queue=(((0, 0), (1, 1)),))),
        ("CaptureAtomic", saved(GOOD, slots=(*GOOD.slots[:2], Slot(Phase.FILLING, 0, 0, 0)))),
    ],
)
def test_a_state_with_one_thing_wrong_does_not(name: str, bad: State) -> None:
    assert not INVARIANTS[name].predicate(TWO, bad)


def test_a_process_has_no_more_batches_than_it_may() -> None:
    one = roomy(uses=2, prefetch=1)
    assert not INVARIANTS["TypeOK"].predicate(one, GOOD)
    pairs = roomy(uses=2, prefetch=2, batch_size=2)
    assert not INVARIANTS["TypeOK"].predicate(pairs, GOOD)


def test_a_spent_record_may_stay_while_it_is_still_to_be_copied() -> None:
    state = walk(TWO, *SPENT)
    assert INVARIANTS["UseBound"].predicate(TWO, state)
    assert not INVARIANTS["UseBound"].predicate(TWO, state._replace(boundary=NO_BOUNDARY))


@pytest.mark.parametrize(
    ("name", "story", "text", "wrong"),
    [
        ("NoOverwrite", COPY, "Empty", lambda a: slots(a, 0, FREE_SLOT)),
        ("NoOverwrite", SPENT, "Close(draining)", lambda a: slots(a, 0, FREE_SLOT)),
        ("NoOverwrite", SPENT, "Arrive(p1,1)", lambda a: slots(a, 0, Slot(Phase.FILLING, 0, 0, 0))),
        ("NoOverwrite", SAVED, "Empty", lambda a: slots(a, 0, Slot(Phase.FILLING, 0, 0, 0))),
        ("Conservation", COPY, "CaptureDone(p2)", lambda a: slots(a, 0, FREE_SLOT)),
        ("Conservation", SPENT, "CaptureDone(p2)", lambda a: slots(a, 1, FREE_SLOT)),
        ("Conservation", QUEUE, "Return(0)", lambda a: slots(a, 0, Slot(Phase.LIVE, 1, 0, 1))),
        (
            "Conservation",
            (*SAVED, "RestoreAsk(x1)"),
            "Load(x1)",
            lambda after: slots(after, 0, Slot(Phase.LIVE, 0, 0, 1)),
        ),
        ("LeavesNoTrace", FULL, "CaptureAsk(c1)", lambda a: slots(a, 0, FREE_SLOT)),
        ("LeavesNoTrace", FULL, "RestoreAsk(c1)", lambda a: a._replace(free=(0,))),
        ("TakesTheOldest", QUEUE, "Ask(c1,plain,1,1)", lambda a: a._replace(holds=a.holds[::-1])),
        ("TakesTheOldest", QUEUE, "Ask(c1,plain,1,1)", lambda a: slots(a, 0, FREE_SLOT)),
        (
            "TakesTheOldest",
            QUEUE,
            "Ask(c1,plain,1,1)",
            lambda a: a._replace(holds=(a.holds[0]._replace(kind="lease"), a.holds[1])),
        ),
        (
            "TakesTheOldest",
            QUEUE,
            "Ask(c2,plain,1,1)",
            lambda a: a._replace(
                holds=(*a.holds[:2], a.holds[2]._replace(owner="c2", kind="prefetched"))
            ),
        ),
        (
            "TakesTheOldest",
            QUEUE,
            "Close(draining)",
            lambda a: a._replace(holds=(a.holds[0]._replace(owner="c1", kind="plain"), a.holds[1])),
        ),
        (
            "RejectUnchanged",
            (*SAVED, "RestoreAsk(x1)"),
            "Reject(x1)",
            lambda a: a._replace(fresh=1),
        ),
        (
            "RejectUnchanged",
            (*SAVED, "RestoreAsk(x1)"),
            "Reject(x1)",
            lambda a: saved(a, free=(0,)),
        ),
        ("Continuation", LOADING, "Restore(x1)", lambda a: a._replace(tickets=())),
        ("Continuation", LOADING, "Restore(x1)", lambda a: a._replace(holds=a.holds[::-1])),
        ("Continuation", LOADING, "Restore(x1)", lambda a: a._replace(closing=Closing.DRAINING)),
        ("Continuation", LOADING, "Restore(x1)", lambda a: slots(a, 2, FREE_SLOT)),
        (
            "DeadLoader",
            (*LOADING, "Kill(x1)"),
            "Recover(x1)",
            lambda after: after._replace(closing=Closing.DRAINING),
        ),
        (
            "DeadLoader",
            (*LOADING, "Kill(x1)"),
            "Recover(x1)",
            lambda after: slots(after, 0, Slot(Phase.LIVE, 0, 0, 1)),
        ),
        (
            "RecoversTheDead",
            (*COPY, "Kill(p2)"),
            "Recover(p2)",
            lambda after: after._replace(boundary=Boundary("copying", "p2", (2,))),
        ),
        (
            "RecoversTheDead",
            (*COPY, "Ask(c1,plain,1,1)", "Kill(c1)"),
            "Recover(c1)",
            lambda after: after._replace(boundary=NO_BOUNDARY),
        ),
        (
            "RecoversTheDead",
            (*QUEUE, "Kill(c1)"),
            "Recover(c1)",
            lambda after: after._replace(holds=walk(TWO, *QUEUE).holds),
        ),
        (
            "FifoSampling",
            ("Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,2,2)"),
            "Close(draining)",
            lambda after: after._replace(
                holds=on(TWO, walk(TWO, *FULL), "Refill(c1)").holds  # the same name
            ),
        ),
        (
            "ServedWhole",
            FULL,
            "Refill(c1)",
            lambda a: a._replace(holds=(a.holds[0]._replace(slots=(0, 1)),)),
        ),
        (
            "ServedWhole",
            QUEUE,
            "Ask(c1,plain,2,1)",
            lambda a: a._replace(holds=(a.holds[0]._replace(owner="c1", kind="plain"), a.holds[1])),
        ),
    ],
)
def test_a_step_with_one_thing_wrong_does_not_pass(
    name: str, story: tuple[str, ...], text: str, wrong: Change
) -> None:
    before, step, holds = walk(TWO, *story), label(text), STEPS[name].predicate
    after = on(TWO, before, text)
    assert holds(TWO, before, step, after)
    assert not holds(TWO, before, step, wrong(after))


CAPTURING = (
    *("Arrive(p1,2)", "Publish(p1)", "Arrive(p1,1)", "Refill(q1)", "Ready(0)"),
    *("Ask(c1,lease,2,2)", "Ready(1)", "CaptureAsk(p2)"),
)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: a._replace(tickets=()) if a.tickets else a._replace(fresh=1),
        lambda a: a._replace(saved=None),
        lambda a: saved(a, queue=()),
        lambda a: saved(a, queue=(((0,), (2,)),)),  # its record was the oldest
        lambda a: saved(a, slots=(*snapshot(a).slots[:2], Slot(Phase.LIVE, 0, 0, 4))),  # fills
        lambda a: saved(a, slots=(FREE_SLOT, *snapshot(a).slots[1:])),
        lambda a: saved(a, slots=a.slots),  # with the uses of the lease
        lambda a: saved(
            a,
            slots=(
                snapshot(a).slots[0]._replace(stamp=2),
                snapshot(a).slots[1]._replace(stamp=3),
                FREE_SLOT,
            ),
        ),
    ],
)
def test_a_snapshot_with_one_thing_wrong_does_not_pass(wrong: Change) -> None:
    before, step = walk(TOGETHER, *CAPTURING), label("Capture(p2)")
    after = on(TOGETHER, before, "Capture(p2)")
    assert snapshot(after).slots == (
        Slot(Phase.LIVE, 1, 1, 3),
        Slot(Phase.LIVE, 0, 0, 2),
        FREE_SLOT,
    )
    holds = STEPS["CaptureComplete"].predicate
    assert holds(TOGETHER, before, step, after)
    assert not holds(TOGETHER, before, step, wrong(after))


@pytest.mark.parametrize(
    ("story", "text", "expected"),
    [
        (QUEUE, "Return(0)", None),  # nobody has to flush a queue
        ((*FULL, "Refill(c1)"), "Ready(0)", ("Ready", "process c1")),
        ((*FULL, "Ask(c1,plain,1,1)"), "Ready(0)", ("Ready", "c1")),
        (QUEUE, "Recall", ("Recall", "")),
        (FULL, "Refill(c1)", None),
        (FULL, "CaptureAsk(c1)", None),
        (FULL, "Capture(c1)", ("Capture", "c1")),
        (FULL, "CaptureDone(c1)", ("CaptureDone", "c1")),
        (FULL, "Load(c1)", ("Load", "c1")),
        (FULL, "Restore(c1)", ("Restore", "c1")),
        (FULL, "Reject(c1)", None),
    ],
)
def test_what_goes_on_for_ever(
    story: tuple[str, ...], text: str, expected: tuple[str, str] | None
) -> None:
    assert fair_choice("BufferGoesOn", walk(TWO, *story), label(text)) == expected


def test_who_captures_is_owed_an_end() -> None:
    owed = LIVENESS["CaptureEnds"].owed
    assert owed(TWO, walk(TWO, *FULL)) == frozenset()
    assert owed(TWO, walk(TWO, *FULL, "CaptureAsk(p2)")) == {"p2"}
    assert owed(TWO, walk(TWO, *COPY)) == {"p2"}
    assert owed(TWO, walk(TWO, *FULL, "RestoreAsk(p2)")) == frozenset()
