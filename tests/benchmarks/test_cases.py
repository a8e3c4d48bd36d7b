"""Every case can be measured, in its smallest form, and says what it compares with what."""

import json
import math
import multiprocessing
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import processes
from benchmarks.cases import CASES
from benchmarks.channels import FASTER_FIFO, MP_QUEUE, TORCH_QUEUE
from benchmarks.models import verified
from benchmarks.peers import CLONES, COPY, RANDOM, RING, TORCHRL
from benchmarks.plan import FULL, QUICK, Plan
from benchmarks.results import Row
from benchmarks.scale import building, numbered, read_all
from benchmarks.threads import POLLED
from benchmarks.timing import OURS
from benchmarks.waiting import PIPE
from tests.benchmarks.efforts import LEAST

FIFO = {FASTER_FIFO} if find_spec("faster_fifo") else set()  # not for every version of Python
PEERS = {
    "P1": {TORCHRL, COPY},
    "P2": {TORCHRL},
    "P3": {TORCHRL},
    "P4": {POLLED, CLONES},
    "P5": {MP_QUEUE, TORCH_QUEUE} | FIFO,
    "P6": {MP_QUEUE, TORCH_QUEUE} | FIFO,
    "P7": {COPY},
    "P8": {MP_QUEUE, PIPE, ""},
    "P9": {""},
    "P10": {"plain write with sync", ""},
    "P11": {"the same without"},
    "P12": {""},
    "P13": {""},
    "P14": {TORCHRL, "contiguous() alone"},
    "ring": {RING},
    "trace": {"the same again", "calls to NoTrace alone", "with a trace"},
    "scale": {""},
    "growth": {""},
    "models": {""},
}
MAY_BE_NOTHING = ("% of a core", "MiB", "batches/s")
"""Units of what can be too little to be seen in the smallest form."""

FIRST_ONLY = {"P1", "P4", "P5", "P12", "ring", "trace"}
"""The cases of which one part is as good as all: the others differ in sizes only."""


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[Plan]:
    """Return a plan of the smallest sizes; nothing is left behind after it."""
    yield Plan(LEAST, tmp_path)
    assert multiprocessing.active_children() == []


def measured(plan: Plan, case: str) -> list[Row]:
    parts = CASES[case].parts(plan)
    return [row for part in parts[: 1 if case in FIRST_ONLY else None] for row in part.measure()]


def test_no_case_is_forgotten() -> None:
    assert set(PEERS) == set(CASES)
    assert [name for name in CASES if name[0] == "P"] == [f"P{number}" for number in range(1, 15)]


@pytest.mark.parametrize("case", CASES)
def test_a_case_gives_figures_beside_its_peers(
    case: str, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case != "P5":  # one with the start method that is measured, the others sooner
        monkeypatch.setattr(processes, "METHOD", "fork")
    rows = measured(plan, case)
    assert {row.case for row in rows} == {case}
    assert {row.peer for row in rows} == PEERS[case]
    for row in rows:
        values = [*row.ours, *(row.theirs or ()), *(row.ratio or ())]
        assert all(math.isfinite(value) and value >= 0 for value in values), row
        assert row.ours.median > 0 or row.unit in MAY_BE_NOTHING, row
        assert row.unit
    assert any(row.goal for row in rows) == (case[0] == "P"), "those with a number have goals"


def test_both_orders_are_measured_in_one_thread(plan: Plan) -> None:
    assert {row.who for row in measured(plan, "P1")} == {OURS, RANDOM}


def test_a_peer_that_is_not_installed_is_named_and_the_case_goes_on(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.plan.find_spec", lambda module: None)
    rows = measured(plan, "P1")
    assert {row.peer for row in rows if row.ratio is not None} == {COPY}
    (unjudged,) = [row for row in rows if row.goal is not None]
    assert (unjudged.peer, unjudged.ratio, unjudged.met) == (TORCHRL, None, None)
    (note,) = plan.notes
    assert "pip install -e '.[torchrl]'" in note


def test_a_buffer_that_there_is_no_memory_for_is_left_out(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.scale.available", lambda: 2**30)
    assert building(plan, "small", 10**7, 2**16, False) == []
    (note,) = plan.notes
    assert "10000000 small records, TensorStorage: not measured" in note
    assert "1.0 GiB are free" in note


def test_a_record_that_comes_twice_is_noticed() -> None:
    import forebay

    buffer = forebay.BlockingReplayBuffer(forebay.TensorStorage(64), batch_size=32)
    buffer.extend(numbered(0, 32))
    buffer.extend(numbered(31, 32))
    with pytest.raises(AssertionError, match="lost or came twice"):
        read_all(buffer, 64)


def test_where_verify_spends_its_time_is_read_from_what_it_saved(
    plan: Plan, tmp_path: Path
) -> None:
    saved = tmp_path / "verify.json"
    assert verified(plan, saved) == []
    assert "make verify" in plan.notes[0]
    outcomes = [("tlc leases", 3.0), ("tlc ring", 1.0), ("kernel", 2.0)]
    found = {"outcomes": [{"name": name, "seconds": seconds} for name, seconds in outcomes]}
    saved.write_text(json.dumps(found))
    assert [(row.size, row.ours.median) for row in verified(plan, saved)] == [
        ("make verify, all of tlc", 4.0),
        ("make verify, all of kernel", 2.0),
        ("make verify, tlc leases", 3.0),
        ("make verify, kernel", 2.0),
        ("make verify, tlc ring", 1.0),
    ]


def test_full_and_quick_take_five_turns_or_more() -> None:
    for effort in (FULL, QUICK):
        assert min(effort.repetitions, effort.turns) >= 5
        assert effort.wakes >= effort.turns
