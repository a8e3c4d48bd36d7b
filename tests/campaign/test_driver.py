"""Each thing that the driver compares is compared: one lie of an adapter, one complaint."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import pytest
from forebay_models.adapters.adapter import USUAL, Adapter, Observation
from forebay_models.adapters.local import LocalAdapter
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.replay import Move, walk
from forebay_models.campaign.settings import Setting
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, Request
from forebay_spec.kernel import Verdict
from forebay_spec.state import initial

BOUNDS = Bounds(
    name="lies",
    capacity=2,
    producers=("p1", "p2"),
    readers=("c1",),
    write_sizes=(2,),
    requests=(Request("plain", 2, 2), Request("lease", 1, 1)),
)
SETTING = Setting(BOUNDS, "tensor", 0)
ARRIVE, PUBLISH = Label("Arrive", ("p1", 2)), Label("Publish", ("p1",))
WAIT, ASK = Label("Arrive", ("p2", 2)), Label("Ask", ("c1", "plain", 2, 2))
READY, DELIVER = Label("Ready", (0,)), Label("Deliver", (0,))
PATH = [Move(label) for label in (ARRIVE, WAIT, PUBLISH, ASK, READY, DELIVER)]

Lie = Callable[[Label, Observation], Observation]


class Liar:
    """An honest adapter whose observations go through a lie."""

    def __init__(self, lie: Lie, counts: Mapping[str, int], sleepless: Collection[str]) -> None:
        self._honest = LocalAdapter(BOUNDS)
        self._lie = lie
        self._counts = counts
        self._sleepless = sleepless

    def apply(self, label: Label, manner: str = USUAL) -> Observation:
        return self._lie(label, self._honest.apply(label, manner))

    def rest(self, due: Collection[str]) -> Observation:
        return self._honest.rest({*due, *self._sleepless})

    def counts(self) -> Mapping[str, int]:
        return {**self._honest.counts(), **self._counts}

    def close(self) -> None:
        self._honest.close()


def found(
    lie: Lie = lambda label, seen: seen,
    counts: Mapping[str, int] | None = None,
    sleepless: Collection[str] = (),
) -> Divergence:
    """Return what the driver says to a lie."""

    def start(setting: Setting) -> Adapter:
        return Liar(lie, counts or {}, sleepless)

    failure = walk(start, SETTING, PATH)
    assert failure is not None
    return failure


def at(where: Label, change: Callable[[Observation], Observation]) -> Lie:
    return lambda label, seen: change(seen) if label == where else seen


def test_without_a_lie_there_is_no_complaint() -> None:
    exercise = Exercise()
    assert walk(lambda setting: LocalAdapter(BOUNDS), SETTING, PATH, exercise=exercise) is None
    assert exercise.actions == {"Arrive": 2, "Publish": 1, "Ask": 1, "Ready": 1, "Deliver": 1}


def test_a_state_that_is_not_allowed() -> None:
    failure = found(at(PUBLISH, lambda seen: replace(seen, state=initial(BOUNDS))))
    assert failure.what == ("the state is not one that the specification allows",)
    assert failure.steps[-1].label == PUBLISH
    assert failure.seen == initial(BOUNDS)
    assert len(failure.expected) == 1


def test_a_state_in_the_middle_of_a_step() -> None:
    failure = found(
        at(PUBLISH, lambda seen: replace(seen, between=(initial(BOUNDS), *seen.between)))
    )
    assert failure.what == ("the step is not one critical section: a state between was seen",)


def test_a_step_that_goes_back_for_a_moment() -> None:
    before = found(at(PUBLISH, lambda seen: replace(seen, state=initial(BOUNDS)))).steps[-2].after
    assert before is not None
    failure = found(at(PUBLISH, lambda seen: replace(seen, between=(seen.state, before))))
    assert failure.what == ("the step is not one critical section: a state between was seen",)
    assert failure.seen == before


def test_a_wrong_outcome_of_a_call() -> None:
    failure = found(at(WAIT, lambda seen: replace(seen, verdict=Verdict.SHUT_DOWN)))
    assert failure.what == ("the call should get WAIT but gets SHUT_DOWN",)


def test_a_wrong_index() -> None:
    failure = found(at(PUBLISH, lambda seen: replace(seen, slots=(1, 0))))
    assert failure.what == ("the index of the written batch should be (0, 1) but is (1, 0)",)


def test_records_of_another_batch() -> None:
    failure = found(at(DELIVER, lambda seen: replace(seen, records=(2, 1))))
    assert failure.what == ("the records of the batch should be (1, 2) but is (2, 1)",)


def test_a_reader_that_gets_nothing() -> None:
    failure = found(at(DELIVER, lambda seen: replace(seen, records=None)))
    assert failure.what == ("the reader got no records",)


@pytest.mark.parametrize("name", ["len", "waiting_writers", "filling", "refusals"])
def test_a_wrong_counter(name: str) -> None:
    failure = found(counts={name: 9})
    assert failure.steps[-1].label == ARRIVE
    assert any(f"{name} should be" in text and "but is 9" in text for text in failure.what)


def test_a_call_that_should_go_on_but_sleeps() -> None:
    failure = found(sleepless=("p2",))
    assert "lost wake-up: p2's call has to go on" in failure.what[0]


def test_an_error_inside_the_adapter_is_a_complaint_too() -> None:
    def breaks(seen: Observation) -> Observation:
        raise RuntimeError("the lease has ended already")

    failure = found(at(ASK, breaks))
    assert failure.what == ("RuntimeError was raised: the lease has ended already",)
