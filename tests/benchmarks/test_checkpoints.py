"""The benchmark of checkpoints runs at a small size and prints both cases."""

import re
from pathlib import Path

import pytest

from benchmarks.checkpoints import RECORD, full_buffer, main


@pytest.mark.slow
def test_both_cases_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mib", "4", "--repetitions", "1", "--place", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^P10 dumps of 4 MiB: .* of a plain write with sync", printed, re.M)
    assert re.search(r"^P11 a producer while dumps of 4 MiB runs: \d", printed, re.M)
    assert re.search(r"^P11 a producer while state_dict of 4 MiB runs: \d", printed, re.M)
    assert not list(tmp_path.iterdir())


def test_the_buffer_is_full_of_records_of_that_size() -> None:
    buffer = full_buffer(1)
    assert len(buffer) == buffer.capacity
    assert buffer.capacity * RECORD <= 2**20 < (buffer.capacity + 32) * RECORD


@pytest.mark.parametrize("wrong", [["P12"], ["--mib", "0"], ["--repetitions", "0"]])
def test_options_that_make_no_sense(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(wrong)
    assert end.value.code == 2
