"""What the tests of the examples share: runs that are read line by line and leave nobody behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 240.0
"""Seconds after which a run counts as hung; machines that do much else at a time are slow."""


def command(script: str, *options: str) -> list[str]:
    """Return the command line of an example."""
    return [sys.executable, str(ROOT / "examples" / script), *options]


def finished(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(
        arguments, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=ROOT
    )


@contextmanager
def running(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a run, a group of processes of its own, that is killed when it hangs."""
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        watchdog.join()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], start: str) -> str:
    """Read lines up to the first that starts like this; return what was read."""
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if line.startswith(start):
            return read
    raise AssertionError(f"no line starts with {start!r}:\n{read}")


def rest(process: subprocess.Popen[str]) -> str:
    """Return what else is printed, once all who could print have ended."""
    assert process.stdout is not None
    return process.stdout.read()


def interrupt(process: subprocess.Popen[str]) -> None:
    """Do what Ctrl-C does in a terminal: signal the run and all its children."""
    os.killpg(process.pid, signal.SIGINT)


def members(session: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        # After the name in parentheses: state, parent, group, session.
        state, _, _, its_session = text.rpartition(")")[2].split()[:4]
        if int(its_session) == session and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def nobody_is_left(session: int) -> bool:
    """Tell whether the processes of a session end by themselves; helpers may outlive the run."""
    give_up = time.monotonic() + 20.0
    while members(session):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True
