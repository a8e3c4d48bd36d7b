"""Judges traces with TLC, many at once: how far does the machine in TLA+ follow each of them?"""

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from forebay_models.tlc.java import Tools
from forebay_models.tlc.manifest import Run
from forebay_models.tlc.messages import Report
from forebay_models.tlc.runner import TlcRunner
from forebay_models.tracing.module import ROOT, TraceModule
from forebay_models.tracing.setting import Setting

SOURCES: Final = (
    "ReplayBufferCore.tla",
    "ReplayBufferOverwriting.tla",
    "ReplayBuffer.tla",
    "TraceReplay.tla",
)
MOST_STATES: Final = 50_000
"""So many states are followed if there are actors who are not observed."""

LONG: Final = 25_000
"""Events, in all the traces of one run; with as many as that TLC starts to be worth optimising."""

_AT = re.compile(r'<<"AT", (\d+), (\d+)>>')


class TlcFailed(Exception):
    """TLC did not come to its end; the message says what it said."""


@dataclass(frozen=True)
class Followed:
    """How far TLC followed a trace.

    Attributes:
        judged: how many of its events were steps.
        states: how many states it found, in all the traces of one run.
        gave_up: whether it left some states aside, so that a trace may go on there.
    """

    judged: int
    states: int
    gave_up: bool = False


def follow(
    settings: Sequence[Setting],
    *,
    tools: Tools,
    models: Path,
    most: int = MOST_STATES,
    progress: Callable[[int], None] = lambda judged: None,
) -> list[Followed]:
    """Follow traces of buffers with the same constants; `progress` gets the number of events.

    Raises:
        TlcFailed: TLC could not look at everything.
        OSError: a file of the models is missing, or Java could not be started.
    """
    reached = [0] * len(settings)
    full = False

    def take(line: str) -> bool:
        nonlocal full
        at = _AT.fullmatch(line)
        if at is None:
            full = full or line.startswith('<<"FULL"')
            return full
        trace = int(at[1]) - 1
        reached[trace] = max(reached[trace], int(at[2]))
        progress(sum(reached) - len(reached))
        return True

    with tempfile.TemporaryDirectory(prefix="forebay-trace-") as name:
        directory = Path(name)
        for source in SOURCES:
            shutil.copy(models / source, directory)
        TraceModule(settings).write(directory, most)
        # The full tier has the optimising compiler, which pays for itself in a long trace alone.
        long = sum(len(setting.trace.events) for setting in settings) > LONG
        run = Run(name="trace", module=ROOT, cfg=f"{ROOT}.cfg", tier="full" if long else "quick")
        with TlcRunner(tools, directory) as runner:
            result = runner.run(run, take=take)
    report: Report = result.report
    if result.exit_code or report.errors or not report.succeeded or not all(reached):
        said = [*report.errors, *report.last_lines]
        raise TlcFailed("\n".join([f"TLC ended with code {result.exit_code}:", *said]))
    return [Followed(position - 1, report.distinct, full) for position in reached]
