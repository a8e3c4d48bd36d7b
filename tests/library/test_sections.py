"""One action is one critical section, copying happens outside, and nobody is woken in vain."""

import threading

import pytest
from forebay import AdmissionTimeout, ShutDown

from tests.library.support import Stage, make, patience, result


def sections(stage: Stage, before: int) -> int:
    return stage.sections - before


def test_an_uncontended_extend_is_two_critical_sections() -> None:
    stage = Stage()
    buffer = make(4, stage)
    before = stage.sections
    buffer.extend([1, 2])
    assert sections(stage, before) == 2
    assert stage.points == ["arriving", "admitted", "copied"]


def test_an_uncontended_sample_is_two_critical_sections() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2])
    stage.points.clear()
    before = stage.sections
    buffer.sample(2)
    assert sections(stage, before) == 2
    assert stage.points == ["asking", "drawn", "gathered"]


def test_a_lease_is_one_critical_section_and_its_end_another() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2])
    stage.points.clear()
    before = stage.sections
    committed, released = buffer.lease(1), buffer.lease(1)
    assert sections(stage, before) == 2
    committed.commit()
    released.release()
    assert sections(stage, before) == 4
    assert stage.points == ["asking", "drawn", "gathered"] * 2 + ["committing", "releasing"]


def test_a_call_that_cannot_be_served_now_is_one_critical_section() -> None:
    stage = Stage()
    buffer = make(1, stage)
    buffer.extend([1])
    before = stage.sections
    with pytest.raises(AdmissionTimeout):
        buffer.extend([2], timeout=0)
    assert sections(stage, before) == 1


def test_a_failed_copy_and_a_failed_transform_are_two_critical_sections() -> None:
    stage = Stage()

    def broken(batch: object) -> object:
        raise ArithmeticError

    buffer = make(4, stage, transform=broken)
    buffer.extend([1])
    stage.points.clear()
    before = stage.sections
    with pytest.raises(ArithmeticError):
        buffer.sample(1)
    assert sections(stage, before) == 2
    assert stage.points == ["asking", "drawn", "returning"]
    stage.at["copied"] = lambda: broken(None)
    stage.points.clear()
    before = stage.sections
    with pytest.raises(ArithmeticError):
        buffer.extend([1])
    assert sections(stage, before) == 2
    assert stage.points == ["arriving", "admitted", "copied", "abandoning"]


@pytest.mark.parametrize("label", ["admitted", "copied", "drawn", "gathered"])
def test_no_critical_section_is_open_while_records_are_copied(label: str) -> None:
    """A slow copy stalls nobody: another thread writes and reads meanwhile."""
    stage = Stage()
    buffer = make(8, stage)
    buffer.extend([1, 2])
    inside, go = threading.Event(), threading.Event()

    def stall() -> None:
        stage.at.clear()
        inside.set()
        go.wait()

    stage.at[label] = stall
    writes = label in ("admitted", "copied")
    with patience() as start:
        slow = start((lambda: buffer.extend([3, 4])) if writes else (lambda: buffer.sample(1)))
        assert inside.wait(60)
        buffer.extend([5])
        assert buffer.sample(1) == ([1] if writes else [2])
        assert not slow.done()
        go.set()
        result(slow)


def test_nobody_is_woken_while_nobody_waits() -> None:
    stage = Stage()
    buffer = make(4, stage)
    buffer.extend([1, 2, 3])
    buffer.sample(1)
    buffer.lease(1).commit()
    buffer.lease(1).release()
    with pytest.raises(AdmissionTimeout):
        buffer.extend([4, 5, 6, 7], timeout=0)
    buffer.empty()
    buffer.shutdown()
    with pytest.raises(ShutDown):
        buffer.extend([1])
    assert stage.wakes == 0


def test_one_wake_serves_each_change_while_somebody_waits() -> None:
    stage = Stage()
    buffer = make(4, stage)
    with patience() as start:
        reading = start(lambda: buffer.sample(2))
        stage.await_sleepers(1)
        assert stage.wakes == 0
        buffer.extend([1])
        assert stage.wakes == 1
        buffer.extend([2])
        assert result(reading) == [1, 2]
    assert stage.wakes == 2


def test_the_sequence_is_read_before_the_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change between a look and the sleep after it ends that sleep at once.

    The records come after the reader has looked, and before it sleeps; were the sequence read after
    the conditions, it would sleep through the wake.
    """
    stage = Stage()
    buffer = make(4, stage)
    seen: list[int] = []
    original = stage.wait

    def late(seen_number: int, deadline: float | None) -> None:
        if not seen:
            seen.append(seen_number)
            buffer.extend([1])
            assert stage.sequence() != seen_number
        original(seen_number, deadline)

    monkeypatch.setattr(stage, "wait", late)
    assert buffer.sample(1) == [1]
    assert stage.points.count("woken") == 1


def test_length_and_stats_are_one_critical_section() -> None:
    """L12: only committed counts are read."""
    stage = Stage()
    buffer = make(4, stage)
    before = stage.sections
    assert len(buffer) == 0
    assert sections(stage, before) == 1
    buffer.stats()
    assert sections(stage, before) == 2


def test_readiness_that_is_asked_for_during_a_write_counts_only_what_is_published() -> None:
    """L12: a writer is between its two sections."""
    stage = Stage()
    buffer = make(4, stage)
    lengths: list[tuple[int, bool]] = []
    stage.at["copied"] = lambda: lengths.append((len(buffer), buffer.can_sample(1)))
    buffer.extend([1, 2])
    assert lengths == [(0, False)]
    assert (len(buffer), buffer.can_sample(2), buffer.can_sample(3)) == (2, True, False)
