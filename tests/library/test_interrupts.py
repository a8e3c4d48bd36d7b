"""KeyboardInterrupt at any place: nothing half done, no ticket left, no lock held.

The tests go through every place in the library where a signal handler can raise, and through many
pairs of places, so that the clean-up is interrupted too.
"""

import contextlib
import itertools
import warnings
from collections.abc import Callable
from functools import partial

import pytest
from forebay import AdmissionTimeout, BlockingReplayBuffer, Cancelled, SampleTimeout, ShutDown
from forebay._monitor import ThreadMonitor

from tests.library.interrupts import Interrupts, interrupted
from tests.library.support import Slots, assert_consistent, ledger_of


class Plain(ThreadMonitor):
    """The production monitor with naps that end at once, so that waits cost no time."""

    def __init__(self) -> None:
        super().__init__(nap=1e-4)
        self.now = 0.0

    def clock(self) -> float:
        self.now += 0.25
        return self.now


def make(order: str, uses: int) -> BlockingReplayBuffer:
    buffer = BlockingReplayBuffer(
        Slots(4),
        order="fifo" if order == "fifo" else "random",
        consume_after_n_samples=uses,
        seed=0,
        monitor=Plain(),
    )
    buffer.extend([1, 2])
    return buffer


def expire(call: Callable[[], object]) -> None:
    with contextlib.suppress(AdmissionTimeout, SampleTimeout):
        call()


def lease_and_fail(buffer: BlockingReplayBuffer) -> None:
    with contextlib.suppress(ArithmeticError), buffer.lease(1):
        raise ArithmeticError


def lease_and_commit(buffer: BlockingReplayBuffer) -> None:
    with buffer.lease(1):
        pass


ACTIONS: dict[str, Callable[[BlockingReplayBuffer], object]] = {
    "extend": lambda buffer: buffer.extend([3]),
    "extend that expires": lambda buffer: expire(lambda: buffer.extend([3, 4, 5], timeout=2)),
    "sample": lambda buffer: buffer.sample(2),
    "sample that expires": lambda buffer: expire(lambda: buffer.sample(4, timeout=2)),
    "lease": lease_and_commit,
    "lease that is released": lease_and_fail,
    "empty": lambda buffer: buffer.empty(),
    "shutdown": lambda buffer: buffer.shutdown(),
    "observe": lambda buffer: buffer.wait_until_sampleable(2),
    "observe that expires": lambda buffer: buffer.wait_until_sampleable(4, timeout=2),
}
OUTCOMES = {
    "extend": {2, 3},
    "extend that expires": {2},
    "sample": {0, 2},
    "sample that expires": {2},
    "lease": {1, 2},
    "lease that is released": {2},
    "empty": {0, 2},
    "shutdown": {2},
    "observe": {2},
    "observe that expires": {2},
}


def lengths_after_interrupts(
    order: str, uses: int, action: str, *later: int
) -> tuple[int, set[int]]:
    """Interrupt an action at each place in turn; return how many there were, and the lengths."""
    lengths: set[int] = set()
    for place in itertools.count():
        buffer = make(order, uses)
        with warnings.catch_warnings():
            # A lease that an interrupt keeps from its with block is returned by its finaliser.
            warnings.simplefilter("ignore", ResourceWarning)
            reached = interrupted(partial(ACTIONS[action], buffer), place, *later)
        if not reached:
            return place, lengths
        lengths.add(len(buffer))
        ledger = ledger_of(buffer)
        assert ledger.tickets() == [], place
        assert ledger.holds() == [], place
        assert ledger.fillings() == {}, place
        assert buffer.stats().waiting_observers == 0, place
        assert_consistent(buffer)
    raise AssertionError("unreachable")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("order", ["fifo", "random"])
def test_an_interrupt_at_any_place_leaves_all_or_nothing(order: str, action: str) -> None:
    places, lengths = lengths_after_interrupts(order, 1, action)
    assert places > 5
    assert lengths == OUTCOMES[action]


@pytest.mark.parametrize(
    "action",
    ["extend", "sample", "lease", "lease that is released", "observe", "observe that expires"],
)
@pytest.mark.parametrize("later", [0, 1, 2, 3, 5, 8, 13, 21])
def test_a_second_interrupt_during_the_clean_up_changes_nothing(action: str, later: int) -> None:
    places, lengths = lengths_after_interrupts("fifo", 1, action, later)
    assert places > 20
    assert lengths <= OUTCOMES[action]


@pytest.mark.parametrize("looking", ["stats", "describe"])
def test_a_buffer_can_be_closed_and_looked_at_while_its_thread_looks_at_it(looking: str) -> None:
    places = 0
    for place in itertools.count():
        buffer = make("fifo", 1)
        seen: list[object] = []

        def handle(buffer: BlockingReplayBuffer = buffer, seen: list[object] = seen) -> None:
            buffer.shutdown()
            seen.extend((len(buffer), buffer.stats().sampleable, buffer.describe()[:20]))

        handler = Interrupts([place], handle)
        with handler:
            getattr(buffer, looking)()
        if not handler.raised:
            break
        places += 1
        assert seen == [2, 2, "buffer of 4 records,"]
        with pytest.raises(ShutDown):
            buffer.extend([3])
        assert_consistent(buffer)
    assert places > 5


def test_a_token_can_be_set_wherever_a_signal_handler_can_run() -> None:
    """L04: the handler runs in the thread that holds the lock, or that is about to sleep."""
    outcomes: list[str | None] = []
    for place in itertools.count():
        buffer = make("fifo", 1)
        token = buffer.cancel_token()
        handler = Interrupts([place], token.set)
        outcome: str | None = None
        try:
            with handler:
                buffer.sample(4, cancel_event=token, timeout=5)
        except (SampleTimeout, Cancelled) as error:
            outcome = type(error).__name__
        assert len(buffer) == 2
        if not handler.raised:
            break
        outcomes.append(outcome)
    assert len(outcomes) > 50
    # A token that is set before the last look at it cancels, later ones come too late.
    cancelled = outcomes.count("Cancelled")
    assert outcomes == ["Cancelled"] * cancelled + ["SampleTimeout"] * (len(outcomes) - cancelled)
    assert cancelled > len(outcomes) // 2


def look_and_close(buffer: BlockingReplayBuffer, seen: list[tuple[int, str]]) -> None:
    seen.append((buffer.stats().capacity, buffer.describe().splitlines()[0][:20]))
    buffer.shutdown()


def test_a_buffer_can_be_closed_and_looked_at_wherever_a_signal_handler_can_run() -> None:
    """A handler that shuts down or reports must not wait for the thread that it interrupts."""
    outcomes: list[str] = []
    for place in itertools.count():
        buffer = make("fifo", 1)
        seen: list[tuple[int, str]] = []
        handler = Interrupts([place], partial(look_and_close, buffer, seen))
        outcome = "served"
        try:
            with handler:
                buffer.sample(4, timeout=5)
        except (SampleTimeout, ShutDown) as error:
            outcome = type(error).__name__
        if not handler.raised:
            break
        outcomes.append(outcome)
        assert seen == [(4, "buffer of 4 records,")]
        with pytest.raises(ShutDown):
            buffer.extend([1])
        assert ledger_of(buffer).tickets() == []
        assert_consistent(buffer)
    # Closed in time, it drains the two records that there are.
    served = outcomes.count("served")
    assert served > len(outcomes) // 3
    assert set(outcomes) == {"served", "SampleTimeout"}
