"""Starts TLC and follows its output; leaving the block kills whatever still runs.

Every run has a directory of its own for TLC's files and for Java's temporary ones, since two runs
that start in one second would otherwise use the same. TLC gets one worker, so that depth and the
counterexample are the same each time; two runs at once use the machine instead.
"""

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from forebay_models.tlc.java import Tools
from forebay_models.tlc.manifest import Run
from forebay_models.tlc.messages import MessageReader, Report

MEMORY = "2g"  # of heap for one run, at most


class Stopped(Exception):
    """The run was killed by `TlcRunner.kill`, so its output says nothing."""


@dataclass(frozen=True)
class Result:
    """What one run of TLC left: exit code, report, the distinct lines it printed, time in seconds.

    Lines that were taken by the caller's `take` are not in `printed`.
    """

    exit_code: int
    report: Report
    printed: frozenset[str]
    seconds: float


class TlcRunner:
    """Runs TLC on the models of one directory; `run` may be called from several threads."""

    def __init__(self, tools: Tools, models: Path) -> None:
        self.models = models
        self._tools = tools
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __enter__(self) -> "TlcRunner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill the runs that are going on, and let no other start."""
        with self._lock:
            self._stopped = True
            running = tuple(self._running)
        for process in running:
            process.kill()
        for process in running:
            process.wait()

    def run(
        self,
        run: Run,
        *,
        progress: Callable[[Report], None] = lambda report: None,
        take: Callable[[str], bool] = lambda line: False,
    ) -> Result:
        """Run TLC to its end.

        `take` gets each printed value as a line and returns whether it used it. `progress` gets
        the report whenever TLC has said something.

        Raises:
            Stopped: `kill` was called.
            OSError: Java could not be started.
        """
        started = time.monotonic()
        reader = MessageReader()
        printed: set[str] = set()
        with tempfile.TemporaryDirectory(prefix="forebay-tlc-") as scratch:
            process = self._start(run, Path(scratch))
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    value = reader.feed(line.rstrip("\r\n"))
                    if value is None:
                        progress(reader.report)
                    elif not take(value):
                        printed.add(value)
                exit_code = process.wait()
            finally:
                self._end(process)
        if self._stopped:
            raise Stopped(run.name)
        return Result(exit_code, reader.report, frozenset(printed), time.monotonic() - started)

    def _start(self, run: Run, scratch: Path) -> subprocess.Popen[str]:
        temporary = scratch / "tmp"
        temporary.mkdir()
        # A quick run ends before the optimising compiler would have paid for itself.
        compiler = ["-XX:TieredStopAtLevel=1"] if run.tier == "quick" else []
        command = [
            str(self._tools.java), *compiler, "-XX:+UseSerialGC", f"-Xmx{MEMORY}",
            f"-Djava.io.tmpdir={temporary}", "-cp", str(self._tools.jar), "tlc2.TLC",
            "-metadir", str(scratch / "meta"), "-workers", "1", "-fp", "0", "-seed", "0",
            "-tool", "-config", run.cfg, run.module,
        ]  # fmt: skip
        with self._lock:
            if self._stopped:
                raise Stopped(run.name)
            process = subprocess.Popen(
                command,
                cwd=self.models,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
            self._running.add(process)
        return process

    def _end(self, process: subprocess.Popen[str]) -> None:
        """Make sure that the process is gone, whether its output was read to the end or not."""
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        with self._lock:
            self._running.discard(process)
