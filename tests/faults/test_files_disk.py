"""The simulated disk: what may be there after a loss of power."""

import random
from pathlib import Path

import pytest
from forebay_models.faults.disk import Disk, Image, put
from forebay_models.faults.operations import (
    CREATE,
    MAKE_PLACE,
    REMOVE,
    RENAME,
    SYNC,
    SYNC_ENTRIES,
    SYNC_PLACE,
    WRITE,
    Step,
)

PLACE = (Step(MAKE_PLACE), Step(SYNC_PLACE))
WRITTEN = (Step(CREATE, "a"), Step(WRITE, "a", data=b"1234"))


def after(*steps: Step) -> set[Image]:
    disk = Disk()
    for step in steps:
        disk.take(step)
    images, every = disk.after_loss(1000, random.Random(0))
    assert every
    assert len(set(images)) == len(images)
    return set(images)


def test_a_directory_is_there_for_certain_once_its_parent_is_synced() -> None:
    assert after(Step(MAKE_PLACE)) == {None, ()}
    assert after(*PLACE) == {()}


def test_a_file_that_was_not_synced_holds_any_stage_of_its_writing() -> None:
    contents = (b"", b"12", b"1234", b"\0\0\0\0")
    assert after(*PLACE, *WRITTEN) == {(), *((("a", it),) for it in contents)}


def test_a_synced_file_is_whole_or_has_no_name() -> None:
    synced = (*PLACE, *WRITTEN, Step(SYNC, "a"))
    assert after(*synced) == {(), (("a", b"1234"),)}
    assert after(*synced, Step(SYNC_ENTRIES)) == {(("a", b"1234"),)}


def test_a_later_write_does_not_undo_a_synced_one() -> None:
    steps = (*PLACE, *WRITTEN, Step(SYNC, "a"), Step(SYNC_ENTRIES))
    more = Step(WRITE, "a", data=b"56", offset=4)
    stages = (b"1234", b"12345", b"123456", bytes(6))
    assert after(*steps, more) == {(("a", it),) for it in stages}


def test_a_rename_may_reach_the_disk_in_part() -> None:
    old = (Step(CREATE, "m"), Step(WRITE, "m", data=b"0"), Step(SYNC, "m"))
    new = (Step(CREATE, "n"), Step(WRITE, "n", data=b"1"), Step(SYNC, "n"), Step(SYNC_ENTRIES))
    renamed = (*PLACE, *old, *new, Step(RENAME, "n", "m"))
    assert after(*renamed) == {
        (("m", b"0"), ("n", b"1")),
        (("m", b"0"),),
        (("m", b"1"), ("n", b"1")),
        (("m", b"1"),),
    }
    assert after(*renamed, Step(SYNC_ENTRIES)) == {(("m", b"1"),)}


def test_a_removed_file_may_come_back() -> None:
    steps = (*PLACE, *WRITTEN, Step(SYNC, "a"), Step(SYNC_ENTRIES), Step(REMOVE, "a"))
    assert after(*steps) == {(), (("a", b"1234"),)}
    assert after(*steps, Step(SYNC_ENTRIES)) == {()}


def test_too_many_combinations_are_drawn_by_the_seed() -> None:
    disk = Disk()
    for step in PLACE:
        disk.take(step)
    for name in "abcdefgh":
        disk.take(Step(CREATE, name))
    images, every = disk.after_loss(10, random.Random(5))
    assert not every
    assert 2 <= len(images) <= 11
    assert tuple((name, b"") for name in "abcdefgh") in images
    assert disk.after_loss(10, random.Random(5)) == (images, False)


def test_an_unknown_step_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is known of the step 'link'"):
        Disk().take(Step("link"))


def test_a_copy_goes_on_by_itself() -> None:
    disk = Disk()
    copy = disk.copy()
    copy.take(Step(MAKE_PLACE))
    assert disk.after_loss(9, random.Random(0)) == ([None], True)


def test_an_image_is_put_where_it_is_wanted(tmp_path: Path) -> None:
    put(None, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    put((("a", b"1"), ("b", b"")), tmp_path / "two")
    assert {it.name: it.read_bytes() for it in (tmp_path / "two").iterdir()} == {
        "a": b"1",
        "b": b"",
    }
