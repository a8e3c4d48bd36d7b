"""A shared buffer leaves nothing behind: memory, descriptors, threads, semaphores, processes."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.library.support import assert_consistent
from tests.processes.remote import (
    FORK_WARNING,
    Hands,
    Outcome,
    all_values,
    lease,
    read,
    remotes,
    shared_buffer,
    stop_at,
    stop_inside,
    write,
    write_to,
)
from tests.processes.support import PATIENCE

ROUNDS = 200
ROOT = Path(__file__).parents[2]


def held() -> tuple[int, int, int, int]:
    """Return how many descriptors, shared mappings, threads and children this process has."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    shared = sum("memfd:forebay" in line or "/dev/shm" in line for line in maps.splitlines())
    return (
        len(os.listdir("/proc/self/fd")),
        shared,
        threading.active_count(),
        len(children.split()),
    )


def cycle(turn: int) -> None:
    """Make a buffer, use it from two processes, kill one of them somewhere, and drop it."""
    buffer = shared_buffer(4)
    write_to(buffer, 1, 2)
    with remotes(buffer, "fork") as start:
        victim, other = start.start(), start.start()
        if turn % 4 == 0:
            victim.begins(stop_at, "copied", write, 3)
            victim.reaches("at copied")
        elif turn % 4 == 1:
            victim.begins(stop_inside, 1, turn % 9, read, 1)
            victim.reaches("inside")
        elif turn % 4 == 2:
            victim.does(lease, 2)
        else:
            victim.does(take_a_token)
        victim.dies()
        other.does(write, 4)
        assert 4 in all_values(buffer)
        other.leave()
    assert_consistent(buffer)


def take_a_token(hands: Hands) -> None:
    hands.kept["token"] = hands.buffer.cancel_token()


def main() -> None:
    """Go through the cycles and compare what is held after a few of them and at the end."""
    for turn in range(8):
        cycle(turn)
    before = held()
    for turn in range(ROUNDS):
        cycle(turn)
    assert held() == before, (before, held())
    assert before[1] == 0
    print("as before")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_after_hundreds_of_buffers_and_deaths_everything_is_as_before() -> None:
    """In a program of its own, so that whatever is printed at its end is seen too."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.processes.test_shared_cost"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=10 * PATIENCE,
    )
    assert (ended.stderr, ended.stdout) == ("", "as before\n")
    assert ended.returncode == 0


def memory_of(hands: Hands, rounds: int) -> tuple[int, int]:
    """Use the buffer many times; return the descriptors before and after."""
    before = len(os.listdir("/proc/self/fd"))
    for value in range(rounds):
        write(hands, value)
        read(hands, 1)
    return before, len(os.listdir("/proc/self/fd"))


@pytest.mark.filterwarnings(FORK_WARNING)
def test_a_process_that_uses_a_buffer_for_long_takes_nothing_more() -> None:
    buffer = shared_buffer(4)
    with remotes(buffer) as start:
        other = start.start()
        other.begins(memory_of, 2000)
        outcome = other.ends()
        assert isinstance(outcome, Outcome)
        assert isinstance(outcome.value, tuple)
        before, after = outcome.value
        assert before == after


if __name__ == "__main__":
    main()
