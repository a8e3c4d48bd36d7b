"""The hypothesis state machine: its rules are the actions of the specification, one rule each.

A rule can run when the specification has a step of its action in the present state; which of these
steps, and in which manner, is drawn. Everything else is the driver's. The class is built from the
table of actions, so a new action of the specification needs nothing here.

Hypothesis picks among the rules that can run with equal chances, and switches some of them off for
a whole run by their names. Both would make dull walks: closing and emptying can always happen, and
without publishing nothing ever does. So actions that move records have several rules, all rules
share one name, so that none is switched off, and each run draws which disturbing actions it goes
without and how long it is before the buffer may be closed.
"""

from collections.abc import Callable, Mapping
from typing import Final

from forebay_spec.actions import ACTIONS, Label
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from forebay_models.adapters.adapter import MANNERS, USUAL, Adapter, Mismatch
from forebay_models.adapters.records import STORAGES
from forebay_models.campaign.driver import Divergence, Driver
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import BOUNDS, Setting

_SEEDS: Final = 7
_USUAL: Final = 4
_WEIGHTS: Final[Mapping[str, int]] = {
    "Abandon": 1,
    "Fail": 1,
    "Return": 2,
    "Expire": 1,
    "SetCancel": 2,
    "Close": 2,
    "Empty": 1,
}
"""How many rules the actions have that disturb the others; all others have `_USUAL`."""

_STOP: Final = "Close(stopped)"
_LONGEST_CALM: Final = 15
SETTINGS: Final = st.builds(
    Setting,
    bounds=st.sampled_from(BOUNDS),
    storage=st.sampled_from(STORAGES),
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

    @initialize(
        setting=SETTINGS,
        without=st.frozensets(st.sampled_from((*_WEIGHTS, _STOP))),
        calm=st.integers(0, _LONGEST_CALM),
    )
    def start(self, setting: Setting, without: frozenset[str], calm: int) -> None:
        """Start a buffer."""
        self._without, self._calm = without, calm
        self._adapter, self._driver = self.session.drive(setting)

    def labels(self, action: str) -> tuple[Label, ...]:
        """Return the steps of an action that this run takes now."""
        driver = self._driver
        if driver is None or (action == "Close" and driver.length < self._calm):
            return ()
        labels = driver.labels(action)
        if action in self._without:
            # A failed hold can do nothing but return.
            return tuple(label for label in labels if driver.must_return(label))
        if action == "Close" and _STOP in self._without:
            return tuple(label for label in labels if str(label) != _STOP)
        return labels

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

    def teardown(self) -> None:
        """End all threads; who fails to end only counts where nothing was wrong before."""
        if self._adapter is None:
            return
        try:
            self._adapter.close()
        except Mismatch as error:
            if self._failed or self._driver is None:
                return
            failure = self._driver.divergence([str(error)])
            self.session.fail(failure)
            raise failure from error


def _rule_for(action: str) -> Callable[[Walk, st.DataObject], None]:
    manners = MANNERS.get(action, (USUAL,))

    def may_run(walk: Walk) -> bool:
        return bool(walk.labels(action))

    def run(walk: Walk, data: st.DataObject) -> None:
        label = data.draw(st.sampled_from(walk.labels(action)))
        manner = data.draw(st.sampled_from(manners)) if len(manners) > 1 else USUAL
        walk.take(label, manner)

    run.__name__ = "step"
    # precondition's type is that of any callable; what it returns is the rule that it was given.
    made: Callable[[Walk, st.DataObject], None] = rule(data=st.data())(precondition(may_run)(run))
    return made


def machine_for(session: Session, actions: Mapping[str, object] = ACTIONS) -> type[Walk]:
    """Return the machine of a session, with rules for each action."""
    rules = {
        f"{action}_{number}": _rule_for(action)
        for action in actions
        for number in range(_WEIGHTS.get(action, _USUAL))
    }
    return type("Walk", (Walk,), {**rules, "session": session, "__doc__": Walk.__doc__})
