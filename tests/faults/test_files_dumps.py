"""Dumps that die, fail and lose power; one scenario for each planted fault; the command."""

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from forebay._checkpoint import write_checkpoint
from forebay_models.cli import main
from forebay_models.faults import operations as op
from forebay_models.faults.checkpoints import NONE, dump, expect, found, nothing_left, state_of
from forebay_models.faults.crew import Wrong
from forebay_models.faults.files import SCENARIOS, Dumps
from forebay_models.faults.operations import Recorder, watched
from forebay_models.mutants.files import FILE_MUTANTS, _publishing

FOUND_BY = {
    "data_not_synced": ("first", "power is lost"),
    "entries_not_synced": ("first", "power is lost"),
    "rename_not_synced": ("first", "when the dump has returned"),
    "swept_before_synced": ("over", "power is lost"),
    "removed_before_rename": ("over", "power is lost"),
    "manifest_in_place": ("first", "before step"),
    "place_not_synced": ("first", "no directory"),
    "old_not_synced": ("after rename", "power is lost"),
    "one_look": ("over", "overtaken"),
    "found_discarded": ("first", "the disk is full"),
    "no_lock": ("first", "another dump could begin"),
    "leftovers_kept": ("over", "left behind"),
}


def dumps(*scenarios: str, fault: str = "", method: str = "fork", most: int = 200) -> Dumps:
    return Dumps(
        method=method,
        seed=0,
        most=most,
        fault=fault,
        tell=lambda text: None,
        scenarios=scenarios,
    )


@pytest.mark.parametrize("fault", [fault for fault in FILE_MUTANTS if fault != "digest_unchecked"])
def test_a_planted_fault_is_found_in_one_scenario(fault: str) -> None:
    scenario, words = FOUND_BY[fault]
    with pytest.raises(Wrong, match=words):
        dumps(scenario, fault=fault).run()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_without_a_fault_nothing_is_lost_or_left(scenario: str) -> None:
    campaign = dumps(scenario)
    campaign.run()
    assert campaign.did["kills"] >= 20
    assert campaign.did["failures"] >= 15
    assert campaign.did["losses of power"] >= 40
    assert campaign.every_loss
    # A reader opens the manifest and two files; in the first scenario there is nothing to read.
    assert campaign.did["readers overtaken"] == (0 if scenario == "first" else 3)


def test_losses_of_power_are_drawn_where_there_are_too_many() -> None:
    campaign = dumps("first", most=3)
    campaign.run()
    assert not campaign.every_loss


def test_a_dump_takes_the_steps_of_the_protocol(tmp_path: Path) -> None:
    path, recorder = tmp_path / "c", Recorder()
    with watched(str(path), recorder):
        dump(path, 1)
    kinds = [step.kind for step in recorder.steps if step.kind != op.WRITE]
    part = [op.CREATE, op.SYNC]
    begins = [op.MAKE_PLACE, op.SYNC_PLACE, op.SYNC_ENTRIES]
    assert kinds == [*begins, *(part * 3), op.SYNC_ENTRIES, op.RENAME, op.SYNC_ENTRIES]
    written = {name: b"" for name in os.listdir(path) if name != ".lock"}
    for step in recorder.steps:
        if step.kind == op.WRITE:
            name = "manifest.json" if step.name.startswith("manifest") else step.name
            assert len(written[name]) == step.offset
            written[name] += step.data
    assert written == {name: (path / name).read_bytes() for name in written}


def test_what_faults_are_planted_by_is_honest_without_one(tmp_path: Path) -> None:
    kinds = []
    for plant in (nullcontext, _publishing()):
        dump(tmp_path / "c", 1)
        recorder = Recorder()
        with plant(), watched(str(tmp_path / "c"), recorder):
            dump(tmp_path / "c", 2)
        kinds.append([step.kind for step in recorder.steps])
    assert kinds[0] == kinds[1]


def test_a_checkpoint_is_found_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "c"
    assert found(path) == NONE
    dump(path, 7)
    assert found(path) == 7
    with pytest.raises(Wrong, match=r"expected none or checkpoint 1, a reader finds checkpoint 7"):
        expect(path, {NONE, 1})


def test_a_checkpoint_that_nobody_wrote_is_no_checkpoint(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {**state_of(1), "number": 2})
    with pytest.raises(Wrong, match="what nobody wrote"):
        found(tmp_path / "c")


def test_another_file_counts_as_left_behind(tmp_path: Path) -> None:
    dump(tmp_path / "c", 1)
    nothing_left(tmp_path / "c")
    (tmp_path / "c" / "records-0123456789abcdef.safetensors").touch()
    with pytest.raises(Wrong, match="left behind: records-0123456789abcdef"):
        nothing_left(tmp_path / "c")


@pytest.mark.slow
def test_the_command_tells_of_dumps_and_damages(capsys: pytest.CaptureFixture[str]) -> None:
    only_files = ["campaign", "faults", "--no-points", "--kills", "0", "--damages", "30"]
    assert main([*only_files, "--methods", "forkserver", "--json"]) == 0
    in_dumps, in_damages = json.loads(capsys.readouterr().out)["outcomes"]
    assert in_dumps["name"] == "faults dumps"
    assert in_dumps["figures"].keys() == {
        *("failures", "kills", "losses of power", "readers overtaken"),
    }
    assert "every combination" in in_dumps["bounds"]
    assert in_damages["name"] == "faults damages"
    assert sum(in_damages["figures"].values()) - in_damages["figures"]["bytes"] == 30


def test_a_planted_fault_runs_what_it_is_planted_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "faults", "--damages", "0", "--plant", "rename_not_synced"]) == 1
    told = capsys.readouterr().out
    assert "expected checkpoint 3, a reader finds none" in told
    again = "--no-points --kills 0 --methods fork --seed 0 --plant rename_not_synced"
    assert again in " ".join(told.split())
    assert "faults points" not in told
    assert "faults random" not in told
