"""Runs a few checks at once, and leaves none behind when it is interrupted."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

from forebay_models.outcome import Outcome
from forebay_models.tlc.runner import TlcRunner

AT_ONCE = 2  # Java and Python both use a core for each
LOOK = 0.5
"""Seconds of a wait; one without an end would sleep through a signal that came just before it."""


def run_with(runner: TlcRunner, checks: Sequence[Callable[[TlcRunner], Outcome]]) -> list[Outcome]:
    """Run the checks, `AT_ONCE` at a time, and return their outcomes in the order given.

    The runner prepares for them while the first of them run.

    Whatever ends it early (an interrupt, an error in a check), the processes of `runner` are killed
    first, since the threads of the pool wait for them.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool, runner:
        prepared = pool.submit(runner.prepare)
        futures = [pool.submit(check, runner) for check in checks]
        every: list[Future[Any]] = [prepared, *futures]
        try:
            going = True
            while going:
                done, left = wait(every, timeout=LOOK, return_when=FIRST_EXCEPTION)
                going = bool(left) and all(future.exception() is None for future in done)
            prepared.result()
            return [future.result() for future in futures if not future.cancelled()]
        finally:
            for future in futures:
                future.cancel()
