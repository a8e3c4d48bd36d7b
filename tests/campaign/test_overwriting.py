"""Overwriting buffers follow given paths, and what they say of their records is looked into."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations, product
from unittest.mock import patch

import pytest
from forebay._epoch_list import EpochList
from forebay_models.adapters.adapter import (
    BEFORE_COPY,
    IN_TRANSFORM,
    LATE,
    USUAL,
    Adapter,
    Observation,
    drawing,
)
from forebay_models.adapters.local import LocalAdapter
from forebay_models.adapters.start import start
from forebay_models.adapters.steering import may_take
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.epochs import Drawn, Epochs
from forebay_models.campaign.replay import Move, walk
from forebay_models.campaign.settings import Setting
from forebay_models.outcome import Verdict
from forebay_models.runs.walk import WalkRun
from forebay_models.targets import LOCAL, SHARED, StorageKind
from forebay_models.tokens import TokenError, read_token, token_of
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, Order, Request
from forebay_spec.kernel import Phase
from forebay_spec.state import Slot, State, initial

RING = Bounds(
    name="a ring",
    capacity=3,
    order="replacement",
    producers=("p1", "p2"),
    readers=("c1", "c2"),
    write_sizes=(1, 2, 3),
    requests=(Request("plain", 2, 1), Request("lease", 2, 1), Request("plain", 3, 1)),
    prefetch=1,
    batch_size=3,
    process_of=tuple((actor, "q1") for actor in ("p1", "p2", "c1", "c2")),
    features=LOCAL.features,
)
ROUNDS = replace(RING, name="rounds in a ring", order="epochs", prefetch=0)
WHOLE = replace(ROUNDS, name="whole rounds", drop_last=True)
ORPHANS = replace(RING, name="orphans", process_of=(), features=SHARED.features)


def move(text: str, manner: str = USUAL) -> Move:
    """Return a step from its label's text."""
    name, _, rest = text.partition("(")
    args = rest.rstrip(")").split(",") if rest else []
    return Move(Label(name, tuple(int(arg) if arg.isdigit() else arg for arg in args)), manner)


def moves(*texts: str | Move) -> list[Move]:
    return [move(it) if isinstance(it, str) else it for it in texts]


FULL = ("Arrive(p1,3)", "Publish(p1)")
TWO = "Ask(c1,plain,2,1)"
PATHS: Mapping[str, tuple[Bounds, list[Move]]] = {
    "overwritten past what gathers, under a lease, and abandoned": (
        RING,
        moves(
            *(*FULL, move("Ask(c1,lease,2,1)", drawing((0, 0))), "Arrive(p1,1)", "Publish(p1)"),
            *("Ready(0)", "Arrive(p2,2)", move("Abandon(p2)", BEFORE_COPY), "Deliver(0)"),
        ),
    ),
    "a writer waits for what gathers, and is woken when it fails": (
        RING,
        moves(
            *(*FULL, move(TWO, drawing((2, 0))), move("Arrive(p1,3)", LATE)),
            *(move("Fail(0)", IN_TRANSFORM), "Admit(p1)", "Return(0)", "Publish(p1)"),
        ),
    ),
    "the queue is a copy": (
        RING,
        moves(
            *(*FULL, move("Refill(q1)", drawing((1, 1, 0))), "Ready(0)", "Arrive(p1,3)"),
            *("Publish(p1)", "Ask(c1,plain,3,1)", "Deliver(0)"),
        ),
    ),
    "stale while it gathers": (
        RING,
        moves(*FULL, move("Refill(q1)", drawing((1, 1, 0))), "Empty", "Ready(0)", *FULL),
    ),
    "returned into its own epoch, and too late": (
        ROUNDS,
        moves(
            *(*FULL, move("Ask(c1,lease,2,1)", drawing((2, 0))), "Ready(0)", "Return(0)"),
            *(move("Ask(c1,lease,2,1)", drawing((2, 1))), "Ready(0)", "Ask(c2,plain,2,1)"),
            *("Ready(1)", "Deliver(1)", move("Ask(c2,plain,2,1)", drawing((1, 0))), "Ready(1)"),
            *("Return(0)", "Deliver(0)", "Arrive(p1,1)", "Publish(p1)"),
        ),
    ),
    "returned when it is overwritten": (
        ROUNDS,
        moves(
            *(*FULL, move("Ask(c1,lease,2,1)", drawing((0, 1))), "Ready(0)", "Arrive(p1,1)"),
            *("Return(0)", "Publish(p1)", move("Ask(c1,plain,3,1)", drawing((1, 0, 2)))),
        ),
    ),
    "the last of an epoch is left out": (
        WHOLE,
        moves(
            *(*FULL, move(TWO, drawing((2, 0))), "Ready(0)", "Deliver(0)"),
            *(move(TWO, drawing((0, 1))), "Ready(0)", "Deliver(0)"),
        ),
    ),
    "restored in the middle of an epoch": (
        ROUNDS,
        moves(
            *(*FULL, move(TWO, drawing((2, 0))), "Ready(0)", "Deliver(0)", "CaptureAsk(c1)"),
            *("Capture(c1)", "Arrive(p1,1)", "CaptureDone(c1)", "Admit(p1)", "CaptureDone(c1)"),
            *("CaptureDone(c1)", "Publish(p1)", "RestoreAsk(c1)", "Load(c1)", "Restore(c1)"),
            *(TWO, "Ready(0)", "Deliver(0)"),
        ),
    ),
}
DEATH = moves(
    *(*FULL, move("Refill(c1)", drawing((1, 1, 0))), "Kill(c1)", "Arrive(p1,3)", "Recover(c1)"),
    *("Admit(p1)", "Publish(p1)", "Refill(c1)", "Ready(0)", "Ask(c1,plain,3,1)", "Deliver(0)"),
)


def walked(bounds: Bounds, path: list[Move], storage: StorageKind) -> Divergence | None:
    exercise = Exercise()
    failure = walk(start, Setting(bounds, storage, 0), path, exercise=exercise)
    assert failure is not None or exercise.steps == len(path)
    return failure


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("storage", ["tensor", "list", "simulated"])
def test_threads_follow_a_path(name: str, storage: StorageKind) -> None:
    failure = walked(*PATHS[name], storage)
    assert failure is None, failure


def test_processes_follow_a_path_through_the_death_of_who_gathers() -> None:
    failure = walked(ORPHANS, DEATH, "shared")
    assert failure is None, failure


def test_a_token_has_a_draw_of_one_record_twice_where_that_can_be() -> None:
    path = moves(*FULL, move(TWO, drawing((1, 1))))
    token = token_of(WalkRun(Setting(RING, "list", 0), tuple(path)), fault="")
    assert read_token(token).run.again("").verdict is Verdict.HOLDS
    with pytest.raises(TokenError, match="no batch has the slots of the manner"):
        read_token(token_of(WalkRun(Setting(WHOLE, "list", 0), tuple(path)), fault=""))


def steered(bounds: Bounds, request: str, wanted: tuple[int, ...]) -> Observation:
    """Return what a reader gets that is steered to certain slots of a full buffer."""
    adapter = LocalAdapter(bounds)
    try:
        for label, _ in moves(*FULL):
            adapter.apply(label)
        adapter.apply(move(request).label, drawing(wanted))
        adapter.apply(Label("Ready", (0,)))
        return adapter.apply(Label("Deliver", (0,)))
    finally:
        adapter.close()


@pytest.mark.parametrize("wanted", [*product(range(3), repeat=2)])
def test_a_draw_with_replacement_is_steered_to_any_slots(wanted: tuple[int, ...]) -> None:
    given = steered(RING, TWO, wanted)
    assert (given.slots, given.records) == (wanted, tuple(slot + 1 for slot in wanted))


@pytest.mark.parametrize("wanted", [*permutations(range(3))])
def test_a_draw_of_an_epoch_is_steered_to_any_slots_in_any_order(wanted: tuple[int, ...]) -> None:
    given = steered(ROUNDS, "Ask(c1,plain,3,1)", wanted)
    assert (given.slots, given.records) == (wanted, tuple(slot + 1 for slot in wanted))


def live(left: frozenset[int]) -> State:
    """Return a state with three records, some of which are left of the epoch."""
    slots = tuple(Slot(Phase.LIVE, 0, 0, stamp) for stamp in (1, 2, 3))
    return initial(ROUNDS)._replace(slots=slots, free=(), fresh=0, left=left)


def test_it_is_known_which_slots_a_draw_may_take() -> None:
    state = live(frozenset({1, 2}))
    assert may_take(RING, state, (0, 0), 2)
    assert not may_take(RING, state, (0,), 2)
    assert may_take(ROUNDS, state, (2, 1), 3)
    assert not may_take(ROUNDS, state, (0, 1), 2)
    assert not may_take(ROUNDS, state, (2, 2), 2)
    assert may_take(WHOLE, state, (0, 1, 2), 3)
    assert may_take(ROUNDS, live(frozenset()), (0,), 1)
    assert not may_take(ROUNDS, state, (), 2)


def test_a_sampler_that_contradicts_the_records_is_unreadable() -> None:
    def nothing(self: EpochList, slots: object) -> list[object]:
        return []

    with patch.object(EpochList, "append", nothing):
        failure = walked(RING, moves(*FULL), "list")
    assert failure is not None
    assert "the sampler draws from [], but the records are in [0, 1, 2]" in failure.what[0]


class Blind:
    """An adapter that shows no section of some action."""

    def __init__(self, bounds: Bounds, action: str) -> None:
        self._honest = LocalAdapter(bounds)
        self._action = action
        self.rest = self._honest.rest
        self.counts = self._honest.counts
        self.close = self._honest.close

    def apply(self, label: Label, manner: str = USUAL) -> Observation:
        seen = self._honest.apply(label, manner)
        return replace(seen, between=()) if label.name == self._action else seen


@pytest.mark.parametrize(
    ("order", "action", "noticed"),
    [("fifo", "Ready", False), ("epochs", "Ready", True), ("fifo", "Ask", True)],
)
def test_pins_are_changed_inside_of_a_section(order: Order, action: str, noticed: bool) -> None:
    bounds = replace(ROUNDS, name=f"sections of {order}", order=order)

    def start_blind(setting: Setting) -> Adapter:
        return Blind(setting.bounds, action)

    failure = walk(start_blind, Setting(bounds, "list", 0), moves(*FULL, TWO, "Ready(0)"))
    assert (failure is not None) == noticed
    if failure is not None:
        assert failure.what == ("the step took no critical section",)
        assert failure.steps[-1].label.name == action


def test_the_epochs_of_records_are_told_by_their_numbers() -> None:
    epochs = Epochs(ROUNDS)
    epochs.write((1, 2, 3))
    first, wrong = epochs.draw((2, 1), 2, (1, 2, 3))
    assert (first, wrong) == (Drawn((2, 1), 1), [])
    assert epochs.differs(frozenset({3})) == []
    epochs.give_back(first, (2, 3))
    assert epochs.differs(frozenset({2, 3})) == []
    epochs.lose((3,))
    again, wrong = epochs.draw((2,), 2, (2, 4))
    assert (again, wrong) == (Drawn((2,), 1), [])
    later, wrong = epochs.draw((2,), 1, (2, 4))
    assert (later, wrong) == (Drawn((2,), 2), [])
    epochs.give_back(again, (2, 4))
    assert epochs.differs(frozenset({4})) == []


@pytest.mark.parametrize(
    ("records", "k", "complaint"),
    [
        ((1,), 1, "record 1 is drawn 2 times in epoch 1"),
        ((3,), 2, "2 records of epoch 1 are due, not 1"),
    ],
)
def test_a_draw_that_an_epoch_does_not_have(
    records: tuple[int, ...], k: int, complaint: str
) -> None:
    epochs = Epochs(ROUNDS)
    epochs.write((1, 2, 3))
    epochs.draw((1,), 1, (1, 2, 3))
    kept = epochs.copy()
    assert epochs.draw(records, k, (1, 2, 3))[1] == [complaint]
    assert kept.draw((2, 3), 2, (1, 2, 3))[1] == []


def test_what_is_left_of_an_epoch_is_compared() -> None:
    epochs = Epochs(WHOLE)
    epochs.write((1, 2))
    assert epochs.differs(frozenset({1})) == ["left of the epoch are records [1, 2], not [1]"]
    assert Epochs(RING).differs(frozenset()) == []
