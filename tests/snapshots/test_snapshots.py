"""Snapshots under load are consistent, and those that are not are noticed."""

import copy
import json

import pytest
import torch
import typer
from forebay_models import snapshots_cli
from forebay_models.mutants.resumes import SNAPSHOT_MUTANTS
from forebay_models.outcome import Verdict
from forebay_models.snapshots.judge import Judge
from forebay_models.snapshots.records import identities, records
from forebay_models.snapshots.round import Evidence, Failed, Round, Snapshot
from forebay_models.snapshots.run import run_rounds
from forebay_models.snapshots.setting import Reader, Setting, setting_of
from forebay_models.targets import Target
from typer.testing import CliRunner

from tests.device.targets import EVERY_TARGET

PLAIN = Setting(
    "fifo", 1, 2, 12, 2, "tensor", writers=(3,), readers=(Reader("sample", 2, True),), empties=False
)


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_snapshots_hold(target: Target) -> None:
    outcome = run_rounds(target, count=120, seconds=None, seed=3)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    assert outcome.figures["snapshots"] == 120
    assert outcome.figures["restored"] == 12
    assert outcome.figures["records"] != 0
    assert outcome.figures["of buffers that overwrite"] == 50


IN_A_SNAPSHOT = ("leases_consumed", "uses_lost", "left_lost", "overwritten_ahead_dropped")
"""Faults of resuming that show in what is saved."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SNAPSHOT_MUTANTS, *IN_A_SNAPSHOT])
def test_a_planted_fault_is_found(name: str) -> None:
    outcome = run_rounds(Target.LOCAL, count=2000, seconds=None, seed=0, fault=name)
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None


def test_a_worker_that_raises_ends_the_round(tmp_path: object) -> None:
    wrong = PLAIN._replace(writers=(13,))
    with pytest.raises(Failed, match="larger than the capacity"):
        Round(wrong, 5, str(tmp_path), 0).run()


def test_a_torn_record_is_not_whole() -> None:
    batch = records(1, 5, 3)
    assert identities(batch)[1] == []
    batch["body"][1, 7] += 1
    assert identities(batch)[1] == ["record 6 of writer 1 is torn"]


class TestJudge:
    """One snapshot, by hand: two batches were written, and two records read; two are ahead."""

    @staticmethod
    def snapshot() -> tuple[Snapshot, Evidence]:
        buffer = PLAIN.make()
        for first in (0, 3):
            buffer.extend(records(1, first, 3), timeout=0)
        log = [identities(buffer.sample(timeout=0))[0]]
        snapshot = Snapshot(buffer.state_dict(), "", before=(0, 2, 1), after=(0, 2, 1))
        return snapshot, Evidence([snapshot], {2: log})

    def wrong(self, snapshot: Snapshot, evidence: Evidence) -> str:
        return "\n".join(Judge(PLAIN, evidence).wrong(snapshot))

    def test_it_holds(self) -> None:
        assert self.wrong(*self.snapshot()) == ""

    def test_a_record_that_is_missing(self) -> None:
        snapshot, evidence = self.snapshot()
        parts = snapshot.state["records"]
        for name in ("slots", "uses", "stamps", "data"):
            parts[name] = parts[name][:0]
        snapshot.state["prefetched"]["batches"].clear()
        found = self.wrong(snapshot, evidence)
        assert "CaptureAtomic does not hold" in found
        assert "6 records were admitted; 0 are there; 2 spent, 0 evicted, 0 dropped" in found
        assert (
            "record 2 of writer 1 is missing; readers had it 0 times before and 0 times after"
            in found
        )

    def test_a_record_that_was_given_before(self) -> None:
        snapshot, evidence = self.snapshot()
        evidence.logs[2].append(identities(records(1, 5, 1))[0])
        snapshot = Snapshot(snapshot.state, "", before=(0, 2, 2), after=(0, 2, 2))
        found = self.wrong(snapshot, Evidence([snapshot], evidence.logs))
        assert "record 5 of writer 1 was given 0 times; readers had it 1 times before" in found

    def test_a_record_that_nobody_has_written(self) -> None:
        snapshot, evidence = self.snapshot()
        early = Snapshot(snapshot.state, "", before=(0, 0, 1), after=(0, 0, 1))
        evidence = Evidence([early], evidence.logs)
        assert "record 5 of writer 1 is there before it was written" in self.wrong(early, evidence)

    def test_a_batch_ahead_that_is_another(self) -> None:
        snapshot, evidence = self.snapshot()
        batches = snapshot.state["prefetched"]["batches"]
        other = copy.deepcopy(batches[0]["batch"])
        batches[0]["batch"], batches[1]["batch"] = batches[1]["batch"], other
        assert "batch 0 that was drawn ahead is not what its slots" in self.wrong(
            snapshot, evidence
        )

    def test_batches_ahead_in_another_order(self) -> None:
        snapshot, evidence = self.snapshot()
        snapshot.state["prefetched"]["batches"].reverse()
        assert "were drawn ahead as [4, 5, 2, 3]" in self.wrong(snapshot, evidence)

    def test_ages_that_are_no_ranks(self) -> None:
        snapshot, evidence = self.snapshot()
        snapshot.state["records"]["stamps"] += torch.tensor([0, 0, 0, 7])
        assert "CaptureAtomic does not hold, by TypeOK" in self.wrong(snapshot, evidence)


def test_every_second_round_overwrites_by_every_sampler() -> None:
    for target in Target:
        settings = [setting_of(target, 5, number) for number in range(6)]
        assert [setting.overwrites for setting in settings] == [False, True] * 3
        sampled = [(setting.order, setting.drop_last) for setting in settings[1::2]]
        assert sampled == [("replacement", False), ("epochs", False), ("epochs", True)]


def test_the_command_line() -> None:
    app = typer.Typer()
    app.command("snapshots")(snapshots_cli.snapshots)
    app.command("other")(lambda: None)
    result = CliRunner().invoke(app, ["snapshots", "--count", "20", "--json"])
    document = json.loads(result.stdout)
    assert document["command"] == "campaign snapshots"
    assert document["outcomes"][0]["figures"]["snapshots"] == 20
    assert result.exit_code == Verdict.HOLDS
    cut = CliRunner().invoke(app, ["snapshots", "--budget", "1ms"])
    assert cut.exit_code == Verdict.INCONCLUSIVE
    assert "of 4000 snapshots; give it more time" in cut.stdout
    unknown = CliRunner().invoke(app, ["snapshots", "--plant", "no such fault"])
    assert unknown.exit_code == Verdict.COULD_NOT_RUN
    of_device = CliRunner().invoke(app, ["snapshots", "--plant", "event_recorded_before_copy"])
    assert of_device.exit_code == Verdict.COULD_NOT_RUN


def test_a_fault_of_a_device_can_be_planted_there() -> None:
    app = typer.Typer()
    app.command("snapshots")(snapshots_cli.snapshots)
    app.command("other")(lambda: None)
    planted = ["--target", "simulated", "--plant", "event_recorded_before_copy"]
    result = CliRunner().invoke(app, ["snapshots", *planted])
    assert result.exit_code == Verdict.VIOLATED
