"""The training example runs, loses nothing, and ends cleanly however it ends."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 120.0  # seconds after which a run counts as hung
KEPT = re.compile(
    r"^nothing lost: (\d+) admitted = (\d+) delivered \+ (\d+) still sampleable$", re.M
)


def command(plot: Path, *options: str) -> list[str]:
    return [sys.executable, str(ROOT / "examples/cartpole.py"), "--plot", str(plot), *options]


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG\r\n")


@contextmanager
def running(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a run whose output can be read line by line; it is killed when it hangs."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.slow
def test_a_short_run_loses_nothing(tmp_path: Path) -> None:
    plot = tmp_path / "short.png"
    done = subprocess.run(
        command(plot, "--updates", "20", "--report-every", "10"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "update 20/20" in done.stdout
    kept = KEPT.search(done.stdout)
    assert kept is not None, done.stdout
    admitted, delivered, left = map(int, kept.groups())
    assert delivered == 20 * 256
    assert admitted == delivered + left
    assert is_picture(plot)


@pytest.mark.slow
def test_ctrl_c_ends_a_run_cleanly(tmp_path: Path) -> None:
    plot = tmp_path / "interrupted.png"
    endless = command(plot, "--updates", "1000000", "--report-every", "5")
    with running(endless) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("update 5/"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait() == 130, rest
    assert "interrupted" in rest
    assert KEPT.search(rest) is not None, rest
    assert is_picture(plot)


def test_sizes_that_could_deadlock_are_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path / "none.png", "--capacity", "300"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 2
    assert "--capacity must be at least" in done.stderr


def test_help_teaches(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path / "none.png", "--help"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    assert "Ctrl-C ends the run cleanly with exit code 130" in " ".join(done.stdout.split())
    assert "--capacity" in done.stdout
