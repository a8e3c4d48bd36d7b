"""The table of participants: who is alive is known by number and start, without their help."""

import os
import sys

import pytest
from forebay._errors import LimitReached
from forebay._layout import PARTICIPANT_FIELDS
from forebay._participants import Participants, identity_of
from forebay._shared_block import SharedBlock

from tests.processes.support import FORKS, Line, Shared, family, make, no_descriptors, until
from tests.processes.workers import register

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def table(limit: int) -> Participants:
    nbytes = 8 * PARTICIPANT_FIELDS * limit
    return Participants(SharedBlock(nbytes).cells("q", PARTICIPANT_FIELDS * limit, 0))


@pytest.mark.parametrize("method", FORKS)
def test_a_participant_is_found_dead_when_it_was_killed(method: str) -> None:
    shared = make()
    mine = shared.participants.register()
    with family(method) as children:
        child = children.start(register, shared)
        row = child.says()
        assert isinstance(row, int)
        assert row != mine
        assert shared.participants.process(row) == child.pid
        assert shared.participants.living(row)
        assert shared.participants.dead() == []
        child.kill()
        assert not shared.participants.living(row)
        assert shared.participants.dead() == [row]
        assert shared.participants.living(mine)
        shared.participants.leave(row)
        assert shared.participants.dead() == []


def test_a_dead_process_that_nobody_has_asked_after_is_dead() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        until(lambda: identity_of(pid) is None)
        assert os.path.exists(f"/proc/{pid}")
    finally:
        os.waitpid(pid, 0)
    assert identity_of(pid) is None


def test_another_process_with_the_same_number_is_not_the_participant() -> None:
    cells = SharedBlock(8 * PARTICIPANT_FIELDS).cells("q", PARTICIPANT_FIELDS, 0)
    participants = Participants(cells)
    row = participants.register()
    assert participants.living(row)
    cells[1] += 1
    assert not participants.living(row)


def test_another_program_of_the_same_process_is_not_the_participant() -> None:
    """Unless it cannot be seen which program it is."""
    cells = SharedBlock(8 * PARTICIPANT_FIELDS).cells("q", PARTICIPANT_FIELDS, 0)
    participants = Participants(cells)
    row = participants.register()
    assert cells[2] != 0
    cells[2] += 1
    assert participants.dead() == [row]
    assert participants.own() is None
    cells[2] = 0
    assert participants.dead() == []


def become_another_program(line: Line, shared: Shared) -> None:
    line.send(shared.participants.register())
    os.execv(sys.executable, [sys.executable, "-c", "import signal; signal.pause()"])


def test_a_participant_that_replaces_its_program_is_found_dead() -> None:
    shared = make()
    with family() as children:
        child = children.start(become_another_program, shared)
        row = child.says()
        until(lambda: shared.participants.dead() == [row])
        assert identity_of(child.pid) is not None


def test_nobody_is_found_dead_while_no_file_can_be_opened() -> None:
    shared = make()
    with family() as children:
        child = children.start(register, shared)
        row = child.says()
        assert isinstance(row, int)
        with no_descriptors():
            assert shared.participants.living(row)
            assert shared.participants.dead() == []
        child.kill()
        with no_descriptors():
            assert shared.participants.dead() == []
        assert shared.participants.dead() == [row]


def test_a_row_is_used_again_after_its_process_has_left_and_not_before() -> None:
    participants = table(2)
    assert [participants.register() for _ in range(2)] == [0, 1]
    with pytest.raises(LimitReached, match="2 processes use this buffer, which is the limit"):
        participants.register()
    participants.leave(0)
    assert not participants.living(0)
    assert participants.register() == 0


def test_the_limit_is_told_in_the_singular_too() -> None:
    participants = table(1)
    participants.register()
    with pytest.raises(LimitReached, match="1 process uses this buffer, which is the limit"):
        participants.register()


def test_rows_that_nobody_has_are_neither_alive_nor_dead() -> None:
    participants = table(3)
    assert [participants.process(row) for row in range(3)] == [0, 0, 0]
    assert not any(participants.living(row) for row in range(3))
    assert participants.dead() == []


def test_a_process_finds_its_own_row_again_and_takes_no_one_elses() -> None:
    cells = SharedBlock(8 * PARTICIPANT_FIELDS * 2).cells("q", PARTICIPANT_FIELDS * 2, 0)
    participants = Participants(cells)
    assert participants.own() is None
    row = participants.register()
    assert participants.own() == row
    cells[1] += 1
    assert participants.own() is None
