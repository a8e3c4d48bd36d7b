"""TorchRL's collector with workers in processes trains through our buffer, whoever is killed."""

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

pytest.importorskip(
    "torchrl.collectors", reason="torchrl is not installed; pip install 'forebay[torchrl]' has it"
)
pytestmark = pytest.mark.slow

OURS = re.compile(
    r"^forebay: (\d+) admitted = (\d+) delivered \+ (\d+) still sampleable;"
    r" delivered twice: (\d+); overwritten unread: (\d+); recoveries: (\d+)$",
    re.M,
)
THEIRS = re.compile(
    r"^TorchRL: (\d+) written, (\d+) sampled, (\d+) unread in the buffer; sampled twice: (\d+);"
    r" overwritten unread: (\d+)$",
    re.M,
)


def multiasync(*options: str) -> list[str]:
    return command("torchrl_multiasync.py", "--report-every", "2", *options)


def numbers(pattern: re.Pattern[str], printed: str) -> tuple[int, ...]:
    found = pattern.search(printed)
    assert found is not None, printed
    return tuple(map(int, found.groups()))


def test_training_goes_on_after_a_worker_was_killed_within_extend() -> None:
    with running(multiasync("--updates", "8", "--kill-actor", "4")) as process:
        printed = rest(process)
        assert process.wait() == 0, printed
        assert nobody_is_left(process.pid)
    lines = printed.splitlines()
    place = lines.index("killed worker 0, which waited within extend, as all did")
    assert lines[place - 1].startswith("update 4/8")
    assert any(line.startswith("update 8/8") for line in lines[place:])
    assert "Traceback" not in printed
    admitted, delivered, left, twice, lost, recoveries = numbers(OURS, printed)
    assert (delivered, twice, lost, recoveries) == (8 * 256, 0, 0, 1)
    assert admitted == delivered + left


def test_the_run_ends_when_no_worker_is_left() -> None:
    with running(multiasync("--workers", "1", "--updates", "8", "--kill-actor", "2")) as process:
        printed = rest(process)
        assert process.wait() == 0, printed
        assert nobody_is_left(process.pid)
    assert "no more records come" in printed
    admitted, delivered, left, twice, lost, recoveries = numbers(OURS, printed)
    assert (twice, lost, recoveries) == (0, 0, 1)
    assert left < 256
    assert admitted == delivered + left


def test_ctrl_c_ends_the_run_cleanly() -> None:
    with running(multiasync("--updates", "1000000")) as process:
        printed = read_until(process, "update 2/")
        interrupt(process)
        printed += rest(process)
        assert process.wait() == 0, printed
        assert nobody_is_left(process.pid)
    assert "interrupted" in printed
    assert "Traceback" not in printed
    admitted, delivered, left, twice, lost, _ = numbers(OURS, printed)
    assert (twice, lost) == (0, 0)
    assert admitted == delivered + left


def test_torchrls_buffer_overwrites_what_nobody_has_read() -> None:
    """It counts uses in the process that samples, which does not learn what others write."""
    with running(multiasync("--updates", "6", "--torchrl")) as process:
        printed = rest(process)
        assert process.wait() == 0, printed
        assert nobody_is_left(process.pid)
    written, sampled, unread, twice, lost = numbers(THEIRS, printed)
    assert written >= 6 * 256
    assert sampled < 6 * 256
    assert written == sampled - twice + unread + lost
    assert lost > 0


def test_a_kill_within_an_extend_that_never_waits_is_refused() -> None:
    done = finished(multiasync("--torchrl", "--kill-actor"))
    assert done.returncode == 2
    assert "--kill-actor needs forebay" in done.stderr
