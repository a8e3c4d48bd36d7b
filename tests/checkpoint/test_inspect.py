"""`forebay inspect` shows what is in a checkpoint, and the page says how to read one."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from forebay._checkpoint import write_checkpoint
from forebay_models import cli

from tests.checkpoint.support import resealed, small_state

PAGE = Path(__file__).parents[2] / "docs/reference/checkpoints.md"


def test_a_whole_checkpoint_is_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_checkpoint(tmp_path / "c", {**small_state(), "long": list(range(20))})
    assert cli.main(["inspect", str(tmp_path / "c")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'c'} is whole: version 1, made with forebay ")
    assert re.fullmatch(r"records-\w{16}.safetensors +\d+ bytes in 1 part .*", lines[2])
    assert lines[5:] == [
        "state:",
        "  number: 0",
        "  counters:",
        "    admitted: 3",
        "    large: 0x100000000000000000000",
        "    nothing: null",
        "  records:",
        "    data: TensorDict [3]",
        "      obs: float32[3, 2]",
        "      done: float32[3]",
        "    slots: int64[3]",
        "  queue: 1 entries",
        "    0: tests.storage.support:Step TensorDict [2]",
        "      obs: float32[2, 4]",
        "      reward: float32[2]",
        '      note: "note"',
        "  long: [0, 1, 2, 3, 4, 5, 6, 7] and 12 more",
    ]


def test_the_document_has_all_of_the_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_checkpoint(tmp_path / "c", small_state())
    assert cli.main(["inspect", str(tmp_path / "c"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    manifest = json.loads((tmp_path / "c/manifest.json").read_bytes())
    for entry in ("version", "made_with", "files", "state"):
        assert document[entry] == manifest[entry]
    assert (document["command"], document["path"]) == ("inspect", str(tmp_path / "c"))


def test_damage_ends_with_1_and_no_checkpoint_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c"
    assert cli.main(["inspect", str(path)]) == 2
    assert "there is no such directory" in capsys.readouterr().err
    write_checkpoint(path, small_state())
    resealed(path, lambda text: text.replace('"version": 1', '"version": 7'))
    assert cli.main(["inspect", str(path)]) == 2
    assert "in version 7 of the format" in capsys.readouterr().err
    write_checkpoint(path, small_state())
    (file,) = path.glob("records-*")
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    assert cli.main(["inspect", str(path)]) == 1
    assert f"{file.name}: bytes 0 to " in capsys.readouterr().err
    write_checkpoint(path, small_state())
    resealed(path, lambda text: text.replace('"entries"', '"entires"'))
    assert cli.main(["inspect", str(path)]) == 1
    assert "not as the format asks" in capsys.readouterr().err


def test_nothing_in_a_checkpoint_reaches_the_terminal_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_checkpoint(tmp_path / "c", {"\x1b[2J": "\x1b[31m", "$\x1b": {1: b"\x1b"}})
    assert cli.main(["inspect", str(tmp_path / "c")]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_the_programme_on_the_page_reads_the_records(tmp_path: Path) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert "forebay" not in re.findall(r"import (.*)", code)[0]
    assert code.count("\n") <= 21
    records = {"x": torch.tensor([[1.5, 2.0], [3.0, 4.0]]), "done": torch.tensor([True, False])}
    write_checkpoint(tmp_path / "c", {"records": {"data": records}})
    command = [sys.executable, "-I", "-c", code, str(tmp_path / "c")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.splitlines() == ["x [2, 2] (1.5, 2.0, 3.0, 4.0)", "done [2] (True, False)"]
    (file,) = (tmp_path / "c").glob("records-*")
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "AssertionError" in run.stderr


def test_the_page_has_every_mark_of_the_format() -> None:
    from forebay._decoding import Decoder

    marks = set(re.findall(r'`\{"(\$\w+)"', PAGE.read_text("utf-8")))
    assert marks == set(Decoder({}, [])._kinds)
