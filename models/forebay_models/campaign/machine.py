"""The hypothesis state machine: its rules are the actions of the specification, one rule each.

A rule can run when the specification has a step of its action in the present state; which of these
steps, and in which manner, is drawn. Everything else is the driver's. The class is built from the
table of actions, so a new action of the specification needs nothing here.

Hypothesis picks among the rules that can run with equal chances, and switches some of them off for
a whole run by their names. Both would make dull walks: closing and emptying can always happen, and
without publishing nothing ever does. So actions that move records have several rules, all rules
share one name, so that none is switched off, and each run draws which disturbing actions it goes
without, how long it is before the buffer may be closed, and whether captures wait until something
is drawn ahead, and restores until there is something to lose.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from forebay_spec.actions import Label
from forebay_spec.state import State, is_ready_lease
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from forebay_models.adapters.adapter import MANNERS, USUAL, Adapter
from forebay_models.campaign.driver import Divergence, Driver
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import Setting, bounds_of
from forebay_models.targets import Scope

_SEEDS: Final = 7
_USUAL: Final = 4
_WEIGHTS: Final[Mapping[str, int]] = {
    "Abandon": 2,
    "Fail": 2,
    "Return": 2,
    "Expire": 1,
    "SetCancel": 2,
    "Close": 1,
    "Empty": 2,
    "Kill": 2,
}
"""How many rules the actions have that disturb the others; all others have `_USUAL`."""

_COUNTS: Final[Mapping[str, int]] = {
    **_WEIGHTS,
    "CaptureAsk": 3,
    "RestoreAsk": 6,
    "Reject": 2,
    "Refill": 6,
}
"""The same, and others that have not the usual number of rules."""

_STOP: Final = "Close(stopped)"
_LONGEST_CALM: Final = 15
_NUMBERS: Final = st.integers(0, 59)


def settings_of(scope: Scope) -> st.SearchStrategy[Setting]:
    """Return what an example on a target may run with."""
    return st.builds(
        Setting,
        bounds=st.sampled_from(bounds_of(scope)),
        storage=st.sampled_from(scope.storages),
        seed=st.integers(0, _SEEDS),
    )


class Walk(RuleBasedStateMachine):
    """One walk through the specification beside a buffer; the rules are added below."""

    session: Session

    def __init__(self) -> None:
        super().__init__()
        self.session.begin()
        self._adapter: Adapter | None = None
        self._driver: Driver | None = None
        self._failed = False
        self._without: frozenset[str] = frozenset()
        self._calm = 0
        self._choosy = False

    def start(self, setting: Setting, without: frozenset[str], calm: int, choosy: bool) -> None:
        """Start a buffer."""
        self._without, self._calm = without, calm
        self._choosy = choosy and setting.bounds.prefetch > 0
        try:
            self._adapter, self._driver = self.session.drive(setting)
        except Exception as error:
            self.session.broken = error
            raise

    def labels(self, action: str) -> tuple[Label, ...]:
        """Return the steps of an action that this run takes now."""
        driver = self._driver
        if driver is None or (action == "Close" and driver.length < self._calm):
            return ()
        labels = driver.labels(action)
        if action in self._without:
            # A failed hold can do nothing but return.
            return tuple(label for label in labels if driver.must_return(label))
        if action in ("CaptureAsk", "RestoreAsk") and not self._is_worth(action, driver.state):
            return ()
        if action == "Close" and _STOP in self._without:
            return tuple(label for label in labels if str(label) != _STOP)
        return labels

    def _is_worth(self, action: str, state: State) -> bool:
        """Tell whether a capture or a restore is worth its while, since it holds others off."""
        ahead = any(hold.kind == "prefetched" for hold in state.holds)
        if action == "CaptureAsk":
            return ahead or not self._choosy
        if state.saved is None:
            # It can only be rejected, and then who was held off may take.
            return ahead
        leased = any(map(is_ready_lease, state.holds))
        return ahead or leased or bool(state.saved.queue) or not self._choosy

    def take(self, label: Label, manner: str) -> None:
        """Take a step, and keep the failure that it may show."""
        assert self._driver is not None
        self.session.go_on()
        try:
            self._driver.step(label, manner)
        except Divergence as failure:
            self._failed = True
            self.session.fail(failure)
            raise
        except SystemExit as end:
            # A request to end, from a signal; hypothesis would take it for a failure.
            self.session.leave(end)

    def teardown(self) -> None:
        """End all threads; who fails to end only counts where nothing was wrong before."""
        if self._adapter is None:
            return
        try:
            self._adapter.close()
        except Exception as error:
            if self._failed or self._driver is None:
                return
            failure = self._driver.divergence([str(error)])
            self.session.fail(failure)
            raise failure from error


def _rule_for(action: str) -> Callable[[Walk, int, int], None]:
    manners = MANNERS.get(action, (USUAL,))

    def may_run(walk: Walk) -> bool:
        return bool(walk.labels(action))

    def run(walk: Walk, which: int, how: int) -> None:
        labels = walk.labels(action)
        walk.take(labels[which % len(labels)], manners[how % len(manners)])

    run.__name__ = "step"
    # Which steps there are is known only when the rule runs. A number that is cut to size is much
    # quicker for hypothesis than drawing inside the rule, and shrinks just as well.
    made: Callable[[Walk, int, int], None] = rule(which=_NUMBERS, how=_NUMBERS)(
        precondition(may_run)(run)
    )
    return made


def machine_for(session: Session, actions: Iterable[str] = ()) -> type[Walk]:
    """Return the machine of a session, with rules for each action, or for some."""
    actions = actions or session.scope.actions
    # Hypothesis orders rules by name, and tries the first one more often than others.
    ordered = sorted(actions, key=lambda action: (action in _WEIGHTS, action in ("Arrive", "Ask")))
    rules = {
        f"{rank:02}_{action}_{number}": _rule_for(action)
        for rank, action in enumerate(ordered)
        for number in range(_COUNTS.get(action, _USUAL))
    }
    begin = initialize(
        setting=settings_of(session.scope),
        without=st.frozensets(st.sampled_from((*_WEIGHTS, _STOP))),
        calm=st.integers(0, _LONGEST_CALM),
        choosy=st.booleans(),
    )(Walk.start)
    members = {**rules, "start": begin, "session": session, "__doc__": Walk.__doc__}
    return type("Walk", (Walk,), members)
