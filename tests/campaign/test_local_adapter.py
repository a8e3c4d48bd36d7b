"""The buffer on threads follows given paths of the specification, and shows what it did."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest
from forebay._bag import Bag
from forebay_models.adapters.adapter import (
    AFTER_COPY,
    IN_TRANSFORM,
    INTERRUPTED,
    LATE,
    USUAL,
    Adapter,
    Mismatch,
    drawing,
    has_manner,
    slots_of,
)
from forebay_models.adapters.local import LocalAdapter
from forebay_models.adapters.on_device import SimulatedAdapter
from forebay_models.adapters.records import STORAGES, TORN, batch_of, numbers_in
from forebay_models.campaign.driver import Exercise
from forebay_models.campaign.replay import Move, walk
from forebay_models.campaign.settings import Setting
from forebay_models.targets import LOCAL, StorageKind
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, Request
from forebay_spec.kernel import Closing, Verdict
from forebay_spec.state import initial

# What they do is in test_queues.py.
ABOUT_QUEUES = {
    *("Refill", "Recall", "CaptureAsk", "Capture", "CaptureDone"),
    *("RestoreAsk", "Load", "Restore", "Reject"),
}
BOUNDS = Bounds(
    name="paths",
    capacity=2,
    uses=2,
    producers=("p1", "p2"),
    readers=("c1", "c2"),
    write_sizes=(1, 2),
    requests=(Request("plain", 1, 1), Request("plain", 2, 1), Request("lease", 2, 2)),
    token_of=(("p1", "t1"),),
    features=LOCAL.features,
    closings=(Closing.DRAINING, Closing.STOPPED),
)


def move(text: str, manner: str = USUAL) -> Move:
    """Return a step from its label's text."""
    name, _, rest = text.partition("(")
    args = rest.rstrip(")").split(",") if rest else []
    return Move(Label(name, tuple(int(arg) if arg.isdigit() else arg for arg in args)), manner)


HERE = [storage for storage in STORAGES if storage != "cuda"]


def made(bounds: Bounds, storage: StorageKind, seed: int = 0) -> LocalAdapter:
    kind = SimulatedAdapter if storage == "simulated" else LocalAdapter
    return kind(bounds, storage, seed)


def start(setting: Setting) -> Adapter:
    return made(*setting)


PATH = [
    move("Arrive(p1,2)"),
    move("Abandon(p1)"),
    move("Arrive(p1,1)"),
    move("Abandon(p1)", AFTER_COPY),
    move("Arrive(p1,2)"),
    move("Arrive(p2,1)", LATE),
    move("Publish(p1)"),
    move("Ask(c1,plain,2,1)"),
    move("Fail(0)", IN_TRANSFORM),
    move("Return(0)"),
    move("Ask(c1,lease,2,2)"),
    move("Ready(0)"),
    move("Return(0)"),
    move("Ask(c1,lease,2,2)"),
    move("Ready(0)"),
    move("Ask(c2,plain,1,1)"),
    move("Ready(1)"),
    move("Deliver(0)"),
    move("Deliver(0)"),
    move("Admit(p2)"),
    move("Publish(p2)"),
    move("Empty"),
    move("Ask(c1,plain,1,1)"),
    move("Expire(c1)"),
    move("Ask(c1,plain,1,1)", LATE),
    move("Expire(c1)", INTERRUPTED),
    move("Ask(c1,plain,1,1)"),
    move("Arrive(p2,2)"),
    move("Arrive(p1,1)"),
    move("SetCancel(t1)"),
    move("Cancel(p1)"),
    move("Publish(p2)"),
    move("Draw(c1)"),
    move("Ready(0)"),
    move("Deliver(0)"),
    move("Arrive(p2,1)"),
    move("Close(draining)"),
    move("Refuse(p2)"),
    move("Close(stopped)"),
]


@pytest.mark.parametrize("storage", HERE)
def test_a_path_with_every_action_of_callers_is_followed(storage: StorageKind) -> None:
    exercise = Exercise()
    failure = walk(start, Setting(BOUNDS, storage, 0), PATH, exercise=exercise)
    assert failure is None
    assert set(exercise.actions) == set(LOCAL.actions) - ABOUT_QUEUES
    assert exercise.steps == len(PATH)


def test_a_step_that_the_specification_does_not_allow_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Admit\(p1\) cannot happen here"):
        walk(start, Setting(BOUNDS, "tensor", 0), [move("Admit(p1)")])


def test_steps_that_cannot_happen_may_be_left_out() -> None:
    path = [move("Admit(p1)"), move("Arrive(p1,1)"), move("Draw(c1)"), move("Publish(p1)")]
    exercise = Exercise()
    setting = Setting(BOUNDS, "tensor", 0)
    assert walk(start, setting, path, exercise=exercise, leave_out=True) is None
    assert exercise.actions == {"Arrive": 1, "Publish": 1}


@pytest.fixture(params=HERE)
def adapter(request: pytest.FixtureRequest) -> Iterator[LocalAdapter]:
    adapter = made(BOUNDS, request.param)
    yield adapter
    adapter.close()


def test_a_new_buffer_is_in_the_initial_state(adapter: LocalAdapter) -> None:
    assert adapter.rest(()).state == initial(BOUNDS)
    counts = adapter.counts()
    assert (counts["len"], counts["capacity"], counts["admitted"]) == (0, 2, 0)


def test_a_step_shows_its_verdict_and_the_state_at_the_end_of_its_section(
    adapter: LocalAdapter,
) -> None:
    seen = adapter.apply(Label("Arrive", ("p1", 2)))
    assert seen.verdict is Verdict.SERVE
    assert seen.between == (seen.state,)
    assert seen.state.filling == (("p1", (0, 1)),)


def test_records_and_slots_are_those_that_were_written(adapter: LocalAdapter) -> None:
    adapter.apply(Label("Arrive", ("p1", 2)))
    written = adapter.apply(Label("Publish", ("p1",)))
    assert (written.slots, written.records) == ((0, 1), (1, 2))
    adapter.apply(Label("Ask", ("c1", "lease", 2, 2)))
    leased = adapter.apply(Label("Ready", (0,)))
    assert (leased.slots, leased.records) == ((0, 1), (1, 2))
    adapter.apply(Label("Deliver", (0,)))
    adapter.apply(Label("Ask", ("c2", "plain", 1, 1)))
    assert adapter.apply(Label("Ready", (0,))).records is None
    assert adapter.apply(Label("Deliver", (0,))).records == (1,)


def test_a_call_that_waits_is_asleep_until_it_is_due(adapter: LocalAdapter) -> None:
    assert adapter.apply(Label("Ask", ("c1", "plain", 1, 1))).verdict is Verdict.WAIT
    adapter.rest(())
    with pytest.raises(Mismatch, match="lost wake-up: c1's call has to go on, but it is asleep"):
        adapter.rest({"c1"})
    adapter.apply(Label("Arrive", ("p1", 1)))
    adapter.apply(Label("Publish", ("p1",)))
    adapter.rest({"c1"})
    assert adapter.apply(Label("Draw", ("c1",))).verdict is Verdict.SERVE


def test_who_should_have_waited_on_but_did_not_is_named(adapter: LocalAdapter) -> None:
    adapter.apply(Label("Ask", ("c1", "plain", 1, 1)))
    adapter.apply(Label("Arrive", ("p1", 1)))
    adapter.apply(Label("Publish", ("p1",)))
    with pytest.raises(Mismatch, match='c1 was woken, has to wait on, but is parked at "drawn"'):
        adapter.rest(())


def test_nothing_is_left_after_a_close_in_the_middle_of_everything(
    adapter: LocalAdapter,
) -> None:
    for label in (
        Label("Arrive", ("p1", 2)),
        Label("Publish", ("p1",)),
        Label("Ask", ("c1", "lease", 2, 2)),
        Label("Ready", (0,)),
        Label("Ask", ("c2", "lease", 2, 2)),
        Label("Arrive", ("p2", 1)),
    ):
        adapter.apply(label)
    adapter.close()
    ledger = adapter._core.ledger
    assert (ledger.tickets(), ledger.holds(), ledger.fillings()) == ([], [], {})


@pytest.mark.parametrize("storage", STORAGES)
def test_records_tell_their_number_and_whether_they_are_whole(storage: StorageKind) -> None:
    assert numbers_in(storage, batch_of(storage, (3, 1))) == (3, 1)
    first, second = batch_of(storage, (1, 2)), batch_of(storage, (5, 6))
    if storage != "list":
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        torn: object = {"number": first["number"], "copies": second["copies"]}
    else:
        assert isinstance(first, list)
        torn = [{"number": record["number"], "text": "record 9"} for record in first]
    assert numbers_in(storage, torn) == (TORN, TORN)


DICE = Bounds(
    name="steered",
    capacity=4,
    order="random",
    producers=("p1",),
    readers=("c1",),
    write_sizes=(4,),
    requests=(Request("plain", 3, 3),),
)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_draw_at_random_is_steered_to_any_slots_in_any_order(seed: int) -> None:
    for wanted in permutations(range(4), 3):
        adapter = LocalAdapter(DICE, seed=seed)
        try:
            adapter.apply(Label("Arrive", ("p1", 4)))
            adapter.apply(Label("Publish", ("p1",)))
            adapter.apply(Label("Ask", ("c1", "plain", 3, 3)), drawing(wanted))
            adapter.apply(Label("Ready", (0,)))
            given = adapter.apply(Label("Deliver", (0,)))
        finally:
            adapter.close()
        assert given.slots == wanted
        assert given.records == tuple(slot + 1 for slot in wanted)


def test_a_draw_that_cannot_be_steered_is_left_to_chance_or_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = [move("Arrive(p1,4)"), move("Publish(p1)")]
    ask = "Ask(c1,plain,3,3)"
    setting = Setting(DICE, "list", 0)
    assert walk(start, setting, [*path, move(ask, drawing((0, 1)))]) is None
    monkeypatch.setattr(Bag, "select", lambda bag, rows: np.arange(rows))
    failure = walk(start, setting, [*path, move(ask, drawing((2, 1, 0)))])
    assert failure is not None
    assert "the draw cannot be steered" in failure.what[0]


def test_only_draws_have_the_manner_of_drawing_certain_slots() -> None:
    assert slots_of(drawing((2, 0))) == (2, 0)
    assert slots_of(LATE) == ()
    assert has_manner("Draw", drawing((2, 0)))
    assert has_manner("Ask", LATE)
    assert has_manner("Empty", USUAL)
    assert not has_manner("Arrive", drawing((2, 0)))
    assert not has_manner("Draw", drawing(()))
    assert not has_manner("Draw", drawing((2, 0)) + " x")
    assert not has_manner("Draw", LATE)
