"""The manifest says what is run and how it must end; a wrong one is refused with the reason."""

from pathlib import Path

import pytest
from forebay_models.tlc.manifest import (
    ManifestError,
    bounds_of,
    find_models,
    load_runs,
    read_properties,
    select,
)

DATA = Path(__file__).parent / "data"


def write(directory: Path, text: str) -> Path:
    """Put a manifest beside copies of a toy and return the directory."""
    for name in ("Door.tla", "Door_holds.cfg", "Door_temporal.cfg"):
        (directory / name).write_text((DATA / name).read_text(encoding="utf-8"), encoding="utf-8")
    (directory / "manifest.toml").write_text(text, encoding="utf-8")
    return directory


ENTRY = '[[run]]\nname = "door"\nmodule = "Door"\ncfg = "Door_holds.cfg"\n'


def test_a_run_has_what_is_expected_of_it() -> None:
    run = load_runs(DATA)[0]
    assert (run.name, run.module, run.cfg) == ("door", "Door", "Door_holds.cfg")
    assert (run.tier, run.expect, run.distinct, run.depth) == ("quick", "holds", 8, 5)
    assert run.witnesses == ("SomebodyEnters",)


def test_the_full_tier_includes_the_quick_one() -> None:
    runs = load_runs(DATA)
    quick = {run.name for run in select(runs, tier="quick")}
    full = {run.name for run in select(runs, tier="full")}
    assert quick < full
    assert full - quick == {"lamp", "broken", "unknown-name"}


def test_named_runs_are_taken_whatever_their_tier() -> None:
    (run,) = select(load_runs(DATA), tier="quick", names=["lamp"])
    assert run.tier == "full"
    with pytest.raises(ManifestError, match="no run is called 'lmap'; there are: door, "):
        select(load_runs(DATA), tier="quick", names=["lmap"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "at least one"),
        ("[[run]\n", "manifest.toml: "),
        ('[[run]]\nmodule = "Door"\n', "has no name"),
        (ENTRY + 'expected = "holds"\n', "unknown key 'expected'"),
        (ENTRY + 'distinct = "8"\n', "wrong type"),
        (ENTRY + 'witnesses = "One"\n', "wrong type"),
        (ENTRY + 'tier = "slow"\n', "tier is 'slow'"),
        (ENTRY + 'expect = "fails"\n', "expect is 'fails'"),
        (ENTRY + 'expect = "invariant"\n', "does not name it"),
        (ENTRY.replace("Door_holds", "Gone"), "there is no"),
        (ENTRY.replace('module = "Door"\n', ""), "module is missing"),
        (ENTRY + ENTRY, "two runs are called 'door'"),
        (ENTRY + 'expect = "temporal"\nproperty = "AllPass"\n', "only PROPERTY"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ManifestError, match=complaint.replace("[", "\\[")):
        load_runs(write(tmp_path, text))


def test_the_models_of_the_checkout_are_found() -> None:
    assert find_models().name == "tla"
    assert (find_models() / "ReplayBuffer.tla").is_file()


def test_another_directory_must_have_a_manifest(tmp_path: Path) -> None:
    assert find_models(DATA) == DATA
    with pytest.raises(ManifestError, match=r"manifest\.toml"):
        find_models(tmp_path)


def test_bounds_are_read_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "Small.cfg").write_text(
        'CONSTANTS\n    Capacity = 2 \\* slots\n    UsesPerRecord = 1\n    Order = "fifo"\n'
        '    Producers = {"p1", "p2"}\n    WriteSizes = {1, 2}\n    Requests <- MCRequests\n'
        "    Features = {}\n",
        encoding="utf-8",
    )
    run = load_runs(write(tmp_path, ENTRY.replace("Door_holds", "Small")))[0]
    assert bounds_of(run, tmp_path) == "C=2 N=1 fifo producers=p1,p2 sizes=1,2"


def test_the_properties_of_a_configuration_are_told(tmp_path: Path) -> None:
    file = tmp_path / "Some.cfg"
    file.write_text(
        "SPECIFICATION Spec\nPROPERTIES\n    One \\* Two\n    Three\n"
        "INVARIANT Four\nPROPERTY Five\n",
        encoding="utf-8",
    )
    assert read_properties(file) == ("One", "Three", "Five")
