"""The stage alone: one thread at a time, equal choices equal runs, and no thread left over."""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from forebay_models.scheduling.stage import (
    Endless,
    Failure,
    Kind,
    LeftToChance,
    Option,
    Stage,
    Status,
    Stuck,
)

Pick = Callable[[Sequence[Option]], int]


@dataclass
class Log:
    """A watch that notes everything, and fails at a label if it is told to."""

    fails_at: str = ""
    seen: list[tuple[int, str]] = field(default_factory=list)

    def slice_ends(self, player: int, label: str) -> None:
        self.seen.append((player, label))
        if label == self.fails_at:
            raise Failure(f"came to {label}")

    def sleep_ends(self, player: int, kind: Kind) -> None:
        self.seen.append((player, kind.name))

    def run_ends(self) -> None: ...


def first(options: Sequence[Option]) -> int:
    return 0


def last(options: Sequence[Option]) -> int:
    return len(options) - 1


def other(options: Sequence[Option]) -> int:
    """Switch wherever that is possible."""
    return min(1, len(options) - 1)


def at_random(seed: int) -> Pick:
    chance = random.Random(seed)
    return lambda options: chance.randrange(len(options))


def passing(stage: Stage, labels: str) -> Callable[[], None]:
    def program() -> None:
        for label in labels:
            stage.reach(label)

    return program


@pytest.mark.parametrize(
    ("pick", "order"),
    [(first, "0a 0b 0end 1c 1d 1end"), (other, "1c 0a 1d 0b 1end 0end")],
)
def test_the_strategy_says_who_goes_on(pick: Pick, order: str) -> None:
    log = Log()
    with Stage(["x", "y"]) as stage:
        stage.run([passing(stage, "ab"), passing(stage, "cd")], pick, log)
        assert " ".join(f"{player}{label}" for player, label in log.seen) == order
        assert [player.status for player in stage.players] == [Status.DONE, Status.DONE]


def test_the_same_choices_give_the_same_run_again_and_again() -> None:
    runs = []
    with Stage(["x", "y", "z"]) as stage:
        for _ in range(20):
            log = Log()
            stage.run([passing(stage, "abcd")] * 3, at_random(7), log)
            runs.append(log.seen)
    assert all(run == runs[0] for run in runs)
    assert len(runs[0]) == 15


def test_only_one_thread_runs_at_a_time() -> None:
    inside: list[int] = []
    most: list[int] = []

    def program() -> None:
        for _ in range(20):
            stage.reach("point")
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    with Stage(["x", "y", "z"]) as stage:
        stage.run([program] * 3, at_random(3), Log())
    assert set(most) == {1}


def test_one_run_follows_the_other_at_once() -> None:
    """A thread may still be on its way out of a run when the next one begins."""
    with Stage(["x", "y", "z"]) as stage:
        for _ in range(2_000):
            stage.run([passing(stage, "a")] * 3, last, Log())
            assert [player.label for player in stage.players] == ["end"] * 3


def test_who_blocks_does_not_run_until_it_is_ready_again() -> None:
    log = Log()

    def sleeper() -> None:
        stage.block(Status.ASLEEP, "asleep")

    def waker() -> None:
        stage.reach("before")
        stage.players[0].status = Status.READY
        stage.reach("after")

    with Stage(["x", "y"]) as stage:
        stage.run([sleeper, waker], first, log)
    assert log.seen == [(0, "asleep"), (1, "before"), (1, "after"), (1, "end"), (0, "end")]


def test_a_run_in_which_all_sleep_is_over_and_its_threads_are_unwound() -> None:
    unwound: list[object] = []

    def sleeper() -> None:
        try:
            stage.block(Status.ASLEEP, "asleep")
        finally:
            unwound.append(stage.current)

    with Stage(["x", "y"]) as stage:
        stage.run([sleeper, sleeper], first, Log())
        assert [player.status for player in stage.players] == [Status.ASLEEP, Status.ASLEEP]
        assert unwound == stage.players
        assert stage.failure is None


@pytest.mark.parametrize(
    ("timeout", "pick", "ended_by"), [(5.0, first, "EXPIRE"), (None, last, "SPURIOUS")]
)
def test_sleeps_end_by_themselves_or_for_no_reason(
    timeout: float | None, pick: Pick, ended_by: str
) -> None:
    log = Log()

    def sleeper() -> None:
        stage.block(Status.ASLEEP, "asleep", timeout)
        stage.reach("on")

    with Stage(["x", "y"]) as stage:
        stage.run([sleeper, passing(stage, "ab")], pick, log)
        assert (0, ended_by) in log.seen
        assert stage.players[0].status is Status.DONE
        assert stage.players[0].ahead == (timeout or 0.0)


def test_a_failure_ends_the_run_and_the_stage_can_be_used_again() -> None:
    with Stage(["x", "y"]) as stage:
        stage.run([passing(stage, "ab"), passing(stage, "cd")], first, Log(fails_at="b"))
        assert str(stage.failure) == "came to b"
        log = Log()
        stage.run([passing(stage, "ab"), passing(stage, "cd")], first, log)
        assert stage.failure is None
        assert len(log.seen) == 6


def test_a_run_that_never_ends_is_one_that_fails() -> None:
    def program() -> None:
        while True:
            stage.reach("round")

    with Stage(["x", "y"]) as stage:
        stage.run([program, program], first, Log())
        assert isinstance(stage.failure, Endless)


def test_a_thread_that_blocks_elsewhere_is_reported() -> None:
    lock = threading.Lock()
    lock.acquire()

    def runs_into_it() -> None:
        stage.reach("before")
        with lock:
            pass

    stage = Stage(["x"], patience=0.05)
    try:
        with pytest.raises(Stuck, match=r"no choice point was reached .* x at 'before'"):
            stage.run([runs_into_it], first, Log())
    finally:
        lock.release()


def test_the_threads_end_with_the_stage() -> None:
    before = threading.active_count()
    with Stage(["x", "y"]) as stage:
        stage.run([passing(stage, "a")] * 2, first, Log())
        assert threading.active_count() == before + 2
    assert threading.active_count() == before


@pytest.mark.parametrize("at", [1, 3, 4])
def test_a_strategy_that_fails_ends_the_run_wherever_it_is_asked(at: int) -> None:
    asked = []

    def pick(options: Sequence[Option]) -> int:
        asked.append(options)
        if len(asked) == at:
            raise LeftToChance("other options than before")
        return 0

    with Stage(["x", "y", "z"]) as stage:
        stage.run([passing(stage, "a")] * 3, pick, Log())
        assert isinstance(stage.failure, LeftToChance)
        stage.run([passing(stage, "a")] * 3, first, Log())
        assert stage.failure is None
