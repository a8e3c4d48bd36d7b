"""The command `forebay`: puts its groups of commands together and looks after how it ends.

An exit code of 1 says "violated", so nothing else may end with it: an error in this program ends
with 2, as does a missing extra, an interrupt with 130 and SIGTERM with 143. Both signals are turned
into exceptions, so that the processes which a check started do not outlive it.
"""

import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from forebay_models.outcome import Verdict

if TYPE_CHECKING:
    import typer

INTERRUPTED = 130
TERMINATED = 143


def build() -> "typer.Typer":
    """Return the command with its groups, or raise `ModuleNotFoundError` for a missing extra."""
    import typer

    from forebay_models import (
        campaign_cli,
        check_cli,
        cover_cli,
        every_campaign_cli,
        faults_cli,
        inspect_cli,
        linear_cli,
        mutants_cli,
        replay_cli,
        report_cli,
        schedule_cli,
        snapshots_cli,
        trace_cli,
        twins_cli,
        verify_cli,
    )

    app = typer.Typer(
        name="forebay",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        add_completion=False,
        pretty_exceptions_enable=False,
        help=(
            "Check the models of forebay's replay buffer, and implementations against them.\n\n"
            "`forebay verify` does all of it in a few minutes; the groups below do its parts."
        ),
    )
    app.command("verify")(verify_cli.verify)
    app.add_typer(check_cli.app, name="check")
    app.add_typer(campaign_cli.app, name="campaign")
    campaign_cli.app.command("cover")(cover_cli.cover)
    campaign_cli.app.command("schedule")(schedule_cli.schedule)
    campaign_cli.app.command("linear")(linear_cli.linear)
    campaign_cli.app.command("twins")(twins_cli.twins)
    campaign_cli.app.command("snapshots")(snapshots_cli.snapshots)
    campaign_cli.app.command("faults")(faults_cli.faults)
    campaign_cli.app.command("mutants")(mutants_cli.mutants)
    campaign_cli.app.command("all")(every_campaign_cli.everything)
    check_cli.app.command("trace")(trace_cli.trace)
    check_cli.app.command("history")(linear_cli.history)
    app.command("replay")(replay_cli.replay)
    app.command("report")(report_cli.report_runs)
    app.command("inspect")(inspect_cli.inspect)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process, and return the exit code."""
    error: BaseException | None = None
    with _signals() as received:
        try:
            build()(args=None if arguments is None else list(arguments), prog_name="forebay")
        except BaseException as raised:
            error = raised
    if received:
        return _ended_by(received[0])
    return _code_of(error)


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Turn SIGINT and SIGTERM into exceptions for the length of the block, and yield what came.

    The exception alone is not enough: modules that are being loaded turn it into others. A SIGINT
    that is ignored, as in the background of a shell, stays ignored.
    """
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> NoReturn:
        received.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(TERMINATED)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGINT] == signal.SIG_IGN:
        del before[signal.SIGINT]
    try:
        for number in before:
            signal.signal(number, end)
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ended_by(number: int) -> int:
    if number == signal.SIGTERM:
        return TERMINATED
    print("forebay: interrupted", file=sys.stderr)
    return INTERRUPTED


def _code_of(error: BaseException | None) -> int:
    """Return the exit code of how the command ended, and say what there is to say about it."""
    if error is None:
        return int(Verdict.HOLDS)
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return _ended_by(signal.SIGINT)
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        print(
            f"forebay: the module {package!r} is missing; the command line needs the extra check:"
            " pip install 'forebay[check]'",
            file=sys.stderr,
        )
        return int(Verdict.COULD_NOT_RUN)
    if not isinstance(error, Exception):
        raise error
    traceback.print_exception(error)
    print("forebay: an error in forebay itself, so nothing was judged", file=sys.stderr)
    return int(Verdict.COULD_NOT_RUN)


if __name__ == "__main__":
    sys.exit(main())
