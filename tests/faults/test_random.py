"""Random kills under load, and the command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forebay_models.cli import main
from forebay_models.faults.crew import Wrong
from forebay_models.faults.load import Load

PATIENCE = 60.0
COMMAND = """
import signal, sys
from forebay_models.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""
"""The command, which heeds SIGINT whatever it inherits."""


def load(kills: int, *, method: str = "fork", fault: str = "") -> Load:
    return Load(
        method=method,
        kills=kills,
        seconds=None,
        seed=0,
        fault=fault,
        tell=lambda text: None,
        patience=10.0,
    )


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_processes_are_killed_at_random_and_nothing_is_lost(method: str) -> None:
    killing = load(15, method=method)
    killing.run()
    assert killing.kills == 15
    assert killing.served > 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["dead_hold_delivered", "ticket_of_the_dead_stays"])
def test_planted_faults_are_found_under_load(fault: str) -> None:
    with pytest.raises(Wrong):
        load(300, fault=fault).run()


def test_the_command_tells_of_both_kinds_of_kills(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--methods", "fork", "--scenario", "tokens", "--kills", "5", "--no-files"]
    assert main(["campaign", "faults", *arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    points, moments = told["outcomes"]
    assert points["name"] == "faults points"
    assert points["figures"]["kills by fork"] >= 12
    assert moments["name"] == "faults random"
    assert moments["figures"]["kills"] == 5


def test_the_command_repeats_one_kill(capsys: pytest.CaptureFixture[str]) -> None:
    kill = ["--only", "writer/v/half/1", "--methods", "fork"]
    assert main(["campaign", "faults", *kill, "--plant", "mark_after_stores"]) == 1
    assert "TypeOK does not hold" in capsys.readouterr().out
    assert main(["campaign", "faults", *kill]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--methods", "vfork"], "the methods are"),
        (["--plant", "nothing"], "no fault is called"),
        (["--plant", "no_lock", "--only", "writer/v/half/1"], "a fault of checkpoints"),
        (["--scenario", "nothing"], "no scenario is called"),
        (["--only", "nothing"], "written like"),
    ],
)
def test_the_command_says_what_there_is(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["campaign", "faults", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_an_interrupt_leaves_no_process_behind() -> None:
    arguments = ["campaign", "faults", "--no-points", "--kills", "100000", "--methods", "fork"]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _until(lambda: len(_members(process.pid)) > 4)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert b"interrupted" in told
        _until(lambda: not _members(process.pid))
    finally:
        for member in _members(process.pid):
            os.kill(member, signal.SIGKILL)
        process.wait(PATIENCE)
        assert process.stderr is not None
        process.stderr.close()


def _members(group: int) -> list[int]:
    """Return the processes of a process group that live."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = text.rpartition(")")[2].split()
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def _until(condition: object) -> None:
    assert callable(condition)
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "this does not become true"
        time.sleep(0.01)
