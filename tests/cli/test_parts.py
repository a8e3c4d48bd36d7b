"""Parts of a command run side by side; none is lost, none is left behind."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from forebay_models import check_cli, every_campaign_cli, parts
from forebay_models.outcome import Outcome, Verdict
from forebay_models.parts import Part, run_parts
from forebay_models.progress import Observer, Quiet
from forebay_models.targets import Target

from tests.tlc.recorder import Recorder

PATIENCE = 60.0


def held(name: str) -> Outcome:
    return Outcome(
        name=name, verdict=Verdict.HOLDS, bounds="-", figures={"process": os.getpid()}, seconds=0.0
    )


def holds(name: str, *, observer: Observer) -> Outcome:
    observer.expects(1)
    observer.begins(name)
    observer.says(name, "half way")
    observer.ends(name, held(name))
    return held(name)


def opens(name: str, fifo: str, *, observer: Observer) -> Sequence[Outcome]:
    with open(fifo, "wb") as end:
        end.write(b"x")
    return [held(name), held(f"{name} again")]


def waits(name: str, fifo: str, *, observer: Observer) -> Outcome:
    heard(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
    return held(name)


def raises(*, observer: Observer) -> Outcome:
    raise ZeroDivisionError("planted")


def dies(at_once: bool, *, observer: Observer) -> Outcome:
    observer.begins("dies early")
    if at_once:
        os._exit(7)
    sys.exit(7)


def lingers(fifo: str, deaf: bool, *, observer: Observer) -> Outcome:
    """Starts a process that keeps a pipe open, and takes it down at the end unless it is deaf."""
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(fifo, "wb", buffering=0) as end:
        end.write(b"x")
        process = subprocess.Popen(["sleep", "1000"], stdout=end)
        try:
            observer.says("lingers", "started")
            process.wait()
        finally:
            process.kill()
            process.wait()
    return held("lingers")


def loses(fifo: str, *, observer: Observer) -> Outcome:
    """Starts a process that keeps a pipe open and never takes it down, as if cut short in that."""
    with open(fifo, "wb", buffering=0) as end:
        subprocess.Popen(["sleep", "1000"], stdout=end)
        end.write(b"x")
        signal.pause()
    return held("loses")


def heard(end: int) -> bytes:
    """Return the next bytes from a pipe, none if it was closed; fails if neither happens."""
    until = time.monotonic() + PATIENCE
    while select.select([end], [], [], until - time.monotonic())[0]:
        # Before the first writer comes it reads as closed.
        if said := os.read(end, 100):
            return said
        select.select([], [], [], 0.01)
    raise AssertionError("nothing was heard")


def closed(end: int) -> bool:
    """Tell whether everybody who had the other end of a pipe is gone, within some time."""
    ready, _, _ = select.select([end], [], [], PATIENCE)
    return bool(ready) and os.read(end, 100) == b""


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "fifo")
    return str(tmp_path / "fifo")


def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "cores", lambda: 2)


def test_parts_run_at_once_and_are_told_in_their_order(
    fifo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first can only end once the second has begun."""
    two_cores(monkeypatch)
    outcomes = run_parts(
        [
            Part(name="slow", run=partial(waits, "slow", fifo)),
            Part(name="quick", run=partial(opens, "quick", fifo)),
            Part(name="alone", run=partial(holds, "alone"), alone=True),
        ],
        Quiet(),
    )
    assert [(it.name, it.verdict) for it in outcomes] == [
        ("slow", Verdict.HOLDS),
        ("quick", Verdict.HOLDS),
        ("quick again", Verdict.HOLDS),
        ("alone", Verdict.HOLDS),
    ]
    processes = [it.figures["process"] for it in outcomes]
    assert processes[3] == os.getpid()
    assert len(set(processes)) == 3


def test_on_one_core_one_process_does_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "cores", lambda: 1)
    one, two = run_parts(
        [Part(name=name, run=partial(holds, name)) for name in ("one", "two")], Quiet()
    )
    assert one.figures["process"] == two.figures["process"] != os.getpid()


def test_progress_is_passed_on() -> None:
    observer = Recorder()
    run_parts([Part(name="one", run=partial(holds, "one"))], observer)
    assert (observer.expected, observer.begun, observer.ended) == (1, ["one"], ["one"])


@pytest.mark.parametrize("alone", [False, True])
def test_an_error_in_a_part_is_told_and_the_others_go_on(alone: bool) -> None:
    broken, fine = run_parts(
        [
            Part(name="broken", run=raises, alone=alone),
            Part(name="fine", run=partial(holds, "fine"), alone=alone),
        ],
        Quiet(),
    )
    assert (broken.name, broken.verdict) == ("broken", Verdict.COULD_NOT_RUN)
    assert "ZeroDivisionError: planted" in broken.detail
    assert fine.verdict is Verdict.HOLDS


@pytest.mark.parametrize("at_once", [True, False])
def test_a_process_that_dies_is_told_and_another_does_the_rest(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "cores", lambda: 1)
    observer = Recorder()
    dead, fine = run_parts(
        [
            Part(name="dead", run=partial(dies, at_once)),
            Part(name="fine", run=partial(holds, "fine")),
        ],
        observer,
    )
    assert (dead.name, dead.verdict) == ("dead", Verdict.COULD_NOT_RUN)
    assert "exit code 7" in dead.detail
    assert fine.verdict is Verdict.HOLDS
    assert observer.ended == ["dies early", "fine"]


class Interrupts(Quiet):
    """Behaves as if Ctrl-C was pressed once the part has started its process."""

    def says(self, name: str, text: str) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("deaf", [False, True])
def test_an_interrupt_leaves_nothing_behind(
    deaf: bool, fifo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where the part does not care that it is told to end."""
    monkeypatch.setattr(parts, "ENDING", 0.5 if deaf else PATIENCE)
    end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        part = Part(name="lingers", run=partial(lingers, fifo, deaf))
        with pytest.raises(KeyboardInterrupt):
            run_parts([part], Interrupts())
        assert heard(end) == b"x"
        assert closed(end)
    finally:
        os.close(end)


PROGRAM = """
import sys
from functools import partial
from forebay_models.parts import Part, run_parts
from forebay_models.progress import Quiet
from tests.cli import test_parts
if __name__ == "__main__":
    run = partial(getattr(test_parts, sys.argv[1]), sys.argv[2], *map(bool, sys.argv[3:]))
    run_parts([Part(name="part", run=run)], Quiet())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the end of a parent")
@pytest.mark.parametrize("part", [["lingers", ""], ["loses"]], ids=lambda part: part[0])
def test_workers_end_with_the_process_that_started_them(
    part: list[str], fifo: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    root = str(Path(__file__).parents[2])
    end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), part[0], fifo, *part[1:]],
        env={**os.environ, "PYTHONPATH": root},
    )
    try:
        assert heard(end) == b"x"
        process.kill()
        assert closed(end)
    finally:
        process.kill()
        process.wait()
        os.close(end)


def test_the_parts_of_verify_stand_in_the_order_of_the_ladder() -> None:
    every = [
        *check_cli.every_check(),
        *every_campaign_cli.every_campaign(Target.LOCAL, seconds=1.0),
        *every_campaign_cli.every_campaign(Target.SHARED, seconds=1.0),
        *every_campaign_cli.every_campaign(Target.SIMULATED, seconds=1.0),
    ]
    assert [part.name for part in every] == [
        *("kernel", "explore", "tlc"),
        *("cover local", "stateful local", "schedule local", "linear local"),
        *("twins local", "snapshots local"),
        *("cover shared", "stateful shared", "linear shared", "twins shared", "snapshots shared"),
        *("faults points", "faults random", "faults files"),
        *("cover simulated", "stateful simulated", "schedule simulated", "linear simulated"),
        *("twins simulated", "snapshots simulated"),
    ]
    assert [part.name for part in every if part.alone] == [
        *("tlc", "cover local", "cover shared", "cover simulated"),
    ]
