"""The records of a buffer's checkpoint can go on in any other buffer."""

from pathlib import Path

import pytest
import torch
from forebay import BlockingReplayBuffer, CheckpointError, ListStorage, TensorStorage, read_records
from forebay_models import cli

from tests.checkpoint.support import same
from tests.storage.support import step, steps


def test_records_come_in_arrival_order_and_fit_another_capacity(tmp_path: Path) -> None:
    buffer = BlockingReplayBuffer(TensorStorage(8), batch_size=3, consume_after_n_samples=1)
    buffer.extend(steps(6))
    buffer.sample()  # three slots are free, and are taken again below
    buffer.extend(steps(4, start=6))
    buffer.dumps(tmp_path / "c")
    records = read_records(tmp_path / "c")
    assert same(records, steps(7, start=3))
    larger = BlockingReplayBuffer(TensorStorage(100), batch_size=7)
    larger.extend(records)
    assert same(larger.sample(), steps(7, start=3))


def test_tensorclasses_stay_what_they_are(tmp_path: Path) -> None:
    buffer = BlockingReplayBuffer(TensorStorage(8), batch_size=2)
    batch = step(torch.randn(4, 4), torch.arange(4.0), size=[4])
    buffer.extend(batch)
    buffer.dumps(tmp_path / "c")
    assert same(read_records(tmp_path / "c"), batch)


def test_a_list_storage_gives_a_list(tmp_path: Path) -> None:
    buffer = BlockingReplayBuffer(ListStorage(8), batch_size=2)
    records: list[object] = ["a", {"x": torch.ones(2), "y": [1, (2,)]}, 5, {1, 2}]
    buffer.extend(records[:3])
    buffer.dumps(tmp_path / "c")
    assert same(read_records(tmp_path / "c"), records[:3])
    buffer.extend(records[3:])
    with pytest.raises(CheckpointError, match=r"state\['records'\]\['data'\]\[3\].*builtins.set"):
        buffer.dumps(tmp_path / "c")
    assert same(read_records(tmp_path / "c"), records[:3])
    buffer.dumps(tmp_path / "c", allow_pickle=True)
    with pytest.raises(CheckpointError, match="allow_pickle=True"):
        read_records(tmp_path / "c")
    assert same(read_records(tmp_path / "c", allow_pickle=True), records)


def test_inspect_shows_schema_counters_and_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    buffer = BlockingReplayBuffer(TensorStorage(8), batch_size=2)
    buffer.extend(steps(5))
    buffer.dumps(tmp_path / "c")
    assert cli.main(["inspect", str(tmp_path / "c")]) == 0
    out = capsys.readouterr().out
    for line in ("    capacity: 8\n", "    admitted: 5\n", "      obs: float32[5, 4]\n", "batches"):
        assert line in out
