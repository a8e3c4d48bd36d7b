"""Driven threads stop where they should, and a thread that does not follow is named."""

import threading
from collections.abc import Iterator

import pytest
from forebay._monitor import ThreadMonitor
from forebay_models.stepping.board import Asleep, Ended, Parked, Released, Stuck
from forebay_models.stepping.crew import Crew
from forebay_models.stepping.monitor import DOZING, LostWakeup
from forebay_models.stepping.worker import Hands


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew(("p1", "c1"))
    yield made
    assert made.end()[1] == []


def sleep_once(crew: Crew, deadline: float | None = None) -> None:
    """What a waiting call does: read the sequence, look, sleep, pass a point."""
    monitor = crew.monitor
    seen = monitor.sequence()
    with monitor.section():
        pass
    monitor.wait(seen, deadline)
    monitor.point("woken")


def test_a_thread_parks_at_the_labels_it_was_told_and_passes_the_others(crew: Crew) -> None:
    passed: list[str] = []

    def call() -> str:
        for label in ("arriving", "admitted", "copied"):
            crew.monitor.point(label)
            passed.append(label)
        return "done"

    assert crew.start("p1", call, frozenset({"admitted"})) == Parked("admitted")
    assert passed == ["arriving"]
    assert crew.go_on("p1") == Ended("done")
    assert passed == ["arriving", "admitted", "copied"]


def test_an_injected_exception_is_raised_at_its_label_and_only_once(crew: Crew) -> None:
    error = ValueError("planted")

    def call() -> None:
        crew.monitor.point("admitted")
        crew.monitor.point("copied")

    assert crew.start("p1", call, frozenset({"admitted"})) == Parked("admitted")
    assert crew.go_on("p1", injected={"copied": error}) == Ended(error=error)
    assert crew.start("p1", call) == Ended(None)


def test_a_sleeper_wakes_when_the_sequence_changes(crew: Crew) -> None:
    stop = crew.start("c1", lambda: sleep_once(crew), frozenset({"woken"}))
    assert stop == Asleep(crew.monitor.sequence())
    crew.monitor.wake()
    assert crew.where("c1") == Parked("woken")
    assert crew.go_on("c1") == Ended(None)


def test_a_change_between_the_decision_and_the_sleep_is_not_overslept(crew: Crew) -> None:
    stops = frozenset({DOZING, "woken"})
    assert crew.start("c1", lambda: sleep_once(crew), stops) == Parked(DOZING)
    crew.monitor.wake()
    assert crew.lie_down("c1") == Parked("woken")


def test_rousing_wakes_one_sleeper_and_leaves_the_sequence(crew: Crew) -> None:
    for name in ("p1", "c1"):
        crew.start(name, lambda: sleep_once(crew), frozenset({"woken"}))
    before = crew.monitor.sequence()
    assert crew.rouse("c1") == Parked("woken")
    assert crew.where("p1") == Asleep(before)
    assert crew.monitor.sequence() == before


def test_a_sequence_that_is_read_after_looking_is_a_lost_wakeup(crew: Crew) -> None:
    def hasty() -> None:
        with crew.monitor.section():
            pass
        crew.monitor.wait(crew.monitor.sequence(), None)

    stop = crew.start("c1", hasty)
    assert isinstance(stop, Ended)
    assert isinstance(stop.error, LostWakeup)


@pytest.mark.parametrize("deadline", [None, 6.0])
def test_a_sleep_that_would_outlast_its_deadline_is_a_lost_wakeup(
    crew: Crew, deadline: float | None
) -> None:
    crew.start("c1", lambda: sleep_once(crew, deadline), frozenset({"woken"}))
    with pytest.raises(LostWakeup, match="c1's deadline has passed"):
        crew.rouse("c1", ahead=5.0)


def test_only_the_clock_of_one_thread_is_put_forward(crew: Crew) -> None:
    def late() -> float:
        sleep_once(crew, deadline=4.0)
        return crew.monitor.clock()

    for name in ("p1", "c1"):
        crew.start(name, late)
    assert crew.rouse("c1", ahead=5.0) == Ended(5.0)
    assert crew.rouse("p1") == Ended(0.0)


def test_a_bell_that_is_not_rung_is_a_lost_wakeup(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(monitor: ThreadMonitor) -> None:
        monitor._sequence = next(monitor._numbers)

    monkeypatch.setattr(ThreadMonitor, "wake", forgetful)
    crew.start("c1", lambda: sleep_once(crew), frozenset({"woken"}))
    crew.monitor.wake()
    with pytest.raises(LostWakeup, match="c1 sleeps on, although something has changed"):
        crew.where("c1")


def test_a_thread_that_comes_to_no_stop_is_reported_with_its_stack() -> None:
    crew = Crew(("p1",), patience=0.05)
    obstacle = threading.Lock()
    obstacle.acquire()

    def runs_into_it() -> None:
        with obstacle:
            pass

    with pytest.raises(Stuck, match=r"p1 came to no stop within 0\.05 s(.|\n)*runs_into_it"):
        crew.start("p1", runs_into_it)
    obstacle.release()
    assert crew.end() == ([Ended(None)], [])


def test_the_end_releases_who_is_parked_and_ends_who_sleeps() -> None:
    crew = Crew(("p1", "c1"))

    def call() -> str:
        crew.monitor.point("admitted")
        return "went on"

    crew.start("p1", call, frozenset({"admitted"}))
    crew.start("c1", lambda: sleep_once(crew))
    ends, left = crew.end()
    assert left == []
    assert Ended("went on") in ends
    assert any(isinstance(end.error, Released) for end in ends)


def test_the_end_of_each_critical_section_is_shown_inside_it(crew: Crew) -> None:
    locked: list[bool] = []
    crew.monitor.at_leave = lambda: locked.append(crew.monitor._lock.locked())

    def call() -> None:
        for _ in range(2):
            with crew.monitor.section():
                pass

    assert crew.start("p1", call) == Ended(None)
    assert locked == [True, True]


def test_what_a_call_to_its_end_gives_or_raises_reaches_the_driver(crew: Crew) -> None:
    def fails() -> int:
        raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        crew.runs("p1", fails)
    assert crew.runs("p1", lambda: 7) == 7
    assert crew.runs("p1", threading.get_ident) != threading.get_ident()


def test_a_call_of_the_driver_waits_for_nobody(crew: Crew) -> None:
    with pytest.raises(Stuck, match="a call of the driver itself would have to wait"):
        crew.monitor.wait(crew.monitor.sequence(), None)


def test_a_section_that_nobody_leaves_is_reported() -> None:
    crew = Crew((), patience=0.05)
    crew.monitor.enter()
    with pytest.raises(Stuck, match="the critical section is not free"):
        crew.monitor.enter()


def test_threads_are_lent_to_one_crew_after_the_other() -> None:
    with Hands() as hands:
        first = Crew(("p1", "c1"), hands=hands)
        stops = frozenset({"admitted"})
        assert first.start("p1", lambda: first.monitor.point("admitted"), stops) == Parked(
            "admitted"
        )
        first.start("c1", lambda: sleep_once(first))
        threads = {thread.ident for thread in threading.enumerate()}
        assert first.end()[1] == []
        second = Crew(("c1", "p1"), hands=hands)
        assert second.runs("c1", threading.get_ident) in threads
        assert second.runs("p1", lambda: threading.current_thread().name) == "stepped-p1"
        assert {thread.ident for thread in threading.enumerate()} == threads
        assert second.end()[1] == []
    assert not any(thread.name.startswith("stepped-") for thread in threading.enumerate())


def test_a_thread_that_is_stuck_is_not_lent_again() -> None:
    obstacle = threading.Lock()
    obstacle.acquire()

    def runs_into_it() -> None:
        with obstacle:
            pass

    with Hands() as hands:
        crew = Crew(("p1",), patience=0.05, hands=hands)
        with pytest.raises(Stuck):
            crew.start("p1", runs_into_it)
        assert crew.end()[1] == ["p1"]
        other = Crew(("p1",), hands=hands)
        assert other.runs("p1", threading.get_ident) != crew.board.seats()[0].thread
        assert other.end()[1] == []
        obstacle.release()
        assert isinstance(crew.board.wait_for(crew.board.seats()[0], lambda stop: True), Ended)
