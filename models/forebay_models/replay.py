"""Runs a failure again from its token, and writes it down as a regression test.

A failure that was found once is worth keeping: `forebay replay TOKEN` shows whether it is still
there, and the test that is written from it goes on asking.
"""

import textwrap
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from forebay_models.outcome import Figure, Outcome, Verdict, worst
from forebay_models.progress import Observer, Quiet
from forebay_models.tokens import read_token, token_of

_WIDTH: Final = 88

_TEST: Final = '''\
"""A failure that was found once does not come again.

Written by `forebay replay --as pytest`; the token holds the whole run.
"""

from forebay_models.outcome import Verdict
from forebay_models.replay import replay

TOKEN = (
{token}
)


def test_failure_{name}_does_not_come_again() -> None:
    outcome = replay(TOKEN)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
'''


def replay(token: str, *, times: int = 1, observer: Observer | None = None) -> Outcome:
    """Run a failure again, at the level where it was found.

    Args:
        token: as it stands beside the failure.
        times: how often to run it.
        observer: is told how far it has come.

    Returns:
        VIOLATED if the failure came again at least once, HOLDS if it did not. The counterexample is
        that of the first time that it came.

    Raises:
        TokenError: it is no token, or none that can be run here.
        ValueError: `times` is less than 1.
    """
    if times < 1:
        raise ValueError(f"a replay runs at least once, not {times} times")
    observer = observer or Quiet()
    found = read_token(token)
    name = f"replay {found.run.level}"
    observer.expects(1)
    observer.begins(name)
    started = time.monotonic()
    outcomes = []
    for number in range(times):
        observer.says(name, f"{number + 1} of {times}")
        outcomes.append(found.run.again(found.fault))
    outcome = _together(outcomes, fault=found.fault, seconds=time.monotonic() - started)
    observer.ends(name, outcome)
    return outcome


def regression_test(token: str, *, keep_fault: bool = False) -> str:
    """Return a pytest module that replays a token and asserts that the failure does not come.

    Args:
        token: as it stands beside the failure.
        keep_fault: plant the fault again with which it failed; such a test fails on purpose.

    Raises:
        TokenError: it is no token, or none that can be run here.
    """
    found = read_token(token)
    kept = token_of(found.run, fault=found.fault if keep_fault else "")
    lines = textwrap.wrap(kept, _WIDTH, break_on_hyphens=False)
    return _TEST.format(
        token="\n".join(f'    "{line}"' for line in lines), name=kept.rpartition(".")[2]
    )


def _together(outcomes: Sequence[Outcome], *, fault: str, seconds: float) -> Outcome:
    """Return several times of one run as one outcome."""
    verdict = worst(outcomes)
    told = next(outcome for outcome in outcomes if outcome.verdict is verdict)
    failed = sum(outcome.verdict is Verdict.VIOLATED for outcome in outcomes)
    figures: dict[str, Figure] = {**told.figures, "times": len(outcomes), "failed": failed}
    if fault:
        figures["planted"] = fault
    detail = told.detail
    if 0 < failed < len(outcomes):
        detail += (
            f"\n\nonly {failed} of {len(outcomes)} times failed: something is left to chance here"
        )
    return replace(told, figures=figures, seconds=seconds, detail=detail)
