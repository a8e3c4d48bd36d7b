"""The training example runs, loses nothing, and ends cleanly however it ends."""

import re
from pathlib import Path

import pytest

from tests.examples.running import (
    command,
    finished,
    interrupt,
    nobody_is_left,
    read_until,
    rest,
    running,
)

KEPT = re.compile(
    r"^nothing lost: (\d+) admitted = (\d+) delivered \+ (\d+) still sampleable;"
    r" recoveries: (\d+)$",
    re.M,
)
WAYS = [
    pytest.param([], id="threads"),
    pytest.param(["--processes"], id="spawn"),
    pytest.param(["--processes", "fork"], id="fork"),
]


def cartpole(plot: Path, *options: str) -> list[str]:
    return command("cartpole.py", "--plot", str(plot), *options)


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG\r\n")


def counts(printed: str) -> tuple[int, ...]:
    """Return the numbers of the last line: admitted, delivered, sampleable, recoveries."""
    kept = KEPT.search(printed)
    assert kept is not None, printed
    return tuple(map(int, kept.groups()))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_short_run_loses_nothing(tmp_path: Path, way: list[str]) -> None:
    plot = tmp_path / "short.png"
    done = finished(cartpole(plot, "--updates", "20", "--report-every", "10", *way))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "update 20/20" in done.stdout
    admitted, delivered, left, recoveries = counts(done.stdout)
    assert delivered == 20 * 256
    assert admitted == delivered + left
    assert recoveries == 0
    assert is_picture(plot)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_run_cleanly(tmp_path: Path, way: list[str]) -> None:
    plot = tmp_path / "interrupted.png"
    endless = cartpole(plot, "--updates", "1000000", "--report-every", "5", *way)
    with running(endless) as process:
        printed = read_until(process, "update 5/")
        interrupt(process)
        printed += rest(process)
        assert process.wait() == 0, printed
        assert nobody_is_left(process.pid)
    assert "interrupted" in printed
    assert "Traceback" not in printed
    counts(printed)
    assert is_picture(plot)


@pytest.mark.slow
def test_an_actor_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """The only actor is killed, so that the learner has to wait until its successor has started."""
    options = ["--processes", "--actors", "1", "--kill-actor", "5", "--updates", "15"]
    with running(cartpole(tmp_path / "killed.png", *options, "--report-every", "5")) as process:
        printed = rest(process)
        assert process.wait() == 0, printed
        assert nobody_is_left(process.pid)
    lines = printed.splitlines()
    place = lines.index("actor 0 was killed by SIGKILL; actor 1 is starting")
    assert lines[place - 1].startswith("update 5/15")
    assert lines[place + 1].startswith("update 10/15")
    assert "Traceback" not in printed
    admitted, delivered, left, recoveries = counts(printed)
    assert (delivered, recoveries) == (15 * 256, 1)
    assert admitted == delivered + left


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--capacity", "300"], "--capacity must be at least"),
        (["--kill-actor"], "--kill-actor needs --processes"),
        (["--actors", "0"], "are at least 1"),
    ],
)
def test_arguments_that_cannot_work_are_refused(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = finished(cartpole(tmp_path / "none.png", *options))
    assert done.returncode == 2
    assert message in done.stderr


def test_help_teaches(tmp_path: Path) -> None:
    done = finished(cartpole(tmp_path / "none.png", "--help"))
    assert done.returncode == 0
    assert "Ctrl-C ends the run cleanly, with exit code 0" in " ".join(done.stdout.split())
    assert "--capacity" in done.stdout
