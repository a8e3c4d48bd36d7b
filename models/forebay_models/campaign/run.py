"""Runs a campaign in seeded rounds until its budget is used up or a failure is found.

Equal seeds give equal examples in equal order, so a failure comes again at the same example; how
many examples fit into a budget depends on the machine. A round is one search of hypothesis, with a
seed of its own and nothing remembered from other runs.
"""

from contextlib import suppress
from typing import Final

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from forebay_models.campaign.driver import Divergence
from forebay_models.campaign.machine import machine_for
from forebay_models.campaign.quiet import quiet_library
from forebay_models.campaign.session import Enough, Session

STEPS: Final = 40
"""Steps of an example."""

_ROUND: Final = 100
_SPREAD: Final = 1_000_003


def run(session: Session, *, seed_number: int, steps: int = STEPS) -> None:
    """Run a session's campaign to its end; what it found is in the session afterwards.

    Args:
        session: the campaign.
        seed_number: of all its random choices.
        steps: of each example at most.
    """
    options = settings(
        max_examples=_ROUND,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    number = 0
    with quiet_library():
        while not session.over and session.failure is None:
            machine = seed(seed_number * _SPREAD + number)(machine_for(session))
            try:
                with suppress(Enough, Divergence):
                    run_state_machine_as_test(machine, settings=options)
            except Flaky:
                if session.failure is None:
                    raise
                session.flaky = True
            if session.end is not None:
                raise session.end
            if session.broken is not None:
                raise session.broken
            number += 1
        session.shorten()
