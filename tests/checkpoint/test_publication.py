"""Whatever happens while a checkpoint is written, the directory holds the old or the new, whole."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from forebay import CheckpointError, _files
from forebay._checkpoint import read_checkpoint, write_checkpoint

from tests.checkpoint.support import contents, same, small_state

CHANGES = ("make_directory", "create", "write", "sync", "sync_directory", "rename", "remove")


class Crash(BaseException):
    """The process dies here."""


class Full(OSError):
    """The disk is full."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def interposed(before: Callable[[str], None], after: Callable[[str], None]) -> Iterator[None]:
    """Call functions before and after each operation that changes a file, with its name."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            patch.setattr(_files, name, _between(name, before, after))
        yield


def _between(
    name: str, before: Callable[[str], None], after: Callable[[str], None]
) -> Callable[..., object]:
    real: Callable[..., object] = getattr(_files, name)

    def operation(*arguments: object) -> object:
        before(name)
        result = real(*arguments)
        after(name)
        return result

    return operation


def nothing(name: str) -> None:
    """Do nothing at an operation."""


def operations(path: Path) -> list[str]:
    """Return the operations of writing a checkpoint to a path, in order."""
    seen: list[str] = []
    with interposed(seen.append, nothing):
        write_checkpoint(path, small_state(2))
    return seen


class Dies:
    """Kills the process at the n-th call: nothing is done after that either."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.dead = False

    def __call__(self, name: str) -> None:
        self.left -= 1
        self.dead = self.dead or self.left < 0
        if self.dead:
            raise Crash


def test_the_order_of_operations_is_that_of_the_protocol(tmp_path: Path) -> None:
    first = operations(tmp_path / "c")
    files = ["create", "write", "sync"]
    wanted = [
        *("make_directory", "sync_directory", "sync_directory"),
        *("create", "write", "write", "write", "sync"),
        *("create", "write", "write", "write", "write", "sync"),
        *(*files, "sync_directory", "rename", "sync_directory"),
    ]
    assert [name for name, _ in _grouped(first)] == [name for name, _ in _grouped(wanted)]
    again = operations(tmp_path / "c")
    assert again == [*first[1:], "remove", "remove"]


def _grouped(names: list[str]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for name in names:
        if found and found[-1][0] == name == "write":
            found[-1] = (name, found[-1][1] + 1)
        else:
            found.append((name, 1))
    return found


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("old", [True, False], ids=["over an old one", "the first"])
def test_a_crash_at_any_operation_leaves_the_old_or_the_new(
    when: str, old: bool, tmp_path: Path
) -> None:
    if old:
        write_checkpoint(tmp_path / "count", small_state(1))
    total = len(operations(tmp_path / "count"))
    found: list[object] = []
    for at in range(total):
        path = tmp_path / f"c{at}"
        if old:
            write_checkpoint(path, small_state(1))
        dies = Dies(at)
        with (
            interposed(*((dies, nothing) if when == "before" else (nothing, dies))),
            pytest.raises(Crash),
        ):
            write_checkpoint(path, small_state(2))
        if not old and not (path / "manifest.json").exists():
            with pytest.raises(CheckpointError, match=r"manifest.json|no such directory"):
                read_checkpoint(path)
            found.append(None)
        else:
            number = read_checkpoint(path)["number"]
            assert same(read_checkpoint(path), small_state(2 if number == 2 else 1))
            found.append(number)
        write_checkpoint(path, small_state(3))
        assert same(read_checkpoint(path), small_state(3))
        assert len(contents(path)) == 3, "the leftovers of the crash are gone"
    before = 1 if old else None
    assert found == sorted(found, key=lambda number: number == 2), "once new, always new"
    assert set(found) == {before, 2}


@pytest.mark.parametrize("name", CHANGES[1:6])
def test_an_error_leaves_the_old_checkpoint_and_no_rest(name: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_checkpoint(path, small_state(1))
    old = contents(path)
    for at in range(operations(tmp_path / "count").count(name)):
        left = [at]

        def fail(operation: str, left: list[int] = left) -> None:
            if operation == name:
                left[0] -= 1
                if left[0] < 0:
                    raise Full

        with interposed(fail, nothing), pytest.raises(OSError, match="No space left"):
            write_checkpoint(path, small_state(2))
        if same(read_checkpoint(path), small_state(2)):
            assert name == "sync_directory", "only the last step comes after the commit"
            write_checkpoint(path, small_state(1))
            old = contents(path)
        elif name == "rename":
            assert contents(path).items() > old.items(), "who knows which one is on the disk"
            write_checkpoint(path, small_state(1))
            assert len(contents(path)) == 3
            old = contents(path)
        else:
            assert contents(path) == old


def test_an_error_from_a_descriptor_names_the_file(tmp_path: Path) -> None:
    def fail(operation: str) -> None:
        if operation == "write":
            raise Full

    with interposed(fail, nothing), pytest.raises(Full) as caught:
        write_checkpoint(tmp_path / "c", small_state())
    assert str(caught.value.filename).startswith(str(tmp_path / "c" / "records-"))
    assert contents(tmp_path / "c") == {}


def test_a_reader_that_is_overtaken_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path / "c", small_state(1))
    real = _files.open_to_read
    left = [3]

    def overtaken(path: str) -> int:
        if not path.endswith("manifest.json") and left[0]:
            left[0] -= 1
            numbers.append(10 + left[0])
            with monkeypatch.context() as patch:
                patch.setattr(_files, "open_to_read", real)
                write_checkpoint(tmp_path / "c", small_state(numbers[-1]))
        return real(path)

    numbers: list[int] = []
    monkeypatch.setattr(_files, "open_to_read", overtaken)
    assert same(read_checkpoint(tmp_path / "c"), small_state(10))
    assert numbers == [12, 11, 10]


def test_what_is_open_stays_readable_when_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path / "c", small_state(1))
    real = _files.size
    done: list[int] = []

    def replaced(descriptor: int) -> int:
        size = real(descriptor)
        if not done and size != (tmp_path / "c/manifest.json").stat().st_size:
            done.append(size)
            write_checkpoint(tmp_path / "c", small_state(2))
        return size

    monkeypatch.setattr(_files, "size", replaced)
    assert same(read_checkpoint(tmp_path / "c"), small_state(1))
    assert done
    assert same(read_checkpoint(tmp_path / "c"), small_state(2))


def test_readers_and_writers_at_once_see_whole_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_checkpoint(path, small_state(0))
    errors: list[BaseException] = []
    writing = threading.Event()
    writing.set()

    def write(start: int) -> None:
        try:
            for number in range(start, start + 15):
                write_checkpoint(path, small_state(number))
        except BaseException as error:
            errors.append(error)

    def read() -> None:
        try:
            while writing.is_set():
                state = read_checkpoint(path)
                number = state["number"]
                assert isinstance(number, int)
                assert same(state, small_state(number))
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(start,)) for start in (100, 200)]
    reader = threading.Thread(target=read)
    try:
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join(120)
    finally:
        writing.clear()
        reader.join(120)
    assert not any(thread.is_alive() for thread in (reader, *writers))
    assert errors == []
    assert read_checkpoint(path)["number"] in (114, 214)
    assert len(contents(path)) == 3


HOLDER = """
import os, sys, time
from forebay import _files
from forebay._directory import generation
with generation(sys.argv[1]) as made, made.create("state") as (name, descriptor):
    _files.write(descriptor, memoryview(b"half"), 0)
    child = os.fork()
    os.write(1, f"{child or 'child'}\\n".encode())
    time.sleep(100)
"""


def test_a_killed_writer_leaves_no_lock_behind_nor_does_its_child(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_checkpoint(path, small_state(1))
    command = [sys.executable, "-c", HOLDER, str(path)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert holder.stdout is not None
        words = {holder.stdout.readline().strip() for _ in range(2)}
        assert "child" in words, "both processes are there, and one of them has the lock"
        assert len(contents(path)) == 4
        holder.kill()
        holder.wait(60)
        write_checkpoint(path, small_state(2))
        assert same(read_checkpoint(path), small_state(2))
        assert len(contents(path)) == 3
        os.killpg(holder.pid, 0)  # the child is alive
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.communicate(timeout=60)


AT_EXIT = """
import atexit, sys, torch
from forebay._checkpoint import read_checkpoint, write_checkpoint
def save():
    write_checkpoint(sys.argv[1], {"a": torch.arange(100_000)})
    print(int(read_checkpoint(sys.argv[1])["a"].sum()))
atexit.register(save)
"""


def test_a_checkpoint_can_be_written_while_the_interpreter_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", AT_EXIT, str(tmp_path / "c")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.stderr == ""
    assert int(run.stdout) == sum(range(100_000))


def test_all_sorts_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("real")
    paths: list[str | Path] = ["relative", Path("pathlike"), str(tmp_path / "text"), "link"]
    for number, path in enumerate(paths):
        for _ in range(2):
            write_checkpoint(path, small_state(number))
            assert same(read_checkpoint(path), small_state(number))
    assert (tmp_path / "link").is_symlink()
    assert same(read_checkpoint("real"), small_state(3))


def test_permissions_are_those_of_the_process(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_checkpoint(tmp_path / "c", small_state())
    finally:
        os.umask(before)
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o750
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "c").iterdir()} == {0o640}


@pytest.mark.parametrize("name", ["file", "file/below", "no/such"])
def test_a_path_that_can_hold_no_checkpoint_says_why(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    path = tmp_path / name
    with pytest.raises((CheckpointError, OSError)) as caught:
        write_checkpoint(path, {})
    assert str(path) in str(caught.value)
    with pytest.raises(CheckpointError, match=r"this is a file|no such directory"):
        read_checkpoint(path)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("files", [{"notes.txt": "x"}, {"manifest.json": "{}"}])
def test_somebody_elses_directory_is_left_alone(files: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    with pytest.raises(CheckpointError, match=r"give the checkpoint a directory of its own"):
        write_checkpoint(path, {})
    assert {file.name: file.read_text() for file in path.iterdir()} == files
    with pytest.raises(CheckpointError):
        read_checkpoint(path)


def test_a_damaged_checkpoint_can_be_replaced_and_is_kept_until_then(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_checkpoint(path, small_state(1))
    manifest = path / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-1])
    old = contents(path)
    with interposed(Dies(8), nothing), pytest.raises(Crash):
        write_checkpoint(path, small_state(2))
    assert contents(path).items() >= old.items()
    write_checkpoint(path, small_state(3))
    assert same(read_checkpoint(path), small_state(3))
    assert len(contents(path)) == 3


def test_leftovers_are_removed_before_room_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_checkpoint(path, {"a": torch.ones(2)})
    leftover = path / "records-0123456789abcdef.safetensors"
    other = path / "records.safetensors"
    for file in (leftover, other):
        file.write_bytes(b"x")
    seen: list[bool] = []
    with interposed(lambda name: seen.append(leftover.exists() or name != "create"), nothing):
        write_checkpoint(path, {"a": torch.ones(2)})
    assert not all(seen), "it was gone when the first file was created"
    assert other.exists(), "a name that is not of the pattern is somebody else's"
