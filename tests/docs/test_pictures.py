"""The pictures in the documentation are those that the specification gives today."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
Arrow = tuple[str, str, tuple[str, ...]]
Found = tuple[list[Arrow], list[Arrow], list[Arrow], list[Arrow]]


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "draw_state_machine", ROOT / "docs/tools/draw_state_machine.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(drawing: ModuleType) -> Found:
    arrows: Found = drawing.arrows()
    return arrows


@pytest.mark.slow
def test_committed_pictures_are_up_to_date(drawing: ModuleType, found: Found) -> None:
    drawn: dict[str, str] = drawing.pictures(*found)
    assert sorted(drawn) == [
        "ahead-life.svg",
        "boundary-life.svg",
        "call-life.svg",
        "slot-life.svg",
    ]
    for name, text in drawn.items():
        committed = (ROOT / "docs/assets" / name).read_text(encoding="utf-8")
        assert committed == text, f"{name} is out of date: run `make picture`"


def test_a_state_without_a_box_is_an_error(drawing: ModuleType) -> None:
    arrow = drawing.Arrow("free", "no such box", ("Admit",))
    with pytest.raises(KeyError, match="no such box"):
        drawing.picture("title", drawing.SLOT_PLACES, [arrow])


@pytest.mark.slow
def test_the_life_of_a_slot_is_a_cycle(found: Found) -> None:
    slots, *_ = found
    ways = {(start, end): actions for start, end, actions in slots}
    assert ways["free", "filling"] == ("Admit", "Arrive")
    assert ways["filling", "sampleable"] == ("Publish",)
    assert "Deliver" in ways["spent, held", "free"]
    assert ("filling", "spent, held") not in ways


@pytest.mark.slow
def test_a_batch_that_is_drawn_ahead_is_taken_or_goes_back(found: Found) -> None:
    _, _, drawn, stages = found
    ways = {(start, end): actions for start, end, actions in drawn}
    assert ways["not drawn ahead", "gathers"] == ("Refill",)
    assert ways["ready", "a call's batch"] == ("Ask", "Draw")
    assert ("stale, gathers", "a call's batch") not in ways
    assert ("restoring", "loading", ("Load",)) in stages
    assert ("loading", "none", ("Restore",)) in stages
