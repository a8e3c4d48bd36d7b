"""A learner and its actors are killed in the middle of a step; nothing is lost or used twice."""

import re

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

RESUMED = re.compile(
    r"^resumed at step (\d+): (\d+) admitted = (\d+) delivered \+ (\d+) sampleable"
    r" \+ (\d+) drawn ahead$",
    re.M,
)
KEPT = re.compile(
    r"^nothing lost after (\d+) kills: (\d+) admitted = (\d+) delivered, each trained on once$",
    re.M,
)
BATCH = 32


@pytest.mark.slow
def test_a_run_that_is_killed_loses_nothing() -> None:
    done = finished(command("resume.py", "--kills", "2", "--steps", "40", "--seed", "0"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  killed, with its actors, in step") == 2
    resumed = [tuple(map(int, found)) for found in RESUMED.findall(done.stdout)]
    assert resumed
    for step, admitted, delivered, sampleable, ahead in resumed:
        assert step % 10 == 0
        assert delivered == BATCH * step
        assert admitted == delivered + sampleable + ahead
    kept = KEPT.search(done.stdout)
    assert kept is not None, done.stdout
    kills, admitted, delivered = map(int, kept.groups())
    assert kills == 2
    assert admitted == delivered >= 40 * BATCH


@pytest.mark.slow
def test_ctrl_c_leaves_nobody() -> None:
    with running(command("resume.py", "--kills", "0", "--steps", "100000")) as process:
        read_until(process, "  saved at step 10,")
        interrupt(process)
        printed = rest(process)
        assert process.wait() == 130, printed
        assert nobody_is_left(process.pid)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--steps", "0"], "--steps and --every are at least 1"),
        (["--kills", "5", "--steps", "5"], "each kill has a step of its own"),
    ],
)
def test_options_that_make_no_sense(options: list[str], complaint: str) -> None:
    done = finished(command("resume.py", *options))
    assert done.returncode == 2
    assert complaint in done.stderr
