"""Nothing passes the oracle that does less, or more, than its call: a fault each, planted here."""

import threading
from collections.abc import Callable

import forebay
import forebay._layout
import pytest
from forebay._actions import Actions
from forebay._core import Core
from forebay_models.campaign.quiet import quiet_library
from forebay_models.outcome import Verdict
from forebay_models.runs.schedule import ScheduleRun
from forebay_models.scheduling import play
from forebay_models.scheduling.play import Run, Theatre
from forebay_models.scheduling.scenario import Scenario
from forebay_models.scheduling.search import Search, search
from forebay_models.scheduling.stage import Died, Failure, Stuck
from forebay_models.scheduling.strategies import DepthFirst, Uniform


def nothing(*args: object, **kwargs: object) -> None:
    return None


def first_failure(*programs: str, bound: int = 0, capacity: int = 2) -> str:
    """Return what is wrong with the first schedule that fails, or nothing."""
    actors = ("p1", "c1", "x1")
    scenario = Scenario(
        name="here",
        capacity=capacity,
        programs=tuple(zip(actors, programs, strict=False)),
        token_of=(("p1", "t1"),),
    )
    with quiet_library(), Theatre(scenario) as theatre:
        failed = search(theatre, DepthFirst(bound)).failed
    return "" if failed is None else str(failed.failure)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases left
@pytest.mark.parametrize(
    ("owner", "name", "programs"),
    [
        (Core, "empty", ("extend 1", "empty")),
        (Core, "close", ("extend 1", "shutdown stopped")),
        (forebay.CancelToken, "set", ("extend 1", "set t1")),
        (forebay.Lease, "commit", ("extend 1", "lease 1; commit")),
        (forebay.Lease, "release", ("extend 1", "lease 1; release")),
        (Core, "ready", ("extend 1", "lease 1")),
        (Core, "ready", ("extend 1", "sample 1")),
        (Core, "fail_hold", ("extend 1", "lease 1 raises")),
        (Core, "give_back", ("extend 1", "lease 1 raises")),
        (Core, "deliver", ("extend 1", "sample 1")),
        (Core, "publish", ("extend 1", "sample 1")),
    ],
)
def test_a_call_that_does_nothing_is_noticed(
    owner: type, name: str, programs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not first_failure(*programs)
    monkeypatch.setattr(owner, name, nothing)
    assert first_failure(*programs)


@pytest.mark.parametrize(("name", "program"), [("empty", "empty"), ("close", "shutdown draining")])
def test_a_call_that_does_it_twice_is_noticed(
    name: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once: Callable[..., None] = getattr(Actions, name)

    def twice(self: Actions, *args: object) -> None:
        once(self, *args)
        once(self, *args)

    monkeypatch.setattr(Actions, name, twice)
    assert "a critical section that the specification does not know" in first_failure(
        "extend 1", program
    )


def test_a_counter_that_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Actions, "_counter", lambda self, call, verdict: forebay._layout.CANCELLATIONS
    )
    assert "refusals should be 1 but is 0" in first_failure("shutdown stopped; extend 1")


def test_a_wrong_record_is_noticed_before_the_run_can_be_cut_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Delivered before it was gathered, so that another writer may have come in between."""
    scenario = Scenario(
        name="here",
        capacity=1,
        programs=(("p1", "extend 1; extend 1"), ("c1", "sample 1"), ("x1", "empty")),
    )

    def gather(self: forebay.BlockingReplayBuffer, slots: object) -> object:
        self._core.monitor.point("gathering")
        return [self._core.ledger.capacity * 1_000]

    monkeypatch.setattr(forebay.BlockingReplayBuffer, "_gather", gather)
    wrong: list[Run] = []

    def see(run: Run) -> None:
        if any(it.label == "returned" and it.actor == "c1" for it in run.slices):
            wrong.append(run)

    with Theatre(scenario) as theatre:
        search(theatre, DepthFirst(1), enough=few(50), see=see)
    assert wrong
    assert all(run.failure is not None for run in wrong)


def few(count: int) -> Callable[[Search], bool]:
    return lambda found: found.schedules >= count


def test_what_fails_only_the_second_time_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([None, Failure("the second time")])
    judge = play._Performance.judge_end
    monkeypatch.setattr(
        play._Performance, "judge_end", lambda self: judge(self) or next(rounds, None)
    )
    scenario = Scenario(name="here", capacity=1, programs=(("p1", "extend 1"),))
    with Theatre(scenario) as theatre:
        found = search(theatre, Uniform(0), enough=few(5))
    assert found.failed is not None
    assert str(found.failed.failure) == "the second time"


def test_a_thread_that_ends_with_anything_else_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(*args: object) -> None:
        raise SystemExit(3)

    monkeypatch.setattr(play._Performance, "_make", leave)
    scenario = Scenario(name="here", capacity=1, programs=(("p1", "extend 1"),))
    with Theatre(scenario) as theatre:
        found = search(theatre, DepthFirst(0))
    assert found.failed is not None
    assert isinstance(found.failed.failure, Died)


def test_a_thread_that_hangs_is_a_failure_and_the_theatre_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = threading.Lock()
    scenario = Scenario(name="here", capacity=1, programs=(("p1", "extend 1"),))
    with Theatre(scenario) as theatre:
        theatre._stage._patience = 0.05
        lock.acquire()
        with monkeypatch.context() as patched:
            patched.setattr(Core, "publish", lambda self, call: lock.acquire())
            found = search(theatre, DepthFirst(0))
        lock.release()
        assert found.failed is not None
        assert isinstance(found.failed.failure, Stuck)
        assert search(theatre, DepthFirst(0)).failed is None


def test_a_schedule_that_cannot_be_taken_any_more_is_searched_for() -> None:
    scenario = Scenario(name="here", capacity=1, programs=(("p1", "extend 1"), ("c1", "sample 1")))
    outcome = ScheduleRun(scenario, {5_000: 3}).again("")
    assert outcome.verdict is Verdict.HOLDS
    assert "cannot be taken any more" in outcome.detail
    assert ScheduleRun(scenario, {5_000: 3}).again("lost_wakeup").verdict is Verdict.VIOLATED
