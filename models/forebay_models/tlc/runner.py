"""Starts TLC and follows its output; leaving the block kills whatever still runs.

Every run has a directory of its own for TLC's files and for Java's temporary ones, since two runs
that start in one second would otherwise use the same. TLC gets one worker, so that depth and the
counterexample are the same each time; two runs at once use the machine instead.

Most runs take a second, and a third of that goes into loading TLC's classes. So where many runs
follow, an example of them is run first, and Java keeps the classes that it has loaded in a file
(JEP 483). A Java before version 24 knows nothing of that, and starts every run as the first one.
"""

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from forebay_models.tlc.java import Tools
from forebay_models.tlc.manifest import Run
from forebay_models.tlc.messages import MessageReader, Report

MEMORY = "2g"  # of heap for one run, at most
_JAVA: Final = ("-XX:+UseSerialGC", f"-Xmx{MEMORY}")
_QUICK_JAVA: Final = ("-XX:TieredStopAtLevel=1", *_JAVA)
"""A quick run ends before the optimising compiler would have paid for itself."""


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
    """Runs TLC on the models of one directory; `run` may be called from several threads.

    Args:
        tools: Java and TLC.
        models: the directory.
        example: a quick run that `prepare` makes for those that follow, or None if few follow.
    """

    def __init__(self, tools: Tools, models: Path, example: Run | None = None) -> None:
        self.models = models
        self._tools = tools
        self._example = example
        self._kept: tempfile.TemporaryDirectory[str] | None = None
        self._loaded: Path | None = None  # TLC's classes, once they are kept
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
        if self._kept is not None:
            self._kept.cleanup()

    @property
    def prepared(self) -> bool:
        """Whether quick runs that start now find TLC's classes loaded."""
        return self._loaded is not None

    def prepare(self) -> None:
        """Let the runs that follow find TLC's classes loaded, if there is an example of them.

        What TLC says about the example is thrown away.

        Raises:
            Stopped: `kill` was called.
        """
        if self._example is None:
            return
        with self._lock:
            if self._stopped:
                raise Stopped(self._example.name)
            self._kept = tempfile.TemporaryDirectory(prefix="forebay-java-")
        noted, loaded = Path(self._kept.name) / "noted", Path(self._kept.name) / "loaded"
        java = [str(self._tools.java), *_QUICK_JAVA, f"-XX:AOTConfiguration={noted}"]
        with tempfile.TemporaryDirectory(prefix="forebay-tlc-") as scratch:
            self._wait_for([*java, "-XX:AOTMode=record", *self._tlc(self._example, Path(scratch))])
        if noted.is_file():
            create = ["-XX:AOTMode=create", f"-XX:AOTCache={loaded}", "-cp", str(self._tools.jar)]
            self._wait_for([*java, *create])
        if loaded.is_file():
            self._loaded = loaded

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
        java = [str(self._tools.java), *(_QUICK_JAVA if run.tier == "quick" else _JAVA)]
        if run.tier == "quick" and self._loaded is not None:
            java += [f"-XX:AOTCache={self._loaded}", "-Xlog:disable"]
        return self._process([*java, *self._tlc(run, scratch)])

    def _tlc(self, run: Run, scratch: Path) -> list[str]:
        """Return Java's last arguments: what to run, and TLC's own."""
        temporary = scratch / "tmp"
        temporary.mkdir()
        return [
            f"-Djava.io.tmpdir={temporary}", "-cp", str(self._tools.jar), "tlc2.TLC",
            "-metadir", str(scratch / "meta"), "-workers", "1", "-fp", "0", "-seed", "0",
            "-tool", "-config", run.cfg, run.module,
        ]  # fmt: skip

    def _wait_for(self, command: Sequence[str]) -> None:
        """Run a command to its end, whatever it says."""
        process = self._process(command)
        try:
            process.communicate()
        finally:
            self._end(process)
        if self._stopped:
            raise Stopped(command[-1])

    def _process(self, command: Sequence[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopped:
                raise Stopped(command[-1])
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
