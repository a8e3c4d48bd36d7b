"""How long work tells what it is doing.

Checks report to an `Observer` and know nothing of terminals, so that they can be called from tests
and other programs. `bar` shows the reports as a progress bar on standard error; standard output is
for results alone, which matters with `--json`. Where standard error is no terminal, one line is
written for each check that ends, so that a log shows progress too.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from forebay_models.outcome import Outcome

if TYPE_CHECKING:
    from rich.progress import Progress

SECONDS_BETWEEN_LOOKS = 0.2


class Observer(Protocol):
    """Is told what begins, how it goes on and how it ends; may be called from several threads."""

    def expects(self, count: int) -> None:
        """`count` more checks will come."""

    def begins(self, name: str) -> None:
        """The check of that name begins."""

    def says(self, name: str, text: str) -> None:
        """How far the check has come, in a few words."""

    def ends(self, name: str, outcome: Outcome) -> None:
        """The check that began under that name has ended."""


class Quiet:
    """An observer that shows nothing."""

    def expects(self, count: int) -> None: ...

    def begins(self, name: str) -> None: ...

    def says(self, name: str, text: str) -> None: ...

    def ends(self, name: str, outcome: Outcome) -> None: ...


class Lines:
    """Writes a line to standard error for each check that ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected = 0
        self._ended = 0

    def expects(self, count: int) -> None:
        with self._lock:
            self._expected += count

    def begins(self, name: str) -> None: ...

    def says(self, name: str, text: str) -> None: ...

    def ends(self, name: str, outcome: Outcome) -> None:
        with self._lock:
            self._ended += 1
            print(
                f"[{self._ended}/{self._expected}] {outcome.name}: {outcome.verdict.words}"
                f" ({outcome.seconds:.1f} s)",
                file=sys.stderr,
                flush=True,
            )


class Bar:
    """Shows how many checks have ended, and what those that run say."""

    def __init__(self, display: "Progress") -> None:
        self._display = display
        self._lock = threading.Lock()
        self._running: dict[str, str] = {}
        self._shown = 0.0
        self._task = display.add_task("checking", total=0, now="")

    def expects(self, count: int) -> None:
        with self._lock:
            total = self._display.tasks[0].total or 0
            self._display.update(self._task, total=total + count)

    def begins(self, name: str) -> None:
        with self._lock:
            self._running[name] = ""
            self._show()

    def says(self, name: str, text: str) -> None:
        with self._lock:
            self._running[name] = text
            if time.monotonic() > self._shown + SECONDS_BETWEEN_LOOKS:
                self._show()

    def ends(self, name: str, outcome: Outcome) -> None:
        with self._lock:
            self._running.pop(name, None)
            self._display.advance(self._task)
            self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        now = "; ".join(f"{name} {text}".rstrip() for name, text in self._running.items())
        self._display.update(self._task, now=now)


@contextmanager
def bar() -> Iterator[Observer]:
    """Show the progress of the checks in the block on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    display = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
        console=console,
        transient=True,
    )
    with display:
        yield Bar(display)
