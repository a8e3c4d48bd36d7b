"""How long a campaign goes on, what it has exercised so far, and the failure that it has found.

Hypothesis decides what to try next; the session decides when there is enough. It ends the search
with an exception of its own that hypothesis passes on: after the budget, after the wanted number of
examples, or when a failure has been shrunk for long enough. The smallest failure seen is kept here,
so nothing depends on how the search ended.
"""

import time
from collections.abc import Callable
from typing import Final, NoReturn

from forebay_models.adapters.adapter import Adapter
from forebay_models.campaign.driver import Divergence, Driver, Exercise
from forebay_models.campaign.replay import Start, shortened
from forebay_models.campaign.settings import Setting
from forebay_models.targets import LOCAL, Scope

SHRINKING: Final = 10.0
"""Seconds for which hypothesis shrinks a failure at most, and then for leaving out steps."""

Tell = Callable[[Exercise, float], None]


class Enough(KeyboardInterrupt):
    """Ends the search like a Ctrl-C: hypothesis neither takes that for a failure nor, unlike any
    other exception, compares what was drawn before it with what was drawn earlier."""


class Session:
    """One campaign.

    Args:
        start: starts a buffer.
        scope: what can be exercised on it.
        seconds: the budget, or None for no limit in time.
        examples: the wanted number of examples, or None for as many as the budget allows.
        shrinking: seconds for which a failure is shrunk at most.
        tell: is told now and then how far the campaign has come, as a share of the budget.
    """

    def __init__(
        self,
        start: Start,
        scope: Scope = LOCAL,
        *,
        seconds: float | None,
        examples: int | None = None,
        shrinking: float = SHRINKING,
        tell: Tell | None = None,
    ) -> None:
        self.scope = scope
        self.exercise = Exercise()
        self.failure: Divergence | None = None
        self.failed_example = 0
        self.flaky = False
        self.end: SystemExit | None = None
        self.broken: Exception | None = None
        self._start = start
        self._seconds = seconds
        self._examples = examples
        self._shrinking = shrinking
        self._tell = tell
        self._began = time.monotonic()
        self._failed_at = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the campaign began."""
        return time.monotonic() - self._began

    @property
    def over(self) -> bool:
        """Whether the budget is used up or the wanted number of examples is reached."""
        if self._examples is not None and self.exercise.examples >= self._examples:
            return True
        return self._seconds is not None and self.elapsed >= self._seconds

    def begin(self) -> None:
        """Begin an example; `Enough` when there are enough of them."""
        self._check()
        if self.failure is None:
            if self.over:
                raise Enough
            self.exercise.examples += 1
            self._report()

    def drive(self, setting: Setting) -> tuple[Adapter, Driver]:
        """Start a buffer and a driver for it; what a known failure repeats is not counted."""
        exercise = self.exercise if self.failure is None else Exercise()
        adapter = self._start(setting)
        return adapter, Driver(setting, adapter, exercise)

    def go_on(self) -> None:
        """Look at the clock before a step; `Enough` when a failure was shrunk for long enough."""
        self._check()

    def leave(self, end: SystemExit) -> NoReturn:
        """Stop searching since the program is to end; the request is kept in `end`."""
        self.end = end
        raise Enough from end

    def shorten(self) -> None:
        """Leave out what the failure can do without."""
        if self.failure is not None:
            self.failure = shortened(self._start, self.failure, self._shrinking)

    def fail(self, failure: Divergence) -> None:
        """Keep a failure, unless a smaller one is known."""
        if self.failure is None:
            self._failed_at = time.monotonic()
            self.failed_example = self.exercise.examples
        if self.failure is None or len(failure.steps) <= len(self.failure.steps):
            self.failure = failure

    def _check(self) -> None:
        if self.failure is not None and time.monotonic() - self._failed_at > self._shrinking:
            raise Enough

    def _report(self) -> None:
        if self._tell is None:
            return
        shares = [0.0]
        if self._seconds is not None:
            shares.append(self.elapsed / self._seconds)
        if self._examples is not None:
            shares.append(self.exercise.examples / self._examples)
        self._tell(self.exercise, min(1.0, max(shares)))
